"""Draw what the query methods found: an answer with its lanes, an impact as rings, two nodes by their
dimensions.
"""
