"""The lines of a view: edges between nodes that are drawn, and bundles of the edges that reach into what is
collapsed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Identity
from kgot_lab.graph.property_graph import Ints, frozen
from kgot_lab.text.cleaning import counted, harmless
from kgot_lab.viz.static.markup import shortened

MOST_LINES = 5_000
_TYPES = 3  # edge types a bundle names

NodeNumbers = NDArray[np.int64]


@dataclass(frozen=True)
class EdgeBundle:
    """All edges between two things that are drawn, of which one at least stands for several nodes.

    `forward` of them lead from source to target, `backward` the other way; `types` are the most used ones, of
    `all_types`.
    """

    source: str
    target: str
    forward: int
    backward: int
    types: tuple[tuple[str, int], ...]
    all_types: int

    @property
    def count(self) -> int:
        """How many edges the bundle stands for."""
        return self.forward + self.backward

    @property
    def title(self) -> str:
        """How many edges of which types, in words."""
        return f"{counted(self.count, 'edge')}: {uses(self.types, self.all_types, 'type')}"


@dataclass(frozen=True, eq=False)
class Lines:
    """What is drawn of a graph's edges: rows of single ones, and bundles; `left_out` edges are in neither,
    `inside` what is collapsed.
    """

    edges: Ints
    bundles: tuple[EdgeBundle, ...]
    inside: NodeNumbers
    left_out: int


def lines(
    graph: PropertyGraph,
    at: NodeNumbers,
    singles: int,
    names: Sequence[str],
    marked: Collection[Identity],
    *,
    most: int = MOST_LINES,
) -> Lines:
    """At most so many lines between the things that are drawn: the marked ones first, then some at each node.

    The node of row r is drawn by, or within, thing `at[r]`, called `names[at[r]]`; things below `singles` are
    nodes by themselves. `inside` counts for each thing the edges that lie within it.
    """
    one, other = at[graph.sources], at[graph.targets]
    alone = (one < singles) & (other < singles)
    within = ~alone & (one == other)
    edges, crossing = np.flatnonzero(alone), np.flatnonzero(~alone & ~within)
    low, high = np.minimum(one[crossing], other[crossing]), np.maximum(one[crossing], other[crossing])
    codes, bundle_of, counts = np.unique(low * len(names) + high, return_inverse=True, return_counts=True)
    ends = np.concatenate(
        [np.stack([one[edges], other[edges]]), np.stack(np.divmod(codes, max(len(names), 1)))], axis=1
    )
    stands_for = np.concatenate([np.zeros(len(edges), dtype=np.int64), counts])
    urgency = _urgency(ends, stands_for, singles) if ends.shape[1] > most else np.zeros(ends.shape[1])
    urgency[np.searchsorted(edges, _marked_rows(graph, marked, at < singles))] = -2
    chosen = np.sort(np.lexsort((_scattered(len(urgency)), urgency))[:most])
    drawn_edges, drawn_bundles = edges[chosen[chosen < len(edges)]], chosen[chosen >= len(edges)] - len(edges)
    left_out = len(edges) - len(drawn_edges) + len(crossing) - int(counts[drawn_bundles].sum())
    drawn = np.isin(bundle_of, drawn_bundles)
    crossed = crossing[drawn]
    made = _bundles(graph, codes, bundle_of[drawn], (one < other)[crossed], crossed, names)
    return Lines(
        frozen(drawn_edges.astype(np.int32)), made, np.bincount(one[within], minlength=len(names)), left_out
    )


def uses(named: Sequence[tuple[str, int]], kinds: int, noun: str) -> str:
    """Names with how often each is used, and how many names more there are."""
    listed = ", ".join(f"{brief(name)} {count:,}" for name, count in named)
    return listed + f" and {counted(kinds - len(named), f'more {noun}')}" * (kinds > len(named))


def brief(text: str) -> str:
    """A text as at most 24 characters on one line, none of which moves the others."""
    return harmless(shortened(text, 24))


def _urgency(ends: NodeNumbers, edges: NodeNumbers, singles: int) -> NDArray[np.float64]:
    """For each line its rank among those at one of its nodes, whichever is better; -1 if it joins two
    communities.

    `edges` is what a bundle stands for, and 0 for a single edge: these come first, since they tell more, and
    then the largest bundles.
    """
    nodes = ends.ravel()
    weakness = np.where(edges > 0, 1 + edges.max(initial=0) - edges, 0)
    order_at = (ends * (weakness.max(initial=0) + 1) + weakness) << 20 | _scattered(len(edges)) >> 12
    order = np.argsort(order_at.ravel())  # by one key: sorting millions of lines by three takes much longer
    begin = np.cumsum(np.bincount(nodes)) - np.bincount(nodes)
    rank = np.empty(nodes.size)
    rank[order] = np.arange(nodes.size) - begin[nodes[order]]
    rank[nodes >= singles] = np.inf  # a community has so many lines that its own ranks say little
    best = rank.reshape(2, -1).min(axis=0)
    return np.where(np.isinf(best), -1.0, best)


def _scattered(count: int) -> NodeNumbers:
    """A fixed number for each line that follows no order of the edges, to choose evenly among equal ones."""
    return (np.arange(count, dtype=np.int64) * 2_654_435_761) % 2**32


def _marked_rows(graph: PropertyGraph, marked: Collection[Identity], alone: NDArray[np.bool_]) -> list[int]:
    """The rows of the edges with these identities whose ends are drawn by themselves, as many as there can be
    lines; others are ignored.
    """
    rows: list[int] = []
    types = {name: code for code, name in enumerate(graph.type_names)}
    for source, type, target, key in marked:
        if len(rows) == MOST_LINES:
            break
        if source in graph and target in graph and alone[graph.row(source)] and alone[graph.row(target)]:
            out, row = graph.out_csr, graph.row(source)
            near = out.edges[out.indptr[row] : out.indptr[row + 1]]
            near = near[
                (graph.targets[near] == graph.row(target)) & (graph.type_codes[near] == types.get(type, -1))
            ]
            rows += [edge for edge in near.tolist() if graph.edge_keys[edge] == key]
    return rows


def _bundles(
    graph: PropertyGraph,
    codes: NodeNumbers,
    bundle_of: NodeNumbers,
    forward: NDArray[np.bool_],
    rows: NodeNumbers,
    names: Sequence[str],
) -> tuple[EdgeBundle, ...]:
    """The bundles of some rows of edges, given of each its bundle and whether it leads forward."""
    type_names = graph.type_names
    width = max(len(type_names), 1)
    uses, counts = np.unique(bundle_of * width + graph.type_codes[rows], return_counts=True)
    order = np.lexsort((-counts, uses // width))
    bundle = uses[order] // width
    place = np.arange(len(order)) - np.searchsorted(bundle, bundle)
    named: dict[int, list[tuple[str, int]]] = {}
    for use, count in zip(
        uses[order[place < _TYPES]].tolist(), counts[order[place < _TYPES]].tolist(), strict=True
    ):
        named.setdefault(use // width, []).append((type_names[use % width], count))
    ahead, back, kinds = (
        np.bincount(which, minlength=len(codes))
        for which in (bundle_of[forward], bundle_of[~forward], bundle)
    )
    ends = {b: (names[codes[b] // len(names)], names[codes[b] % len(names)]) for b in named}
    return tuple(
        EdgeBundle(*ends[b], int(ahead[b]), int(back[b]), tuple(types), int(kinds[b]))
        for b, types in named.items()
    )
