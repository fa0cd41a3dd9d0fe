"""Worlds built on memory and stores, each with tables of its own."""
