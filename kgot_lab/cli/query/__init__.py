"""`kgot-lab query GRAPH …`: every question to a graph, from the command line; `kgot-lab mcp GRAPH`: the same
for assistants.
"""
