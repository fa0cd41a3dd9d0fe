"""Patterns that are recognised in a graph of code by templates: the second tier of extraction."""
