"""Recall benchmark: data sets, retrieval systems and per-query results."""
