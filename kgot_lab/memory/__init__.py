"""Remember what was said, as triples: stores that keep them, extraction that finds them, and an agent that is
reminded of them.
"""
