"""Vocabularies of node and edge types, and checks that say what is wrong in a graph, where, and what to do."""
