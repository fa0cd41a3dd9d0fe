"""The answer of a search as a picture: the seeds, the edges followed from them, and what each lane gave to
each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kgot_lab.errors import require_count
from kgot_lab.evaluation.tables import decimal
from kgot_lab.kgos.methods.search.results import ScoredNode, SearchResult
from kgot_lab.text.counted import counted
from kgot_lab.viz.static.briefing import FAINT_INK, STRONG_INK, TINT
from kgot_lab.viz.static.drawing import (
    WIDE_HALO,
    Drawing,
    draw_arrow_head,
    draw_path,
    draw_rect,
    draw_text,
    drawing,
    fitted,
)
from kgot_lab.viz.static.markup import Markup, element, shortened
from kgot_lab.viz.static.table import Sheet

# Okabe and Ito
LANE_FILLS = {"embedding": "#0072B2", "text": "#E69F00", "graph": "#009E73", "intent": "#CC79A7"}
_EDGE, _TOP, _ROW = 24.0, 118.0, 46.0
# widths: names of seeds, edges, names of nodes, bars
_SEEDS, _GAP, _NAMES, _BARS = (210.0, 170.0, 300.0, 250.0)
_SHOWN = 8


def search_picture(found: SearchResult, *, limit: int = _SHOWN) -> Drawing:
    """Draw the first nodes of a search as rows: its rank, its bar with a part for each lane, and the edge by
    which the graph lane came.

    On the left are the seeds of the graph lane, from which a line leads to what it found; a seed may be among
    the answers as well. `table` has every node with its parts.
    """
    require_count(limit, 1, "limit", "it is how many nodes are drawn")
    nodes = found.nodes[:limit]
    followed = {node.id: found.followed[node.id] for node in nodes if node.id in found.followed}
    seeds = [seed for seed in found.seeds if seed in {step.seed for step in followed.values()}]
    names = {id: _name(found, id) for id in seeds}
    width = 2 * _EDGE + _SEEDS + _GAP + _NAMES + _BARS + 54
    height = _TOP + _ROW * max(len(nodes), len(seeds), 1) + 40
    place = {
        seed: _TOP + _ROW * (number + 0.5) * max(len(nodes), 1) / max(len(seeds), 1)
        for number, seed in enumerate(seeds)
    }
    lines = [
        _followed_line(
            place[step.seed], _TOP + _ROW * (row + 0.5), step.edge.type, forward=step.edge.target == node.id
        )
        for row, node in enumerate(nodes)
        if (step := followed.get(node.id))
    ]
    parts = [
        *_head(found, width),
        *lines,
        *(_seed(names[seed], y) for seed, y in place.items()),
        *(
            _node(number, node, _TOP + _ROW * number, max((each.score for each in nodes), default=1.0))
            for number, node in enumerate(nodes)
        ),
        draw_text(_foot(found, nodes), _EDGE, height - 14, 12.0, FAINT_INK),
    ]
    return drawing(_alt(found, nodes), width, height, *parts, sheets=[_sheet(found)])


def _head(found: SearchResult, width: float) -> Iterator[Markup]:
    """The query, what it was taken to be after, and which colour is which lane."""
    intent = (
        f"{found.intents.best.name}, {found.intents.best.score:g}" if found.intents.best else "none found"
    )
    yield draw_text(
        fitted(found.query, width - 2 * _EDGE, 20.0, 1)[0][0], _EDGE, 34.0, 20.0, "#111111", bold=True
    )
    yield draw_text(f"Intent: {intent}. Purpose: {found.intents.purpose}.", _EDGE, 58.0, 13.0, FAINT_INK)
    x = _EDGE + _SEEDS + _GAP + _NAMES
    for name, weight in (("embedding", found.weights.embedding), ("text", found.weights.text), ("graph", found.weights.graph),
                         ("intent", found.weights.intent)):  # fmt: skip
        row = list(LANE_FILLS).index(name)
        left, top = x + 128.0 * (row % 2), 66.0 + 18.0 * (row // 2)
        yield draw_rect(left, top, 12, 12, LANE_FILLS[name])
        yield draw_text(f"{name} × {decimal(weight)}", left + 18, top + 10.5, 12.0, "#222222")
    yield draw_text("SEEDS", _EDGE, 98.0, 12.0, FAINT_INK)
    yield draw_text("EDGES FOLLOWED", _EDGE + _SEEDS + 20, 98.0, 12.0, FAINT_INK)
    yield draw_text("ANSWERS", _EDGE + _SEEDS + _GAP, 98.0, 12.0, FAINT_INK)


def _seed(name: str, y: float) -> Markup:
    (line,) = fitted(name, _SEEDS - 24, 13.0, 1)[0] or [""]
    box = draw_rect(_EDGE, y - 14, _SEEDS - 4, 28, TINT, rx=6, stroke="#0072B2")
    return element("g", element("title", name), box, draw_text(line, _EDGE + 10, y + 4.5, 13.0, "#111111"))


def _followed_line(start: float, end: float, type: str, *, forward: bool) -> Markup:
    """A line from a seed to a node with its type; the head stands at the end that the edge points to."""
    left, right = _EDGE + _SEEDS - 2, _EDGE + _SEEDS + _GAP - 14
    x0, x1 = (left, right - 9) if forward else (left + 9, right)
    middle = (left + right) / 2 - 40
    path = f"M{x0:.1f} {start:.1f} C{middle:.1f} {start:.1f} {middle:.1f} {end:.1f} {x1 - 4:.1f} {end:.1f} H{x1:.1f}"
    tip, back, y = (right, right - 9, end) if forward else (left, left + 9, start)
    return element(
        "g", draw_path(path, "#009E73", 1.8),
        draw_arrow_head(tip, back, y, "#009E73"),
        draw_text(shortened(type, 18), right - 14, end - 6, 12.0, text_anchor="end", **WIDE_HALO),
    )  # fmt: skip


def _node(number: int, node: ScoredNode, y: float, most: float) -> Markup:
    """A row: rank, name, type, the bar and the figures of its parts."""
    x = _EDGE + _SEEDS + _GAP
    (name,) = fitted(f"{number + 1}. {node.name}", _NAMES - 14, 14.0 * 1.08, 1)[0] or [""]
    parts = _lane_parts(node)
    said = [f"{lane} {decimal(value)}" for lane, value in parts.items() if value > 0]
    bars = lane_bar(parts, x + _NAMES, y + 8, _BARS / (most or 1.0))
    return element(
        "g", element("title", f"{node.name} ({node.id}): {', '.join(said)}"),
        draw_text(name, x, y + 20, 14.0, STRONG_INK, bold=True), draw_text(shortened(node.type, 40), x + 18, y + 36, 12.0, FAINT_INK),
        *bars, draw_text(decimal(node.score), x + _NAMES + _BARS + 8, y + 20, 13.0, "#111111"),
        draw_text(" + ".join(said), x + _NAMES, y + 36, 11.0, FAINT_INK),
    )  # fmt: skip


def lane_bar(parts: Mapping[str, float], x: float, y: float, scale: float) -> Iterator[Markup]:
    """Draw a bar with a piece for each lane that gave something, `scale` pixels for a score of 1."""
    for lane, value in parts.items():
        if value > 0:
            yield draw_rect(x, y, scale * value, 14, LANE_FILLS[lane], stroke="#fff")
            x += scale * value


def _lane_parts(node: ScoredNode) -> dict[str, float]:
    return {"embedding": node.embedding, "text": node.text, "graph": node.graph, "intent": node.intent}


def _name(found: SearchResult, id: str) -> str:
    properties = found.graph.node(id).properties
    return str(properties.get("name") or properties.get("title") or id)


def _foot(found: SearchResult, nodes: tuple[ScoredNode, ...]) -> str:
    more = len(found.nodes) - len(nodes)
    drawn = {found.followed[node.id].seed for node in nodes if node.id in found.followed}
    rest = len(found.seeds) - len(drawn)
    idle = f", of which {rest} led to nothing that is drawn" if rest else ""
    told = [f"{counted(len(found.seeds), 'seed')}{idle}."] if found.seeds else ["No seeds."]
    told += [f"{counted(more, 'more node')} {'is' if more == 1 else 'are'} in the table."] * bool(more)
    return " ".join(told) if nodes else "Nothing was found."


def _alt(found: SearchResult, nodes: tuple[ScoredNode, ...]) -> str:
    """The picture in words."""
    rows = [
        f"{number}. {shortened(node.name, 80)}, {decimal(node.score)} of which "
        + ", ".join(f"{lane} {decimal(value)}" for lane, value in _lane_parts(node).items() if value > 0)
        for number, node in enumerate(nodes, start=1)
    ]
    return f"Answers to {shortened(found.query, 200)!r}: " + ("; ".join(rows) or "none") + "."


def _sheet(found: SearchResult) -> Sheet:
    rows = []
    for number, node in enumerate(found.nodes, start=1):
        step = found.followed.get(node.id)
        parts = [decimal(value) for value in _lane_parts(node).values()]
        rows.append(
            (
                str(number),
                node.name,
                node.type,
                decimal(node.score),
                *parts,
                f"{step.seed} ({step.edge.type})" if step else "",
            )
        )
    columns = ("rank", "node", "type", "score", *LANE_FILLS, "came by")
    return Sheet(columns, tuple(rows), len(rows), f"Answers to {found.query}")
