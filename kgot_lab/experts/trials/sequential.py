"""Compare two variants after every outcome, as often as one likes, without more false alarms for it: testing
by betting.

The k-th value of one variant is paired with the k-th of the other. Against a supposed difference m a gambler
bets on each pair, by what was seen before it only: were m true, the capital would not grow on average, and it
reaches 1 / alpha with a chance of at most alpha, over all times together (Ville 1939). This is so for every
number of outcomes, not only for many: nothing is approximate.

The capital is the hedged one of Waudby-Smith and Ramdas, Estimating means of bounded random variables by
betting, JRSS B 86 (2024), with theta = 1/2 and its bets on a grid ("grid Kelly"). For X in [0, 1], here
(difference + 1) / 2, and a supposed mean m of X:

    K+(m) = mean over f of prod over i of (1 + f / m * (X_i - m))
    K-(m) = mean over f of prod over i of (1 + f / (1 - m) * (m - X_i))
    capital = max(K+ / 2, K- / 2)

K+ falls and K- rises with m, so the m that no capital speaks against are an interval. It holds where each
pair has the same mean difference, given those before; "above m" and "below m" hold already where no pair has
one on the other side.

Where the rates of both variants drift together, the two values of a pair are from different times and that is
not quite so: there is no promise then, only what benchmarks/experts/ab_trials.py measures of one such drift.
A point estimate at a look that was chosen for its alarm is too far from 0, by any method; the interval is not
touched by that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.errors import BadInput
from kgot_lab.experts.trials.measures import TrialVariant

ALPHA = 0.05
POWER = 0.8
Capital = NDArray[np.float64]
# of the largest bet that cannot lose all: small ones find small differences
_FRACTIONS = np.geomspace(0.02, 0.95, 16)
_HALVINGS = 30  # of the interval from -1 to 1: ends are exact to 2e-9


@dataclass(frozen=True)
class SequentialComparison:  # 15 fields: a row of the table of a verdict
    """How variant b differs from variant a, at a confidence of 1 - `alpha` that holds over all looks
    together.

    n_a, n_b: values of each; `pairs` of them were compared. mean_a, mean_b: of all values, None without any.
    difference: the mean of b - a over the pairs; for ranked values how much more often b is the higher of a
    pair than the lower. low, high: the differences that no look so far speaks against. `span`: the largest
    difference there could be. e_value: the capital against no difference now, 1 at the beginning. p: 1 / the
    largest capital so far, at most 1. higher: the variant with the higher values where 0 is excluded, else
    None. detectable: about the smallest true difference that as many pairs find with a power of .8; None
    below two pairs. steady: False where looks at different times exclude every difference: it did not stay
    the same. `low` and `high` are then of now.
    """

    n_a: int
    n_b: int
    pairs: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float
    high: float
    span: float
    e_value: float
    p: float
    higher: TrialVariant | None
    detectable: float | None
    steady: bool
    alpha: float


def bounded_comparison(
    a: Sequence[float], b: Sequence[float], *, most: float = 1.0, alpha: float = ALPHA
) -> SequentialComparison:
    """Compare the means of two variants whose values lie from 0 to `most`, each in the order of time; a share
    is a mean of 0 and 1.

    How the values of one variant lie between those of the other changes nothing. Raises BadInput for values
    outside.
    """
    for value in (*a, *b):
        if not 0 <= value <= most:
            raise BadInput(
                f"a bounded comparison takes values from 0 to {most:g}, not {value!r}; others are compared by rank"
            )
    return _compared(a, b, lambda ours, theirs: (theirs - ours) / most, most, alpha)


def ranked_comparison(
    a: Sequence[float], b: Sequence[float], *, alpha: float = ALPHA
) -> SequentialComparison:
    """Compare two variants whose values have no bound, such as seconds, by which of each pair is higher: P(b
    > a) - P(b < a).

    Any stretching of the scale that keeps the order gives the same answer, and one very slow answer counts as
    one. Raises BadInput for values that are no finite number.
    """
    if not all(math.isfinite(value) for value in (*a, *b)):
        raise BadInput("a comparison by rank takes finite numbers")
    return _compared(a, b, lambda ours, theirs: np.sign(theirs - ours), 1.0, alpha)


def log_capitals(differences: ArrayLike, supposed: float = 0.0) -> tuple[Capital, Capital]:
    """The logarithm of K+ / 2 and of K- / 2 after each pair, for differences from -1 to 1, shape (...,
    pairs), against a supposed mean.

    The first grows where the differences are above the supposed one, the second where they are below. Raises
    BadInput for differences that lie outside, or a supposed one that is not between -1 and 1.
    """
    given = np.asarray(differences, np.float64)
    if not (np.abs(given) <= 1).all() or not -1 < supposed < 1:
        raise BadInput("capital is counted for differences from -1 to 1, against a supposed one between")
    return _above(given, supposed), _above(-given, -supposed)


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _compared(
    a: Sequence[float],
    b: Sequence[float],
    between: Callable[[Capital, Capital], Capital],
    span: float,
    alpha: float,
) -> SequentialComparison:
    if not 0 < alpha < 1:
        raise BadInput(f"alpha is the share of false alarms that is allowed, between 0 and 1, not {alpha!r}")
    pairs = min(len(a), len(b))
    gaps = between(np.asarray(a[:pairs], np.float64), np.asarray(b[:pairs], np.float64))
    above, below = log_capitals(gaps)
    now = max(above[-1], below[-1]) if pairs else 0.0
    best = (above.max(), below.max()) if pairs else (0.0, 0.0)
    bar = math.log(1 / alpha)
    low, high = (_end(gaps, bar, ever=True), -_end(-gaps, bar, ever=True)) if pairs else (-1.0, 1.0)
    current = (_end(gaps, bar, ever=False), -_end(-gaps, bar, ever=False)) if pairs else (-1.0, 1.0)
    steady = low <= high
    low, high = (low, high) if steady else current
    higher: TrialVariant | None = None
    if steady and max(best) >= bar:
        higher = "b" if best[0] >= bar else "a"
    detectable = None
    if pairs > 1:
        reach = (current[1] - current[0]) / 2 + NormalDist().inv_cdf(POWER) * float(
            gaps.std(ddof=1)
        ) / math.sqrt(pairs)
        detectable = span * min(reach, 1.0)
    return SequentialComparison(
        n_a=len(a),
        n_b=len(b),
        pairs=pairs,
        mean_a=fmean(a) if len(a) else None,
        mean_b=fmean(b) if len(b) else None,
        difference=span * float(gaps.mean()) if pairs else None,
        low=span * low,
        high=span * high,
        span=span,
        e_value=math.exp(min(float(now), 700.0)) if pairs else 1.0,  # e^709 is the largest number there is
        p=min(1.0, math.exp(-float(max(best)))),
        higher=higher,
        detectable=detectable,
        steady=steady,
        alpha=alpha,
    )


def _above(gaps: Capital, supposed: float) -> Capital:
    """log K+ / 2 after each pair."""
    mean = (supposed + 1) / 2
    growth = ((gaps + 1) / 2 / mean - 1)[..., None] * _FRACTIONS
    wealth = np.cumsum(np.log1p(growth), axis=-2)
    top = wealth.max(axis=-1)
    total: Capital = top + np.log(np.exp(wealth - top[..., None]).mean(axis=-1)) - math.log(2)
    return total


def _end(gaps: Capital, bar: float, *, ever: bool) -> float:
    """The largest supposed difference that K+ / 2 excludes, at any time so far or now: the lower end of the
    interval.
    """
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        capital = _above(gaps, middle)
        if (capital.max() if ever else capital[-1]) >= bar:
            low = middle
        else:
            high = middle
    return low
