"""Pictures of an answer: the nodes that were found with what each lane gave, the edges that were followed, a
node among its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kgot_lab.evaluation.tables import decimal
from kgot_lab.experts.chat.chat_events import Thought, ThoughtNode
from kgot_lab.experts.neighbourhood import surroundings
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge
from kgot_lab.viz.graph.marks import Place
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.methods import LANE_FILLS, lane_bar
from kgot_lab.viz.static.briefing import FAINT_INK, STRONG_INK
from kgot_lab.viz.static.drawing import Drawing, draw_rect, draw_text, drawing, fitted
from kgot_lab.viz.static.markup import Markup, element, shortened
from kgot_lab.viz.static.table import Sheet

_EDGE, _TOP, _ROW, _NAMES, _BARS = 16.0, 34.0, 40.0, 320.0, 250.0
_SHOWN, _AROUND, _FOLLOWED = 10, 8, 16  # nodes with bars, neighbours of a node, ends of edges
_LANES = {"embedding": "meaning", "text": "words", "graph": "edges", "intent": "intent"}


def lane_bars(thought: Thought) -> Drawing:
    """The nodes of a train of thought as rows: rank, name, type, and a bar with a part for each lane; `table`
    has all of them.
    """
    shown = thought.nodes[:_SHOWN]
    most = max((node.score for node in shown), default=1.0) or 1.0
    width = 2 * _EDGE + _NAMES + _BARS + 56
    rows = [_row(number, node, _TOP + _ROW * number, most) for number, node in enumerate(shown)]
    said = [
        f"{number}. {shortened(node.name, 80)}, {decimal(node.score)} of which {_format_parts(node)}"
        for number, node in enumerate(shown, 1)
    ]
    alt = f"Nodes by score: {'; '.join(said) or 'none was found'}."
    height = _TOP + _ROW * max(len(shown), 1) + 6
    nothing = [] if shown else [draw_text("Nothing was found.", _EDGE, _TOP + 24, 14.0, STRONG_INK)]
    return drawing(alt, width, height, *_legend(), *rows, *nothing, sheets=[_sheet(thought)])


def _legend() -> Iterator[Markup]:
    for number, (lane, said) in enumerate(_LANES.items()):
        left = _EDGE + 110.0 * number
        yield draw_rect(left, 10.0, 12, 12, LANE_FILLS[lane])
        yield draw_text(said, left + 18, 20.5, 12.0, "#222222")


def _row(number: int, node: ThoughtNode, y: float, most: float) -> Markup:
    (name,) = fitted(f"{number + 1}. {node.name}", _NAMES - 14, 14.0 * 1.08, 1)[0] or [""]
    about = " · ".join(filter(None, (shortened(node.type, 30), "" if node.told else "not told to the model")))
    bars = lane_bar(_lanes_of(node), _EDGE + _NAMES, y + 6, _BARS / most)
    return element(
        "g", element("title", f"{node.name} ({node.id}): {_format_parts(node)}{'; ' + node.path if node.path else ''}"),
        draw_text(name, _EDGE, y + 17, 14.0, STRONG_INK if node.told else FAINT_INK, bold=True),
        draw_text(about, _EDGE + 18, y + 32, 12.0, FAINT_INK),
        *bars, draw_text(decimal(node.score), _EDGE + _NAMES + _BARS + 8, y + 18, 13.0, "#111111"),
        draw_text(_format_parts(node), _EDGE + _NAMES, y + 32, 11.0, FAINT_INK),
    )  # fmt: skip


def _lanes_of(node: ThoughtNode) -> dict[str, float]:
    return {"embedding": node.embedding, "text": node.text, "graph": node.by_graph, "intent": node.intent}


def _format_parts(node: ThoughtNode) -> str:
    return (
        ", ".join(f"{_LANES[lane]} {decimal(value)}" for lane, value in _lanes_of(node).items() if value > 0)
        or "nothing"
    )


def _sheet(thought: Thought) -> Sheet:
    rows = tuple(
        (
            str(rank),
            node.name,
            node.type,
            decimal(node.score),
            *map(decimal, _lanes_of(node).values()),
            node.path,
            "yes" if node.told else "no",
        )
        for rank, node in enumerate(thought.nodes, 1)
    )
    return Sheet(
        ("rank", "node", "type", "score", *_LANES.values(), "came by", "told"), rows, len(rows), "Nodes"
    )


def followed_picture(graph: PropertyGraph, thought: Thought) -> Picture:
    """The edges that were told to the model, with their ends; where there were none, the nodes that were
    found.
    """
    edges = [Edge(each["source"], each["type"], each["target"]) for each in thought.edges]
    ends = list(dict.fromkeys(end for edge in edges for end in (edge.source, edge.target) if end in graph))
    found = [id for node in thought.nodes for id in (f"{node.graph}:{node.id}", node.id) if id in graph]
    return _part(graph, (ends or found)[:_FOLLOWED], edges, (800, 460))


def node_picture(graph: PropertyGraph, id: str) -> tuple[Picture, int, int]:
    """A node among its best linked neighbours, how many of those are drawn, and how many there are."""
    around = surroundings(graph, id, most=_AROUND)
    placed = {each.id: (each.x, each.y) for each in (around.node, *around.neighbours)}
    edges = [edge for edge in around.edges if id in (edge.source, edge.target)]
    count = len(around.neighbours)
    return _part(graph, [*placed], edges, (520, 190 + 18 * count), placed), count, around.neighbours_in_all


def _part(
    graph: PropertyGraph,
    ids: Sequence[str],
    edges: Iterable[Edge],
    size: tuple[int, int],
    places: Mapping[str, Place] | None = None,
) -> Picture:
    """Some nodes and some edges between them, in the colours that the whole graph gives to types."""
    some = set(ids)
    drawn = {edge.identity: edge for edge in edges if {edge.source, edge.target} <= some}
    part = PropertyGraph.of(map(graph.node, ids), drawn.values())
    labels = dict.fromkeys(labels[0] for labels in graph.node_labels if labels)
    return svg(
        part, width=size[0], height=size[1], limit=len(ids) or 1, labels=tuple(labels), positions=places
    )
