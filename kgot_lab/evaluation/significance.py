"""Significance tests: paired randomisation, bootstrap intervals, Holm correction, effect sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, UnknownName, require_known
from kgot_lab.evaluation.measures import Scores
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed
from kgot_lab.text.cleaning import format_count

Numbers = NDArray[np.float64]

ROUNDS = 10_000
_TOLERANCE = 1e-9  # sums in another order differ by less


@dataclass(frozen=True)
class Estimate:
    """A mean over n queries and its bootstrap interval."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Comparison:
    """A system against the baseline on the same queries.

    `difference` is the mean of the paired differences, `p_holm` is corrected for all rows of the table,
    `effect` is Cohen's d_z, and `detectable` the smallest true difference that this many queries would show
    with a power of 80 %.
    """

    system: str
    own: Estimate
    difference: Estimate
    p: float
    p_holm: float
    effect: float
    wins: int
    ties: int
    losses: int
    detectable: float


@dataclass(frozen=True, repr=False)
class Comparisons:
    """All systems against one baseline on one measure. The p-values are one family."""

    baseline: str
    measure: str
    own: Estimate
    rows: tuple[Comparison, ...]

    def __getitem__(self, system: str) -> Comparison:
        """Return the row of a system.

        Raises UnknownName if there is none.
        """
        for row in self.rows:
            if row.system == system:
                return row
        raise UnknownName("system", system, [row.system for row in self.rows])

    def grid(self, title: str = "") -> Grid:
        """Return the comparisons as a table, with corrected p-values below .05 in bold."""
        columns = tuple("system,mean,difference,95 %,p,p Holm,d_z,wins/ties/losses,detectable".split(","))
        first = (Cell(f"{self.baseline} (baseline)"), Cell(format_decimal(self.own.mean)), *[Cell("")] * 7)
        title = (
            title or f"{self.measure} against {self.baseline}, {format_count(self.own.n, 'query', 'queries')}"
        )
        return Grid(title, columns, (first, *map(_comparison_cells, self.rows)))

    def _repr_html_(self) -> str:
        return self.grid().html

    def __repr__(self) -> str:
        return self.grid().text


def compare(
    scores: Mapping[str, Scores],
    baseline: str,
    measure: str = "recall@5",
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    groups: Mapping[str, str] | None = None,
) -> Comparisons:
    """Compare every system with the baseline by paired tests, with p-values corrected by Holm.

    With `groups`, the group of each query, the queries of a group are resampled, and their signs flipped,
    together. Raises UnknownName for an unknown baseline, and BadInput if the systems were not scored on the
    same queries.
    """
    require_known("system", scores, baseline)
    others = [system for system in scores if system != baseline]
    queries = list(scores[baseline].per_query(measure))
    for system in others:
        if set(scores[system].per_query(measure)) != set(queries):
            problem = f"{system} and {baseline} were not scored on the same queries"
            raise BadInput(f"{problem}, so they cannot be compared in pairs")
    both = [scores[system].per_query(measure) for system in (baseline, *others)]
    values = np.array([[own[query] for query in queries] for own in both], np.float64)
    differences = values[1:] - values[0]
    query_groups = [groups[query] for query in queries] if groups else None
    chance = {"rounds": rounds, "seed": seed}
    first, *own = intervals(values, query_groups, **chance)
    gaps = intervals(differences, query_groups, **chance)
    ps = [sign_flip_p(row, groups=query_groups, **chance) for row in differences]
    estimates = zip(others, own, gaps, ps, holm(ps), strict=True)
    rows = (
        Comparison(*each, effect_size(row), *wins_ties_losses(row), smallest_detectable(row))
        for each, row in zip(estimates, differences, strict=True)
    )
    return Comparisons(baseline, measure, first, tuple(rows))


# --- methods ---


