"""Think: the loop that grows a graph and reads the answer from it, as events."""
