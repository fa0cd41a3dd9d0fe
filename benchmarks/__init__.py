"""Experiments, one folder each: run them from the checkout with `python -m benchmarks.<folder>.<command>`.

They import kgot_lab; the package imports none of them. Results are in benchmarks/results.
"""
