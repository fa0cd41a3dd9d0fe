"""Is a model right as often as it is sure? Reliability, expected calibration error, the risk of each share of
answers kept, ROC area.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from kgot_lab.errors import BadInput

BINS = 10


@dataclass(frozen=True)
class Reliability:
    """The answers whose confidence lies from `low` up to `high`: how many, how sure on average, and what
    share of them is right.
    """

    low: float
    high: float
    n: int
    sure: float
    right: float


def reliability(confidence: Sequence[float], right: Sequence[float], bins: int = BINS) -> list[Reliability]:
    """The answers in as many bins of equal width from 0 to 1, those that hold some; raises BadInput for what
    is no pair of shares.
    """
    pairs = _checked(confidence, right)
    found = []
    for number in range(bins):
        some = [(sure, score) for sure, score in pairs if min(int(sure * bins), bins - 1) == number]
        if some:
            means = fmean(sure for sure, _ in some), fmean(score for _, score in some)
            found.append(Reliability(number / bins, (number + 1) / bins, len(some), *means))
    return found


def calibration_error(confidence: Sequence[float], right: Sequence[float], bins: int = BINS) -> float:
    """The expected calibration error (Naeini et al. 2015): sum over bins of n / N * |right - sure|. Raises
    BadInput for no answers.
    """
    table = reliability(confidence, right, bins)
    return sum(row.n * abs(row.right - row.sure) for row in table) / sum(row.n for row in table)


def risk_curve(confidence: Sequence[float], right: Sequence[float]) -> list[tuple[float, float]]:
    """For each coverage k / N, the share of wrong answers among the k surest (Geifman and El-Yaniv 2017);
    equally sure ones enter together.

    Raises BadInput for no answers.
    """
    pairs = _checked(confidence, right)
    levels = sorted({sure for sure, _ in pairs}, reverse=True)
    curve = []
    for level in levels:
        kept = [score for sure, score in pairs if sure >= level]
        curve.append((len(kept) / len(pairs), 1 - fmean(kept)))
    return curve


def risk_area(confidence: Sequence[float], right: Sequence[float]) -> float:
    """The area under the risk for each coverage, 0 is best: the mean risk over all N coverages, a step for
    each level of confidence.
    """
    area, before = 0.0, 0.0
    for coverage, risk in risk_curve(confidence, right):
        area, before = area + (coverage - before) * risk, coverage
    return area


def roc_area(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The area under the ROC curve: how often one of those that should be higher is, a tie counting half
    (Hanley and McNeil 1982).

    Raises BadInput where either side has none.
    """
    if not higher or not lower:
        raise BadInput("the area under a curve needs one value or more on either side")
    return fmean((one > other) + (one == other) / 2 for one in higher for other in lower)


def _checked(confidence: Sequence[float], right: Sequence[float]) -> list[tuple[float, float]]:
    pairs = list(zip(confidence, right, strict=True))
    if not pairs or not all(0 <= value <= 1 for pair in pairs for value in pair):
        raise BadInput(
            "calibration needs for each of one answer or more how sure it is and how right, both from 0 to 1"
        )
    return pairs
