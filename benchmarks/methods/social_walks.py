"""The same operations in the columns of a PropertyGraph, and all of them as contests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.methods.paired import PutToAll
from benchmarks.methods.social import DEPENDS, KNOWS, Social
from benchmarks.methods.social_walkers import (
    HIGH_SCORE,
    MANY,
    MOST_KNOWN,
    YOUNG,
    PeopleFound,
    Walker,
    everything_loaded,
)
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Csr, Ints, build_csr, make_read_only
from kgot_lab.kgos.methods.traversal import trace_path
from kgot_lab.retrieval.neighbours import Links, StepIndices, distinct_integers, neighbour_steps

SIX = "these six walks together"


class OurWalker(Walker):
    """In the columns of a PropertyGraph, and with `trace_path`."""

    name = "ours"

    def load(self) -> object:
        self.graph = property_graph(self.given, (KNOWS, DEPENDS))
        self.links = Links.of(self.graph, (KNOWS,)).ends
        code = self.graph.type_names.index(DEPENDS)
        rows = np.flatnonzero(self.graph.type_codes == code)
        self.depends = build_csr(self.graph.sources[rows], self.graph.targets[rows], len(self.graph))
        self.ages = np.array([row["age"] for row in self.persons])
        self.scores = np.array([row["score"] for row in self.persons])
        return len(self.graph.sources)

    def near(self, person: int) -> Iterable[int]:
        return self._ends([person]).tolist()  # type: ignore[no-any-return]

    def _ends(self, seeds: list[int]) -> Ints:
        return self.links.indices[neighbour_steps(self.links, np.array(seeds, np.int32))[0]]

    def hops(self, seeds: list[int], most: int) -> PeopleFound:
        if most == 1:  # nobody knows himself, so that nothing has to be remembered
            return frozenset(self._ends(seeds).tolist())
        return frozenset(_reached(self.links, seeds, most, len(self.graph)).tolist())

    def young(self, seeds: list[int]) -> PeopleFound:
        ends = self._ends(seeds)
        return frozenset(ends[self.ages[ends] < YOUNG].tolist())

    def high(self, seeds: list[int]) -> PeopleFound:
        ends = self._ends(seeds)
        return frozenset(ends[self.scores[ends] > HIGH_SCORE].tolist())

    def closure(self, seeds: list[int]) -> PeopleFound:
        seen, level = np.zeros(len(self.graph), bool), np.array(seeds, np.int64)
        while len(level):
            level = distinct_integers(
                self.depends.indices[neighbour_steps(self.depends, level.astype(np.int32))[0]], len(seen)
            )
            level = level[~seen[level]]
            seen[level] = True
        return frozenset(np.flatnonzero(seen).tolist())

    def lengths(self, pairs: list[tuple[int, int]]) -> list[int | None]:
        ids = self.graph.ids
        found = (trace_path(self.graph, ids[a], ids[b], types=(KNOWS,), max_depth=99) for a, b in pairs)
        return [path.length if path.found else None for path in found]

    def degrees(self) -> Iterable[int]:
        return np.diff(self.links.indptr[: self.given.people + 1])

    def best_known(self) -> list[int]:
        return np.sort(np.asarray(self.degrees()))[::-1][:MOST_KNOWN].tolist()  # type: ignore[no-any-return]

    def well_known(self) -> int:
        return int(np.count_nonzero(np.asarray(self.degrees()) >= MANY))


def _reached(ends: Csr, seeds: list[int], most: int, size: int) -> StepIndices:
    """The nodes within some edges of one of the seeds; each seed walks on its own, as a number times the size
    is added to its rows.
    """
    own = np.arange(len(seeds)) * size + np.array(seeds)
    seen, reached, level = np.zeros(len(seeds) * size, bool), np.zeros(size, bool), own
    seen[own] = True
    for _ in range(most):
        places, owners = neighbour_steps(ends, (level % size).astype(np.int32))
        level = distinct_integers((level - level % size)[owners] + ends.indices[places], len(seen))
        level = level[~seen[level]]
        seen[level] = reached[level % size] = True
    return np.flatnonzero(reached)


def property_graph(given: Social, types: Iterable[str]) -> PropertyGraph:
    """All nodes and the edges of some types, with their properties, from rows."""
    rows = [row for node in given.nodes.values() for row in node]
    chosen = {type: given.edges[type] for type in types}
    every = [edge for each in chosen.values() for edge in each]
    return PropertyGraph(
        ids=tuple(str(row["id"]) for row in rows),
        node_labels=tuple((type,) for type, each in given.nodes.items() for _ in each),
        node_properties=tuple(rows),
        sources=make_read_only(np.array([edge["source"] for edge in every], np.int32)),
        targets=make_read_only(np.array([edge["target"] for edge in every], np.int32)),
        type_codes=make_read_only(
            np.repeat(np.arange(len(chosen), dtype=np.int32), [len(each) for each in chosen.values()])
        ),
        type_names=tuple(chosen),
        edge_properties=tuple(every),
        edge_keys=("",) * len(every),
    )


def operations(given: Social, others: Mapping[str, Walker]) -> list[PutToAll]:
    """Loading and walking, each operation by us and by the others."""
    ours, seeds, few, fewer = OurWalker(given), given.seeds, given.seeds[:50], given.seeds[:20]
    six: dict[str, Callable[[Walker], Any]] = {
        "one edge from 200 people": lambda walker: walker.hops(seeds, 1),
        "two edges from 50 people": lambda walker: walker.hops(few, 2),
        "three edges from 20 people": lambda walker: walker.hops(fewer, 3),
        "young acquaintances of 200 people": lambda walker: walker.young(seeds),
        "acquaintances of 200 people with a high score": lambda walker: walker.high(seeds),
        "all that 100 projects depend on": lambda walker: walker.closure(given.projects),
        SIX: lambda walker: [walk(walker) for name, walk in six.items() if name != SIX],
    }
    more: dict[str, Callable[[Walker], Any]] = {
        "100 shortest paths": lambda walker: walker.lengths(given.pairs),
        "the 20 best known": lambda walker: walker.best_known(),
        "people who know 14 or more": lambda walker: walker.well_known(),
    }
    loads = [
        PutToAll(
            "load, edges of two types without properties",
            ours.load,
            {name: walker.load for name, walker in others.items()},
        ),
        PutToAll(
            "load, all edges with properties",
            lambda: len(property_graph(given, given.edges).sources),
            {name: partial(everything_loaded, given, name) for name in others},
        ),
    ]
    walks = {**six, **more}
    return loads + [
        PutToAll(name, partial(walk, ours), {each: partial(walk, walker) for each, walker in others.items()})
        for name, walk in walks.items()
    ]
