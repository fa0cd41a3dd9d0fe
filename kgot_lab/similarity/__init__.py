"""Similarity joins of vectors, exact or approximate, that can be interrupted and resumed."""
