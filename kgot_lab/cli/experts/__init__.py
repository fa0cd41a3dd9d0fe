"""Type: experts that are served, shared and looked after."""
