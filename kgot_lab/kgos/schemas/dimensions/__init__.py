"""The 56 named dimensions of a node: what they mean, filtering by them, computing some of them, and what
changed between two graphs.
"""
