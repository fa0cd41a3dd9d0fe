"""Questions about folders of one's own: right answers kept, and answers that the files do not give."""
