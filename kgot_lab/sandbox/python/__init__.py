"""Run statements in Python over a NetworkX graph, inside the sandbox."""
