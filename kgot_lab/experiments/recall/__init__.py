"""Does a search find the passages that a question needs?"""
