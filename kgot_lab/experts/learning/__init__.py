"""What an expert learns from conversations: gaps, proposals for review, and contradicted dimensions."""
