"""A trial of two variants: assignment by a hash, outcomes, measures, and the sequential test."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.arguments import CheckedRecord, bounded
from kgot_lab.errors import BadInput, require, require_known

# The variant of a conversation, assigned by a hash, so that no list must be stored.

TrialVariant = Literal["a", "b"]
VARIANTS: tuple[TrialVariant, TrialVariant] = ("a", "b")
EVEN_SHARES = (0.5, 0.5)


def assign_variant(test_id: str, unit: str, shares: tuple[float, float] = EVEN_SHARES) -> TrialVariant:
    """Assign a unit (the id of a conversation) to a variant of a test, by a hash.

    The variant is always the same, and independent of that in other tests. SHA-256 of both ids, read as a
    number from 0 to 1, is compared with the share of "a". Changing the shares of a running test moves units
    between variants, so begin a new test instead. Raises BadInput for an empty id or invalid shares.
    """
    for what, text in (("the id of a test", test_id), ("the id of a conversation", unit)):
        require(text, str, f"{what} is a text")
        if not text:
            raise BadInput(f"{what} is empty: every one needs an id of its own to be given a variant")
    require_shares(shares)
    told = f"{len(test_id)}:{test_id}:{unit}"  # the length separates pairs of ids with the same characters
    fraction = int.from_bytes(hashlib.sha256(told.encode("utf-8", "replace")).digest()[:7]) / 2**56
    return "a" if fraction < shares[0] else "b"


def require_shares(shares: tuple[float, float]) -> None:
    """Raise BadInput unless these are the shares of two variants: both above 0, with the sum 1."""
    if len(shares) != 2 or not all(0 < share < 1 for share in shares) or not math.isclose(sum(shares), 1):
        raise BadInput(f"the shares of two variants are above 0 and make 1, as (.5, .5), not {tuple(shares)}")


# The outcome of one answer in a trial.


@dataclass(frozen=True, kw_only=True)
class TrialOutcome(CheckedRecord):
    """The outcome of one answer. Raises BadInput for impossible counts and times.

    test_id, variant, unit: the test, the variant of the conversation, and the conversation's id. at: when the
    outcome was settled (a thumb was given, or waited for long enough), in seconds since any origin. A
    sequential comparison takes outcomes in this order, so an outcome must not change after a look. thumb: +1,
    -1, or None without a rating. told, cited: the number of nodes in the prompt, and how many of these were
    cited. false_citations: the number of citations of anything else. seconds_first, seconds_whole: time to
    the first token and to the last, None if no token came. intent_right: whether its intent was right, if
    that is known. digest: of the configuration that answered, or "". It reveals two configurations within one
    variant.
    """

    test_id: str
    variant: TrialVariant
    unit: str
    at: float
    thumb: int | None = bounded(None, -1, 1)
    told: int = 0
    cited: int = 0
    false_citations: int = 0
    seconds_first: float | None = None
    seconds_whole: float | None = None
    intent_right: bool | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.test_id or not self.unit:
            raise BadInput("an outcome belongs to a test and a conversation: both ids must be given")
        require_known("variant", VARIANTS, self.variant)
        if self.thumb not in (1, -1, None):
            raise BadInput(f"a thumb is +1, -1 or None, not {self.thumb!r}")
        if self.cited > self.told:
            problem = f"{self.cited} nodes cited of {self.told} in the prompt"
            raise BadInput(f"{problem}: others are false citations")


MAX_FALSE_CITATIONS = 4  # false citations of one answer that are counted: a comparison valid for any number of outcomes needs a bound


@dataclass(frozen=True)
class TrialMeasure:
    """A number from 0 to `most` for an outcome, or None if it has none.

    `ranked` ones are unbounded and compared by order.
    """

    name: str
    value: Callable[[TrialOutcome], float | None]
    more_is_better: bool = True
    most: float = 1.0
    ranked: bool = False

    def better_variant(self, favours_higher: TrialVariant | None) -> TrialVariant | None:
        """Return the better variant, given the one with the higher values, or None if that is not known."""
        if favours_higher is None or self.more_is_better:
            return favours_higher
        return "a" if favours_higher == "b" else "b"


_MEASURES = (
    TrialMeasure("thumbs", lambda one: one.thumb and float(one.thumb > 0)),
    TrialMeasure("citation use", lambda one: one.cited / one.told if one.told else None),
    TrialMeasure(
        "false citations",
        lambda one: float(min(one.false_citations, MAX_FALSE_CITATIONS)),
        more_is_better=False,
        most=MAX_FALSE_CITATIONS,
    ),
    TrialMeasure("seconds to first token", lambda one: one.seconds_first, more_is_better=False, ranked=True),
    TrialMeasure("intent accuracy", lambda one: one.intent_right),
)
TRIAL_MEASURES = {measure.name: measure for measure in _MEASURES}


def find_measure(name: str) -> TrialMeasure:
    """Return a measure by its name.

    Raises UnknownName if there is none.
    """
    require_known("measure of a trial", TRIAL_MEASURES, name)
    return TRIAL_MEASURES[name]


def sort_by_settled(outcomes: Sequence[TrialOutcome]) -> list[TrialOutcome]:
    """Sort outcomes by the time they were settled, then by conversation and content."""
    return sorted(outcomes, key=lambda outcome: (outcome.at, outcome.unit, repr(outcome)))


def values_by_variant(
    outcomes: Sequence[TrialOutcome], measure: TrialMeasure
) -> dict[TrialVariant, list[float]]:
    """Return one value for each conversation, by variant, in the order given.

    It is that of the conversation's first outcome with one. Answers of one conversation are not independent,
    and their number may be an effect of the variant. The first answer has neither problem.
    """
    seen: dict[TrialVariant, dict[str, float]] = {variant: {} for variant in VARIANTS}
    for outcome in outcomes:
        value = measure.value(outcome)
        if value is not None:
            seen[outcome.variant].setdefault(outcome.unit, value)
    return {variant: list(values.values()) for variant, values in seen.items()}


# Sequential comparison of two variants after every outcome, without more false alarms for repeated looks:
# testing by betting.
#
# The k-th value of one variant is paired with the k-th of the other. Against a supposed difference m, a
# gambler bets on each pair, using only earlier pairs. If m is true, the capital does not grow on average, and
# it reaches 1 / alpha with a probability of at most alpha, over all times together (Ville 1939). This holds
# for every number of outcomes, without approximation.
#
# The capital is the hedged one of Waudby-Smith and Ramdas, Estimating means of bounded random variables by
# betting, JRSS B 86 (2024), with theta = 1/2 and its bets on a grid ("grid Kelly"). For X in [0, 1], here
# (difference + 1) / 2, and a supposed mean m of X:
#
#     K+(m) = mean over f of prod over i of (1 + f / m * (X_i - m))
#     K-(m) = mean over f of prod over i of (1 + f / (1 - m) * (m - X_i))
#     capital = max(K+ / 2, K- / 2)
#
# K+ falls and K- rises with m, so the m that are not excluded form an interval. It is valid if each pair has
# the same mean difference, given those before. The statements "above m" and "below m" only require that no
# pair has its mean on the other side.
#
# If the rates of both variants drift together, the two values of a pair are from different times, and this
# does not hold exactly. There is no guarantee then, only the result for one such drift in
# benchmarks/results/ab_trials.json. A point estimate at a look that was chosen for its alarm is too far from
# 0, with any method. The interval is not affected.

ALPHA = 0.05
POWER = 0.8
Capital = NDArray[np.float64]
# of the largest bet that cannot lose everything: small ones find small differences
_BET_FRACTIONS = np.geomspace(0.02, 0.95, 16)
_BISECTIONS = 30  # of the interval from -1 to 1: ends are exact to 2e-9


@dataclass(frozen=True)
class SequentialComparison:  # 15 fields: a row of the table of a verdict
    """The difference between variants b and a, with anytime-valid confidence 1 - `alpha` over all looks.

    n_a, n_b: values of each. `pairs` of them were compared. mean_a, mean_b: of all values, None without any.
    difference: the mean of b - a over the pairs. For ranked values it is how much more often b is the higher
    of a pair than the lower. low, high: the differences that no look so far excludes. `span`: the largest
    possible difference. e_value: the capital against no difference now, 1 at the beginning. p: 1 / the
    largest capital so far, at most 1. higher: the variant with the higher values if 0 is excluded, else None.
    detectable: approximately the smallest true difference that as many pairs find with a power of .8, None
    below two pairs. steady: False if looks at different times together exclude every difference, so that it
    was not constant. `low` and `high` are then those of now.
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
    """Compare the means of two variants whose values lie from 0 to `most`, each in time order.

    A share is a mean of 0 and 1. How the values of the two variants interleave does not matter. Raises
    BadInput for values out of range.
    """
    for value in (*a, *b):
        if not 0 <= value <= most:
            raise BadInput(f"a bounded comparison takes values from 0 to {most:g}, not {value!r}")
    return _compare(a, b, lambda ours, theirs: (theirs - ours) / most, most, alpha)


