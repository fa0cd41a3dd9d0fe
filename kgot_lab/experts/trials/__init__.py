"""A/B trials of two configurations of an expert: assignment, outcomes, and anytime-valid comparison."""
