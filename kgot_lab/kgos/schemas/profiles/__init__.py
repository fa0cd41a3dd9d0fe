"""SQLite files of other programs that hold a graph: how their tables are told apart, and the graph in them,
read from a copy.
"""
