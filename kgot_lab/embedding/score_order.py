"""The order of scores: the highest first, ties by place. Sorted as whole numbers, which a processor does many
at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOW = np.uint64(0xFFFFFFFF)


def descending(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The places of some scores, the highest first, equal ones in the order they stand in; shape (n,). None
    may be NaN.

    As `np.argsort(-scores, kind="stable")`, in a half to a quarter of its time (benchmarks/join/lanes.py): an
    unstable sort of whole numbers runs on the vector unit, and the place in their lower half makes each of
    them another, so that there is only one order.
    """
    if scores.dtype == np.float32:
        bits = (scores + np.float32(0)).view(np.uint32)  # + 0 makes 0 of -0
        # Without its sign a float grows with its bits; so the highest gets the lowest number.
        return _by_number(
            np.where(bits >> np.uint32(31), bits, bits ^ np.uint32(0x7FFFFFFF)), np.arange(len(bits))
        )
    order = np.argsort(-scores)
    ordered = scores[order]
    lower = ordered[1:] != ordered[:-1]
    return order if lower.all() else _by_number(np.concatenate([[0], np.cumsum(lower)]), order)


def _by_number(numbers: NDArray[Any], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places by their numbers, then by themselves; both below 2^32."""
    keys = (numbers.astype(np.uint64) << np.uint64(32)) | places.astype(np.uint64)
    keys.sort()
    return (keys & _LOW).astype(np.int64)
