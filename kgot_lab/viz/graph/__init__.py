"""Draw a graph: which nodes of it, where they go, and how they look."""
