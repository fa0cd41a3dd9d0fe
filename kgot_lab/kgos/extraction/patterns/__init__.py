"""Patterns that are recognised in a graph of code by templates: the second tier of extraction."""

from kgot_lab.kgos.extraction.patterns import with_patterns

__all__ = ["with_patterns"]
