"""The operations of KGLite's suite that are about loading and walking, in NetworkX, rustworkx and igraph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from benchmarks.methods.social import DEPENDS, KNOWS, PlainRows, Social

YOUNG, HIGH_SCORE, MANY, MOST_KNOWN = 30, 50.0, 14, 20
PeopleFound = frozenset[int]


class Walker(ABC):
    """Who knows whom, both ways, and which project depends on which; nodes are numbers."""

    name = ""

    def __init__(self, given: Social) -> None:
        self.given, self.persons = given, given.nodes["Person"]
        self.load()

    @abstractmethod
    def load(self) -> object:
        """Both graphs, as the suite has the libraries load them: the edges of two types."""

    @abstractmethod
    def near(self, person: int) -> Iterable[int]:
        """Whom a person knows."""

    @abstractmethod
    def hops(self, seeds: list[int], most: int) -> PeopleFound:
        """Who is within some edges of one of the seeds, a seed only where it is near another."""

    @abstractmethod
    def closure(self, seeds: list[int]) -> PeopleFound:
        """All that some projects depend on."""

    @abstractmethod
    def lengths(self, pairs: list[tuple[int, int]]) -> list[int | None]:
        """How far the two of each pair are from each other."""

    @abstractmethod
    def degrees(self) -> Iterable[int]:
        """How many people each person knows."""

    def young(self, seeds: list[int]) -> PeopleFound:
        """Whom the seeds know and who is young."""
        return frozenset(
            near for seed in seeds for near in self.near(seed) if self.persons[near]["age"] < YOUNG
        )

    def high(self, seeds: list[int]) -> PeopleFound:
        """Whom the seeds know and who has a high score."""
        return frozenset(
            near for seed in seeds for near in self.near(seed) if self.persons[near]["score"] > HIGH_SCORE
        )

    def best_known(self) -> list[int]:
        """The largest numbers of acquaintances."""
        return sorted(self.degrees(), reverse=True)[:MOST_KNOWN]

    def well_known(self) -> int:
        """How many people know many."""
        return sum(degree >= MANY for degree in self.degrees())


def _ends(rows: PlainRows, first: int = 0) -> list[tuple[int, int]]:
    return [(row["source"] - first, row["target"] - first) for row in rows]


def _by_levels(near: Callable[[int], Iterable[int]], seeds: list[int], most: int) -> PeopleFound:
    """Level by level from each seed, as the suite has it for libraries that give neighbours only."""
    found: set[int] = set()
    for seed in seeds:
        seen, level = {seed}, {seed}
        for _ in range(most):
            level = set().union(*map(near, level)) - seen
            seen |= level
        found |= seen - {seed}
    return frozenset(found)


class NetworkXWalker(Walker):
    name = "NetworkX"

    def load(self) -> object:
        import networkx as nx

        self.knows: nx.Graph[int] = nx.Graph()
        self.knows.add_nodes_from(range(self.given.people))
        self.knows.add_edges_from(_ends(self.given.edges[KNOWS]))
        self.depends: nx.DiGraph[int] = nx.DiGraph()
        self.depends.add_nodes_from(row["id"] for row in self.given.nodes["Project"])
        self.depends.add_edges_from(_ends(self.given.edges[DEPENDS]))
        return self.knows.number_of_edges() + self.depends.number_of_edges()

    def near(self, person: int) -> Iterable[int]:
        return self.knows[person]

    def hops(self, seeds: list[int], most: int) -> PeopleFound:
        return _by_levels(self.near, seeds, most)

    def closure(self, seeds: list[int]) -> PeopleFound:
        import networkx as nx

        return frozenset().union(*(nx.descendants(self.depends, seed) for seed in seeds))

    def lengths(self, pairs: list[tuple[int, int]]) -> list[int | None]:
        import networkx as nx

        return [
            int(nx.shortest_path_length(self.knows, a, b)) if nx.has_path(self.knows, a, b) else None
            for a, b in pairs
        ]

    def degrees(self) -> Iterable[int]:
        return (degree for _, degree in self.knows.degree())


class RustworkxWalker(Walker):
    name = "rustworkx"

    def load(self) -> object:
        import rustworkx as rx

        self.knows: Any = rx.PyGraph()
        self.knows.add_nodes_from(range(self.given.people))
        self.knows.add_edges_from_no_data(_ends(self.given.edges[KNOWS]))
        self.depends: Any = rx.PyDiGraph()
        self.depends.add_nodes_from(range(len(self.given.nodes["Project"])))
        self.depends.add_edges_from_no_data(_ends(self.given.edges[DEPENDS], self.given.first_project))
        self._descendants, self._paths = rx.descendants, rx.dijkstra_shortest_paths
        return self.knows.num_edges() + self.depends.num_edges()

    def near(self, person: int) -> Iterable[int]:
        return self.knows.neighbors(person)  # type: ignore[no-any-return]

    def hops(self, seeds: list[int], most: int) -> PeopleFound:
        return _by_levels(self.near, seeds, most)

    def closure(self, seeds: list[int]) -> PeopleFound:
        first = self.given.first_project
        return frozenset(
            first + row
            for row in set().union(*(self._descendants(self.depends, seed - first) for seed in seeds))
        )

    def lengths(self, pairs: list[tuple[int, int]]) -> list[int | None]:
        found: list[int | None] = []
        for a, b in pairs:
            paths = self._paths(self.knows, a, target=b)
            found.append(0 if a == b else len(paths[b]) - 1 if b in paths else None)
        return found

    def degrees(self) -> Iterable[int]:
        return map(self.knows.degree, range(self.given.people))


class IgraphWalker(Walker):
    name = "igraph"

    def load(self) -> object:
        import igraph as ig

        self.knows: Any = ig.Graph(n=self.given.people, edges=_ends(self.given.edges[KNOWS]))
        self.depends: Any = ig.Graph(
            n=len(self.given.nodes["Project"]),
            edges=_ends(self.given.edges[DEPENDS], self.given.first_project),
            directed=True,
        )
        return self.knows.ecount() + self.depends.ecount()

    def near(self, person: int) -> Iterable[int]:
        return self.knows.neighbors(person)  # type: ignore[no-any-return]

    def hops(self, seeds: list[int], most: int) -> PeopleFound:
        return frozenset().union(*self.knows.neighborhood(seeds, order=most, mindist=1))

    def closure(self, seeds: list[int]) -> PeopleFound:
        first = self.given.first_project
        found: set[int] = set()
        for seed in seeds:
            found.update(
                row for row in self.depends.subcomponent(seed - first, mode="out") if row != seed - first
            )
        return frozenset(first + row for row in found)

    def lengths(self, pairs: list[tuple[int, int]]) -> list[int | None]:
        paths = (self.knows.get_shortest_path(a, b) for a, b in pairs)
        return [len(path) - 1 if path else None for path in paths]

    def degrees(self) -> Iterable[int]:
        return self.knows.degree()  # type: ignore[no-any-return]


def everything_loaded(given: Social, name: str) -> int:
    """All nodes and edges of every type with their properties, by one of the libraries or by us; how many
    edges that is.
    """
    edges = [(row["source"], row["target"], row) for rows in given.edges.values() for row in rows]
    nodes = [row for rows in given.nodes.values() for row in rows]
    if name == "NetworkX":
        import networkx as nx

        graph: Any = nx.MultiDiGraph()
        graph.add_nodes_from((row["id"], row) for row in nodes)
        graph.add_edges_from(edges)
        return int(graph.number_of_edges())
    if name == "rustworkx":
        import rustworkx as rx

        graph = rx.PyDiGraph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(edges)
        return int(graph.num_edges())
    import igraph as ig

    graph = ig.Graph(n=len(nodes), edges=[(a, b) for a, b, _ in edges], directed=True)
    graph.vs["known"], graph.es["known"] = nodes, [row for *_, row in edges]
    return int(graph.ecount())


WALKERS: Mapping[str, type[Walker]] = {
    each.name: each for each in (NetworkXWalker, RustworkxWalker, IgraphWalker)
}


def walkers_there() -> dict[str, type[Walker]]:
    """Those whose library is installed."""
    return {name: each for name, each in WALKERS.items() if find_spec(name.lower()) is not None}
