"""Compare answers with and without a graph on the same questions, by a plan written beforehand."""
