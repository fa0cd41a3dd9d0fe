"""The area under the ROC curve of what should be higher and what lower."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from kgot_lab.errors import BadInput


def roc_area(higher: Sequence[float], lower: Sequence[float]) -> float:
    """Compute the area under the ROC curve (Hanley and McNeil 1982).

    It is the probability that one of `higher` exceeds one of `lower`, a tie counting half. Raises BadInput if
    either side is empty.
    """
    if not higher or not lower:
        raise BadInput("the area under a curve needs one value or more on either side")
    return fmean((one > other) + (one == other) / 2 for one in higher for other in lower)
