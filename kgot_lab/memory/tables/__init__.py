"""Tables in SQLite and in PostgreSQL: those of claims with the statements that are put to them, and the
layouts of others.
"""
