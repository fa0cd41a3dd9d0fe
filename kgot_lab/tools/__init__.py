"""Fetch facts: what the loop may call."""
