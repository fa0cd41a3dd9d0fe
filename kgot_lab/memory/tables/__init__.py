"""The tables of claims, and the statements that are put to them, in SQLite and in PostgreSQL."""
