"""Simulate: a model of known competence, worlds whose answers are known, and what the loop makes of each kind
of error.
"""
