"""What is marked in a graph: by a write, along a path, or by the answer of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.trace import Trace
from kgot_lab.text.counted import counted
from kgot_lab.text.words import plain_answer
from kgot_lab.types import Diff, Node
from kgot_lab.viz.graph.marks import DIFF, MARKS, grounds, links_of

_LAST_WRITE = "The last write:"
_NO_NAME = "(no name)"  # what stands under a node whose name is empty or blanks

_Identity = tuple[str, str, str, str]
# a write; a path, as the ids of its nodes in order; or a run, for its answer
Highlight = Diff | Sequence[str] | Trace | None


@dataclass(frozen=True)
class Marked:
    """A graph together with what a write took away, and the marks of nodes and edges, which are keys of
    MARKS.
    """

    graph: PropertyGraph
    nodes: Mapping[str, str]
    edges: Mapping[_Identity, str]
    said: str  # what is marked, in words; "" for nothing

    @property
    def labels(self) -> tuple[str, ...]:
        """First labels in order of first use, over the whole graph: so that colours stay as it grows."""
        return tuple(dict.fromkeys(labels[0] for labels in self.graph.node_labels if labels))

    @property
    def touched(self) -> frozenset[str]:
        """The ids of marked nodes, and of the ends of marked edges."""
        return frozenset(self.nodes) | {
            end for source, _, target, _ in self.edges for end in (source, target)
        }


def marked(graph: PropertyGraph, highlight: Highlight) -> Marked:
    """A graph with what a write, a path or the answer of a run marks in it.

    Raises UnknownName and BadInput for a path that is not in the graph, BadInput for a run without an answer.
    """
    if isinstance(highlight, Trace):
        return _answered(graph, highlight)
    if highlight is None or (not isinstance(highlight, Diff) and not highlight):
        return Marked(graph, {}, {}, "")
    if isinstance(highlight, Diff):
        return Marked(
            _with_removed(graph, highlight),
            _node_marks(highlight),
            _edge_marks(highlight),
            f"{_LAST_WRITE} {highlight}.",
        )
    if isinstance(highlight, str):
        raise BadInput(f"a path is a list of node ids, such as [{highlight!r}, …]")
    names = [graph.node(id).text for id in highlight]
    edges = links_of(graph, highlight)
    return Marked(
        graph,
        dict.fromkeys(highlight, "path"),
        {edge.identity: "path" for edge in edges},
        f"The path: {' – '.join(names)}.",
    )


def _answered(graph: PropertyGraph, run: Trace) -> Marked:
    """A graph with the answer of a run, where it is a node, and the few facts that the answer rests on."""
    told = grounds(run)
    held = {edge.identity for edge in graph.edges}
    facts = [edge for edge in told.telling if edge.identity in held]
    nodes = {told.hub: "answer"} if told.hub_is_answer and told.hub in graph else _named(graph, told.answer)
    marks = f" Marked: {counted(len(facts), 'fact')} that tell it." if facts else ""
    answer = told.answer.strip().rstrip(".")
    said = f"The answer: {answer}.{marks}" if answer else f"The answer is empty.{marks}"
    return Marked(graph, nodes, {edge.identity: "evidence" for edge in facts}, said)


def _named(graph: PropertyGraph, answer: str) -> dict[str, str]:
    """The node that is called as the answer is, marked."""
    wanted = plain_answer(answer)
    return {
        node.id: "answer"
        for node in graph.nodes
        if wanted and wanted in (plain_answer(node.id), plain_answer(node.text))
    }


def kinds_of_marks(said: str, marks: Collection[str]) -> tuple[str, ...]:
    """The kinds of marks that a legend has to explain, given those that there are."""
    others = tuple(mark for mark in MARKS if mark in marks and mark not in DIFF)
    return others or (DIFF if said.startswith(_LAST_WRITE) else ())


def _with_removed(graph: PropertyGraph, diff: Diff) -> PropertyGraph:
    """The graph after a write, together with what the write took away."""
    if not (diff.removed_nodes or diff.removed_edges):
        return graph
    nodes = {node.id: node for node in (*diff.removed_nodes, *graph.nodes)}
    edges = {edge.identity: edge for edge in (*diff.removed_edges, *graph.edges)}
    # ghosts last: the others keep their colours
    ordered = [*graph.ids, *(id for id in nodes if id not in graph)]
    return PropertyGraph.of((nodes[id] for id in ordered), edges.values(), dangling="add")


def _node_marks(diff: Diff) -> dict[str, str]:
    return (
        {node.id: "removed" for node in diff.removed_nodes}
        | {node.id: "changed" for _, node in diff.changed_nodes}
        | {node.id: "added" for node in diff.added_nodes}
    )


def _edge_marks(diff: Diff) -> dict[_Identity, str]:
    return (
        {edge.identity: "removed" for edge in diff.removed_edges}
        | {edge.identity: "changed" for _, edge in diff.changed_edges}
        | {edge.identity: "added" for edge in diff.added_edges}
    )


def node_caption(node: Node) -> str:
    """What stands under a node: its name, if it has one and is no text itself. A description is read on the
    node, not under it.
    """
    properties = node.properties
    said = str(properties["name"]) if properties.get("name") and not properties.get("text") else node.text
    return said if said.strip() else _NO_NAME
