"""Descriptions of a graph's communities: names, sizes, bundled edges, and how they were found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Identity
from kgot_lab.graph.property_graph import Ints, frozen
from kgot_lab.text.cleaning import format_count, printable_line
from kgot_lab.viz.graph.communities import THE_REST, WITHOUT_EDGES, Communities, first_labels, members
from kgot_lab.viz.graph.marks import node_caption
from kgot_lab.viz.static.markup import shortened

if TYPE_CHECKING:
    from kgot_lab.viz.graph.collapse import View

# The lines of a view: edges between drawn nodes, and bundles of edges to and between collapsed communities.

MOST_LINES = 5_000
_TYPES = 3  # edge types named in a bundle's title

NodeNumbers = NDArray[np.int64]


@dataclass(frozen=True)
class EdgeBundle:
    """All edges between two drawn items, at least one of which represents several nodes.

    `forward` of them point from source to target, `backward` the other way. `types` are the most frequent
    ones, of `all_types`.
    """

    source: str
    target: str
    forward: int
    backward: int
    types: tuple[tuple[str, int], ...]
    all_types: int

    @property
    def count(self) -> int:
        """The number of edges in the bundle."""
        return self.forward + self.backward

    @property
    def title(self) -> str:
        """The number of edges and their types, in words."""
        return f"{format_count(self.count, 'edge')}: {uses(self.types, self.all_types, 'type')}"


@dataclass(frozen=True, eq=False)
class Lines:
    """The drawn edges of a graph: rows of single edges, and bundles.

    `left_out` edges are in neither, and `inside` edges are within collapsed communities.
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
    """Select at most `most` lines between the drawn items: the marked ones first, then some at each node.

    The node of row r is drawn as, or within, item `at[r]`, named `names[at[r]]`. Items below `singles` are
    individual nodes. `inside` counts for each item the edges within it.
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
    """List names with their counts, and the number of names that are not listed."""
    listed = ", ".join(f"{brief(name)} {count:,}" for name, count in named)
    return listed + f" and {format_count(kinds - len(named), f'more {noun}')}" * (kinds > len(named))


def brief(text: str) -> str:
    """Shorten a text to at most 24 characters on one line, without characters that move others."""
    return printable_line(shortened(text, 24))


def _urgency(ends: NodeNumbers, edges: NodeNumbers, singles: int) -> NDArray[np.float64]:
    """Return for each line its better rank among the lines at its nodes, or -1 between two communities.

    `edges` is the number of edges in a bundle, and 0 for a single edge. Single edges come first, since they
    say more, then the largest bundles.
    """
    nodes = ends.ravel()
    weakness = np.where(edges > 0, 1 + edges.max(initial=0) - edges, 0)
    order_at = (ends * (weakness.max(initial=0) + 1) + weakness) << 20 | _scattered(len(edges)) >> 12
    order = np.argsort(order_at.ravel())  # one key: sorting millions of lines by three is much slower
    begin = np.cumsum(np.bincount(nodes)) - np.bincount(nodes)
    rank = np.empty(nodes.size)
    rank[order] = np.arange(nodes.size) - begin[nodes[order]]
    rank[nodes >= singles] = np.inf  # a community has so many lines that ranks at it say little
    best = rank.reshape(2, -1).min(axis=0)
    return np.where(np.isinf(best), -1.0, best)


def _scattered(count: int) -> NodeNumbers:
    """Return a fixed pseudorandom number for each line, to break ties evenly."""
    return (np.arange(count, dtype=np.int64) * 2_654_435_761) % 2**32


def _marked_rows(graph: PropertyGraph, marked: Collection[Identity], alone: NDArray[np.bool_]) -> list[int]:
    """Return the rows of the edges with these identities whose ends are drawn individually.

    At most as many as there can be lines are returned. Other identities are ignored.
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
    """Build the edge bundles of some edge rows.

    `bundle_of` is the bundle of each row, `forward` whether its edge points forward.
    """
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


_LABELS, _EXAMPLES = 3, 2  # maximum labels and examples in a title
_GATHERED = {
    WITHOUT_EDGES: "one group of nodes without edges",
    THE_REST: "one of the smallest parts, which nothing joins",
}
EVERYTHING_ELSE = "elsewhere"  # the kind of everything outside an opened community
_NAMES = {
    WITHOUT_EDGES: "without edges",
    THE_REST: "small parts, not joined",
    EVERYTHING_ELSE: "everything else",
}  # names of groups that are not communities


