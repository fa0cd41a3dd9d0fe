"""Read a folder of code and documents into a graph: what is defined, what uses what, where it stands."""
