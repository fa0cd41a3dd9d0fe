"""`kgot-lab query GRAPH …`: graph queries on the command line, and `kgot-lab mcp GRAPH` for assistants."""
