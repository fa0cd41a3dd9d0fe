"""Search a graph, or several, by what a query is after: lanes, filters, what is invoked besides, and the
context of an answer.
"""
