"""Follow names by what was learnt: clues for each passage that could come next, weighed by a small network."""
