"""Question runner: question sets, answering systems and per-question results."""
