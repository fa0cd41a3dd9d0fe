"""A line of a reply without what lists and stress put around it."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^(?:[-*•–]\s+)?(?:\*\*|__)?(?:\d+[.)](?!\d))?(?:\*\*|__)?\s*")
_TAIL = re.compile(r"\s*(?:\*\*|__)?$")


def plain_line(line: str) -> str:
    """A line without its number, its bullet and the signs of bold."""
    return _TAIL.sub("", _HEAD.sub("", line.strip()))
