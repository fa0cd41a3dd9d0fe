"""Liken texts: skeletons, delta edges between them, and an alignment that says what answers what."""
