"""Search one or several graphs by the intent of a query: retrievers, filters, invoked methods, and context
for an answer.
"""
