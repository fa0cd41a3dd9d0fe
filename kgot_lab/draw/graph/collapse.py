"""What is drawn of a graph of any size: its nodes while they are few, and else communities, each as one until it is opened."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.draw.graph.bundles import MOST_LINES, EdgeBundle, NodeNumbers, brief, lines, uses
from kgot_lab.draw.graph.communities import MOST_COMMUNITIES, Communities, carried, communities, first_labels, members
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.columns import Ints, frozen
from kgot_lab.graph.truth import Identity
from kgot_lab.text.counted import counted
from kgot_lab.types import Edge, Node

MOST_NODES = 2_000
_FEW = 4  # with fewer communities than this a picture says little: the best connected nodes are drawn too
_HUBS = 30
_LABELS, _EXAMPLES = 3, 2  # that a title names


@dataclass(frozen=True)
class Community:
    """Nodes that are drawn as one: `hidden` of `size` are, and `edges` lie between these; `labels` are their first ones, most used first.

    Its super node has the same id and title. With nothing hidden it has none, and labels and title are of all its nodes.
    """

    id: str
    title: str
    kind: str
    size: int
    hidden: int
    edges: int
    labels: tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Whole:
    """A graph and what of its pictures stays the same, whatever is opened: its communities, and what is marked."""

    graph: PropertyGraph
    division: Communities
    most: int
    marked: Collection[Identity] = ()

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """What the communities are called: none of it is the id of a node."""
        return tuple(_unlike_a_node(f"community {number + 1}", self.graph) for number in range(len(self.division)))

    @cached_property
    def degree(self) -> NodeNumbers:
        """How many edge ends touch each node."""
        return np.bincount(np.concatenate([self.graph.sources, self.graph.targets]), minlength=len(self.graph))

    @cached_property
    def members(self) -> list[Ints]:
        """The node rows of each community, best connected first."""
        return members(self.division, self.degree)

    @cached_property
    def labels(self) -> tuple[NodeNumbers, tuple[str, ...]]:
        """The number of each node's first label, and the names they stand for."""
        return first_labels(self.graph)

    @cached_property
    def share_inside(self) -> float:
        """Which share of the edges lies within a community."""
        of = self.division.of
        return float((of[self.graph.sources] == of[self.graph.targets]).mean()) if len(self.graph.sources) else 1.0

    def number(self, community: str) -> int:
        """The number of a community; raises BadInput when there is none, UnknownName when there are others."""
        if not self.ids:
            raise BadInput("nothing is collapsed in this view: all nodes are drawn already")
        if community not in self.ids:
            raise UnknownName("community", community, self.ids)
        return self.ids.index(community)


@dataclass(frozen=True, eq=False, repr=False)
class View:
    """What to draw: nodes, among them one for each community that hides some; edges between nodes; bundles of all other edges.

    `shown` are the rows of the nodes drawn by themselves, which come first in `nodes`; `at` gives for each row of the graph which of
    `nodes` stands for it; `left_out` counts the edges for which no line is drawn; `note` says plainly what is shown and what is not.
    """

    whole: Whole
    shown: Ints
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    bundles: tuple[EdgeBundle, ...]
    communities: tuple[Community, ...]
    left_out: int
    note: str
    at: NodeNumbers = field(repr=False)

    def __repr__(self) -> str:
        said = f"{len(self.shown):,} of {counted(len(self.graph), 'node')}, {counted(len(self.nodes) - len(self.shown), 'super node')}"
        return f"<View: {said}, {counted(len(self.edges), 'edge')}, {counted(len(self.bundles), 'bundle')}>"

    @property
    def graph(self) -> PropertyGraph:
        """The graph of which this is a view."""
        return self.whole.graph

    def drawn_as(self, id: str) -> str:
        """The id of what stands for a node: its own, or that of the community that hides it; raises UnknownName."""
        return self.nodes[int(self.at[self.graph.row(id)])].id

    def community_of(self, id: str) -> str:
        """The community of a node, drawn or hidden; raises UnknownName for no such node, BadInput when nothing is collapsed."""
        row = self.graph.row(id)
        if not self.whole.ids:
            raise BadInput("nothing is collapsed in this view: it has no communities")
        return self.whole.ids[int(self.whole.division.of[row])]


