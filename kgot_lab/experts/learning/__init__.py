"""What an expert may learn from its conversations: gaps, proposals that wait for a person, and dimensions
that people contradict.
"""
