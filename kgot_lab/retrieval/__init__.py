"""Retrievers that rank documents, fusion of rankings, and walks over graphs."""
