"""The retrieval explorer: a question, its retrievers, and the ranking as their weights change."""
