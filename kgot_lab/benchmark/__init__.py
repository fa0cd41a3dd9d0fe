"""The recall benchmark, the question runner and the comparison of answers with and without a graph."""
