"""Retrieval along graph edges: neighbour boost and shared neighbours.

The node ids of the graph must be the document ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments, check_names
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Csr, Ints, build_csr
from kgot_lab.retrieval.fusion import fused_ranking, merge_rankings, scale_by_range
from kgot_lab.retrieval.stage import Stage, best
from kgot_lab.types import Ranking

StepIndices = NDArray[np.int64]
Rows = Ints | StepIndices
# KG-OS, section 7: targets of a hit's edges help more than their sources
OUTGOING_BOOST, INCOMING_BOOST = (0.5, 0.3)
BOOST_SEEDS = 10  # hits that a walk starts from

# --- retrievers ---


@check_names
def boost(
    graph: PropertyGraph, weight: float, *, types: Collection[str] | None = None, seeds: int = BOOST_SEEDS
) -> Stage:
    """Boost the neighbours of the first hits.

    score(d) = min-max normalised earlier score + weight * boost(d). boost(d) is that of `boosted_neighbours` with the
    first `seeds` hits as seeds (KG-OS, method 12). Documents outside the earlier ranking start at 0. Raises
    BadInput for an invalid weight or number of seeds, and for a seed that is not a node.
    """
    if not (math.isfinite(weight) and weight >= 0):
        raise BadInput(f"the weight of a boost is a number of 0 or more, not {weight}")
    boost_stage = _boost_stage(graph, types)
    keep = _checked_seeds(seeds)

    def step(ranking: Ranking) -> Ranking:
        near = boost_stage(best(ranking, keep))
        ids, ((rows, earlier), (boosted, boosts)) = merge_rankings([ranking, near])
        scores = np.zeros(len(ids))
        scores[rows] = scale_by_range(earlier)
        scores[boosted] += weight * boosts
        found = np.union1d(rows, boosted)
        return fused_ranking(ranking.query, ids, scores, ((1.0, ranking), (weight, near)), found)

    return Stage(_stage_name("boost", f"{weight:g}", types, seeds), step)


def boosted_neighbours(
    graph: PropertyGraph, start: Stage, *, types: Collection[str] | None = None, seeds: int = BOOST_SEEDS
) -> Stage:
    """Rank the neighbours of the first hits of another stage (the graph boost as a retriever).

    boost(d) = .5 * (edges from a seed to d) + .3 * (edges from d to a seed), divided by the largest. With
    `types`, only edges of these types count. Loops are ignored. A seed is found only if another seed is linked
    to it. Raises BadInput as `boost` does.
    """
    boost_stage = _boost_stage(graph, types)
    keep = _checked_seeds(seeds)
    name = _stage_name("around", start.name, types, seeds)
    return Stage(name, lambda ranking: boost_stage(best(start(ranking), keep)), inputs=(("", start),))


def jaccard(
    graph: PropertyGraph, start: Stage, *, types: Collection[str] | None = None, seeds: int = BOOST_SEEDS
) -> Stage:
    """Rank nodes by the Jaccard index of their neighbours with those of the first hits of another stage.

    score(d) = largest Jaccard index with a seed. J(a, b) = shared neighbours / all neighbours, in either edge
    direction, without a and b themselves. It is 0 without neighbours. Nodes that share nothing are not found.
    A seed is compared with the other seeds. Raises BadInput as `boost` does.
    """
    links = Links.of(graph, types)
    near = links.distinct_neighbours
    keep = _checked_seeds(seeds)

    def step(ranking: Ranking) -> Ranking:
        rows = links.rows(best(start(ranking), keep))
        shared = [_shared_neighbours(near, int(row)) for row in rows]
        pairs = np.concatenate([np.empty((4, 0), np.int64), *shared], axis=1)
        # sorted, so that the first of each node is its best
        pairs = pairs[:, np.argsort(-pairs[2] / pairs[3], kind="stable")]
        found, first = np.unique(pairs[1], return_index=True)
        seeds_of, _, common, united = pairs[:, first]
        ids = [graph.ids[row] for row in found.tolist()]

        def describe(number: int) -> str:
            seed = links.label(seeds_of[number])
            return f"shares {common[number]} of {united[number]} neighbours with {seed}"

        return replace(fused_ranking(ranking.query, ids, common / united, ()), paths=LazyTexts(ids, describe))

    return Stage(_stage_name("jaccard", start.name, types, seeds), step, inputs=(("", start),))


def _boost_stage(graph: PropertyGraph, types: Collection[str] | None) -> Stage:
    """Build a stage that ranks the neighbours of the hits of a ranking, scaled to a maximum of 1."""
    links = Links.of(graph, types)
    worth = np.tile((OUTGOING_BOOST, INCOMING_BOOST), len(graph.type_names))

    def step(ranking: Ranking) -> Ranking:
        boosts, first = links.boosts(links.rows(ranking), worth)
        kept = np.flatnonzero(boosts)
        if not kept.size:
            return Ranking(ranking.query, ())
        ids = [graph.ids[row] for row in kept.tolist()]
        paths = LazyTexts(ids, lambda number: links.path([first[kept[number]]]))
        return replace(fused_ranking(ranking.query, ids, boosts[kept], ()), paths=paths)

    return Stage("boost", step)


def _shared_neighbours(near: Csr, seed: int) -> StepIndices:
    """Count shared neighbours of a seed and each node that shares any.

    Rows of the result: seed, node, number shared, size of the union.
    """
    mine = near.indices[near.indptr[seed] : near.indptr[seed + 1]]
    nodes, shared = np.unique(near.indices[neighbour_steps(near, mine)[0]], return_counts=True)
    nodes, shared = nodes[nodes != seed], shared[nodes != seed]
    degrees = near.indptr[nodes + 1] - near.indptr[nodes]
    # neighbours of each other are in each other's set
    united = len(mine) + degrees - shared - 2 * np.isin(nodes, mine)
    return np.stack((np.full(len(nodes), seed), nodes, shared, united))


# --- links ---


@dataclass(frozen=True, eq=False)
class Links:
    """The edges of a graph in both directions, without loops, as steps.

    Step p of `ends` leads from row `origins[p]` to `ends.indices[p]`. In each row the outgoing edges come
    first. `numbers` are the rows of the edges in the graph.
    """

    graph: PropertyGraph
    ends: Csr
    origins: Ints
    numbers: StepIndices

    @classmethod
    def of(cls, graph: PropertyGraph, types: Collection[str] | None = None) -> Links:
        """Collect the edges of a graph, optionally only of some types.

        Raises BadInput if the graph is empty or has no edge of these types.
        """
        if not len(graph):
            raise BadInput("the graph is empty; give a graph whose node ids are the ids that are ranked")
        edge_rows = np.flatnonzero((graph.sources != graph.targets) & _of_types(graph, types))
        sources, targets = graph.sources[edge_rows], graph.targets[edge_rows]
        origins = np.concatenate((sources, targets))
        ends = build_csr(origins, np.concatenate((targets, sources)), len(graph))
        return cls(graph, ends, origins[ends.edges], edge_rows)

    @property
    def distinct_neighbours(self) -> Csr:
        """The distinct neighbours of each row."""
        size = np.int64(len(self.graph))
        pairs = distinct_integers(self.origins * size + self.ends.indices, int(size * size))
        return build_csr((pairs // size).astype(np.int32), (pairs % size).astype(np.int32), len(self.graph))

    def is_outgoing(self, places: StepIndices) -> NDArray[np.bool_]:
        """Return whether each step follows the direction of its edge."""
        along: NDArray[np.bool_] = self.ends.edges[places] < len(self.numbers)
        return along

    @cached_property
    def edge_rows(self) -> StepIndices:
        """The edge row of each step."""
        return self.numbers[self.ends.edges % max(len(self.numbers), 1)]

    @cached_property
    def step_kinds(self) -> Ints:
        """A code for each step: twice the code of the edge's type, plus one against its direction."""
        against = ~self.is_outgoing(np.arange(len(self.ends.edges)))
        return (2 * self.graph.type_codes[self.edge_rows] + against).astype(np.int32)

    def boosts(self, seeds: Ints, step_weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], Ints]:
        """Return the boost of each row, scaled to a maximum of 1, and the first step to it.

        The boost is the sum of the weights of the steps from the seeds, by type and direction. The first step
        is one from the earliest seed, or -1 if no step leads to the row.
        """
        places, _ = neighbour_steps(self.ends, seeds)
        values = step_weights[self.step_kinds[places]]
        places, values = places[values > 0], values[values > 0]
        ends, size = self.ends.indices[places], len(self.graph)
        boosts = np.zeros(size)
        for value in np.unique(values):  # by value, so that equal boosts are exactly equal
            boosts += value * np.bincount(ends[values == value], minlength=size)
        first = np.full(size, -1, np.int32)
        first[ends[::-1]] = places[::-1]  # reversed, so that the first is kept
        return boosts / (boosts.max(initial=0.0) or 1.0), first

    def row(self, id: str) -> int:
        """Return the row of a hit.

        Raises BadInput if it is not a node of the graph.
        """
        if id not in self.graph:
            problem = f"{id!r} was found but is no node of the graph"
            raise BadInput(f"{problem}; its node ids must be the ids that are ranked")
        return self.graph.row(id)

    def rows(self, ranking: Ranking) -> Ints:
        """Return the rows of the hits of a ranking.

        Raises BadInput if a hit is not a node of the graph.
        """
        return np.array([self.row(hit.id) for hit in ranking.hits], dtype=np.int32)

    def label(self, row: int) -> str:
        """Return the label of a node in a path: its name or title, or else its id."""
        properties = self.graph.node_properties[row]
        return str(properties.get("name") or properties.get("title") or self.graph.ids[row])

    def path(self, places: Sequence[int]) -> str:
        """Format consecutive steps as a path: "a --[wrote]--> (b) <--[cites]-- c".

        The nodes between the ends are in brackets.
        """
        labels = [self.label(self.ends.indices[place]) for place in places]
        between = [f"({label})" for label in labels[:-1]] + labels[-1:]
        steps = (f" {self._arrow(p)} {label}" for p, label in zip(places, between, strict=True))
        return self.label(self.origins[places[0]]) + "".join(steps)

    def _arrow(self, place: int) -> str:
        number = int(self.ends.edges[place])
        type = self.graph.type_names[self.graph.type_codes[self.numbers[number % len(self.numbers)]]]
        return f"--[{type}]-->" if number < len(self.numbers) else f"<--[{type}]--"


