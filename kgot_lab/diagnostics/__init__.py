"""Examine this computer: each piece tried for real, and how to get what is missing; needs nothing installed
itself.
"""
