"""What lasts from question to question: a run begins with what a memory holds, and what it wrote becomes
claims there.
"""
