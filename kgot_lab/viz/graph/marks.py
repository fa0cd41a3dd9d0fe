"""Marks in a graph: of a write, along a path, or of the answer of a run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, describe_value
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import Encoding, NodeLook, label_encoding, node_caption
from kgot_lab.loop.events import Answered, Event, Started
from kgot_lab.loop.evidence import carrying_edges
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.trace import Trace, graph_after
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import canonical_answer
from kgot_lab.types import Diff, Edge
from kgot_lab.viz.static.drawing import draw_circle
from kgot_lab.viz.static.markup import Markup, concat, element

# The elements of a picture: shapes for labels, curves for edges, styles for the changes of a write.
#
# A sign or a dash pattern encodes the same as the colour in grey. Orange and vermilion lines are darker than those
# of Okabe and Ito, for contrast with white.

Point = tuple[float, float]


@dataclass(frozen=True)
class Style:
    """The style of a line.

    `sign` and `dashes` encode the same as the colour, and `ink` is the colour dark enough for text.
    """

    colour: str
    ink: str
    width: float = 1.3
    dashes: str | None = None
    sign: str = ""


MARKS = {
    "added": Style("#009E73", "#00614A", 2.6, None, "+"),
    "removed": Style("#B34D00", "#9C4400", 2.2, "7 4", "−"),
    "changed": Style("#C28600", "#8A5F00", 2.6, "2 3", "~"),
    "path": Style("#0072B2", "#005A8C", 3.4, None, "»"),
    "answer": Style("#A8457F", "#8A3268", 3.4, "12 3", "★"),
    "evidence": Style("#5B2A86", "#4A2270", 3.0, "4 2 1 2", "✓"),
}
DIFF_MARKS = ("added", "removed", "changed")  # the marks of a write


def line_style(faint: bool) -> Style:
    """Return the style of a line without a mark."""
    return Style("#8F8F8F", "#666" if faint else "#444")


def draw_shape(look: NodeLook, centre: Point, radius: float, *, ghost: bool = False) -> Markup:
    """Draw a circle or a polygon with a darker rim, pale if it is a `ghost` (removed)."""
    x, y = centre
    rim: dict[str, Any] = {"stroke": look.rim, "stroke_width": 1.2, "opacity": 0.4 if ghost else None}
    if not look.corners:
        return draw_circle(x, y, radius, look.colour, **rim)
    rotation = math.pi / 4 if look.corners == 4 else -math.pi / 2
    angles = [rotation + 2 * math.pi * corner / look.corners for corner in range(look.corners)]
    size = radius * (1.2 if look.corners <= 4 else 1.08)  # so that all shapes look equally large
    points = [(x + size * math.cos(angle), y + size * math.sin(angle)) for angle in angles]
    return element("polygon", points=_format_points(points), fill=look.colour, **rim)


def draw_badge(mark: Style, centre: Point, radius: float) -> Markup:
    """Draw a ring around a node and a sign beside it."""
    (x, y), r = centre, radius
    pen = {"stroke": mark.colour, "stroke_width": mark.width, "stroke_dasharray": mark.dashes}
    ring = draw_circle(x, y, r + 5.0, "none", **pen)
    disc = draw_circle(x + r + 3, y - r - 3, 6.0, mark.ink)
    middle = {"text_anchor": "middle", "font_weight": "bold", "font_size": 11}
    sign = element("text", mark.sign, x=x + r + 3, y=y - r + 0.8, fill="#fff", **middle)
    return concat([ring, disc, sign])


@dataclass(frozen=True)
class Curve:
    """A line between nodes: its SVG path and its arrow head."""

    path: str
    arrow: str


def edge_curve(
    start: tuple[Point, float], end: tuple[Point, float], control: Point, *, headed: bool = True
) -> Curve:
    """Draw a quadratic Bézier curve between two nodes, each given by its centre and radius.

    It is straight if the control point is halfway. Without `headed` it ends at the rim of the end node, with
    no room for an arrow head.
    """
    first = _move_towards(start[0], control, start[1] + 1)
    last = _move_towards(end[0], control, end[1] + (3 if headed else 1))
    neck = _move_towards(last, control, 7) if headed else last
    path = f"M{_format_point(first)} Q{_format_point(control)} {_format_point(neck)}"
    return Curve(path, _arrow_points(last, control))


def loop_curve(centre: Point, radius: float, number: int, *, headed: bool = True) -> Curve:
    """Draw a self-loop above a node.

    Loops with a higher `number` are larger. Without `headed` the loop ends at the node itself.
    """
    x, y = centre
    size = 2.2 * radius + 12 * number
    first, last = (x - 0.5 * radius, y - radius), (x + 0.5 * radius, y - radius - 2)
    one, other = (x - size, y - 2 * size), (x + size, y - 2 * size)
    end = _move_towards(last, other, 7 if headed else -2)
    path = f"M{_format_point(first)} C{_format_point(one)} {_format_point(other)} {_format_point(end)}"
    return Curve(path, _arrow_points(last, other))


def _move_towards(start: Point, goal: Point, distance: float) -> Point:
    dx, dy = goal[0] - start[0], goal[1] - start[1]
    length = math.hypot(dx, dy) or 1.0
    return start[0] + dx / length * distance, start[1] + dy / length * distance


def _arrow_points(tip: Point, origin: Point) -> str:
    x, y = _move_towards(tip, origin, 9)
    dx, dy = (y - tip[1]) / 9 * 4, (tip[0] - x) / 9 * 4
    return _format_points([tip, (x + dx, y + dy), (x - dx, y - dy)])


def _format_point(position: Point) -> str:
    return f"{position[0]:.1f} {position[1]:.1f}"


def _format_points(positions: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)


# The support of an answer: of the facts that a run read, the few that concern its question.


@dataclass(frozen=True)
class AnswerSupport:
    """An answer, the facts that the run read for it, and the few of them that carry it (`telling`).

    The `hub` is the node that is the answer, or else the one with the most telling facts; "" without any.
    """

    answer: str
    read: tuple[Edge, ...]
    telling: tuple[Edge, ...]
    hub: str
    graph: PropertyGraph

    @property
    def hub_is_answer(self) -> bool:
        """Whether the hub's name is the answer or contains it."""
        return bool(self.hub) and _name_similarity(self.graph.node(self.hub).text, self.answer) > 1


