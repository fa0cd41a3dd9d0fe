"""Which turns of a long chat does a question need, and does a memory find them?"""
