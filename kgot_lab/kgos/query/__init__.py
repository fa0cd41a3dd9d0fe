"""Ask by name: each question to a graph with its words, its arguments and their help, for the command line
and for assistants alike.
"""