def sign_flip_p(
    differences: ArrayLike, groups: Sequence[str] | None = None, *, rounds: int = ROUNDS, seed: int = 0
) -> float:
    """Compute the two-sided p-value of a paired randomisation test.

    It is the share of random sign flips whose mean is at least as far from 0 as the observed one.
    `differences` has one number a query. With `groups`, the group of each query, the signs of a group are
    flipped together. If 2 to the number of non-zero differences is at most `rounds`,
    every flip is tried and p is exact. Otherwise p = (1 + flips as far) / (1 + rounds), which is never 0
    (Phipson and Smyth 2010). Smucker et al. 2007 recommend this test for retrieval. Raises BadInput for fewer than 2 queries or groups, or a
    value that is not finite.
    """
    sums = _group_sums(_checked_vector(differences)[None], groups)[0][0]
    moved = sums[sums != 0]
    if not len(moved):
        return 1.0
    if 2 ** len(moved) <= rounds:
        numbers = np.arange(2 ** len(moved))
        signs = 1.0 - 2.0 * ((numbers[:, None] >> np.arange(len(moved))) & 1)
        return float(np.mean(_at_least_as_far(signs @ moved, moved.sum())))
    signs = 1.0 - 2.0 * np.random.default_rng(seed).integers(0, 2, (rounds, len(moved)), np.int8)
    return float((1 + np.count_nonzero(_at_least_as_far(signs @ moved, moved.sum()))) / (1 + rounds))


def interval(
    values: ArrayLike,
    groups: Sequence[str] | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    confidence: float = 0.95,
) -> Estimate:
    """Compute the mean of one number a query and its BCa bootstrap interval (see `intervals`)."""
    rows = _checked_vector(values)[None]
    return intervals(rows, groups, rounds=rounds, seed=seed, confidence=confidence)[0]


def intervals(
    values: ArrayLike,
    groups: Sequence[str] | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Estimate]:
    """Compute the mean of each row of `values` and its BCa bootstrap interval (Efron 1987).

    `values` has the shape (rows, queries). Queries are drawn with replacement, the same ones for every row,
    and with `groups`, the group of each query, those of a group together (a cluster bootstrap). Use it for
    queries that are not independent, such as those that share a step. BCa corrects the percentiles for bias
    and skew, which means near 1 have. Raises BadInput for fewer than 2 queries or groups, or a value that is
    not finite.
    """
    table = np.asarray(values, np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not np.isfinite(table).all():
        raise BadInput("an interval needs two values or more, all of them finite numbers")
    sums, sizes = _group_sums(table, groups)
    count, times = int(sizes.sum()), _draw_counts(len(sizes), rounds, seed)
    means = times @ sums.T / (times @ sizes)[:, None]
    found = []
    for row, drawn_means in zip(sums, means.T, strict=True):
        mean, without = float(row.sum() / count), (row.sum() - row) / (count - sizes)
        point = Estimate(mean, mean, mean, count)
        found.append(_bca_interval(point, without - without.mean(), drawn_means, confidence))
    return found


def _draw_counts(count: int, rounds: int, seed: int) -> Numbers:
    """Return how often each item is drawn in each bootstrap sample, shape (rounds, count)."""
    drawn = np.random.default_rng(seed).integers(0, count, (rounds, count))
    flat = (drawn + count * np.arange(rounds)[:, None]).ravel()
    return np.bincount(flat, minlength=rounds * count).reshape(rounds, count).astype(np.float64)


def proportion(right: int, of: int, *, confidence: float = 0.95) -> Estimate:
    """Compute a proportion and its Wilson score interval (Wilson 1927).

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n). It needs no resampling, so it suits
    large counts. The proportion of nothing is 0. Raises BadInput unless 0 <= right <= of.
    """
    if not 0 <= right <= of:
        raise BadInput(f"a share is so many of as many or more, not {right} of {of}")
    if not of:
        return Estimate(0.0, 0.0, 0.0, 0)
    z, p = NormalDist().inv_cdf((1 + confidence) / 2), right / of
    middle, half = p + z * z / (2 * of), z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    low, high = ((middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of))
    return Estimate(p, max(0.0, low), min(1.0, high), of)


@check_arguments
def holm(p_values: Sequence[float]) -> list[float]:
    """Correct a family of p-values by Holm's method (Holm 1979), in the order of the input.

    The i-th smallest is multiplied by n - i + 1, and the results never decrease.
    """
    corrected, least = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[index] * (len(p_values) - place)))
        corrected[index] = least
    return corrected


