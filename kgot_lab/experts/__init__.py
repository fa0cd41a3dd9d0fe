"""Experts: chat personas over a knowledge graph."""
