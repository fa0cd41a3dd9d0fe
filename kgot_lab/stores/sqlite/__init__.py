"""A graph in one SQLite file."""
