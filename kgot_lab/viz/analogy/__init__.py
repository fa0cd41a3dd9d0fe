"""Draw two texts, their skeletons and what answers what."""
