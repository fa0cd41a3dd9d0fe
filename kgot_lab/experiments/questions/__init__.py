"""Does the loop answer questions?"""