def ranked_comparison(
    a: Sequence[float], b: Sequence[float], *, alpha: float = ALPHA
) -> SequentialComparison:
    """Compare two variants with unbounded values, such as seconds, by the order within pairs.

    The difference is P(b > a) - P(b < a). Any monotone transformation of the scale gives the same result, and
    one very slow answer counts as one. Raises BadInput for values that are not finite numbers.
    """
    if not all(math.isfinite(value) for value in (*a, *b)):
        raise BadInput("a comparison by rank takes finite numbers")
    return _compare(a, b, lambda ours, theirs: np.sign(theirs - ours), 1.0, alpha)


def log_capitals(differences: ArrayLike, supposed: float = 0.0) -> tuple[Capital, Capital]:
    """Return log(K+ / 2) and log(K- / 2) after each pair, for differences from -1 to 1, shape (..., pairs).

    The first grows if the differences are above the supposed mean, the second if they are below. Raises
    BadInput if differences are out of range, or the supposed mean is not between -1 and 1.
    """
    values = np.asarray(differences, np.float64)
    if not (np.abs(values) <= 1).all() or not -1 < supposed < 1:
        raise BadInput("capital is counted for differences from -1 to 1, against a supposed one between")
    return _log_capital(values, supposed), _log_capital(-values, -supposed)


