"""Dimensions that people contradict: which node, which dimension, which way, on whose words; silent where
nothing has drifted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from kgot_lab.errors import BadInput
from kgot_lab.experts.learning.contradictions import DimensionEvidence
from kgot_lab.experts.learning.ledger import GraphProposal, PropertyToChange
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.editing.editor import MADE_BY_HAND
from kgot_lab.text.counted import counted


@dataclass(frozen=True)
class ContradictedDimension:
    """A value that people contradict: which way it should go, how many say so and how many agree with it, and
    with which words.

    `p` is how likely so many would say so were the value right, corrected for all that was watched.
    """

    node: str
    dimension: str
    value: float
    way: str  # "lower" or "higher"
    against: int
    agreeing: int
    p: float
    evidence: tuple[DimensionEvidence, ...]

    def __str__(self) -> str:
        said = f"{self.against} of {counted(self.against + self.agreeing, 'person', 'people')}"
        return (
            f"{self.dimension} of {self.node} is {self.value:g}: {said} say it is {self.way} (p {self.p:.2g})"
        )


@dataclass(frozen=True)
class ContradictionReport:
    """What is contradicted, the surest first; how many values people spoke of; and how many words are older
    than the value.
    """

    found: tuple[ContradictedDimension, ...]
    watched: int
    stale: int

    def __str__(self) -> str:
        head = f"{counted(len(self.found), 'value')} contradicted of {self.watched:,} that people spoke of"
        return "\n".join([head, *map(str, self.found)])


def contradicted_dimensions(
    graph: PropertyGraph,
    evidence: Iterable[DimensionEvidence],
    *,
    error_rate: float = 0.2,
    alpha: float = 0.05,
    middle: float = 0.1,
    since: datetime | None = None,
) -> ContradictionReport:
    """The values whose other end more people speak for than err.

    Of each person the last word on a value counts, and only one that is not older than `since` and than the
    mark of whoever changed the node by hand. Where the value is right, a person contradicts it at most at the
    rate `error_rate`; reported is what is contradicted more often than that explains: P(X >= against) for X ~
    Bin(against + agreeing, error_rate), corrected over all values that were spoken of so that at most a share
    `alpha` of what is reported is wrong on average, and that where nothing drifted a report is silent as
    often as 1 - alpha (Benjamini and Hochberg 1995). A value within `middle` of .5 is at neither end, so
    nothing contradicts it. Raises BadInput.
    """
    if not 0 < error_rate < 0.5 or not 0 < alpha < 1 or not 0 <= middle < 0.5:
        raise BadInput("error_rate and middle lie between 0 and .5, alpha between 0 and 1")
    last: dict[tuple[str, str], dict[str, DimensionEvidence]] = defaultdict(dict)
    stale = 0
    for each in sorted(evidence, key=lambda one: one.at.timestamp() if one.at else -math.inf):
        value = graph.node(each.node).properties.get(each.dimension) if each.node in graph else None
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value - 0.5) <= middle:
            continue
        if _is_stale(graph, each, since):
            stale += 1
            continue
        last[each.node, each.dimension][each.by] = each
    judged = [
        _judged(graph, node, dimension, list(said.values()), error_rate)
        for (node, dimension), said in sorted(last.items())
    ]
    corrected = false_discovery([each.p for each in judged])
    found = [
        ContradictedDimension(**{**vars(each), "p": p})
        for each, p in zip(judged, corrected, strict=True)
        if p <= alpha and each.against
    ]
    return ContradictionReport(
        tuple(sorted(found, key=lambda each: (each.p, each.node, each.dimension))), len(judged), stale
    )


def contradiction_proposal(graph: str, contradicted: ContradictedDimension, value: float) -> GraphProposal:
    """The proposal to give a contradicted value another one, which a person says; raises BadInput for one
    that goes the other way.
    """
    if (
        not 0 <= value <= 1
        or value == contradicted.value
        or (value < contradicted.value) != (contradicted.way == "lower")
    ):
        said = f"people say that {contradicted.dimension} is {contradicted.way} than {contradicted.value:g}"
        raise BadInput(f"{said}: give such a value, from 0 to 1")
    return GraphProposal(
        graph, (PropertyToChange(contradicted.node, contradicted.dimension, value, contradicted.value),)
    )


def _judged(
    graph: PropertyGraph, node: str, dimension: str, said: list[DimensionEvidence], error_rate: float
) -> ContradictedDimension:
    value = float(graph.node(node).properties[dimension])
    wrong = "low" if value > 0.5 else "high"
    against = tuple(each for each in said if each.end == wrong)
    p = upper_tail(len(against), len(said), error_rate)
    way = "lower" if wrong == "low" else "higher"
    return ContradictedDimension(
        node, dimension, value, way, len(against), len(said) - len(against), p, against
    )


def false_discovery(ps: Sequence[float]) -> list[float]:
    """p-values corrected for the share of false discoveries, in the order given: the i-th smallest times n /
    i, never decreasing.
    """
    order, least, corrected = sorted(range(len(ps)), key=ps.__getitem__), 1.0, [0.0] * len(ps)
    for rank in range(len(ps), 0, -1):
        least = min(least, ps[order[rank - 1]] * len(ps) / rank)
        corrected[order[rank - 1]] = least
    return corrected


def upper_tail(least: int, of: int, rate: float) -> float:
    """P(X >= least) for X ~ Bin(of, rate)."""
    return min(
        1.0, math.fsum(math.comb(of, k) * rate**k * (1 - rate) ** (of - k) for k in range(least, of + 1))
    )


def _is_stale(graph: PropertyGraph, each: DimensionEvidence, since: datetime | None) -> bool:
    """Whether words are too old, or older than the last change of the node by hand; words without a time are
    never.
    """
    if each.at is None:
        return False
    if since is not None and each.at < since:
        return True
    mark = graph.node(each.node).properties.get(MADE_BY_HAND)
    try:
        changed = datetime.fromisoformat(str(mark["at"])) if isinstance(mark, dict) else None
    except (KeyError, ValueError):
        return False  # a mark of other makers says no time
    return changed is not None and changed.tzinfo is not None and each.at < changed
