"""An impact as rings: the node in the middle, what a change of it reaches around it by depth, the riskiest
chain marked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from kgot_lab.errors import require_count
from kgot_lab.kgos.methods.impact_analysis import Impact, Impacted
from kgot_lab.text.counted import counted
from kgot_lab.viz.static.briefing import FAINT_INK, STRONG_INK
from kgot_lab.viz.static.drawing import WIDE_HALO, Drawing, draw_circle, draw_path, draw_text, drawing
from kgot_lab.viz.static.markup import Markup, element, shortened
from kgot_lab.viz.static.table import Sheet

# the least and the most between rings, and the least between two nodes of a ring
_STEP, _FARTHEST, _APART = (105.0, 260.0, 26.0)
_LETTER, _EDGE = 6.6, 24.0  # the width of a letter of a caption, and what is left free around all
_SHOWN = 28  # nodes of a ring
_LONGEST = 26  # characters of a caption
_CRITICAL, _PLAIN = "#D55E00", "#56B4E9"
_Point = tuple[float, float]
_Angles = dict[str, float]


def impact_picture(impact: Impact, *, per_ring: int = _SHOWN) -> Drawing:
    """Draw an impact as rings by depth; a dot is the larger the higher its risk, and the riskiest chain has
    thick lines and rims.

    Of each ring the riskiest are drawn, `per_ring` of them, and those that they hang on; the picture says how
    many are left out, and `table` lists all.
    """
    require_count(per_ring, 1, "per_ring", "it is how many nodes of a ring are drawn")
    drawn = _drawn(impact, per_ring)
    angles = _angles(impact.node, drawn)
    radii = _radii(drawn, angles)
    points = {id: _at(radii[node.depth], angles[id]) for id, node in drawn.items()} | {
        impact.node: (0.0, 0.0)
    }
    parents = {node.parent for node in drawn.values()}
    critical = set(zip(impact.critical_path, impact.critical_path[1:], strict=False))
    most = max((node.risk for node in drawn.values()), default=1.0) or 1.0
    rings = [
        draw_circle(0, 0, radius, stroke="#DDDDDD", stroke_dasharray="4 4")
        for radius in radii[1:]
    ]  # fmt: skip
    lines = [
        _line(points[node.parent], points[id], node.via, marked=(node.parent, id) in critical)
        for id, node in drawn.items()
    ]
    dots, ends = [], [(0.0, 0.0), *_beside((0.0, 30.0), _bare(impact.node, impact.name))]
    captions = [_beneath((0.0, 0.0), 30.0, _bare(impact.node, impact.name))]
    for id, node in drawn.items():
        radius, leads_on, told = 4 + 8 * node.risk / most, id in parents, _bare(id, node.name)
        down = radius + 13
        if leads_on:  # above the node where another caption is in the way below
            down = next(
                (each for each in (down, -radius - 5) if _free(_beneath(points[id], each, told), captions)),
                down,
            )
            captions.append(_beneath(points[id], down, told))
        angle, marked = None if leads_on else angles[id], id in impact.critical_path
        dots.append(_dot(node, points[id], angle, radius, down, marked=marked))
        ends += (
            _beside(points[id], told)
            if leads_on
            else [points[id], _outwards(points[id], angles[id], radius, told)]
        )
    left, top, right, bottom = (
        f(place[axis] for place in ends) for f, axis in ((min, 0), (min, 1), (max, 0), (max, 1))
    )
    foot = _foot(impact, drawn)
    width, height = max(right - left, _LETTER * len(foot)) + 2 * _EDGE, bottom - top + 2 * _EDGE + 30
    moved = f"translate({(width - left - right) / 2:.1f} {_EDGE - top:.1f})"
    return drawing(
        _alt(impact), width, height, element("g", *rings, *lines, *dots, _centre(impact), transform=moved),
        draw_text(foot, _EDGE, height - 12, 12.0, FAINT_INK), sheets=[_sheet(impact)],
    )  # fmt: skip


def _radii(drawn: Mapping[str, Impacted], angles: _Angles) -> list[float]:
    """How far from the middle each depth lies, 0 for the node itself: far enough that the nodes of a ring
    have room, within bounds.
    """
    radii = [0.0]
    for depth in range(1, max((node.depth for node in drawn.values()), default=0) + 1):
        around = sorted(angles[id] for id, node in drawn.items() if node.depth == depth)
        gap = min((after - before for before, after in pairwise(around)), default=math.tau)
        radii.append(radii[-1] + min(max(_STEP, _APART / gap - radii[-1]), _FARTHEST))
    return radii


def _drawn(impact: Impact, per_ring: int) -> dict[str, Impacted]:
    """The riskiest of each ring, and the nodes on the way to them and on the critical path, by depth."""
    known = {node.id: node for node in impact.nodes}
    wanted = {node.id for nodes in impact.risk_by_depth.values() for node in nodes[:per_ring]} | (
        set(impact.critical_path) & set(known)
    )
    for id in list(wanted):
        while (id := known[id].parent) in known:
            wanted.add(id)
    return {node.id: node for node in impact.nodes if node.id in wanted}


def _angles(root: str, drawn: Mapping[str, Impacted]) -> _Angles:
    """Where each node stands: every subtree has a part of the circle as large as the number of its leaves, so
    that no lines cross.
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
        start, room = starts[id]
        own = children.get(id, ())
        for child in own:
            part = room * leaves[child] / sum(leaves[each] for each in own)
            starts[child] = start, part
            angles[child] = start + part / 2 - math.pi / 2
            start += part
    return angles


