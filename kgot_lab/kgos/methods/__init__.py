"""Ask the graph: one question a file, each a function over a PropertyGraph whose result prints, turns into a
frame and says why.
"""
