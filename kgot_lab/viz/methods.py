"""Pictures of query results: hits by retriever, an impact as rings, two nodes by their dimensions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from kgot_lab.errors import require_count
from kgot_lab.evaluation.tables import format_decimal
from kgot_lab.kgos.methods.dimensions import DimensionProfile, ProfileRow
from kgot_lab.kgos.methods.impact_analysis import Impact, Impacted
from kgot_lab.kgos.methods.search.results import ScoredNode, SearchResult
from kgot_lab.text.cleaning import format_count
from kgot_lab.viz.static.drawing import (
    WIDE_HALO,
    Drawing,
    draw_arrow_head,
    draw_circle,
    draw_path,
    draw_rect,
    draw_text,
    drawing,
    fit_lines,
)
from kgot_lab.viz.static.fact_pictures import FAINT_INK, STRONG_INK, TINT
from kgot_lab.viz.static.markup import Markup, element, shorten
from kgot_lab.viz.static.table import Sheet, sheet

# The result of a search as a picture: the seeds, the edges followed from them, and the score of each node by
# retriever.

# Okabe and Ito
RETRIEVER_FILLS = {"embedding": "#0072B2", "text": "#E69F00", "graph": "#009E73", "intent": "#CC79A7"}
_SEARCH_EDGE, _SEARCH_TOP, _SEARCH_ROW = 24.0, 118.0, 46.0
# widths: names of seeds, edges, names of nodes, bars
_SEEDS, _GAP, _SEARCH_NAMES, _BARS = (210.0, 170.0, 300.0, 250.0)
_SEARCH_HITS = 8


def search_picture(found: SearchResult, *, limit: int = _SEARCH_HITS) -> Drawing:
    """Draw the first nodes of a search with their ranks and stacked score bars, a part for each retriever.

    On the left are the seeds of the graph retriever, with lines along the edges by which it found nodes. A
    seed may also be among the answers. `table` of the drawing has every node with its parts.
    """
    require_count(limit, 1, "limit", "it is how many nodes are drawn")
    nodes = found.nodes[:limit]
    followed = {node.id: found.followed[node.id] for node in nodes if node.id in found.followed}
    seeds = [seed for seed in found.seeds if seed in {step.seed for step in followed.values()}]
    names = {id: _node_name(found, id) for id in seeds}
    width = 2 * _SEARCH_EDGE + _SEEDS + _GAP + _SEARCH_NAMES + _BARS + 54
    height = _SEARCH_TOP + _SEARCH_ROW * max(len(nodes), len(seeds), 1) + 40
    row_count, count = max(len(nodes), 1), max(len(seeds), 1)
    seed_y = {seed: _SEARCH_TOP + _SEARCH_ROW * (n + 0.5) * row_count / count for n, seed in enumerate(seeds)}
    max_score = max((node.score for node in nodes), default=1.0)
    lines, rows = [], []
    for number, node in enumerate(nodes):
        rows.append(_draw_node(number, node, _SEARCH_TOP + _SEARCH_ROW * number, max_score))
        if step := followed.get(node.id):
            middle, forward = _SEARCH_TOP + _SEARCH_ROW * (number + 0.5), step.edge.target == node.id
            lines.append(_draw_followed_edge(seed_y[step.seed], middle, step.edge.type, forward=forward))
    drawn_seeds = (_draw_seed(names[seed], y) for seed, y in seed_y.items())
    notes = draw_text(_search_notes(found, nodes), _SEARCH_EDGE, height - 14, 12.0, FAINT_INK)
    parts = (*_draw_head(found, width), *lines, *drawn_seeds, *rows, notes)
    return drawing(_describe_search(found, nodes), width, height, *parts, sheets=[_search_sheet(found)])


def _draw_head(found: SearchResult, width: float) -> Iterator[Markup]:
    """Yield the query, its detected intent and the colour legend of the retrievers."""
    best = found.intents.best
    intent = f"{best.name}, {best.score:g}" if best else "none found"
    query = fit_lines(found.query, width - 2 * _SEARCH_EDGE, 20.0, 1)[0][0]
    yield draw_text(query, _SEARCH_EDGE, 34.0, 20.0, "#111111", bold=True)
    purpose = f"Intent: {intent}. Purpose: {found.intents.purpose}."
    yield draw_text(purpose, _SEARCH_EDGE, 58.0, 13.0, FAINT_INK)
    x = _SEARCH_EDGE + _SEEDS + _GAP + _SEARCH_NAMES
    for row, (name, fill) in enumerate(RETRIEVER_FILLS.items()):
        weight = getattr(found.weights, name)
        left, top = x + 128.0 * (row % 2), 66.0 + 18.0 * (row // 2)
        yield draw_rect(left, top, 12, 12, fill)
        yield draw_text(f"{name} × {format_decimal(weight)}", left + 18, top + 10.5, 12.0, "#222222")
    yield draw_text("SEEDS", _SEARCH_EDGE, 98.0, 12.0, FAINT_INK)
    yield draw_text("EDGES FOLLOWED", _SEARCH_EDGE + _SEEDS + 20, 98.0, 12.0, FAINT_INK)
    yield draw_text("ANSWERS", _SEARCH_EDGE + _SEEDS + _GAP, 98.0, 12.0, FAINT_INK)


def _draw_seed(name: str, y: float) -> Markup:
    (line,) = fit_lines(name, _SEEDS - 24, 13.0, 1)[0] or [""]
    box = draw_rect(_SEARCH_EDGE, y - 14, _SEEDS - 4, 28, TINT, rx=6, stroke="#0072B2")
    text = draw_text(line, _SEARCH_EDGE + 10, y + 4.5, 13.0, "#111111")
    return element("g", element("title", name), box, text)


def _draw_followed_edge(start: float, end: float, type: str, *, forward: bool) -> Markup:
    """Draw a line from a seed to a node with the edge type.

    The arrow head is at the edge's target.
    """
    left, right = _SEARCH_EDGE + _SEEDS - 2, _SEARCH_EDGE + _SEEDS + _GAP - 14
    x0, x1 = (left, right - 9) if forward else (left + 9, right)
    middle = (left + right) / 2 - 40
    path = f"M{x0:.1f} {start:.1f} C{middle:.1f} {start:.1f} {middle:.1f} {end:.1f} {x1 - 4:.1f} {end:.1f} H{x1:.1f}"
    tip, back, y = (right, right - 9, end) if forward else (left, left + 9, start)
    return element(
        "g", draw_path(path, "#009E73", 1.8),
        draw_arrow_head(tip, back, y, "#009E73"),
        draw_text(shorten(type, 18), right - 14, end - 6, 12.0, text_anchor="end", **WIDE_HALO),
    )  # fmt: skip


def _draw_node(number: int, node: ScoredNode, y: float, max_score: float) -> Markup:
    """Draw a row: rank, name, type, stacked score bar and numbers."""
    x = _SEARCH_EDGE + _SEEDS + _GAP
    (name,) = fit_lines(f"{number + 1}. {node.name}", _SEARCH_NAMES - 14, 14.0 * 1.08, 1)[0] or [""]
    score_texts = _score_texts(node)
    bars = score_bar(_score_parts(node), x + _SEARCH_NAMES, y + 8, _BARS / (max_score or 1.0))
    return element(
        "g", element("title", f"{node.name} ({node.id}): {', '.join(score_texts)}"),
        draw_text(name, x, y + 20, 14.0, STRONG_INK, bold=True), draw_text(shorten(node.type, 40), x + 18, y + 36, 12.0, FAINT_INK),
        *bars, draw_text(format_decimal(node.score), x + _SEARCH_NAMES + _BARS + 8, y + 20, 13.0, "#111111"),
        draw_text(" + ".join(score_texts), x + _SEARCH_NAMES, y + 36, 11.0, FAINT_INK),
    )  # fmt: skip


def score_bar(parts: Mapping[str, float], x: float, y: float, scale: float) -> Iterator[Markup]:
    """Draw a stacked bar with a part for each retriever that contributed.

    `scale` is the number of pixels for a score of 1.
    """
    for retriever, value in parts.items():
        if value > 0:
            yield draw_rect(x, y, scale * value, 14, RETRIEVER_FILLS[retriever], stroke="#fff")
            x += scale * value


def _score_texts(node: ScoredNode) -> list[str]:
    return [f"{lane} {format_decimal(value)}" for lane, value in _score_parts(node).items() if value > 0]


def _score_parts(node: ScoredNode) -> dict[str, float]:
    return {"embedding": node.embedding, "text": node.text, "graph": node.graph, "intent": node.intent}


def _node_name(found: SearchResult, id: str) -> str:
    properties = found.graph.node(id).properties
    return str(properties.get("name") or properties.get("title") or id)


def _search_notes(found: SearchResult, nodes: tuple[ScoredNode, ...]) -> str:
    omitted = len(found.nodes) - len(nodes)
    drawn = {found.followed[node.id].seed for node in nodes if node.id in found.followed}
    unused = len(found.seeds) - len(drawn)
    unused_note = f", of which {unused} led to nothing that is drawn" if unused else ""
    notes = [f"{format_count(len(found.seeds), 'seed')}{unused_note}."] if found.seeds else ["No seeds."]
    if omitted:
        notes.append(f"{format_count(omitted, 'more node')} {'is' if omitted == 1 else 'are'} in the table.")
    return " ".join(notes) if nodes else "Nothing was found."


def _describe_search(found: SearchResult, nodes: tuple[ScoredNode, ...]) -> str:
    """Describe the picture in words."""
    rows = []
    for number, node in enumerate(nodes, start=1):
        score = f"{format_decimal(node.score)} of which {', '.join(_score_texts(node))}"
        rows.append(f"{number}. {shorten(node.name, 80)}, {score}")
    return f"Answers to {shorten(found.query, 200)!r}: " + ("; ".join(rows) or "none") + "."


def _search_sheet(found: SearchResult) -> Sheet:
    rows = []
    for number, node in enumerate(found.nodes, start=1):
        step = found.followed.get(node.id)
        origin = f"{step.seed} ({step.edge.type})" if step else ""
        parts = map(format_decimal, _score_parts(node).values())
        rows.append((str(number), node.name, node.type, format_decimal(node.score), *parts, origin))
    columns = ("rank", "node", "type", "score", *RETRIEVER_FILLS, "came by")
    return sheet(columns, rows, f"Answers to {found.query}")


# An impact as rings: the node in the middle, the nodes that its change reaches around it by depth, and the
# riskiest chain marked.

# minimum and maximum distance of rings, and minimum distance of two nodes of a ring
_MIN_RING_GAP, _MAX_RING_GAP, _MIN_NODE_GAP = (105.0, 260.0, 26.0)
_CHARACTER_WIDTH, _IMPACT_EDGE = 6.6, 24.0  # width of a character of a caption, and outer margin
_MAX_PER_RING = 28  # maximum nodes of a ring
_MAX_CAPTION_LENGTH = 26  # maximum characters of a caption
_CRITICAL_COLOUR, _NODE_COLOUR = "#D55E00", "#56B4E9"
_Point = tuple[float, float]
_Box = tuple[float, float, float, float]  # left, top, right, bottom
_Angles = dict[str, float]


def impact_picture(impact: Impact, *, per_ring: int = _MAX_PER_RING) -> Drawing:
    """Draw an impact as rings by depth.

    A larger dot has a higher risk, and the riskiest chain has thick lines and rims. Of each ring the
    `per_ring` riskiest nodes are drawn, and the nodes that lead to them. The picture says how many are left
    out. `table` of the drawing lists all.
    """
    require_count(per_ring, 1, "per_ring", "it is how many nodes of a ring are drawn")
    drawn = _nodes_to_draw(impact, per_ring)
    angles = _node_angles(impact.node, drawn)
    radii = _ring_radii(drawn, angles)
    points = {id: _polar_point(radii[node.depth], angles[id]) for id, node in drawn.items()}
    points[impact.node] = (0.0, 0.0)
    parents = {node.parent for node in drawn.values()}
    critical = set(zip(impact.critical_path, impact.critical_path[1:], strict=False))
    max_risk = max((node.risk for node in drawn.values()), default=1.0) or 1.0
    rings = [draw_circle(0, 0, radius, stroke="#DDDDDD", stroke_dasharray="4 4") for radius in radii[1:]]
    lines = [
        _draw_impact_line(points[node.parent], points[id], node.via, marked=(node.parent, id) in critical)
        for id, node in drawn.items()
    ]
    dots, corners = [], [(0.0, 0.0), *_box_corners((0.0, 30.0), _display_name(impact.node, impact.name))]
    captions = [_caption_box((0.0, 0.0), 30.0, _display_name(impact.node, impact.name))]
    for id, node in drawn.items():
        radius, has_children, name = 4 + 8 * node.risk / max_risk, id in parents, _display_name(id, node.name)
        down = radius + 13
        if has_children:  # above the node if another caption is below it
            offsets = (down, -radius - 5)
            free = (each for each in offsets if _is_free(_caption_box(points[id], each, name), captions))
            down = next(free, down)
            captions.append(_caption_box(points[id], down, name))
        angle, marked = None if has_children else angles[id], id in impact.critical_path
        dots.append(_draw_impacted(node, points[id], angle, radius, down, marked=marked))
        outer_points = [points[id], _caption_end(points[id], angles[id], radius, name)]
        corners += _box_corners(points[id], name) if has_children else outer_points
    (left, right), (top, bottom) = ((min(line), max(line)) for line in zip(*corners, strict=True))
    notes = _impact_notes(impact, drawn)
    width = max(right - left, _CHARACTER_WIDTH * len(notes)) + 2 * _IMPACT_EDGE
    height = bottom - top + 2 * _IMPACT_EDGE + 30
    transform = f"translate({(width - left - right) / 2:.1f} {_IMPACT_EDGE - top:.1f})"
    return drawing(
        _describe_impact(impact), width, height, element("g", *rings, *lines, *dots, _draw_centre(impact), transform=transform),
        draw_text(notes, _IMPACT_EDGE, height - 12, 12.0, FAINT_INK), sheets=[_impact_sheet(impact)],
    )  # fmt: skip


def _ring_radii(drawn: Mapping[str, Impacted], angles: _Angles) -> list[float]:
    """Return the radius of each ring by depth, 0 for the node itself.

    Rings are far enough apart for their nodes, within bounds.
    """
    radii = [0.0]
    for depth in range(1, max((node.depth for node in drawn.values()), default=0) + 1):
        around = sorted(angles[id] for id, node in drawn.items() if node.depth == depth)
        gap = min((after - before for before, after in pairwise(around)), default=math.tau)
        radii.append(radii[-1] + min(max(_MIN_RING_GAP, _MIN_NODE_GAP / gap - radii[-1]), _MAX_RING_GAP))
    return radii


def _nodes_to_draw(impact: Impact, per_ring: int) -> dict[str, Impacted]:
    """Return the `per_ring` riskiest nodes of each ring, by id, in order of depth.

    The nodes on the way to them and on the critical path are included.
    """
    node_by_id = {node.id: node for node in impact.nodes}
    wanted = {node.id for nodes in impact.risk_by_depth.values() for node in nodes[:per_ring]}
    wanted |= set(impact.critical_path) & set(node_by_id)
    for id in list(wanted):
        while (id := node_by_id[id].parent) in node_by_id:
            wanted.add(id)
    return {node.id: node for node in impact.nodes if node.id in wanted}


def _node_angles(root: str, drawn: Mapping[str, Impacted]) -> _Angles:
    """Return the angle of each node.

    Every subtree gets a sector proportional to its number of leaves, so no lines cross.
    """
    children: dict[str, list[str]] = {}
    for id, node in drawn.items():
        children.setdefault(node.parent, []).append(id)
    leaves: dict[str, int] = {}
    for id in reversed(list(drawn)):  # by depth, so that children are counted before their parents
        leaves[id] = sum(leaves[child] for child in children.get(id, ())) or 1
    angles: _Angles = {}
    starts = {root: (0.0, math.tau)}
    for id in (root, *drawn):
        start, sector = starts[id]
        child_ids = children.get(id, ())
        for child in child_ids:
            share = sector * leaves[child] / sum(leaves[sibling] for sibling in child_ids)
            starts[child] = start, share
            angles[child] = start + share / 2 - math.pi / 2
            start += share
    return angles


def _polar_point(radius: float, angle: float) -> _Point:
    return radius * math.cos(angle), radius * math.sin(angle)


def _caption_end(point: _Point, angle: float, radius: float, name: str) -> _Point:
    """Return where a node's caption ends if it is written outwards."""
    across, down = _polar_point(radius + 5 + _CHARACTER_WIDTH * len(_short_caption(name)), angle)
    return point[0] + across, point[1] + down


