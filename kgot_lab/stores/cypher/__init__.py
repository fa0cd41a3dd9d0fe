"""Graphs in Cypher: ArcadeDB in the sandbox, or a server that speaks Bolt."""
