"""Which of two variants a conversation is given: drawn by a hash, so that nobody keeps a list."""

from __future__ import annotations

import hashlib
import math
from typing import Literal

from kgot_lab.errors import BadInput, require

TrialVariant = Literal["a", "b"]
VARIANTS: tuple[TrialVariant, TrialVariant] = ("a", "b")
EVEN = (0.5, 0.5)


def variant_of(test_id: str, unit: str, shares: tuple[float, float] = EVEN) -> TrialVariant:
    """The variant of a unit (the id of a conversation) in a test: the same each time, and independent of its
    variant in other tests.

    SHA-256 of both ids, read as a number from 0 to 1, is below the share of "a" or not. Shares that are
    changed while a test runs move units from one variant to the other: begin a new test instead. Raises
    BadInput for an empty id, or shares that are no shares.
    """
    for what, text in (("the id of a test", test_id), ("the id of a conversation", unit)):
        require(text, str, f"{what} is a text")
        if not text:
            raise BadInput(f"{what} is empty: every one needs an id of its own to be given a variant")
    require_shares(shares)
    told = f"{len(test_id)}:{test_id}:{unit}"  # the length keeps two pairs of ids with the same letters apart
    drawn = int.from_bytes(hashlib.sha256(told.encode("utf-8", "replace")).digest()[:7]) / 2**56
    return "a" if drawn < shares[0] else "b"


def require_shares(shares: tuple[float, float]) -> None:
    """Raise BadInput unless these are the shares of two variants: both above 0, together 1."""
    if len(shares) != 2 or not all(0 < share < 1 for share in shares) or not math.isclose(sum(shares), 1):
        raise BadInput(
            f"the shares of two variants are two numbers above 0 that make 1, as (.5, .5), not {tuple(shares)}"
        )
