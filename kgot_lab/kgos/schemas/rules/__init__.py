"""The twelve rules of a sound knowledge graph: each finds what breaks it in the columns of a graph."""