def collapsed(graph: PropertyGraph, most: int = MOST_NODES, *, marked: Collection[Identity] = (), before: View | None = None) -> View:
    """A view of a graph: all nodes, if there are at most so many, or else its communities, each as one node.

    Edges whose identity is `marked` are drawn first when there are more than 5,000. With `before`, a view of an earlier state of the
    graph, a node stays in its community, and drawn by itself if it was. Raises BadInput for `most` below 1.
    """
    if most < 1:
        raise BadInput(f"a view of {most} nodes shows nothing: give at least 1")
    if len(graph) <= most:
        nothing = Communities(np.zeros(len(graph), dtype=np.int32), (), "")
        return _drawn(Whole(graph, nothing, most, marked), np.arange(len(graph)))
    few = min(most, MOST_COMMUNITIES)
    if before is None or not before.whole.ids:
        return _with_hubs(Whole(graph, communities(graph, most=few), most, marked))
    whole = Whole(graph, carried(graph, before.graph, before.whole.division, most=few), most, marked)
    return revealed(_drawn(whole, np.arange(0)), [id for row in before.shown.tolist() if (id := before.graph.ids[row]) in graph])


def opened(view: View, community: str) -> View:
    """The view with the nodes of a community drawn by themselves, the best connected first as far as there is room.

    Raises UnknownName for no such community, BadInput when nothing is collapsed.
    """
    rows = view.whole.members[view.whole.number(community)]
    hidden = rows[view.at[rows] >= len(view.shown)]
    others = sum(each.hidden > 0 and each.id != community for each in view.communities)
    room = view.whole.most - others - len(view.shown)
    if len(hidden) <= room:
        return _drawn(view.whole, np.concatenate([view.shown, hidden]))
    fitting = hidden[: max(room - 1, 0)]
    said = f"{len(hidden) - len(fitting):,} of {counted(len(rows), 'node')} of {community} found no room"
    said += ": the best connected are drawn." if len(fitting) else ": close another community first."
    return _drawn(view.whole, np.concatenate([view.shown, fitting]), said)


def closed(view: View, community: str) -> View:
    """The view with a community drawn as one again; raises as `opened` does."""
    number = view.whole.number(community)
    return _drawn(view.whole, view.shown[view.whole.division.of[view.shown] != number])


def revealed(view: View, ids: Iterable[str]) -> View:
    """The view with some nodes drawn by themselves, wherever they are; if there is no room, nodes drawn before give way.

    Raises UnknownName for no such node.
    """
    rows = np.array(list(dict.fromkeys(map(view.graph.row, ids))), dtype=np.int64)
    if not view.whole.ids:
        return view
    earlier = view.shown[~np.isin(view.shown, rows)]
    shown = np.concatenate([rows, earlier])
    collapsed_still = np.count_nonzero(np.bincount(np.delete(view.whole.division.of, shown)))
    if len(shown) + collapsed_still <= view.whole.most:
        return _drawn(view.whole, shown)
    room = max(view.whole.most - len(view.whole.ids), 0)
    said = [f"{len(rows) - room:,} of the {counted(len(rows), 'node')} asked for found no room."] * (len(rows) > room)
    said += [f"{counted(len(shown) - max(room, len(rows)), 'node')} drawn before gave way."] * (len(shown) > max(room, len(rows)))
    return _drawn(view.whole, shown[:room], " ".join(said))


# --- how a view is made ---


def _with_hubs(whole: Whole) -> View:
    """The view with everything collapsed, but for the best connected nodes when a few communities alone would say little."""
    if len(whole.division) >= _FEW:
        return _drawn(whole, np.arange(0))
    hubs = np.argsort(-whole.degree, kind="stable")[: max(0, min(_HUBS, whole.most - len(whole.division)))]
    return _drawn(whole, hubs[whole.degree[hubs] > 0])


