"""Replay of recorded runs: resume, verify and fork run the same loop over a recording."""
