"""Greet: what the front door itself does in one line, asking a question and showing whatever is at hand."""
