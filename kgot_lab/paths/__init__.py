"""The mode `paths`: sentences joined by names, followed from what a question names to its answer."""