def _at(radius: float, angle: float) -> _Point:
    return radius * math.cos(angle), radius * math.sin(angle)


def _outwards(point: _Point, angle: float, radius: float, told: str) -> _Point:
    """Where the caption of a node ends that is written outwards."""
    across, down = _at(radius + 5 + _LETTER * len(_caption(told)), angle)
    return point[0] + across, point[1] + down


def _beneath(point: _Point, down: float, told: str) -> tuple[float, float, float, float]:
    """Where a caption stands that is written across, so far below a point: left, top, right, bottom."""
    half = _LETTER * len(_caption(told)) / 2
    return point[0] - half, point[1] + down - 11, point[0] + half, point[1] + down + 3


def _free(
    place: tuple[float, float, float, float], taken: Sequence[tuple[float, float, float, float]]
) -> bool:
    left, top, right, bottom = place
    return not any(
        left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in taken
    )


def _beside(point: _Point, told: str) -> list[_Point]:
    """The ends of a caption below a node."""
    half = _LETTER * len(_caption(told)) / 2
    return [(point[0] - half, point[1] - 12), (point[0] + half, point[1] + 28)]


def _caption(told: str) -> str:
    return shortened(told, _LONGEST)


def _line(start: _Point, end: _Point, via: str, *, marked: bool) -> Markup:
    path = f"M{start[0]:.1f} {start[1]:.1f} L{end[0]:.1f} {end[1]:.1f}"
    colour, wide = (_CRITICAL, 3.2) if marked else ("#A6A6A6", 1.0)
    return element("g", element("title", via), draw_path(path, colour, wide))


def _dot(
    node: Impacted, point: _Point, angle: float | None, radius: float, down: float, *, marked: bool
) -> Markup:
    """A node; its caption is written outwards at an angle and never upside down, or across where lines go on
    from it, so far below.
    """
    x, y = point
    rim = {"stroke": _CRITICAL if marked else "#005A8C", "stroke_width": 3.0 if marked else 1.0}
    left = angle is not None and math.cos(angle) < 0
    x0, y0, anchor = 0.0, down, "middle"
    if angle is not None:
        x0, y0, anchor = (-radius - 5, 4.0, "end") if left else (radius + 5, 4.0, "start")
    look: dict[str, Any] = {"text_anchor": anchor, **WIDE_HALO}
    caption = draw_text(_caption(_bare(node.id, node.name)), x0, y0, 12.0, "#111111", bold=marked, **look)
    turn = 0.0 if angle is None else math.degrees(angle) + 180 * left
    return element(
        "g", element("title", f"{node.id}: depth {node.depth}, risk {node.risk:.3g}, by {node.via} from {node.parent}"),
        draw_circle(x, y, radius, _PLAIN, **rim),
        element("g", caption, transform=f"translate({x:.1f} {y:.1f}) rotate({turn:.1f})"),
    )  # fmt: skip


def _centre(impact: Impact) -> Markup:
    name = _caption(_bare(impact.node, impact.name))
    look: dict[str, Any] = {"text_anchor": "middle", **WIDE_HALO}
    caption = draw_text(name, 0, 30, 15.0, STRONG_INK, bold=True, **look)
    return element("g", element("title", impact.node), draw_circle(0, 0, 13, "#0072B2"), caption)


def _bare(id: str, name: str) -> str:
    """What a node is called, or its id without the type before its colon and with spaces."""
    return name if name != id else (id.partition(":")[2] or id).replace("_", " ")


def _foot(impact: Impact, drawn: Mapping[str, Impacted]) -> str:
    left = impact.total_impacted - len(drawn)
    if not drawn:
        return f"Nothing is reached, {impact.direction}."
    told = [
        f"Rings: edges away, 1 to {max(node.depth for node in drawn.values())}, {impact.direction}.",
        "Larger dots: higher risk.",
    ]
    told += (
        [f"Thick: the riskiest chain, product {impact.critical_risk:.2g}."] if impact.critical_path else []
    )
    return " ".join([*told, *[f"Not drawn: {counted(left, 'node')}."] * bool(left)])


def _alt(impact: Impact) -> str:
    """The picture in words."""
    told = {impact.node: _bare(impact.node, impact.name)} | {
        node.id: _bare(node.id, node.name) for node in impact.nodes
    }
    rings = [
        f"depth {depth}: {', '.join(told[node.id] for node in nodes[:8])}"
        for depth, nodes in impact.risk_by_depth.items()
    ]
    chain = (
        f" Riskiest chain: {' → '.join(told[id] for id in impact.critical_path)}."
        if impact.critical_path
        else ""
    )
    reached = f"A change of {told[impact.node]} ({impact.direction}) reaches {counted(impact.total_impacted, 'node')}."
    return f"{reached} {'. '.join(rings)}.{chain}"


def _sheet(impact: Impact) -> Sheet:
    rows = tuple(
        (
            each.id,
            each.name,
            str(each.depth),
            f"{each.distance_risk:.2f}",
            f"{each.risk:.3g}",
            each.via,
            each.parent,
        )
        for each in impact.nodes
    )
    return Sheet(Impact.COLUMNS, rows, len(rows), f"Impact of {impact.node}")
