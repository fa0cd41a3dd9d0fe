"""Ask the graph about itself: what it holds, which nodes matter, what is missing, what changed, which code a
pattern is in.
"""
