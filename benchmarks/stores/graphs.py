"""Graphs of any size to measure stores on: of chance, with degrees that follow a power law, and WordNet."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.stores.wordnet import wordnet
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Diff, Edge, Node

_EDGES_PER_NODE = 2.3  # as WordNet's 93,003 over 40,943
_RELATIONS = ("knows", "is part of", "made", "lives in", "works for", "mentions", "follows", "causes")
_LABELS = ("Person", "Place", "Work", "Thing", "Event")
_SYLLABLES = tuple(map("".join, itertools.product("bdfgklmnprstvz", "aeiou")))


def power_law_graph(edges: int, seed: int = 0) -> Diff:
    """The diff that makes, of nothing, a graph of so many edges: degrees follow a power law, each node has a
    name and a short text.

    Each node is tied to an earlier one when it comes, an end of a random edge (preferential attachment), and
    so are the other edges.
    """
    chance = np.random.default_rng(seed)
    count = max(2, round(edges / _EDGES_PER_NODE))
    words = list(map("".join, itertools.product(_SYLLABLES, repeat=2)))
    chance.shuffle(words)
    # a few are everywhere, most are rare
    told = [words[at] for at in (len(words) * chance.random(10 * count) ** 3).astype(int).tolist()]
    labels = [_LABELS[at] for at in chance.integers(len(_LABELS), size=count).tolist()]
    nodes = (
        Node(
            f"n{n}",
            (label,),
            {"name": " ".join(told[10 * n : 10 * n + 2]), "text": " ".join(told[10 * n + 2 : 10 * n + 10])},
        )
        for n, label in enumerate(labels)
    )
    made: dict[tuple[int, str, int], None] = {}
    ends = [0]
    draws = zip(itertools.count(1), *(chance.random(3 * edges + 10).tolist() for _ in range(3)), strict=False)
    for number, source, end, relation in draws:
        edge = (
            number if number < count else int(count * source),
            _RELATIONS[int(len(_RELATIONS) * relation)],
            ends[int(len(ends) * end)],
        )
        if edge not in made:
            made[edge] = None
            ends += (edge[0], edge[2])
        if len(made) == edges:
            break
    return Diff(
        added_nodes=tuple(nodes),
        added_edges=tuple(Edge(f"n{s}", relation, f"n{t}") for s, relation, t in made),
    )


def graph_diff(graph: str) -> Diff:
    """The diff that makes a graph of nothing: "wn18rr", or a number of edges such as "10k"."""
    if graph == "wn18rr":
        return PropertyGraph.of().diff(wordnet())
    return power_law_graph(size_of(graph))


def size_of(graph: str) -> int:
    """The number of edges that 1k, 1M and the like mean."""
    if graph == "wn18rr":
        return 93_003
    return int(float(graph.rstrip("kM")) * {"k": 1_000, "M": 1_000_000}.get(graph[-1], 1))