# --- parts ---


def _compare(
    a: Sequence[float],
    b: Sequence[float],
    difference: Callable[[Capital, Capital], Capital],
    span: float,
    alpha: float,
) -> SequentialComparison:
    if not 0 < alpha < 1:
        raise BadInput(f"alpha is the share of false alarms that is allowed, between 0 and 1, not {alpha!r}")
    pairs = min(len(a), len(b))
    differences = difference(np.asarray(a[:pairs], np.float64), np.asarray(b[:pairs], np.float64))
    above, below = log_capitals(differences)
    current_capital = max(above[-1], below[-1]) if pairs else 0.0
    peak_capitals = (above.max(), below.max()) if pairs else (0.0, 0.0)
    threshold = math.log(1 / alpha)
    low, high = current = (-1.0, 1.0)
    if pairs:
        (low, high), current = (_interval(differences, threshold, ever=ever) for ever in (True, False))
    steady = low <= high
    low, high = (low, high) if steady else current
    higher: TrialVariant | None = None
    if steady and max(peak_capitals) >= threshold:
        higher = "b" if peak_capitals[0] >= threshold else "a"
    detectable = None
    if pairs > 1:
        deviation = float(differences.std(ddof=1))
        reach = (current[1] - current[0]) / 2 + NormalDist().inv_cdf(POWER) * deviation / math.sqrt(pairs)
        detectable = span * min(reach, 1.0)
    return SequentialComparison(
        n_a=len(a),
        n_b=len(b),
        pairs=pairs,
        mean_a=fmean(a) if len(a) else None,
        mean_b=fmean(b) if len(b) else None,
        difference=span * float(differences.mean()) if pairs else None,
        low=span * low,
        high=span * high,
        span=span,
        e_value=math.exp(min(float(current_capital), 700.0))
        if pairs
        else 1.0,  # e^709 is the largest number there is
        p=min(1.0, math.exp(-float(max(peak_capitals)))),
        higher=higher,
        detectable=detectable,
        steady=steady,
        alpha=alpha,
    )


def _log_capital(differences: Capital, supposed: float) -> Capital:
    """Return log(K+ / 2) after each pair."""
    mean = (supposed + 1) / 2
    growth = ((differences + 1) / 2 / mean - 1)[..., None] * _BET_FRACTIONS
    wealth = np.cumsum(np.log1p(growth), axis=-2)
    maximum = wealth.max(axis=-1)
    total: Capital = maximum + np.log(np.exp(wealth - maximum[..., None]).mean(axis=-1)) - math.log(2)
    return total


def _interval(differences: Capital, threshold: float, *, ever: bool) -> tuple[float, float]:
    """Return both ends of the interval of the supposed differences that are not excluded."""
    low = _interval_end(differences, threshold, ever=ever)
    return low, -_interval_end(-differences, threshold, ever=ever)


def _interval_end(differences: Capital, threshold: float, *, ever: bool) -> float:
    """Return the largest supposed difference that K+ / 2 excludes, which is the lower end of the interval.

    With `ever`, an exclusion at any time so far counts, otherwise only one now.
    """
    low, high = -1.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        capital = _log_capital(differences, middle)
        if (capital.max() if ever else capital[-1]) >= threshold:
            low = middle
        else:
            high = middle
    return low