def _caption_box(point: _Point, down: float, name: str) -> _Box:
    """Return the box of a horizontal caption `down` below a point: left, top, right, bottom."""
    half = _CHARACTER_WIDTH * len(_short_caption(name)) / 2
    return point[0] - half, point[1] + down - 11, point[0] + half, point[1] + down + 3


def _is_free(box: _Box, occupied: Sequence[_Box]) -> bool:
    left, top, right, bottom = box
    return not any(left < o[2] and o[0] < right and top < o[3] and o[1] < bottom for o in occupied)


def _box_corners(point: _Point, name: str) -> list[_Point]:
    """Return two opposite corners of the box around a node and its horizontal caption."""
    half = _CHARACTER_WIDTH * len(_short_caption(name)) / 2
    return [(point[0] - half, point[1] - 12), (point[0] + half, point[1] + 28)]


def _short_caption(name: str) -> str:
    return shorten(name, _MAX_CAPTION_LENGTH)


def _draw_impact_line(start: _Point, end: _Point, via: str, *, marked: bool) -> Markup:
    path = f"M{start[0]:.1f} {start[1]:.1f} L{end[0]:.1f} {end[1]:.1f}"
    colour, wide = (_CRITICAL_COLOUR, 3.2) if marked else ("#A6A6A6", 1.0)
    return element("g", element("title", via), draw_path(path, colour, wide))


