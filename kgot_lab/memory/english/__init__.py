"""What sentences of English state: facts, and facts that ended. Rules read what spaCy parses."""
