"""Concepts that a language model reads in documents and docstrings: the third tier of extraction."""
