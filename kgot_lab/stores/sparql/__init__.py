"""Graphs in SPARQL: Oxigraph in the sandbox, or a server that speaks the protocol."""
