"""`kgot-lab query GRAPH …`: every question to a graph, from the command line."""
