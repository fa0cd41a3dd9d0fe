"""Rooms that hold the package under random fire; `run(seconds, seed)` in each, a short form in the tests
beside them.
"""
