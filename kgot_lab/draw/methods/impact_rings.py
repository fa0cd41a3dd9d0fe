"""An impact as rings: the node in the middle, what a change of it reaches around it by depth, the riskiest chain marked."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kgot_lab.draw.drawing import Drawing, drawing
from kgot_lab.draw.fact_graph import FAINT_INK, STRONG_INK
from kgot_lab.draw.markup import Markup, element, shortened
from kgot_lab.draw.table import Sheet
from kgot_lab.errors import require_count
from kgot_lab.methods.impact_analysis import Impact, Impacted
from kgot_lab.text.counted import counted

_FIRST, _STEP, _MARGIN = 125.0, 125.0, 165.0  # radius of the first ring, between rings, around the last for captions
_SHOWN = 28  # nodes of a ring
_LONGEST = 26  # letters of a caption
_CRITICAL, _PLAIN = "#D55E00", "#56B4E9"
_Angles = dict[str, float]


def impact_picture(impact: Impact, *, per_ring: int = _SHOWN) -> Drawing:
    """Draw an impact as rings by depth; a dot is the larger the higher its risk, and the riskiest chain has thick lines and rims.

    Of each ring the riskiest are drawn, `per_ring` of them, and those that they hang on; the picture says how many are left out, and
    `table` lists all.
    """
    require_count(per_ring, 1, "per_ring", "it is how many nodes of a ring are drawn")
    drawn = _drawn(impact, per_ring)
    depth = max((node.depth for node in drawn.values()), default=1)
    radius = _FIRST + _STEP * (depth - 1)
    size = 2 * (radius + _MARGIN)
    middle = size / 2
    angles = _angles(impact.node, drawn)
    points = {id: _at(middle, node.depth, angles[id]) for id, node in drawn.items()} | {impact.node: (middle, middle)}
    critical = set(zip(impact.critical_path, impact.critical_path[1:], strict=False))
    most = max((node.risk for node in drawn.values()), default=1.0) or 1.0
    rings = [
        element("circle", cx=middle, cy=middle, r=_FIRST + _STEP * ring, fill="none", stroke="#DDDDDD", stroke_dasharray="4 4")
        for ring in range(depth)
    ]
    lines = [_line(points[node.parent], points[id], node.via, marked=(node.parent, id) in critical) for id, node in drawn.items()]
    dots = [_dot(node, points[id], angles[id], 4 + 8 * node.risk / most, marked=id in impact.critical_path) for id, node in drawn.items()]
    return drawing(
        _alt(impact), size, size + 40, *rings, *lines, *dots, _centre(impact.node, middle),
        element("text", _foot(impact, drawn), x=24, y=size + 22, font_size=12.0, fill=FAINT_INK), sheets=[_sheet(impact)],
    )  # fmt: skip


def _drawn(impact: Impact, per_ring: int) -> dict[str, Impacted]:
    """The riskiest of each ring, and the nodes on the way to them and on the critical path, by depth."""
    known = {node.id: node for node in impact.nodes}
    wanted = {node.id for nodes in impact.risk_by_depth.values() for node in nodes[:per_ring]} | (set(impact.critical_path) & set(known))
    for id in list(wanted):
        while (id := known[id].parent) in known:
            wanted.add(id)
    return {node.id: node for node in impact.nodes if node.id in wanted}


def _angles(root: str, drawn: Mapping[str, Impacted]) -> _Angles:
    """Where each node stands: every subtree has a part of the circle as large as the number of its leaves, so that no lines cross."""
    children: dict[str, list[str]] = {}
    for id, node in drawn.items():
        children.setdefault(node.parent, []).append(id)
    leaves: dict[str, int] = {}
    for id in reversed(list(drawn)):  # by depth, so that children are counted before their parents
        leaves[id] = sum(leaves[child] for child in children.get(id, ())) or 1
    angles: _Angles = {}
    starts = {root: (0.0, math.tau)}
    for id in (root, *drawn):
        start, room = starts[id]
        own = children.get(id, ())
        for child in own:
            part = room * leaves[child] / sum(leaves[each] for each in own)
            starts[child] = start, part
            angles[child] = start + part / 2 - math.pi / 2
            start += part
    return angles


def _at(middle: float, depth: int, angle: float) -> tuple[float, float]:
    radius = _FIRST + _STEP * (depth - 1)
    return middle + radius * math.cos(angle), middle + radius * math.sin(angle)


def _line(start: tuple[float, float], end: tuple[float, float], via: str, *, marked: bool) -> Markup:
    path = f"M{start[0]:.1f} {start[1]:.1f} L{end[0]:.1f} {end[1]:.1f}"
    colour, wide = (_CRITICAL, 3.2) if marked else ("#A6A6A6", 1.0)
    return element("g", element("title", via), element("path", d=path, stroke=colour, stroke_width=wide, fill="none"))


def _dot(node: Impacted, point: tuple[float, float], angle: float, radius: float, *, marked: bool) -> Markup:
    """A node, its caption turned outwards and never upside down."""
    x, y = point
    left = math.cos(angle) < 0
    turn = math.degrees(angle) + 180 * left
    rim = {"stroke": _CRITICAL if marked else "#005A8C", "stroke_width": 3.0 if marked else 1.0}
    caption = element(
        "text", shortened(_bare(node.id), _LONGEST), x=(radius + 5) * (-1 if left else 1), y=4, font_size=12.0,
        fill="#111111", text_anchor="end" if left else "start", font_weight="bold" if marked else None,
        stroke="#fff", stroke_width=4, paint_order="stroke",
    )  # fmt: skip
    return element(
        "g", element("title", f"{node.id}: depth {node.depth}, risk {node.risk:.3g}, by {node.via} from {node.parent}"),
        element("circle", cx=x, cy=y, r=radius, fill=_PLAIN, **rim),
        element("g", caption, transform=f"translate({x:.1f} {y:.1f}) rotate({turn:.1f})"),
    )  # fmt: skip


def _centre(id: str, middle: float) -> Markup:
    caption = element("text", shortened(_bare(id), _LONGEST), x=middle, y=middle + 30, font_size=15.0, fill=STRONG_INK,
                      text_anchor="middle", font_weight="bold", stroke="#fff", stroke_width=4, paint_order="stroke")  # fmt: skip
    return element("g", element("title", id), element("circle", cx=middle, cy=middle, r=13, fill="#0072B2"), caption)


def _bare(id: str) -> str:
    """An id as a caption: without the type before its colon, and with spaces."""
    return (id.partition(":")[2] or id).replace("_", " ")


def _foot(impact: Impact, drawn: Mapping[str, Impacted]) -> str:
    left = impact.total_impacted - len(drawn)
    told = [f"Rings: 1 to {max((node.depth for node in drawn.values()), default=0)} edges away, {impact.direction}."]
    told += ["Larger dots: higher risk."] if drawn else ["Nothing is reached."]
    told += [f"Thick: the riskiest chain, product {impact.critical_risk:.2g}."] if impact.critical_path else []
    return " ".join([*told, *[f"Not drawn: {counted(left, 'node')}."] * bool(left)])


def _alt(impact: Impact) -> str:
    """The picture in words."""
    rings = [f"depth {depth}: {', '.join(_bare(node.id) for node in nodes[:8])}" for depth, nodes in impact.risk_by_depth.items()]
    chain = f" Riskiest chain: {' → '.join(map(_bare, impact.critical_path))}." if impact.critical_path else ""
    reached = f"A change of {_bare(impact.node)} ({impact.direction}) reaches {counted(impact.total_impacted, 'node')}."
    return f"{reached} {'. '.join(rings)}.{chain}"


def _sheet(impact: Impact) -> Sheet:
    rows = tuple(
        (node.id, str(node.depth), f"{node.distance_risk:.2f}", f"{node.risk:.3g}", node.via, node.parent) for node in impact.nodes
    )
    return Sheet(Impact.COLUMNS, rows, len(rows), f"Impact of {impact.node}")
