"""A text that can do nothing to what shows it."""

from __future__ import annotations

_JOINERS = "\u200c\u200d"  # invisible, and part of words in many scripts


def harmless(text: str) -> str:
    """A text on one line that cannot move the cursor, colour the terminal or reverse what is read."""
    plain = "".join(
        letter if letter.isprintable() or letter in _JOINERS else " " if letter.isspace() else "\ufffd"
        for letter in text
    )
    return plain.rstrip()
