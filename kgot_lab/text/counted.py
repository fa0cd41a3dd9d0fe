"""A number and what it counts, in words."""

from __future__ import annotations


def counted(number: int, noun: str, many: str = "") -> str:
    """A number with its noun, as in "1 node" or "2,057 nodes"; `many` is the noun for several, where it is
    not the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
