"""Descriptions of a graph's communities: names, sizes, bundled edges, and how they were found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Identity
from kgot_lab.graph.communities import (
    THE_REST,
    WITHOUT_EDGES,
    Communities,
    first_labels,
    members_by_community,
)
from kgot_lab.graph.encoding import node_caption
from kgot_lab.graph.property_graph import Ints, make_read_only
from kgot_lab.text.cleaning import format_count, printable_line
from kgot_lab.viz.graph.layout import Mask
from kgot_lab.viz.static.markup import shorten

if TYPE_CHECKING:
    from kgot_lab.viz.graph.collapse import View

# The lines of a view: edges between drawn nodes, and bundles of edges to and between collapsed communities.

MAX_LINES = 5_000
_MAX_TYPES = 3  # edge types named in a bundle's title

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
        return f"{format_count(self.count, 'edge')}: {format_counts(self.types, self.all_types, 'type')}"


@dataclass(frozen=True, eq=False)
class DrawnLines:
    """The drawn edges of a graph: rows of single edges, and bundles.

    `left_out` edges are in neither, and `inside` edges are within collapsed communities.
    """

    edges: Ints
    bundles: tuple[EdgeBundle, ...]
    inside: NodeNumbers
    left_out: int


def select_lines(
    graph: PropertyGraph,
    item_of: NodeNumbers,
    singles: int,
    names: Sequence[str],
    marked: Collection[Identity],
    *,
    most: int = MAX_LINES,
) -> DrawnLines:
    """Select at most `most` lines between the drawn items: the marked ones first, then some at each node.

    The node of row r is drawn as, or within, item `at[r]`, named `names[at[r]]`. Items below `singles` are
    individual nodes. `inside` counts for each item the edges within it.
    """
    one, other = item_of[graph.sources], item_of[graph.targets]
    is_single = (one < singles) & (other < singles)
    within = ~is_single & (one == other)
    edges, crossing = np.flatnonzero(is_single), np.flatnonzero(~is_single & ~within)
    low, high = np.minimum(one[crossing], other[crossing]), np.maximum(one[crossing], other[crossing])
    codes, bundle_of, counts = np.unique(low * len(names) + high, return_inverse=True, return_counts=True)
    single_ends, bundle_ends = [one[edges], other[edges]], np.divmod(codes, max(len(names), 1))
    ends = np.concatenate([np.stack(single_ends), np.stack(bundle_ends)], axis=1)
    sizes = np.concatenate([np.zeros(len(edges), dtype=np.int64), counts])
    priority = _line_priority(ends, sizes, singles) if ends.shape[1] > most else np.zeros(ends.shape[1])
    priority[np.searchsorted(edges, _marked_rows(graph, marked, item_of < singles))] = -2
    chosen = np.sort(np.lexsort((_pseudorandom(len(priority)), priority))[:most])
    drawn_edges, drawn_bundles = edges[chosen[chosen < len(edges)]], chosen[chosen >= len(edges)] - len(edges)
    left_out = len(edges) - len(drawn_edges) + len(crossing) - int(counts[drawn_bundles].sum())
    drawn = np.isin(bundle_of, drawn_bundles)
    crossed = crossing[drawn]
    bundles = _build_bundles(graph, codes, bundle_of[drawn], (one < other)[crossed], crossed, names)
    inside = np.bincount(one[within], minlength=len(names))
    return DrawnLines(make_read_only(drawn_edges.astype(np.int32)), bundles, inside, left_out)


def format_counts(named: Sequence[tuple[str, int]], total: int, noun: str) -> str:
    """List names with their counts, and the number of names that are not listed."""
    listed = ", ".join(f"{shorten_name(name)} {count:,}" for name, count in named)
    return listed + (f" and {format_count(total - len(named), f'more {noun}')}" if total > len(named) else "")


def shorten_name(text: str) -> str:
    """Shorten a text to at most 24 characters on one line, without characters that move others."""
    return printable_line(shorten(text, 24))


def _line_priority(ends: NodeNumbers, sizes: NodeNumbers, singles: int) -> NDArray[np.float64]:
    """Return for each line its better rank among the lines at its nodes, or -1 between two communities.

    `sizes` is the number of edges in a bundle, and 0 for a single edge. Single edges come first, since they
    say more, then the largest bundles.
    """
    nodes = ends.ravel()
    weakness = np.where(sizes > 0, 1 + sizes.max(initial=0) - sizes, 0)
    order_at = (ends * (weakness.max(initial=0) + 1) + weakness) << 20 | _pseudorandom(len(sizes)) >> 12
    order = np.argsort(order_at.ravel())  # one key: sorting millions of lines by three is much slower
    begin = np.cumsum(np.bincount(nodes)) - np.bincount(nodes)
    rank = np.empty(nodes.size)
    rank[order] = np.arange(nodes.size) - begin[nodes[order]]
    rank[nodes >= singles] = np.inf  # a community has so many lines that ranks at it say little
    best = rank.reshape(2, -1).min(axis=0)
    return np.where(np.isinf(best), -1.0, best)


def _pseudorandom(count: int) -> NodeNumbers:
    """Return a fixed pseudorandom number for each line, to break ties evenly."""
    return (np.arange(count, dtype=np.int64) * 2_654_435_761) % 2**32


def _marked_rows(graph: PropertyGraph, marked: Collection[Identity], is_single: Mask) -> list[int]:
    """Return the rows of the edges with these identities whose ends are drawn individually.

    At most as many as there can be lines are returned. Other identities are ignored.
    """
    rows: list[int] = []
    types = {name: code for code, name in enumerate(graph.type_names)}
    for source, type, target, key in marked:
        if len(rows) == MAX_LINES:
            break
        if source not in graph or target not in graph:
            continue
        row, end = graph.row(source), graph.row(target)
        if is_single[row] and is_single[end]:
            out = graph.out_csr
            near = out.edges[out.indptr[row] : out.indptr[row + 1]]
            is_match = (graph.targets[near] == end) & (graph.type_codes[near] == types.get(type, -1))
            rows += [edge for edge in near[is_match].tolist() if graph.edge_keys[edge] == key]
    return rows


def _build_bundles(
    graph: PropertyGraph,
    codes: NodeNumbers,
    bundle_of: NodeNumbers,
    forward: Mask,
    rows: NodeNumbers,
    names: Sequence[str],
) -> tuple[EdgeBundle, ...]:
    """Build the edge bundles of some edge rows.

    `bundle_of` is the bundle of each row, `forward` whether its edge points forward.
    """
    type_names = graph.type_names
    width = max(len(type_names), 1)
    type_uses, counts = np.unique(bundle_of * width + graph.type_codes[rows], return_counts=True)
    order = np.lexsort((-counts, type_uses // width))
    bundle = type_uses[order] // width
    rank = np.arange(len(order)) - np.searchsorted(bundle, bundle)
    top_types: dict[int, list[tuple[str, int]]] = {}
    top = order[rank < _MAX_TYPES]
    for use, count in zip(type_uses[top].tolist(), counts[top].tolist(), strict=True):
        top_types.setdefault(use // width, []).append((type_names[use % width], count))
    groups = bundle_of[forward], bundle_of[~forward], bundle
    forward_counts, backward_counts, type_counts = (np.bincount(one, minlength=len(codes)) for one in groups)
    bundles = []
    for number, types in top_types.items():
        source, target = (names[end] for end in divmod(codes[number], len(names)))
        sizes = int(forward_counts[number]), int(backward_counts[number])
        bundles.append(EdgeBundle(source, target, *sizes, tuple(types), int(type_counts[number])))
    return tuple(bundles)


_MAX_LABELS, _MAX_EXAMPLES = 3, 2  # maximum labels and examples in a title
_GATHERED = {
    WITHOUT_EDGES: "one group of nodes without edges",
    THE_REST: "one of the smallest parts, linked to no other",
}
EVERYTHING_ELSE = "elsewhere"  # the kind of everything outside an opened community
# names of groups that are not communities
_NAMES = {
    WITHOUT_EDGES: "without edges",
    THE_REST: "small parts, not joined",
    EVERYTHING_ELSE: "everything else",
}


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
class ViewedGraph:
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
        names = (f"community {number + 1}" for number in range(len(self.division)))
        return tuple(_unused_id(name, self.graph) for name in names)

    @cached_property
    def degree(self) -> NodeNumbers:
        """The degree of each node."""
        ends = np.concatenate([self.graph.sources, self.graph.targets])
        return np.bincount(ends, minlength=len(self.graph))

    @cached_property
    def members(self) -> list[Ints]:
        """The node rows of each community, best connected first."""
        return members_by_community(self.division, self.degree)

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
        is_inside = of[self.graph.sources] == of[self.graph.targets]
        return float(is_inside.mean()) if len(is_inside) else 1.0

    def number(self, community: str) -> int:
        """Return the number of a community.

        Raises UnknownName if there is no such one.
        """
        require_known("community", self.ids, community)
        return self.ids.index(community)


def describe_community(whole: ViewedGraph, number: int, hidden: Mask, edges: int) -> Community:
    """Describe a community by its hidden members, or by all members if none is hidden."""
    rows = whole.members[number]
    hidden_rows = rows[hidden[rows]]
    described = hidden_rows if len(hidden_rows) else rows
    codes, names = whole.labels
    counts = np.bincount(codes[described], minlength=len(names))
    order = np.argsort(-counts, kind="stable").tolist()
    labels = tuple((names[code], int(counts[code])) for code in order if counts[code])
    size_text = format_count(len(rows), "node")
    if 0 < len(hidden_rows) < len(rows):
        size_text = f"{len(hidden_rows):,} more of {size_text}"
    best = described[np.argsort(-whole.belonging[described], kind="stable")]
    captions = (shorten_name(node_caption(whole.graph.nodes[row])) for row in best.tolist())
    examples = ", ".join(islice(dict.fromkeys(captions), _MAX_EXAMPLES))
    kind = whole.division.kinds[number]
    labelled = any(whole.graph.node_labels[row] for row in described.tolist())
    label_text = f": {format_counts(labels[:_MAX_LABELS], len(labels), 'label')}" * labelled
    title = f"{size_text} {kind}".strip() + f"{label_text}; e.g. {examples}"
    sizes = len(rows), len(hidden_rows), int(edges) if len(hidden_rows) else 0
    majority = _majority_note(labels, len(described), len(names)) * labelled
    name = f"{_NAMES.get(kind, examples)} ({format_count(len(described), 'node')}{majority})"
    return Community(whole.ids[number], title, name, kind, *sizes, labels)


def _majority_note(labels: Sequence[tuple[str, int]], count: int, kinds: int) -> str:
    """Return the label of more than half of some nodes, or "" if there is none or only one label in all."""
    label, most = labels[0] if labels else ("", 0)
    return f", mostly {shorten_name(label)}" if kinds > 1 and 2 * most > count else ""


def describe_collapse(whole: ViewedGraph) -> str:
    """Describe the number of communities and how they were found, or return "" if nothing is collapsed."""
    if not whole.ids or whole.outer:
        return ""
    kinds = [kind for kind, rows in zip(whole.division.kinds, whole.members, strict=True) if len(rows)]
    filled = kinds.count("")
    groups = f"{filled:,} {'community' if filled == 1 else 'communities'}" if filled else ""
    others = [gathered for kind, gathered in _GATHERED.items() if kind in kinds]
    groups = " and ".join(filter(None, (groups, *others)))
    share_text = (
        f"; {whole.share_inside:.0%} of the edges lie within one" if len(whole.graph.sources) > 0 else ""
    )
    return f"{format_count(len(whole.graph), 'node')} are more than {whole.most:,}: drawn as {groups}, found {whole.division.how}{share_text}."


def describe_view(whole: ViewedGraph, shown: int, note: str, left_out: int, most: int) -> str:
    """Describe what a view shows: communities, nodes drawn individually, and edges that have no line.

    `note` is put after the communities.
    """
    sentences = [describe_collapse(whole), note]
    if whole.ids and shown:
        are = "1 node is drawn by itself" if shown == 1 else f"{shown:,} nodes are drawn by themselves"
        sentences.append(f"{are}.")
    if left_out:
        are, marked = "is" if left_out == 1 else "are", "the marked ones and " if whole.marked else ""
        omitted = f"{format_count(left_out, 'edge')} {are} left out: at most {most:,} lines are drawn"
        sentences.append(f"{omitted}, {marked}some of each node's.")
    return " ".join(filter(None, sentences))


def _unused_id(name: str, graph: PropertyGraph) -> str:
    while name in graph:
        name += "*"
    return name
