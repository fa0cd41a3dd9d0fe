"""Turn texts into vectors."""
