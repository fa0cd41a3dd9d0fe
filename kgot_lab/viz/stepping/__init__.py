"""Step through a run: its events, graphs, facts with their support, and predictions."""
