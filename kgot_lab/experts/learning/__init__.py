"""What an expert learns from conversations: gaps, proposals that await review, and contradicted dimensions.
"""
