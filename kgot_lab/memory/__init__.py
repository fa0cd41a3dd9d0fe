"""Remember: triples with their sources, and what is believed of them, since when, and why."""
