"""Collapse a large graph for drawing: its communities are single nodes until they are opened."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Identity
from kgot_lab.graph.communities import (
    MAX_COMMUNITIES,
    Communities,
    edge_ends,
    find_communities,
    split_community,
)
from kgot_lab.graph.property_graph import Ints, make_read_only
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.groups import (
    EVERYTHING_ELSE,
    MAX_LINES,
    Community,
    EdgeBundle,
    NodeNumbers,
    ViewedGraph,
    describe_community,
    describe_view,
    select_lines,
)

MAX_NODES = 2_000
_FEW_ITEMS, _LINES_OF_FEW = 150, 300  # few items must have readable names; more lines would hide them
_FEW_COMMUNITIES = 4  # with fewer communities a picture says little: the best connected nodes are drawn too
_MAX_HUBS = 30
MAX_OPENED_NODES = 60  # maximum nodes of a community that are drawn individually
_MAX_PARTS = 20  # maximum communities into which a larger one is divided
_MAX_NEIGHBOURS = 5  # other communities drawn beside it; everything else is one


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """The items to draw: nodes, some of which are collapsed communities, edges, and bundles of other edges.

    `shown` are the rows of the nodes drawn individually, which come first in `nodes`. `at` maps each row of
    the graph to its representative in `nodes`. `left_out` counts the edges without a line. `note` says what
    is shown and what is not.
    """

    whole: ViewedGraph
    shown: Ints
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    bundles: tuple[EdgeBundle, ...]
    communities: tuple[Community, ...]
    left_out: int
    note: str
    at: NodeNumbers = field(repr=False)

    def __repr__(self) -> str:
        super_nodes = format_count(len(self.nodes) - len(self.shown), "super node")
        nodes = f"{len(self.shown):,} of {format_count(len(self.graph), 'node')}, {super_nodes}"
        lines = f"{format_count(len(self.edges), 'edge')}, {format_count(len(self.bundles), 'bundle')}"
        return f"<View: {nodes}, {lines}>"

    @property
    def graph(self) -> PropertyGraph:
        """The graph of which this is a view."""
        return self.whole.graph

    def drawn_as(self, id: str) -> str:
        """Return the id of the node or community that represents a node in the drawing.

        Raises UnknownName if there is no such node.
        """
        return self.nodes[int(self.at[self.graph.row(id)])].id

    def community_of(self, id: str) -> str:
        """Return the community of a node of a collapsed graph, whether the node is drawn or hidden.

        Raises UnknownName if there is no such node.
        """
        return self.whole.ids[int(self.whole.division.of[self.graph.row(id)])]


def collapse_graph(graph: PropertyGraph, most: int = MAX_NODES, *, marked: Collection[Identity] = ()) -> View:
    """Create a view of a graph: all nodes if there are at most `most`, else each community as one node.

    Edges whose identity is `marked` are drawn first if there are more than 5,000. `most` is at least 1.
    """
    if len(graph) <= most:
        nothing = Communities(np.zeros(len(graph), dtype=np.int32), (), "")
        return make_view(ViewedGraph(graph, nothing, most, marked), np.arange(len(graph)))
    division = find_communities(graph, most=min(most, MAX_COMMUNITIES))
    return _collapsed_view(ViewedGraph(graph, division, most, marked))


def close_community(view: View, community: str) -> View:
    """Return the view with a community collapsed again.

    Raises UnknownName if there is no such community.
    """
    number = view.whole.number(community)
    return make_view(view.whole, view.shown[view.whole.division.of[view.shown] != number])


def reveal_nodes(view: View, ids: Iterable[str]) -> View:
    """Return the view with some nodes drawn individually, wherever they are.

    If there is no room, nodes drawn earlier are hidden. Raises UnknownName if there is no such node.
    """
    rows = np.array(list(dict.fromkeys(map(view.graph.row, ids))), dtype=np.int64)
    if not view.whole.ids:
        return view
    shown = np.concatenate([rows, view.shown[~np.isin(view.shown, rows)]])
    collapsed_still = np.count_nonzero(np.bincount(np.delete(view.whole.division.of, shown)))
    if len(shown) + collapsed_still <= view.whole.most:
        return make_view(view.whole, shown)
    capacity = max(view.whole.most - len(view.whole.ids), 0)
    omitted, displaced = len(rows) - capacity, len(shown) - max(capacity, len(rows))
    notes = (
        [f"{omitted:,} of the {format_count(len(rows), 'node')} asked for found no room."]
        if omitted > 0
        else []
    )
    notes += [f"{format_count(displaced, 'node')} drawn before gave way."] if displaced > 0 else []
    return make_view(view.whole, shown[:capacity], " ".join(notes))


# --- an opened community: everything else is drawn as a few items ---


def open_community(view: View, community: str) -> View:
    """Return the view of one community.

    It shows the nodes of the community, or, if there are more than 60, the smaller communities that it splits
    into. A community that does not split shows its best connected nodes, and the next ones when it is opened
    again. Beside it are the communities with the most edges to it, and everything else as one, which leads
    out again. Raises UnknownName if there is no such community.
    """
    number = view.whole.number(community)
    if view.whole.outer and view.whole.division.kinds[number] == EVERYTHING_ELSE:
        return view.whole.outer
    rows = view.whole.members[number]
    at_once = min(MAX_OPENED_NODES, max(view.whole.most - _MAX_NEIGHBOURS - 2, 1))
    whole = _divide_outside(view, number, rows)
    if len(rows) > at_once:
        ends, labels = edge_ends(whole.graph), whole.labels[0]
        finer = split_community(whole.division, rows, ends, labels, most=min(_MAX_PARTS, at_once))
        if finer is not whole.division:
            note = f"Inside “{_community_name(view, community)}”: {format_count(len(finer) - len(whole.division), 'smaller group')}."
            return make_view(replace(whole, division=finer), np.arange(0), note)
    hidden = rows[view.at[rows] >= len(view.shown)]
    drawn = (hidden if len(hidden) else rows)[:at_once]
    nodes = format_count(len(rows), "node")
    is_partial = len(drawn) < len(rows)
    omission = f" {len(drawn)} of {nodes} are drawn; open it again for the next ones." * is_partial
    return make_view(whole, drawn, f"Inside “{_community_name(view, community)}”.{omission}")


def _divide_outside(view: View, number: int, rows: Ints) -> ViewedGraph:
    """Divide the graph outside a community into its few nearest communities and one for everything else."""
    whole, division = view.whole, view.whole.division
    inside = np.zeros(len(division.of), dtype=bool)
    inside[rows] = True
    ends = edge_ends(whole.graph)
    crossing = ends[:, inside[ends[0]] != inside[ends[1]]]
    counts = np.bincount(division.of[crossing[~inside[crossing]]], minlength=len(division))
    nearest = np.argsort(-counts, kind="stable")[:_MAX_NEIGHBOURS].tolist()
    near = [each for each in nearest if counts[each] and division.kinds[each] != EVERYTHING_ELSE]
    far = ~inside & ~np.isin(division.of, near)
    of, kinds = division.of.copy(), division.kinds
    if len(np.unique(of[far])) > 1:
        of[far], kinds = len(division), (*kinds, EVERYTHING_ELSE)
    outside = frozenset(np.unique(of[~inside]).tolist())
    divided = Communities(make_read_only(of), kinds, division.how)
    return replace(whole, division=divided, outer=view, outside=outside)


def _community_name(view: View, community: str) -> str:
    return next(group.name for group in view.communities if group.id == community)


# --- construction of a view ---


def _collapsed_view(whole: ViewedGraph) -> View:
    """Return the view with everything collapsed.

    If there are only a few communities, the best connected nodes are drawn too.
    """
    if len(whole.division) >= _FEW_COMMUNITIES:
        return make_view(whole, np.arange(0))
    most = max(0, min(_MAX_HUBS, whole.most - len(whole.division)))
    hubs = np.argsort(-whole.degree, kind="stable")[:most]
    return make_view(whole, hubs[whole.degree[hubs] > 0])


def make_view(whole: ViewedGraph, shown: NDArray[np.integer[Any]], note: str = "") -> View:
    """Return the view that draws these rows individually and everything else by its community."""
    graph, division = whole.graph, whole.division
    hidden = np.ones(len(graph), dtype=bool)
    hidden[shown] = False
    counts = np.bincount(division.of[hidden], minlength=len(division))
    # a single hidden node is drawn instead of its community
    single = np.flatnonzero(hidden & (counts == 1)[division.of]) if len(division) else np.arange(0)
    hidden[single], counts[counts == 1] = False, 0
    rows = np.concatenate([shown, single]).astype(np.int32)
    heads = np.flatnonzero(counts)
    at = np.empty(len(graph), dtype=np.int64)
    at[rows] = np.arange(len(rows))
    item_of = np.zeros(len(division), dtype=np.int64)
    item_of[heads] = len(rows) + np.arange(len(heads))
    at[hidden] = item_of[division.of[hidden]]
    names = [*map(graph.ids.__getitem__, rows.tolist()), *(whole.ids[head] for head in heads)]
    most = _LINES_OF_FEW if whole.ids and len(names) <= _FEW_ITEMS else MAX_LINES
    selected = select_lines(graph, at, len(rows), names, whole.marked, most=most)
    outside = {whole.ids[number] for number in whole.outside}
    inside = selected.inside[item_of]
    groups = tuple(describe_community(whole, number, hidden, edges) for number, edges in enumerate(inside))
    return View(
        whole=whole,
        shown=make_read_only(rows),
        nodes=(*(graph.nodes[row] for row in rows.tolist()), *(_super_node(groups[head]) for head in heads)),
        edges=tuple(graph.edges[row] for row in selected.edges.tolist()),
        bundles=tuple(bundle for bundle in selected.bundles if not outside >= {bundle.source, bundle.target}),
        communities=tuple(group for group in groups if group.size),
        left_out=selected.left_out,
        note=describe_view(whole, len(rows), note, selected.left_out, most),
        at=make_read_only(at),
    )


def _super_node(group: Community) -> Node:
    return Node(group.id, (), {"text": group.title, "nodes": group.hidden, "edges inside": group.edges})
