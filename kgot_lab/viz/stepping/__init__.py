"""A run as a reader walks through it: its events in words, its graphs, what each fact rests on, and what may
be guessed.
"""
