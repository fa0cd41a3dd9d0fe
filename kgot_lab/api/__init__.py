"""The public one-line API: ask a question, talk with an expert, show a value."""
