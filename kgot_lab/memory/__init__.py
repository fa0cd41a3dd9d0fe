"""Memory of conversations as triples: stores, extraction from text, and an agent that uses them."""
