"""The Knowledge Graph of Thoughts loop as a stream of events."""