@check_arguments
def find_support(run: Trace | Iterable[Event]) -> AnswerSupport:
    """Find the facts that support the answer of a run.

    Raises BadInput if the run has no answer yet.
    """
    events = run.events if isinstance(run, Trace) else tuple(run)
    started = next((event for event in events if isinstance(event, Started)), None)
    answered = next((event for event in reversed(events) if isinstance(event, Answered)), None)
    if started is None or answered is None:
        raise BadInput("a picture of an answer needs a finished run, as load_run returns it")
    graph, answer = graph_after(events), answered.text
    by_fact = {fact_of(edge): edge for edge in graph.edges}
    read = tuple(by_fact[fact] for fact in answered.evidence if isinstance(fact, str) and fact in by_fact)
    telling = tuple(carrying_edges(read, started.question, answer, Limits().evidence))
    ends = [end for edge in telling for end in (edge.source, edge.target)]
    hub = max(
        ends, key=lambda end: (_name_similarity(graph.node(end).text, answer), ends.count(end)), default=""
    )
    return AnswerSupport(answer, read, telling, hub, graph)


def _name_similarity(text: str, answer: str) -> int:
    one, other = f" {canonical_answer(text)} ", f" {canonical_answer(answer)} "
    if not one.strip() or not other.strip():
        return 0
    return 3 if one == other else 2 if other in one else int(one in other)


# Paths between two nodes.


def path_edges(graph: PropertyGraph, path: Sequence[str]) -> list[Edge]:
    """Return an edge for each step of a path, preferring edges in the path's direction.

    Raises BadInput if a step has no edge.
    """
    return [_edge_between(graph, one, other) for one, other in pairwise(path)]


def _edge_between(graph: PropertyGraph, one: str, other: str) -> Edge:
    edges = graph.neighbours(one, "both")
    candidates = [edge for edge in edges if one != other and other in (edge.source, edge.target)]
    if not candidates:
        raise BadInput(f"no edge joins {one!r} and {other!r}, so they cannot be neighbours on a path")
    return min(candidates, key=lambda edge: edge.source != one)


_LAST_WRITE = "The last write:"

_Identity = tuple[str, str, str, str]
# a write, a path as the ids of its nodes in order, or a run, for its answer
Highlight = Diff | Sequence[str] | Trace | None


