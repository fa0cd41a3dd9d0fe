"""The communities of a graph as they are told: what each is called, what it holds, and how they were found."""

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
from kgot_lab.graph.columns import Ints
from kgot_lab.graph.dict_graph import Identity
from kgot_lab.text.counted import counted
from kgot_lab.viz.graph.communities import THE_REST, WITHOUT_EDGES, Communities, first_labels, members
from kgot_lab.viz.graph.groups import NodeNumbers, brief, uses
from kgot_lab.viz.graph.marks import node_caption

if TYPE_CHECKING:
    from kgot_lab.viz.graph.collapse import View

_LABELS, _EXAMPLES = 3, 2  # that a title names
_GATHERED = {
    WITHOUT_EDGES: "one group of nodes without edges",
    THE_REST: "one of the smallest parts, which nothing joins",
}
EVERYTHING_ELSE = "elsewhere"  # the kind of what is outside a community that one looks into
_NAMES = {
    WITHOUT_EDGES: "without edges",
    THE_REST: "small parts, not joined",
    EVERYTHING_ELSE: "everything else",
}  # of what is no community


@dataclass(frozen=True)
class Community:
    """Nodes that are drawn as one: `hidden` of `size` are, and `edges` lie between these; `labels` are their
    first ones, most used first.

    It is called by its best connected nodes and what most of them are; its super node has the same id and
    title. With nothing hidden it has none, and name, labels and title are of all its nodes.
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
    """A graph and what of its pictures stays the same, whatever is opened: its communities, and what is
    marked.
    """

    graph: PropertyGraph
    division: Communities
    most: int
    marked: Collection[Identity] = ()
    outer: View | None = None  # of a look into one community: the view from which it was opened
    # the numbers of the communities beside it, between which no lines are drawn
    outside: frozenset[int] = frozenset()

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """What the communities are called: none of it is the id of a node."""
        return tuple(
            _unlike_a_node(f"community {number + 1}", self.graph) for number in range(len(self.division))
        )

    @cached_property
    def degree(self) -> NodeNumbers:
        """How many edge ends touch each node."""
        return np.bincount(
            np.concatenate([self.graph.sources, self.graph.targets]), minlength=len(self.graph)
        )

    @cached_property
    def members(self) -> list[Ints]:
        """The node rows of each community, best connected first."""
        return members(self.division, self.degree)

    @cached_property
    def belonging(self) -> NDArray[np.float64]:
        """How well each node stands for its community: edge ends inside times the share that these are of all
        it has.
        """
        of, ends = self.division.of, np.stack([self.graph.sources, self.graph.targets])
        inside = np.bincount(ends[:, of[ends[0]] == of[ends[1]]].ravel(), minlength=len(self.graph))
        return inside * inside / np.maximum(self.degree, 1)

    @cached_property
    def labels(self) -> tuple[NodeNumbers, tuple[str, ...]]:
        """The number of each node's first label, and the names they stand for."""
        return first_labels(self.graph)

    @cached_property
    def share_inside(self) -> float:
        """Which share of the edges lies within a community."""
        of = self.division.of
        return (
            float((of[self.graph.sources] == of[self.graph.targets]).mean())
            if len(self.graph.sources)
            else 1.0
        )

    def number(self, community: str) -> int:
        """The number of a community; raises BadInput when there is none, UnknownName when there are others."""
        if not self.ids:
            raise BadInput("nothing is collapsed in this view: all nodes are drawn already")
        if community not in self.ids:
            raise UnknownName("community", community, self.ids)
        return self.ids.index(community)


def describe_community(whole: Whole, number: int, hidden: NDArray[np.bool_], edges: int) -> Community:
    """A community of which some rows are hidden, with what there is to say of these; of all where none is."""
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
        f"{len(unseen):,} more of {counted(len(rows), 'node')}"
        if 0 < len(unseen) < len(rows)
        else counted(len(rows), "node")
    )
    best = told[np.argsort(-whole.belonging[told], kind="stable")]
    captions = (brief(node_caption(whole.graph.nodes[row])) for row in best.tolist())
    examples = ", ".join(islice(dict.fromkeys(captions), _EXAMPLES))
    kind = whole.division.kinds[number]
    labelled = any(whole.graph.node_labels[row] for row in told.tolist())
    title = f"{amount} {kind}".strip() + f": {uses(labels[:_LABELS], len(labels), 'label')}" * labelled
    inside = int(edges) if len(unseen) else 0
    name = f"{_NAMES.get(kind, examples)} ({counted(len(told), 'node')}{_mostly(labels, len(told), len(names)) * labelled})"
    return Community(
        whole.ids[number], f"{title}; e.g. {examples}", name, kind, len(rows), len(unseen), inside, labels
    )


def _mostly(labels: Sequence[tuple[str, int]], count: int, kinds: int) -> str:
    """What more than half of some nodes are, in a graph of several kinds of nodes."""
    label, most = labels[0] if labels else ("", 0)
    return f", mostly {brief(label)}" if kinds > 1 and 2 * most > count else ""


def how_collapsed(whole: Whole) -> str:
    """Into how many communities a graph is collapsed, and how these were found."""
    if not whole.ids or whole.outer:
        return ""
    kinds = [kind for kind, rows in zip(whole.division.kinds, whole.members, strict=True) if len(rows)]
    filled = kinds.count("")
    groups = f"{filled:,} {'community' if filled == 1 else 'communities'}" * bool(filled)
    others = [told for kind, told in _GATHERED.items() if kind in kinds]
    groups = " and ".join(filter(None, (groups, *others)))
    inside = f"; {whole.share_inside:.0%} of the edges lie within one" * (len(whole.graph.sources) > 0)
    return f"{counted(len(whole.graph), 'node')} are more than {whole.most:,}: drawn as {groups}, found {whole.division.how}{inside}."


def by_themselves(shown: int) -> str:
    """How many nodes are drawn by themselves."""
    if not shown:
        return ""
    return "1 node is drawn by itself." if shown == 1 else f"{shown:,} nodes are drawn by themselves."


def lines_left_out(whole: Whole, edges: int, most: int) -> str:
    """For how many edges no line is drawn."""
    if not edges:
        return ""
    which = "the marked ones and " * bool(whole.marked) + "some of each node's"
    return f"{counted(edges, 'edge')} {'is' if edges == 1 else 'are'} left out: at most {most:,} lines are drawn, {which}."


def _unlike_a_node(name: str, graph: PropertyGraph) -> str:
    while name in graph:
        name += "*"
    return name
