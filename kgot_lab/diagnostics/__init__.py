"""Diagnostics of the installation: each component is tried, with advice for what is missing."""
