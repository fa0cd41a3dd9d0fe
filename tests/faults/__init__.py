"""A machine that breaks files: a disk below SQLite that records, stops, fills up, fails and loses power, and
what must hold of each kind of file all the while.
"""
