"""The query methods as one writes them with NetworkX, with rustworkx and with igraph, from which our answers
must not differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.dimensions import Filters

_DEEP = 3


class GraphLibrary(ABC):
    """A multigraph with types and, for neighbours, a simple one without directions; nodes by their rows,
    loops left out.
    """

    name = ""

    def __init__(self, graph: PropertyGraph) -> None:
        kept = graph.sources != graph.targets
        self.ids, self.size, self.type_names = graph.ids, len(graph), graph.type_names
        self.codes: list[int] = graph.type_codes[kept].tolist()
        self.pairs = list(zip(graph.sources[kept].tolist(), graph.targets[kept].tolist(), strict=True))
        self.known = graph.node_properties
        self.words = [frozenset(str(known["name"]).split()) for known in self.known]
        self.labels = [labels[0] for labels in graph.node_labels]
        self.kinds = len(graph.types())
        self.row_of = {id: row for row, id in enumerate(graph.ids)}
        self.build()
        self.degrees = self.count_neighbours()
        self.central = [degree / (self.size - 1) for degree in self.degrees]
        touched = np.concatenate([graph.sources[kept], graph.targets[kept]]).astype(np.int64) * len(
            graph.type_names
        )
        each = np.unique(touched + np.tile(graph.type_codes[kept], 2))
        self.touching: list[int] = np.bincount(each // len(graph.type_names), minlength=self.size).tolist()

    @abstractmethod
    def build(self) -> None:
        """Make both graphs."""

    @abstractmethod
    def count_neighbours(self) -> list[int]:
        """How many neighbours each node has."""

    @abstractmethod
    def levels(self, root: int, most: int) -> list[Iterable[int]]:
        """The nodes at each distance from 1 to most, whichever way edges point."""

    @abstractmethod
    def length(self, start: int, end: int) -> int:
        """How many edges a shortest path has."""

    @abstractmethod
    def steps(self, row: int) -> Iterable[tuple[int, int]]:
        """What each edge at a node leads to, with the code of its type."""

    @abstractmethod
    def boosted(self, seeds: list[int]) -> dict[int, float]:
        """.5 for each edge from a seed, .3 for each edge to one."""

    @abstractmethod
    def jaccard(self, target: int) -> list[float]:
        """The Jaccard index of the neighbours of a node and of every node, the two themselves left out."""

    # --- the methods ---

    def path(self, start: str, end: str) -> int:
        return self.length(self.row_of[start], self.row_of[end])

    def impact(self, root: str) -> dict[str, tuple[int, float]]:
        """The levels and their risks."""
        levels = enumerate(self.levels(self.row_of[root], _DEEP), start=1)
        return {self.ids[row]: (depth, self.central[row] / depth) for depth, level in levels for row in level}

    def whole_impact(self, root: str) -> tuple[dict[str, tuple[int, float]], tuple[str, ...], float]:
        """The levels and their risks, the types of the edges between them, and the product of risks along the
        chain that takes, at each step, the riskiest node that leads on, or else the riskiest.
        """
        first = self.row_of[root]
        depths, products, children = {first: 0}, {first: 1.0}, {first: list[int]()}
        types: set[int] = set()
        level = [first]
        for depth in range(1, _DEEP + 1):
            best: dict[int, int] = {}
            for parent in level:
                for child, code in self.steps(parent):
                    if child not in depths:
                        held = best.setdefault(child, parent)
                        best[child] = max(held, parent, key=lambda row: (products[row], -row))
                        types.add(code)
            for child, parent in best.items():
                depths[child], products[child] = depth, products[parent] * self.central[child] / depth
                children[parent].append(child)
                children[child] = []
            level = sorted(best)
        told = {self.ids[row]: (depth, self.central[row] / depth) for row, depth in depths.items() if depth}
        row = first
        while after := children[row]:
            leading = [child for child in after if children[child]] or after
            row = max(leading, key=lambda child: (self.central[child], -child))
        return (
            told,
            tuple(sorted(self.type_names[code] for code in types)),
            products[row] if row != first else 0.0,
        )

    def explore(self, root: str) -> dict[str, tuple[int, float, bool]]:
        first = self.row_of[root]
        told = {}
        for depth, level in enumerate([[first], *map(list, self.levels(first, 2))]):
            mean = sum(self.degrees[row] for row in level) / max(len(level), 1)
            for row in level:
                importance = 0.6 * self.central[row] + 0.4 * self.touching[row] / self.kinds
                told[self.ids[row]] = depth, importance, bool(depth) and self.degrees[row] > 2 * mean
        return told

    def similar(self, target: str) -> dict[str, float]:
        mine = self.row_of[target]
        name, label, found = self.words[mine], self.labels[mine], {}
        for row, jaccard in enumerate(self.jaccard(mine)):
            words = self.words[row]
            score = (
                0.7 * jaccard
                + 0.2 * (self.labels[row] == label)
                + 0.1 * len(name & words) / len(name | words)
            )
            if score and row != mine:
                found[self.ids[row]] = score
        return found

    def within(self, filters: Filters) -> list[str]:
        bounds = [(name, each.get("min", 0), each.get("max", 1)) for name, each in filters.items()]
        return [
            id
            for id, known in zip(self.ids, self.known, strict=True)
            if all(low <= known[name] <= high for name, low, high in bounds)
        ]

    def boost(self, seeds: list[str]) -> dict[str, float]:
        boosts = self.boosted([self.row_of[id] for id in seeds])
        most = max(boosts.values())
        return {self.ids[row]: boost / most for row, boost in boosts.items()}

    def by_sets(self, target: int, near: list[set[int]]) -> list[float]:
        """The Jaccard indexes, by sets of neighbours."""
        mine, found = near[target], []
        for row, theirs in enumerate(near):
            shared, both = len(mine & theirs), 2 * (row in mine)
            united = len(mine) + len(theirs) - shared - both
            found.append(shared / united if united else 0.0)
        return found


class InNetworkX(GraphLibrary):
    name = "NetworkX"

    def build(self) -> None:
        import networkx as nx

        self.multi: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        self.multi.add_nodes_from(range(self.size))
        self.multi.add_edges_from(
            (a, b, {"type": code}) for (a, b), code in zip(self.pairs, self.codes, strict=True)
        )
        self.simple: nx.Graph[int] = nx.Graph()
        self.simple.add_nodes_from(range(self.size))
        self.simple.add_edges_from(self.pairs)
        self.near = [set(self.simple[row]) for row in range(self.size)]

    def count_neighbours(self) -> list[int]:
        return [self.simple.degree(row) for row in range(self.size)]

    def levels(self, root: int, most: int) -> list[Iterable[int]]:
        seen, level, levels = {root}, [root], []
        for _ in range(most):
            level = list(
                dict.fromkeys(child for parent in level for child in self.simple[parent] if child not in seen)
            )
            seen.update(level)
            levels.append(level)
        return list(levels)

    def length(self, start: int, end: int) -> int:
        import networkx as nx

        return int(nx.shortest_path_length(self.simple, start, end))

    def steps(self, row: int) -> Iterable[tuple[int, int]]:
        out, back = cast(Any, self.multi.out_edges), cast(Any, self.multi.in_edges)
        for _, child, code in out(row, data="type"):
            yield child, code
        for child, _, code in back(row, data="type"):
            yield child, code

    def boosted(self, seeds: list[int]) -> dict[int, float]:
        boosts: dict[int, float] = defaultdict(float)
        for seed in seeds:
            for _, target in self.multi.out_edges(seed):
                boosts[target] += 0.5
            for source, _ in self.multi.in_edges(seed):
                boosts[source] += 0.3
        return boosts

    def jaccard(self, target: int) -> list[float]:
        return self.by_sets(target, self.near)


class InRustworkx(GraphLibrary):
    name = "rustworkx"

    def build(self) -> None:
        import rustworkx as rx

        self.multi: Any = rx.PyDiGraph()
        self.multi.add_nodes_from(range(self.size))
        self.multi.add_edges_from([(a, b, code) for (a, b), code in zip(self.pairs, self.codes, strict=True)])
        self.simple: Any = rx.PyGraph(multigraph=False)
        self.simple.add_nodes_from(range(self.size))
        self.simple.add_edges_from_no_data(self.pairs)
        self.near = [set(self.simple.neighbors(row)) for row in range(self.size)]
        self._shortest = rx.dijkstra_shortest_paths

    def count_neighbours(self) -> list[int]:
        return [self.simple.degree(row) for row in range(self.size)]

    def levels(self, root: int, most: int) -> list[Iterable[int]]:
        seen, level, levels = {root}, {root}, []
        for _ in range(most):
            level = set().union(*map(self.simple.neighbors, level)) - seen
            seen |= level
            levels.append(level)
        return list(levels)

    def length(self, start: int, end: int) -> int:
        return len(self._shortest(self.simple, start, target=end)[end]) - 1

    def steps(self, row: int) -> Iterable[tuple[int, int]]:
        for _, child, code in self.multi.out_edges(row):
            yield child, code
        for child, _, code in self.multi.in_edges(row):
            yield child, code

    def boosted(self, seeds: list[int]) -> dict[int, float]:
        boosts: dict[int, float] = defaultdict(float)
        for seed in seeds:
            for _, target, _ in self.multi.out_edges(seed):
                boosts[target] += 0.5
            for source, _, _ in self.multi.in_edges(seed):
                boosts[source] += 0.3
        return boosts

    def jaccard(self, target: int) -> list[float]:
        return self.by_sets(target, self.near)


class InIgraph(GraphLibrary):
    name = "igraph"

    def build(self) -> None:
        import igraph as ig

        self.multi: Any = ig.Graph(n=self.size, edges=self.pairs, directed=True)
        self.simple: Any = self.multi.as_undirected(mode="collapse")
        for name in ("pricing_tier", "batch_suitability", "rate_limit_sensitivity"):
            self.simple.vs[name] = [known[name] for known in self.known]

    def count_neighbours(self) -> list[int]:
        return list(self.simple.degree())

    def levels(self, root: int, most: int) -> list[Iterable[int]]:
        return [self.simple.neighborhood(root, order=depth, mindist=depth) for depth in range(1, most + 1)]

    def length(self, start: int, end: int) -> int:
        return len(self.simple.get_shortest_path(start, end)) - 1

    def steps(self, row: int) -> Iterable[tuple[int, int]]:
        for edge in self.multi.incident(row, mode="all"):
            source, target = self.pairs[edge]
            yield (target if source == row else source), self.codes[edge]

    def boosted(self, seeds: list[int]) -> dict[int, float]:
        boosts: dict[int, float] = defaultdict(float)
        for seed in seeds:
            for target in self.multi.successors(seed):
                boosts[target] += 0.5
            for source in self.multi.predecessors(seed):
                boosts[source] += 0.3
        return boosts

    def jaccard(self, target: int) -> list[float]:
        """Its own index counts the two nodes themselves where they are linked: their number is taken out of
        the union again.
        """
        theirs = np.array(
            self.simple.similarity_jaccard(pairs=[(target, row) for row in range(self.size)], loops=False)
        )
        degrees = np.array(self.degrees)
        shared = np.round(theirs * (degrees[target] + degrees) / (1 + theirs))
        linked = np.zeros(self.size)
        linked[self.simple.neighbors(target)] = 2
        united = degrees[target] + degrees - shared - linked
        found: list[float] = np.divide(shared, united, out=np.zeros(self.size), where=united > 0).tolist()
        return found

    def within(self, filters: Filters) -> list[str]:
        asked = {
            f"{name}_{'ge' if end == 'min' else 'le'}": bound
            for name, each in filters.items()
            for end, bound in each.items()
        }
        return [self.ids[vertex.index] for vertex in self.simple.vs.select(**asked)]


LIBRARIES: Mapping[str, type[GraphLibrary]] = {
    each.name: each for each in (InNetworkX, InRustworkx, InIgraph)
}


def libraries_there() -> dict[str, type[GraphLibrary]]:
    """The libraries that are installed; rustworkx and igraph come with no extra of this package, since
    nothing else needs them.
    """
    return {name: each for name, each in LIBRARIES.items() if find_spec(name.lower()) is not None}
