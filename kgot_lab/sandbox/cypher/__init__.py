"""Run statements in Cypher with ArcadeDB, inside the sandbox."""
