"""A graph in PostgreSQL."""
