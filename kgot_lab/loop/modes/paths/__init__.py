"""The mode `paths` of the loop."""
