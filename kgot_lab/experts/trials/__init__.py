"""Try two configurations of an expert against each other: who is given which, what came of it, and what may
be said of it at any time.
"""
