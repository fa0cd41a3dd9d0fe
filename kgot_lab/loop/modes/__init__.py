"""The modes of the loop."""
