"""Try ideas on data: which systems, which data, which plan; what `kgot-lab bench` and `benchmarks/` run."""