def _drawn(whole: Whole, shown: NDArray[np.integer[Any]], said: str = "") -> View:
    """The view of a graph in which these rows are drawn by themselves, and everything else by its community."""
    graph, division = whole.graph, whole.division
    hidden = np.ones(len(graph), dtype=bool)
    hidden[shown] = False
    counts = np.bincount(division.of[hidden], minlength=len(division))
    single = np.flatnonzero(hidden & (counts == 1)[division.of]) if len(division) else np.arange(0)  # no use in a super node for one
    hidden[single], counts[counts == 1] = False, 0
    rows = np.concatenate([shown, single]).astype(np.int32)
    heads = np.flatnonzero(counts)
    at = np.empty(len(graph), dtype=np.int64)
    at[rows] = np.arange(len(rows))
    thing_of = np.zeros(len(division), dtype=np.int64)
    thing_of[heads] = len(rows) + np.arange(len(heads))
    at[hidden] = thing_of[division.of[hidden]]
    names = [*map(graph.ids.__getitem__, rows.tolist()), *(whole.ids[head] for head in heads)]
    found = lines(graph, at, len(rows), names, whole.marked)
    groups = tuple(_community(whole, number, hidden, found.inside[thing_of[number]]) for number in range(len(division)))
    return View(
        whole=whole,
        shown=frozen(rows),
        nodes=(*(graph.nodes[row] for row in rows.tolist()), *(_super_node(groups[head]) for head in heads)),
        edges=tuple(graph.edges[row] for row in found.edges.tolist()),
        bundles=found.bundles,
        communities=tuple(group for group in groups if group.size),
        left_out=found.left_out,
        note=_note(whole, len(rows), said, found.left_out),
        at=frozen(at),
    )


def _community(whole: Whole, number: int, hidden: NDArray[np.bool_], edges: int) -> Community:
    rows = whole.members[number]
    unseen = rows[hidden[rows]]
    told = unseen if len(unseen) else rows
    codes, names = whole.labels
    counts = np.bincount(codes[told], minlength=len(names))
    labels = tuple((names[code], int(counts[code])) for code in np.argsort(-counts, kind="stable").tolist() if counts[code])
    amount = f"{len(unseen):,} more of {counted(len(rows), 'node')}" if 0 < len(unseen) < len(rows) else counted(len(rows), "node")
    examples = ", ".join(brief(whole.graph.nodes[row].text) for row in islice(told.tolist(), _EXAMPLES))
    kind = whole.division.kinds[number]
    labelled = any(whole.graph.node_labels[row] for row in told.tolist())
    title = f"{amount} {kind}".strip() + f": {uses(labels[:_LABELS], len(labels), 'label')}" * labelled
    inside = int(edges) if len(unseen) else 0
    return Community(whole.ids[number], f"{title}; e.g. {examples}", kind, len(rows), len(unseen), inside, labels)


def _super_node(group: Community) -> Node:
    return Node(group.id, (), {"text": group.title, "nodes": group.hidden, "edges inside": group.edges})


def _note(whole: Whole, shown: int, said: str, left_out: int) -> str:
    return " ".join(
        part for part in (_how_collapsed(whole), _by_themselves(shown) if whole.ids else "", said, _left_out(whole, left_out)) if part
    )


def _how_collapsed(whole: Whole) -> str:
    if not whole.ids:
        return ""
    filled = sum(map(bool, map(len, whole.members)))
    groups = f"{filled:,} {'community' if filled == 1 else 'communities'}"
    inside = f"; {whole.share_inside:.0%} of the edges lie within one" * (len(whole.graph.sources) > 0)
    return f"{counted(len(whole.graph), 'node')} are more than {whole.most:,}: drawn as {groups}, found {whole.division.how}{inside}."


def _by_themselves(shown: int) -> str:
    if not shown:
        return ""
    return "1 node is drawn by itself." if shown == 1 else f"{shown:,} nodes are drawn by themselves."


def _left_out(whole: Whole, edges: int) -> str:
    if not edges:
        return ""
    which = "the marked ones and " * bool(whole.marked) + "some of each node's"
    return f"{counted(edges, 'edge')} {'is' if edges == 1 else 'are'} left out: at most {MOST_LINES:,} lines are drawn, {which}."


def _unlike_a_node(name: str, graph: PropertyGraph) -> str:
    while name in graph:
        name += "*"
    return name
