"""Chance that is the same each time: a number that a few texts decide."""

from __future__ import annotations

import hashlib


def drawn_by_hash(*where: str) -> float:
    """A number from 0 to 1, drawn evenly by hash."""
    return int.from_bytes(hashlib.sha256("\0".join(where).encode("utf-8", "replace")).digest()[:7]) / 2**56
