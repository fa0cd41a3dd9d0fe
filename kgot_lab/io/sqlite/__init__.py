"""One base for every SQLite file: opening, writing, checksums, copies, and the log beside it."""
