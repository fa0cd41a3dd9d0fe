"""Certificates of runs: what the answer needs, and whether the sentences that were read say it."""