def _draw_impacted(
    node: Impacted, point: _Point, angle: float | None, radius: float, down: float, *, marked: bool
) -> Markup:
    """Draw a node with its caption.

    With an angle the caption runs outwards, never upside down. Otherwise it is horizontal, `down` below the
    node, because lines continue from it.
    """
    x, y = point
    rim = {"stroke": _CRITICAL_COLOUR if marked else "#005A8C", "stroke_width": 3.0 if marked else 1.0}
    left = angle is not None and math.cos(angle) < 0
    x0, y0, anchor = 0.0, down, "middle"
    if angle is not None:
        x0, y0, anchor = (-radius - 5, 4.0, "end") if left else (radius + 5, 4.0, "start")
    style: dict[str, Any] = {"text_anchor": anchor, **WIDE_HALO}
    name = _short_caption(_display_name(node.id, node.name))
    caption = draw_text(name, x0, y0, 12.0, "#111111", bold=marked, **style)
    rotation = 0.0 if angle is None else math.degrees(angle) + 180 * left
    return element(
        "g", element("title", f"{node.id}: depth {node.depth}, risk {node.risk:.3g}, by {node.via} from {node.parent}"),
        draw_circle(x, y, radius, _NODE_COLOUR, **rim),
        element("g", caption, transform=f"translate({x:.1f} {y:.1f}) rotate({rotation:.1f})"),
    )  # fmt: skip


