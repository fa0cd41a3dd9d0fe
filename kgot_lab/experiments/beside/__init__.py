"""The query methods beside graph libraries: the same questions with the same answers, timed in turn."""