@dataclass(frozen=True)
class MarkedGraph:
    """A graph including what a write removed, and the marks of nodes and edges (keys of MARKS)."""

    graph: PropertyGraph
    nodes: Mapping[str, str]
    edges: Mapping[_Identity, str]
    said: str  # description of what is marked, or ""
    given: Encoding | None = None

    @cached_property
    def encoding(self) -> Encoding:
        """The given encoding, or that by the first labels in order of first use.

        Colours then stay the same as the graph grows.
        """
        return self.given or label_encoding(labels[0] for labels in self.graph.node_labels if labels)

    @property
    def touched(self) -> frozenset[str]:
        """The ids of marked nodes, and of the ends of marked edges."""
        ends = (end for source, _, target, _ in self.edges for end in (source, target))
        return frozenset((*self.nodes, *ends))


def mark_graph(graph: PropertyGraph, highlight: Highlight) -> MarkedGraph:
    """Mark a write, a path or the answer of a run in a graph.

    Raises UnknownName or BadInput if a path is not in the graph, and BadInput if a run has no answer.
    """
    if isinstance(highlight, Trace):
        return _mark_answer(graph, highlight)
    if highlight is None:
        return MarkedGraph(graph, {}, {}, "")
    if isinstance(highlight, Diff):
        diff = highlight
        marked_nodes = _diff_marks(diff.removed_nodes, diff.changed_nodes, diff.added_nodes)
        marked_edges = _diff_marks(diff.removed_edges, diff.changed_edges, diff.added_edges)
        nodes = {node.id: mark for node, mark in marked_nodes}
        edges = {edge.identity: mark for edge, mark in marked_edges}
        return MarkedGraph(_add_removed(graph, highlight), nodes, edges, f"{_LAST_WRITE} {highlight}.")
    if isinstance(highlight, str) or not isinstance(highlight, Sequence):
        raise BadInput(f"a path is a list of node ids, such as ['Ada', …], not {describe_value(highlight)}")
    names = [node_caption(graph.node(id)) for id in highlight]
    nodes = dict.fromkeys(highlight, "path")
    edges = {edge.identity: "path" for edge in path_edges(graph, highlight)}
    return MarkedGraph(graph, nodes, edges, f"The path: {' – '.join(names) or 'it is empty'}.")


def _mark_answer(graph: PropertyGraph, run: Trace) -> MarkedGraph:
    """Mark the answer of a run, if it is a node, and the few facts that support it."""
    support = find_support(run)
    identities = {edge.identity for edge in graph.edges}
    facts = [edge for edge in support.telling if edge.identity in identities]
    nodes = _mark_answer_nodes(graph, support.answer)
    if support.hub_is_answer and support.hub in graph:
        nodes = {support.hub: "answer"}
    marks = f" Marked: {format_count(len(facts), 'fact')} that tell it." if facts else ""
    answer = support.answer.strip().rstrip(".")
    description = f"The answer: {answer}.{marks}" if answer else f"The answer is empty.{marks}"
    return MarkedGraph(graph, nodes, {edge.identity: "evidence" for edge in facts}, description)


def _mark_answer_nodes(graph: PropertyGraph, answer: str) -> dict[str, str]:
    """Mark the nodes whose name or id equals the answer."""
    normalized_answer = canonical_answer(answer)
    return {
        node.id: "answer"
        for node in graph.nodes
        if normalized_answer and normalized_answer in (canonical_answer(node.id), canonical_answer(node.text))
    }


def mark_kinds(description: str, marks: Collection[str]) -> tuple[str, ...]:
    """Return the kinds of marks that the legend has to explain."""
    others = tuple(mark for mark in MARKS if mark in marks and mark not in DIFF_MARKS)
    return others or (DIFF_MARKS if description.startswith(_LAST_WRITE) else ())


def _add_removed(graph: PropertyGraph, diff: Diff) -> PropertyGraph:
    """Return the graph after a write, including what the write removed."""
    if not (diff.removed_nodes or diff.removed_edges):
        return graph
    nodes = {node.id: node for node in (*diff.removed_nodes, *graph.nodes)}
    edges = {edge.identity: edge for edge in (*diff.removed_edges, *graph.edges)}
    # removed nodes last, so that the others keep their colours
    ordered = [*graph.ids, *(id for id in nodes if id not in graph)]
    return PropertyGraph.of((nodes[id] for id in ordered), edges.values(), dangling="add")


def _diff_marks(
    removed: Iterable[Any], changed: Iterable[tuple[Any, Any]], added: Iterable[Any]
) -> list[tuple[Any, str]]:
    groups = {"removed": removed, "changed": (after for _, after in changed), "added": added}
    return [(element, mark) for mark, group in groups.items() for element in group]