def _draw_centre(impact: Impact) -> Markup:
    name = _short_caption(_display_name(impact.node, impact.name))
    look: dict[str, Any] = {"text_anchor": "middle", **WIDE_HALO}
    caption = draw_text(name, 0, 30, 15.0, STRONG_INK, bold=True, **look)
    return element("g", element("title", impact.node), draw_circle(0, 0, 13, "#0072B2"), caption)


def _display_name(id: str, name: str) -> str:
    """Return the name of a node, or its id without the type prefix and with spaces."""
    return name if name != id else (id.partition(":")[2] or id).replace("_", " ")


def _impact_notes(impact: Impact, drawn: Mapping[str, Impacted]) -> str:
    omitted = impact.total_impacted - len(drawn)
    if not drawn:
        return f"Nothing is reached, {impact.direction}."
    max_depth = max(node.depth for node in drawn.values())
    chain = f" Thick: the riskiest chain, product {impact.critical_risk:.2g}." if impact.critical_path else ""
    omitted_note = f" Not drawn: {format_count(omitted, 'node')}." if omitted else ""
    return f"Rings: edges away, 1 to {max_depth}, {impact.direction}. Larger dots: higher risk.{chain}{omitted_note}"


def _describe_impact(impact: Impact) -> str:
    """Describe the picture in words."""
    names = {node.id: _display_name(node.id, node.name) for node in impact.nodes}
    names[impact.node] = _display_name(impact.node, impact.name)
    rings = ". ".join(
        f"depth {depth}: {', '.join(names[node.id] for node in nodes[:8])}"
        for depth, nodes in impact.risk_by_depth.items()
    )
    path = " → ".join(names[id] for id in impact.critical_path)
    reached = f"A change of {names[impact.node]} ({impact.direction}) reaches {format_count(impact.total_impacted, 'node')}."
    return f"{reached} {rings}." + (f" Riskiest chain: {path}." if path else "")


