"""Vocabularies of node and edge types, and checks that say what is wrong, where, and what to do."""
