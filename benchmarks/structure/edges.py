"""Edges between analogous texts: drawn by a system over all pairs, and judged at the prevalence of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.structure.analogy_pairs import AnalogyPairs, IdPair, pair
from benchmarks.structure.systems import System, checked_scores
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import Estimate, Numbers, proportion

_KEEP = 2_000


class Drawn(NamedTuple):
    """An edge between two documents, the ids in order, and its score."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class Quality:
    """How good some edges are: the share that joins analogous texts, with its interval over the edges, and
    how many of those it finds.

    `lift` is precision over the precision of edges drawn at random, `prevalence`. Without an edge precision is
    0, and so is its interval.
    """

    edges: int
    right: int
    precision: Estimate
    recall: float
    prevalence: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision.mean + self.recall
        return 2 * self.precision.mean * self.recall / both if both else 0.0

    @property
    def lift(self) -> float:
        """How many times better than chance."""
        return self.precision.mean / self.prevalence if self.prevalence else 0.0


def quality(edges: Iterable[Drawn], pairs: AnalogyPairs) -> Quality:
    """Judge edges against the pairs of one part; edges that it does not judge are left aside.

    Raises BadInput for an edge that is drawn twice, or to an id that is no document's.
    """
    found = _judged(edges, pairs)
    right = sum(each in pairs.analogous for each in found)
    return Quality(
        len(found),
        right,
        proportion(right, len(found)),
        right / max(1, len(pairs.analogous)),
        pairs.prevalence,
    )


def strongest_first(edges: Iterable[Drawn]) -> list[Drawn]:
    """The edges by falling score, ties by their ids."""
    return sorted(edges, key=lambda edge: (-edge.score, edge.first, edge.second))


def drawn(system: System, pairs: AnalogyPairs, keep: int = _KEEP) -> tuple[Drawn, ...]:
    """The best pairs by what a system says of them, at most `keep`; only pairs that this part judges, ties by
    id.

    A system may say one thing of a text from another and a different thing the other way round: the mean of
    both counts.
    """
    if keep < 1:
        raise BadInput(f"to keep the best pairs takes a number of 1 or more, not {keep}")
    table = both_ways(system, pairs)
    ids = [document.id for document in pairs.documents]
    ends = np.array([id in pairs.ends for id in ids])
    place = {id: row for row, id in enumerate(ids)}
    open_to = np.triu(ends[:, None] | ends[None, :], 1)
    for first, second in pairs.left_out:
        rows = sorted((place[first], place[second]))
        open_to[rows[0], rows[1]] = False
    firsts, seconds = np.nonzero(open_to)
    scores = table[firsts, seconds]
    # nonzero goes row by row, so that equal ones come in the order of their ids
    best = np.argsort(-scores, kind="stable")[:keep]
    return tuple(Drawn(ids[firsts[row]], ids[seconds[row]], float(scores[row])) for row in best)


def both_ways(system: System, pairs: AnalogyPairs) -> Numbers:
    """What a system says of every pair of documents, the mean of both directions; shape (documents,
    documents), in their order.
    """
    texts = [document.text for document in pairs.documents]
    system.prepare(texts)
    table = np.stack(
        [checked_scores(system, system.scores(text, texts), len(texts), text[:60]) for text in texts]
    )
    return np.asarray((table + table.T) / 2, np.float64)


def _judged(edges: Iterable[Drawn], pairs: AnalogyPairs) -> list[IdPair]:
    edges, ids = list(edges), {document.id for document in pairs.documents}
    strange = next((id for edge in edges for id in edge[:2] if id not in ids), "")
    if strange:
        raise BadInput(
            f"an edge ends in {strange!r}, which is no document of {pairs.name}; edges go by the ids of its documents"
        )
    found = [pair(edge.first, edge.second) for edge in edges if pairs.judges(edge.first, edge.second)]
    if len(set(found)) < len(found):
        raise BadInput("an edge between the same two texts is drawn twice; count each once")
    return found
