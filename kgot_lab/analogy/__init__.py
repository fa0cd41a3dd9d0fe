"""Structural analogy of texts: skeletons, delta edges, and alignment."""
