"""How many tokens a text has, about, and its beginning where they are too many."""

from __future__ import annotations

import math


def tokens(text: str) -> int:
    """About how many tokens a text has: a token is near four characters of English; estimates need no model."""
    return math.ceil(len(text) / 4)


def shorten(text: str, budget: int) -> str:
    """The first part of a text that fits the budget, with a mark where it was cut."""
    return text if tokens(text) <= budget else text[: budget * 4].rstrip() + " …"
