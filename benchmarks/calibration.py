"""Whether answers are right as often as their confidence says: calibration error, and risk against coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from kgot_lab.errors import BadInput

BINS = 10


@dataclass(frozen=True)
class Reliability:
    """The answers with a confidence from `low` to `high`: number, mean confidence, and share correct."""

    low: float
    high: float
    n: int
    sure: float
    right: float


def reliability(confidence: Sequence[float], right: Sequence[float], bins: int = BINS) -> list[Reliability]:
    """Bin answers by confidence into `bins` bins of equal width from 0 to 1, without the empty ones.

    Raises BadInput if the inputs are not pairs of shares.
    """
    pairs = _checked_pairs(confidence, right)
    found = []
    for number in range(bins):
        binned = [(sure, score) for sure, score in pairs if min(int(sure * bins), bins - 1) == number]
        if binned:
            means = fmean(sure for sure, _ in binned), fmean(score for _, score in binned)
            found.append(Reliability(number / bins, (number + 1) / bins, len(binned), *means))
    return found


def calibration_error(confidence: Sequence[float], right: Sequence[float], bins: int = BINS) -> float:
    """Compute the expected calibration error (Naeini et al. 2015).

    It is the sum over bins of n / N * |right - sure|. Raises BadInput without answers.
    """
    table = reliability(confidence, right, bins)
    return sum(row.n * abs(row.right - row.sure) for row in table) / sum(row.n for row in table)


def risk_curve(confidence: Sequence[float], right: Sequence[float]) -> list[tuple[float, float]]:
    """Compute the risk-coverage curve (Geifman and El-Yaniv 2017).

    For each coverage k / N, the share of wrong answers among the k most confident. Answers of equal
    confidence enter together. Raises BadInput without answers.
    """
    pairs = _checked_pairs(confidence, right)
    levels = sorted({sure for sure, _ in pairs}, reverse=True)
    curve = []
    for level in levels:
        kept = [score for sure, score in pairs if sure >= level]
        curve.append((len(kept) / len(pairs), 1 - fmean(kept)))
    return curve


def risk_area(confidence: Sequence[float], right: Sequence[float]) -> float:
    """Compute the area under the risk-coverage curve (0 is best).

    It is the mean risk over all N coverages, with one step for each level of confidence.
    """
    area, before = 0.0, 0.0
    for coverage, risk in risk_curve(confidence, right):
        area, before = area + (coverage - before) * risk, coverage
    return area


def _checked_pairs(confidence: Sequence[float], right: Sequence[float]) -> list[tuple[float, float]]:
    pairs = list(zip(confidence, right, strict=True))
    if not pairs or not all(0 <= value <= 1 for pair in pairs for value in pair):
        problem = "calibration needs for each of one answer or more how sure it is and how right"
        raise BadInput(f"{problem}, both from 0 to 1")
    return pairs
