"""Run statements in SPARQL with Oxigraph, inside the sandbox."""
