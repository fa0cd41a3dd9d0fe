"""Type: the commands."""
