"""Draw a graph: selection of nodes, layout and looks."""
