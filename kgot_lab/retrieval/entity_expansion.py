"""Following names from hit to hit: the question finds a first passage, its names lead to the next one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder, row_products
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Csr, csr
from kgot_lab.retrieval.entity_linking import IS_CALLED, NAME_LINK, Titles, compared_name, name_graph
from kgot_lab.retrieval.fusion import by_maximum, by_range, columns, fused
from kgot_lab.retrieval.neighbours import LazyTexts
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Ranking, checked_documents, full_text

_Floats = NDArray[np.float64]
Edges = NDArray[np.int32]


@dataclass(frozen=True)
class Reach:
    """How far a passage reaches. Chosen on the develop questions of the three bundled sets together."""

    hops: int = 5  # passages chosen one after the other
    asked: float = 0.5  # what a title in the question adds to its passage
    title: float = 1.0  # what a link by title adds, half of it by likeness to the question
    shared: float = 0.7  # what a name that both hold adds, times its rarity and the likeness to the question
    repeated: float = 0.3  # what likeness to a passage chosen before takes off
    common: int = 100  # a name in more passages than this links only those that are called so


def follow(
    documents: Iterable[Document],
    embedder: Embedder,
    reach: Reach = Reach(),
    *,
    graph: PropertyGraph | None = None,
) -> Stage:
    """Choose passages one by one: each time the best of what is left, its names then lead on to others.

    own(d) = earlier score (at least 0) / largest, + asked if the question holds the title of d. value(d) =
    own(d) - repeated * (largest cosine with a chosen passage, at least 0) + the largest over chosen passages
    p and names n that both hold of own(p), at most 1, times link(p, n, d). Where n is the title of one of the
    two, and of the other too or mentioned there, link = title * (1 + likeness) / 2 / sqrt(passages that p is
    so linked to), else 0; where the question does not hold n, nor more than `common` passages, shared *
    rarity * likeness is added. Likeness is the min-max normalised cosine of d with the question, rarity is
    log(N / holders) / log(N). The names are those of `name_graph(documents)`, or of another such graph: bare
    hubs without a text, which are walked through. The chosen come first in their order, 1 point apart, then
    all others by value. A ranking without hits stays as it is. Raises BadInput for a graph of other
    documents, and for hits that are none of the documents, that occur twice, or whose score is not a finite
    number.
    """
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    ids = [document.id for document in documents]
    row_of = {id: row for row, id in enumerate(ids)}
    names, titles = (
        _Names(_checked(name_graph(documents) if graph is None else graph, ids), len(ids), reach.common),
        Titles(documents),
    )
    matrix = embedder.embed([full_text(document) for document in documents])
    shown = [document.title or document.id for document in documents]

    def step(ranking: Ranking) -> Ranking:
        if not ranking.hits:
            return ranking
        value = np.zeros(len(ids))
        rows, scores = columns(ranking, ids)
        value[rows] = by_maximum(scores)
        asked = {id for name in titles.mentioned(ranking.query.text, cased=False) for id in titles[name]}
        value[[row_of[id] for id in asked]] += reach.asked
        likeness = by_range(row_products(matrix, embedder.embed([ranking.query.text])[0]).astype(np.float64))
        trail = _Trail(value, likeness, compared_name(ranking.query.text))
        for _ in range(min(reach.hops, len(ids))):
            trail.choose(names, matrix, reach)
        return trail.ranking(ranking, ids, shown, names)

    usual = Reach()
    changed = [
        f"{field.name}={getattr(reach, field.name)}"
        for field in fields(reach)
        if getattr(reach, field.name) != getattr(usual, field.name)
    ]
    return Stage(
        f"follow({', '.join([*changed, *['other names'] * (graph is not None)])})".replace("()", ""), step
    )


def _checked(graph: PropertyGraph, ids: list[str]) -> PropertyGraph:
    """The graph of names, once it is sure that it begins with these documents by id, and that each edge leads
    from one to a name.
    """
    if list(graph.ids[: len(ids)]) != ids:
        raise BadInput(
            "the graph of names must begin with these documents in the order of their ids; build it with name_graph(documents)"
        )
    if (graph.sources >= len(ids)).any() or (graph.targets < len(ids)).any():
        raise BadInput(
            "the edges of a graph of names lead from documents to names; build it with name_graph(documents)"
        )
    return graph


class _Names:
    """Which names lead from which passages to which; row numbers throughout."""

    def __init__(self, graph: PropertyGraph, size: int, common: int) -> None:
        # the graph holds the documents first, sorted as here
        rows, columns = (graph.sources, graph.targets - size)
        self._passage, self._name = rows, columns  # of each edge
        self._kind = np.array(graph.type_names or [""])[graph.type_codes]
        self._called, self._telling = self._kind == IS_CALLED, self._kind != NAME_LINK
        self._texts = [f" {id.removeprefix('name:')} " for id in graph.ids[size:]]
        self._of, self._held_by = csr(rows, columns, size), csr(columns, rows, len(self._texts))
        holders = np.diff(self._held_by.indptr)
        self._rarity = np.log(size / np.maximum(holders, 1)) / np.log(max(size, 2))
        self._common = holders > common

    def links(self, row: int, question: str, likeness: _Floats, reach: Reach) -> tuple[Edges, Edges, _Floats]:
        """The ways from a passage through a name to another: the edge to the name, the edge of the other, and
        how strong the link is.
        """
        outward = _edges(self._of, row)
        ends = [_edges(self._held_by, name) for name in self._name[outward].tolist()]
        first = np.repeat(outward, [len(part) for part in ends])
        last = np.concatenate([np.empty(0, np.int32), *ends])
        other = self._passage[last] != row
        first, last = first[other], last[other]
        found, names = self._passage[last], self._name[first]
        by_title = (self._called[last] & self._telling[first]) | (self._called[first] & self._telling[last])
        fan = max(1, len(np.unique(found[by_title])))
        asked = {name for name in self._name[outward].tolist() if self._texts[name] in f" {question} "}
        idle = self._common[names] | np.isin(names, list(asked))
        shared = reach.shared * self._rarity[names] * likeness[found] * ~idle
        return first, last, by_title * reach.title * (1 + likeness[found]) / 2 / np.sqrt(fan) + shared

    def passages(self, edges: Edges) -> Edges:
        """The passage at the end of each edge."""
        return self._passage[edges]

    def path(self, titles: list[str], first: int, last: int) -> str:
        """How one passage leads to another through a name, written out."""
        start, end, name = (
            titles[self._passage[first]],
            titles[self._passage[last]],
            self._texts[self._name[first]].strip(),
        )
        return f"{start} --[{self._kind[first]}]--> ({name}) <--[{self._kind[last]}]-- {end}"


class _Trail:
    """The passages chosen so far, and what they lead to."""

    def __init__(self, value: _Floats, likeness: _Floats, question: str) -> None:
        self._value, self._likeness, self._question = value, likeness, question
        self._linked, self._repeated = np.zeros(len(value)), np.zeros(len(value))
        # the edges of the best way to each
        self._first, self._last = (np.full(len(value), -1, np.int32), np.full(len(value), -1, np.int32))
        self._chosen: list[int] = []
        self._total = value

    def choose(self, names: _Names, matrix: NDArray[np.float32], reach: Reach) -> None:
        """Take the best passage left and follow its names."""
        left = self._total.copy()
        left[self._chosen] = -np.inf
        row = int(np.argmax(left))
        self._chosen.append(row)
        first, last, strength = names.links(row, self._question, self._likeness, reach)
        gain = min(1.0, self._value[row]) * strength
        gain[np.isin(names.passages(last), self._chosen)] = (
            0.0  # what was chosen before was not reached from here
        )
        order = np.argsort(gain, kind="stable")  # the strongest way to a passage is written last, so it stays
        order = order[gain[order] > self._linked[names.passages(last[order])]]
        rows = names.passages(last[order])
        self._linked[rows], self._first[rows], self._last[rows] = gain[order], first[order], last[order]
        self._repeated = np.maximum(self._repeated, row_products(matrix, matrix[row]))
        self._total = self._value + self._linked - reach.repeated * self._repeated

    def ranking(self, earlier: Ranking, ids: list[str], titles: list[str], names: _Names) -> Ranking:
        """The chosen, one point apart above all others, then the others by their value."""
        scores = self._total.copy()
        scores[self._chosen] = scores.max() + np.arange(len(self._chosen), 0, -1)
        linked = np.flatnonzero(self._linked).tolist()
        found = [ids[row] for row in linked]
        paths = LazyTexts(
            found,
            lambda number: names.path(
                titles, int(self._first[linked[number]]), int(self._last[linked[number]])
            ),
        )
        links = replace(fused(earlier.query, found, self._linked[linked], ()), system="linked", paths=paths)
        return fused(earlier.query, ids, scores, ((1.0, earlier), (1.0, links)))


def _edges(rows: Csr, row: int) -> Edges:
    return rows.edges[rows.indptr[row] : rows.indptr[row + 1]]