@dataclass(frozen=True)
class Community:
    """Nodes that are drawn as one.

    `hidden` of `size` nodes are hidden, with `edges` between them. `labels` are their first labels, most
    frequent first. The community is named after its best connected nodes and the label of most of them. Its
    node has the same id and title. If nothing is hidden there is no such node, and name, labels and title
    describe all its members.
    """

    id: str
    title: str
    name: str
    kind: str
    size: int
    hidden: int
    edges: int
    labels: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Whole:
    """A graph and what is common to all its views: communities and marks."""

    graph: PropertyGraph
    division: Communities
    most: int
    marked: Collection[Identity] = ()
    outer: View | None = None  # for an opened community: the view from which it was opened
    # the numbers of the neighbouring communities, between which no lines are drawn
    outside: frozenset[int] = frozenset()

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of the communities, none of which is a node id."""
        return tuple(
            _unlike_a_node(f"community {number + 1}", self.graph) for number in range(len(self.division))
        )

    @cached_property
    def degree(self) -> NodeNumbers:
        """The degree of each node."""
        return np.bincount(
            np.concatenate([self.graph.sources, self.graph.targets]), minlength=len(self.graph)
        )

    @cached_property
    def members(self) -> list[Ints]:
        """The node rows of each community, best connected first."""
        return members(self.division, self.degree)

    @cached_property
    def belonging(self) -> NDArray[np.float64]:
        """How typical each node is of its community.

        It is the number of the node's edge ends inside the community, times their share of its degree.
        """
        of, ends = self.division.of, np.stack([self.graph.sources, self.graph.targets])
        inside = np.bincount(ends[:, of[ends[0]] == of[ends[1]]].ravel(), minlength=len(self.graph))
        return inside * inside / np.maximum(self.degree, 1)

    @cached_property
    def labels(self) -> tuple[NodeNumbers, tuple[str, ...]]:
        """The number of each node's first label, and the label names by number."""
        return first_labels(self.graph)

    @cached_property
    def share_inside(self) -> float:
        """The share of edges within a community."""
        of = self.division.of
        return (
            float((of[self.graph.sources] == of[self.graph.targets]).mean())
            if len(self.graph.sources)
            else 1.0
        )

    def number(self, community: str) -> int:
        """Return the number of a community.

        Raises BadInput if there are no communities, and UnknownName if there is no such one.
        """
        if not self.ids:
            raise BadInput("nothing is collapsed in this view: all nodes are drawn already")
        if community not in self.ids:
            raise UnknownName("community", community, self.ids)
        return self.ids.index(community)


def describe_community(whole: Whole, number: int, hidden: NDArray[np.bool_], edges: int) -> Community:
    """Describe a community by its hidden members, or by all members if none is hidden."""
    rows = whole.members[number]
    unseen = rows[hidden[rows]]
    told = unseen if len(unseen) else rows
    codes, names = whole.labels
    counts = np.bincount(codes[told], minlength=len(names))
    labels = tuple(
        (names[code], int(counts[code]))
        for code in np.argsort(-counts, kind="stable").tolist()
        if counts[code]
    )
    amount = (
        f"{len(unseen):,} more of {format_count(len(rows), 'node')}"
        if 0 < len(unseen) < len(rows)
        else format_count(len(rows), "node")
    )
    best = told[np.argsort(-whole.belonging[told], kind="stable")]
    captions = (brief(node_caption(whole.graph.nodes[row])) for row in best.tolist())
    examples = ", ".join(islice(dict.fromkeys(captions), _EXAMPLES))
    kind = whole.division.kinds[number]
    labelled = any(whole.graph.node_labels[row] for row in told.tolist())
    title = f"{amount} {kind}".strip() + f": {uses(labels[:_LABELS], len(labels), 'label')}" * labelled
    inside = int(edges) if len(unseen) else 0
    name = f"{_NAMES.get(kind, examples)} ({format_count(len(told), 'node')}{_mostly(labels, len(told), len(names)) * labelled})"
    return Community(
        whole.ids[number], f"{title}; e.g. {examples}", name, kind, len(rows), len(unseen), inside, labels
    )


def _mostly(labels: Sequence[tuple[str, int]], count: int, kinds: int) -> str:
    """Return the label of more than half of some nodes, or "" if there is none or only one label in all."""
    label, most = labels[0] if labels else ("", 0)
    return f", mostly {brief(label)}" if kinds > 1 and 2 * most > count else ""


def how_collapsed(whole: Whole) -> str:
    """Describe the number of communities and how they were found, or return "" if nothing is collapsed."""
    if not whole.ids or whole.outer:
        return ""
    kinds = [kind for kind, rows in zip(whole.division.kinds, whole.members, strict=True) if len(rows)]
    filled = kinds.count("")
    groups = f"{filled:,} {'community' if filled == 1 else 'communities'}" * bool(filled)
    others = [told for kind, told in _GATHERED.items() if kind in kinds]
    groups = " and ".join(filter(None, (groups, *others)))
    inside = f"; {whole.share_inside:.0%} of the edges lie within one" * (len(whole.graph.sources) > 0)
    return f"{format_count(len(whole.graph), 'node')} are more than {whole.most:,}: drawn as {groups}, found {whole.division.how}{inside}."


def by_themselves(shown: int) -> str:
    """Return a sentence with the number of nodes that are drawn individually, or ""."""
    if not shown:
        return ""
    return "1 node is drawn by itself." if shown == 1 else f"{shown:,} nodes are drawn by themselves."


def lines_left_out(whole: Whole, edges: int, most: int) -> str:
    """Return a sentence with the number of edges that have no line, or ""."""
    if not edges:
        return ""
    which = "the marked ones and " * bool(whole.marked) + "some of each node's"
    return f"{format_count(edges, 'edge')} {'is' if edges == 1 else 'are'} left out: at most {most:,} lines are drawn, {which}."


def _unlike_a_node(name: str, graph: PropertyGraph) -> str:
    while name in graph:
        name += "*"
    return name