def _impact_sheet(impact: Impact) -> Sheet:
    rows = []
    for node in impact.nodes:
        numbers = str(node.depth), f"{node.distance_risk:.2f}", f"{node.risk:.3g}"
        rows.append((node.id, node.name, *numbers, node.via, node.parent))
    return sheet(Impact.COLUMNS, rows, f"Impact of {impact.node}")


# Comparison of two nodes by their dimensions: a line for each from 0 to 1, with a dot for one node and a
# square for the other.

_FIRST, _SECOND, _SECOND_INK = "#0072B2", "#D55E00", "#9C4400"
_PROFILE_EDGE, _PROFILE_TOP, _PROFILE_ROW, _HEAD = 24.0, 92.0, 30.0, 30.0
_PROFILE_NAMES, _ENDS, _SCALE = 205.0, 250.0, 250.0  # widths: name, label of an end, line


def profile_picture(profile: DimensionProfile) -> Drawing:
    """Draw the values of two nodes on each dimension, by category.

    The ends of each line say what 0 and 1 mean. `table` of the drawing has the numbers.
    """
    y, parts = _PROFILE_TOP, []
    for category, rows in groupby(profile.dimensions, key=lambda row: row.category):
        parts.append(draw_text(category.upper(), _PROFILE_EDGE, y + 14, 12.0, FAINT_INK))
        y += _HEAD
        for row in rows:
            parts.append(_draw_profile_line(row, y))
            y += _PROFILE_ROW
    width = 2 * _PROFILE_EDGE + _PROFILE_NAMES + 2 * _ENDS + _SCALE
    note = "" if profile.dimensions else "Neither has a value on any dimension."
    return drawing(
        _describe_profile(profile), width, y + 24,
        _draw_key(profile.names[0], 34.0, first=True, width=width), _draw_key(profile.names[1], 62.0, first=False, width=width),
        draw_text(note, _PROFILE_EDGE, _PROFILE_TOP + 10, 14.0, "#222222"), *parts, sheets=[_profile_sheet(profile)],
    )  # fmt: skip


