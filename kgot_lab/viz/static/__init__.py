"""Draw a graph, a plot, two texts or a table: still, so that it shows wherever it is read."""
