"""What is valid in a graph: vocabularies of node and edge types as values, and a check that says what is
wrong, where, and what to do.
"""
