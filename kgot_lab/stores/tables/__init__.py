"""Tables of one kind in an SQLite file, in memory, or in a schema of a PostgreSQL server, by the same statements."""
