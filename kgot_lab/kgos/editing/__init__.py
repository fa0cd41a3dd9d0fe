"""Change a graph by hand: each change is checked before it is made, marked as made by hand, and can be taken
back.
"""
