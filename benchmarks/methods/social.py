"""A graph of the kind and size on which KGLite publishes times: people who know each other, their companies,
projects, skills and cities.

Made after the description of its suite (kkollsga/kglite, benchmarks/competitive/graphsuite: the scale
`medium`), not with its program: the same numbers of nodes, about as many edges, the same sizes of what is
asked. Edges that are loops or there twice are left out, as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kgot_lab.graph.property_graph import Ints

PEOPLE, KNOWN = 20_000, 6  # people, and how many each knows or is known by, two more or fewer
_NEAR, _NEARBY = 50, 0.8  # this share of the acquaintances is among the next so many people
KNOWS, DEPENDS = "KNOWS", "DEPENDS_ON"
PlainRows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Social:
    """PlainRows of nodes and of edges by type, as each library gets them, ids being numbers from 0; and what
    is asked.
    """

    nodes: dict[str, PlainRows]
    edges: dict[str, PlainRows]
    people: int
    first_project: int
    seeds: list[int]  # people; the first fifty for two edges, the first twenty for three
    projects: list[int]
    pairs: list[tuple[int, int]]

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return sum(map(len, self.nodes.values()))


def social(times: int = 1, seed: int = 0) -> Social:
    """The graph, so many times as large."""
    chance = np.random.default_rng(seed)
    people = PEOPLE * times
    counts = {
        "Person": people,
        "Company": people // 25,
        "Project": people // 5,
        "Skill": people // 60,
        "City": people // 100,
    }
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))

    def ends(source: str, target: str, per: Any) -> Ints:
        """A number of edges from each node of a type to nodes of another, by chance."""
        many = np.asarray(per)
        sources = np.repeat(np.arange(counts[source]), many) + starts[source]
        return np.stack([sources, chance.integers(0, counts[target], many.sum()) + starts[target]])

    knows = ends("Person", "Person", np.maximum(1, KNOWN + chance.integers(-2, 3, people)))
    near = np.flatnonzero(chance.random(knows.shape[1:]) < _NEARBY)
    knows[1, near] = (knows[0, near] + chance.integers(1, _NEAR + 1, len(near))) % people
    knows = np.sort(knows, axis=0)  # everybody who knows somebody is known
    depends = ends("Project", "Project", chance.integers(0, 4, counts["Project"]))
    depends[1] = starts["Project"] + (
        chance.random(depends.shape[1]) * (depends[0] - starts["Project"])
    ).astype(np.int64)
    edges = {
        KNOWS: knows,
        "WORKS_AT": ends("Person", "Company", np.ones(people, np.int64)),
        "CONTRIBUTES_TO": ends("Person", "Project", chance.integers(1, 4, people)),
        "HAS_SKILL": ends("Person", "Skill", chance.integers(2, 7, people)),
        "OWNS": ends(
            "Company", "Project", np.full(counts["Company"], counts["Project"] // counts["Company"])
        ),
        DEPENDS: depends,
        "LOCATED_IN": ends("Company", "City", np.ones(counts["Company"], np.int64)),
    }
    return Social(
        _nodes(counts, starts, chance),
        {type: _edges(each, chance) for type, each in edges.items()},
        people,
        starts["Project"],
        chance.choice(people, 200, replace=False).tolist(),
        (starts["Project"] + chance.choice(counts["Project"], 100, replace=False)).tolist(),
        [(int(a), int(b)) for a, b in chance.integers(0, people, (100, 2))],
    )


def _nodes(
    counts: dict[str, int], starts: dict[str, int], chance: np.random.Generator
) -> dict[str, PlainRows]:
    found = {
        type: [{"id": starts[type] + number, "name": f"{type}_{number}"} for number in range(count)]
        for type, count in counts.items()
    }
    ages = chance.integers(18, 80, counts["Person"]).tolist()
    scores = np.round(100 * chance.random(counts["Person"]), 3).tolist()
    for person, age, score in zip(found["Person"], ages, scores, strict=True):
        person.update(age=age, score=score)
    return found


def _edges(ends: Ints, chance: np.random.Generator) -> PlainRows:
    once = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    amounts = chance.integers(0, 100, once.shape[1:]).tolist()
    sources, targets = once.tolist()
    return [
        {"source": a, "target": b, "amount": amount}
        for a, b, amount in zip(sources, targets, amounts, strict=True)
    ]
