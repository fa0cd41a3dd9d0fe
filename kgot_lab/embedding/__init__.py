"""Text embedders and stored vectors."""
