"""Learned multi-hop retrieval: a small network scores each candidate for the next passage by features."""
