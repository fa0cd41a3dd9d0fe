"""How well an expert answers from its graph: what it cites, of what it warns, and when it says that it does
not know.
"""