def _draw_key(name: str, y: float, *, first: bool, width: float) -> Markup:
    (line,) = fit_lines(name, width - 2 * _PROFILE_EDGE - 24, 18.0 * 1.08, 1)[0] or [""]
    ink = STRONG_INK if first else _SECOND_INK
    words = draw_text(line, _PROFILE_EDGE + 24, y, 18.0, ink, bold=True)
    return element("g", _draw_mark(_PROFILE_EDGE + 8, y - 6, first=first), words)


def _draw_mark(x: float, y: float, *, first: bool) -> Markup:
    """Draw a dot for the first node, or a larger hollow square for the second, so that both are visible."""
    if first:
        return draw_circle(x, y, 6, _FIRST)
    return draw_rect(x - 8, y - 8, 16, 16, stroke=_SECOND, stroke_width=2.6)


def _draw_profile_line(row: ProfileRow, y: float) -> Markup:
    """Draw a dimension: name, scale with labelled ends, and the two marks with the line between them."""
    left, middle = _PROFILE_EDGE + _PROFILE_NAMES + _ENDS, y + 6
    low, high = (fit_lines(text, _ENDS - 20, 12.0, 1)[0] or [""] for text in (row.low, row.high))
    values = {True: row.first, False: row.second}
    known = {first: left + _SCALE * value for first, value in values.items() if value is not None}
    marks = [_draw_mark(x, middle, first=first) for first, x in known.items()]
    ends, between = sorted(known.values()), []
    if len(ends) == 2:
        between = [draw_path(f"M{ends[0]:.1f} {middle:.1f} H{ends[1]:.1f}", "#888888", 3.0)]
    values_text = ", ".join("no value" if value is None else f"{value:g}" for value in values.values())
    return element(
        "g", element("title", f"{row.dimension}: {values_text}; 0 {row.low}, 1 {row.high}"),
        draw_text(row.dimension.replace("_", " "), _PROFILE_EDGE, middle + 4.5, 13.0, "#111111"),
        draw_text(low[0], left - 14, middle + 4, 12.0, FAINT_INK, text_anchor="end"),
        draw_path(f"M{left:.1f} {middle:.1f} H{left + _SCALE:.1f}", "#CCCCCC", 1.0),
        *between, *marks, draw_text(high[0], left + _SCALE + 14, middle + 4, 12.0, FAINT_INK),
    )  # fmt: skip


def _describe_profile(profile: DimensionProfile) -> str:
    """Describe the picture in words."""
    parts = []
    for row in profile.dimensions:
        first, second = ("no value" if value is None else f"{value:g}" for value in (row.first, row.second))
        parts.append(f"{row.dimension.replace('_', ' ')} {first} and {second}")
    return f"{profile.names[0]} beside {profile.names[1]}: {'; '.join(parts) or 'no dimensions'}."


def _profile_sheet(profile: DimensionProfile) -> Sheet:
    rows = []
    for row in profile.dimensions:
        numbers = ("" if value is None else f"{value:g}" for value in (row.first, row.second, row.gap))
        rows.append((row.dimension, row.low, row.high, *numbers))
    return sheet(("dimension", "at 0", "at 1", *profile.names, "second less first"), rows, profile.title)