def effect_size(differences: ArrayLike) -> float:
    """Compute Cohen's d_z: the mean of the paired differences over their standard deviation.

    It is infinite if all differences are equal and not 0.
    """
    given = _checked_vector(differences)
    mean, deviation = float(given.mean()), float(given.std(ddof=1))
    if deviation > _TOLERANCE:
        return mean / deviation
    return math.copysign(math.inf, mean) if abs(mean) > _TOLERANCE else 0.0


def wins_ties_losses(differences: ArrayLike) -> tuple[int, int, int]:
    """Count how many queries are won, tied and lost."""
    given = _checked_vector(differences)
    wins, losses = int(np.count_nonzero(given > _TOLERANCE)), int(np.count_nonzero(given < -_TOLERANCE))
    return wins, len(given) - wins - losses, losses


def smallest_detectable(differences: ArrayLike, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Compute the smallest true mean difference that a two-sided test detects with this power.

    The test has as many queries as `differences`. (z(1 - alpha / 2) + z(power)) * sd / sqrt(n), the normal
    approximation for paired samples (Cohen 1988, chapter 2; Webber, Moffat and Zobel 2008 for retrieval). sd
    is that of `differences`.
    """
    given = _checked_vector(differences)
    z = NormalDist().inv_cdf
    return (z(1 - alpha / 2) + z(power)) * float(given.std(ddof=1)) / math.sqrt(len(given))


# --- parts ---


def _checked_vector(values: ArrayLike) -> Numbers:
    given = np.zeros(0)
    with suppress(TypeError, ValueError, OverflowError):
        given = np.asarray(values, np.float64)
    if given.ndim != 1 or len(given) < 2 or not np.isfinite(given).all():
        raise BadInput("a test needs one number for each of two queries or more, all of them finite")
    return given


def _at_least_as_far(sums: Numbers, observed: float) -> NDArray[np.bool_]:
    return np.abs(sums) >= abs(observed) - _TOLERANCE


def _group_sums(table: Numbers, groups: Sequence[str] | None) -> tuple[Numbers, Numbers]:
    """Return the sums of each row over each group, shape (rows, groups), and the sizes of the groups."""
    if groups is None:
        return table, np.ones(table.shape[1])
    columns: dict[str, list[int]] = {}
    for column, group in zip(range(table.shape[1]), groups, strict=True):
        columns.setdefault(group, []).append(column)
    if len(columns) < 2:
        raise BadInput("an interval over groups needs values of two groups or more")
    sums = [[sum(row[some].tolist()) for some in columns.values()] for row in table]
    return np.array(sums), np.array([len(some) for some in columns.values()], np.float64)


def _bca_interval(point: Estimate, jackknife: Numbers, means: Numbers, confidence: float) -> Estimate:
    """Return an estimate with its BCa interval.

    `jackknife` holds the leave-one-out means, less their mean.
    """
    mean = point.mean
    if np.abs(jackknife).max() < _TOLERANCE / point.n:
        return point
    normal = NormalDist()
    edges = mean - _TOLERANCE, mean + _TOLERANCE
    below = (np.count_nonzero(means < edges[0]) + np.count_nonzero(means <= edges[1])) / (2 * len(means))
    bias = normal.inv_cdf(min(max(below, 0.5 / len(means)), 1 - 0.5 / len(means)))
    skew = float((-(jackknife**3)).sum() / (6 * (jackknife**2).sum() ** 1.5))
    ends = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        z = bias + normal.inv_cdf(tail)
        ends.append(normal.cdf(bias + z / (1 - skew * z)))
    low, high = np.quantile(means, ends)
    return replace(point, low=float(low), high=float(high))


def _comparison_cells(row: Comparison) -> tuple[Cell, ...]:
    gap, sure = row.difference, row.p_holm < 0.05
    return (
        Cell(row.system),
        Cell(format_decimal(row.own.mean)),
        Cell(format_signed(gap.mean), sure),
        Cell(f"{format_signed(gap.low)} to {format_signed(gap.high)}"),
        Cell(format_p_value(row.p)),
        Cell(format_p_value(row.p_holm), sure),
        Cell(f"{row.effect:+.2f}".replace("-", "−")),
        Cell(f"{row.wins}/{row.ties}/{row.losses}"),
        # if no query differs, the power is unknown
        Cell(format_decimal(row.detectable) if row.detectable else "–"),
    )