class LazyTexts(Mapping[str, str]):
    """Texts by id that are created on access: `make` gets the index of an id."""

    def __init__(self, ids: Sequence[str], make: Callable[[int], str]) -> None:
        self._numbers, self._make = {id: number for number, id in enumerate(ids)}, make

    def __getitem__(self, id: str) -> str:
        return self._make(self._numbers[id])

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[dict[str, str]]]:
        return dict, (dict(self),)  # pickled with the texts


def neighbour_steps(rows: Csr, some: Rows) -> tuple[StepIndices, StepIndices]:
    """Return the step indices of all neighbours of some rows, and the position in `some` of each."""
    return concatenate_ranges(rows.indptr[some], rows.indptr[some + 1])


def concatenate_ranges(starts: StepIndices, ends: StepIndices) -> tuple[StepIndices, StepIndices]:
    """Return the numbers of ranges one after the other, and the position of the range of each."""
    lengths = ends - starts
    owners = np.repeat(np.arange(len(starts)), lengths)
    return np.arange(lengths.sum()) + (starts - np.cumsum(lengths) + lengths)[owners], owners


def distinct_integers(values: Rows, bound: int) -> StepIndices:
    """Return the sorted distinct values among integers from 0 to below a bound.

    np.unique takes many times as long, because it hashes them.
    """
    if bound <= 16 * len(values):
        is_present = np.zeros(bound, bool)
        is_present[values] = True
        return np.flatnonzero(is_present)
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first].astype(np.int64, copy=False)


@check_arguments
def _of_types(graph: PropertyGraph, types: Collection[str] | None) -> NDArray[np.bool_]:
    if types is None:
        return np.ones(len(graph.type_codes), dtype=bool)
    wanted = [code for code, name in enumerate(graph.type_names) if name in types]
    if types and graph.type_names and not wanted:
        raise UnknownName("edge type", min(types), graph.type_names)
    return np.isin(graph.type_codes, wanted)


def _checked_seeds(seeds: int) -> int:
    if seeds < 1:
        raise BadInput(f"a walk needs 1 seed or more, not {seeds}")
    return seeds


def _stage_name(verb: str, first: str, types: Iterable[str] | None, seeds: int) -> str:
    """Format the name of a stage with the options that differ from their defaults."""
    chosen = [f"seeds={seeds}"] if seeds != BOOST_SEEDS else []
    return f"{verb}({', '.join([first, *(sorted(types) if types else []), *chosen])})"
