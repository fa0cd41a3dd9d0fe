"""The marks a picture is made of: shapes for labels, curves for edges, styles for what a write did.

Colours are those of Okabe and Ito (2008), which colour-blind readers tell apart; a shape, a sign or a dash
pattern says the same in grey. Lines in orange and vermilion are darker than theirs, so that they stand out
from white paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgot_lab.viz.static.drawing import draw_circle
from kgot_lab.viz.static.markup import Markup, element, joined

Place = tuple[float, float]

COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#F0E442", "#CC79A7", "#0072B2", "#D55E00")
CORNERS = (0, 4, 3, 6, 5)  # corners of the shape; 0 is a circle


@dataclass(frozen=True)
class NodeLook:
    """How the nodes of one label look."""

    colour: str
    corners: int


@dataclass(frozen=True)
class Style:
    """How a line looks; `sign` and `dashes` say the same as the colour, `ink` is the colour dark enough for
    text.
    """

    colour: str
    ink: str
    width: float = 1.3
    dashes: str | None = None
    sign: str = ""


ROUND = NodeLook("#FFFFFF", 0)  # nodes without label
GROUP = NodeLook("#DDDDDD", 0)  # a community drawn as one
MARKS = {
    "added": Style("#009E73", "#00614A", 2.6, None, "+"),
    "removed": Style("#B34D00", "#9C4400", 2.2, "7 4", "−"),
    "changed": Style("#C28600", "#8A5F00", 2.6, "2 3", "~"),
    "path": Style("#0072B2", "#005A8C", 3.4, None, "»"),
    "answer": Style("#A8457F", "#8A3268", 3.4, "12 3", "★"),
    "evidence": Style("#5B2A86", "#4A2270", 3.0, "4 2 1 2", "✓"),
}
DIFF = ("added", "removed", "changed")  # the marks of a write


def look_of(number: int) -> NodeLook:
    """The look of the label with this number; the first 35 differ, in colour or in shape."""
    return NodeLook(COLOURS[number % len(COLOURS)], CORNERS[number % len(CORNERS)])


def styles(faint: bool) -> Style:
    """The style of a line that no write touched."""
    return Style("#8F8F8F", "#666") if faint else Style("#777777", "#444")


def shape(look: NodeLook, place: Place, radius: float, *, ghost: bool = False) -> Markup:
    """A circle or a polygon with a dark rim; pale for what is gone."""
    x, y = place
    rim: dict[str, Any] = {"stroke": "#333", "stroke_width": 1, "opacity": 0.4 if ghost else None}
    if not look.corners:
        return draw_circle(x, y, radius, look.colour, **rim)
    turn = math.pi / 4 if look.corners == 4 else -math.pi / 2
    angles = [turn + 2 * math.pi * corner / look.corners for corner in range(look.corners)]
    size = radius * (1.2 if look.corners <= 4 else 1.08)  # so that all shapes look equally large
    return element(
        "polygon",
        points=_points([(x + size * math.cos(angle), y + size * math.sin(angle)) for angle in angles]),
        fill=look.colour,
        **rim,
    )


def badge(mark: Style, place: Place, radius: float) -> Markup:
    """A ring around a node and a sign beside it."""
    (x, y), r = place, radius
    ring = draw_circle(
        x, y, r + 5.0, stroke=mark.colour, stroke_width=mark.width, stroke_dasharray=mark.dashes
    )
    disc = draw_circle(x + r + 3, y - r - 3, 6.0, mark.ink)
    middle = {"text_anchor": "middle", "font_weight": "bold", "font_size": 11}
    sign = element("text", mark.sign, x=x + r + 3, y=y - r + 0.8, fill="#fff", **middle)
    return joined([ring, disc, sign])


@dataclass(frozen=True)
class Curve:
    """A line from node to node: its SVG path and its arrow head."""

    path: str
    arrow: str


def curve(
    start: tuple[Place, float], end: tuple[Place, float], control: Place, *, headed: bool = True
) -> Curve:
    """A curve of second order between two nodes, each given by its middle and radius; straight if the control
    point is halfway.

    One that is not `headed` goes to the rim of its end, where no arrow head is drawn.
    """
    first, last = (
        _towards(start[0], control, start[1] + 1),
        _towards(end[0], control, end[1] + (3 if headed else 1)),
    )
    neck = _towards(last, control, 7) if headed else last
    return Curve(f"M{_point(first)} Q{_point(control)} {_point(neck)}", _arrow(last, control))


def loop(place: Place, radius: float, number: int, *, headed: bool = True) -> Curve:
    """A loop above a node; further ones are larger, and one that is not `headed` ends at the node itself."""
    x, y = place
    size = 2.2 * radius + 12 * number
    first, last = (x - 0.5 * radius, y - radius), (x + 0.5 * radius, y - radius - 2)
    one, other = (x - size, y - 2 * size), (x + size, y - 2 * size)
    path = f"M{_point(first)} C{_point(one)} {_point(other)} {_point(_towards(last, other, 7 if headed else -2))}"
    return Curve(path, _arrow(last, other))


def _towards(start: Place, goal: Place, distance: float) -> Place:
    length = math.hypot(goal[0] - start[0], goal[1] - start[1]) or 1.0
    return start[0] + (goal[0] - start[0]) / length * distance, start[1] + (
        goal[1] - start[1]
    ) / length * distance


def _arrow(tip: Place, origin: Place) -> str:
    back = _towards(tip, origin, 9)
    across = (back[1] - tip[1]) / 9 * 4, (tip[0] - back[0]) / 9 * 4
    return _points(
        [tip, (back[0] + across[0], back[1] + across[1]), (back[0] - across[0], back[1] - across[1])]
    )


def _point(place: Place) -> str:
    return f"{place[0]:.1f} {place[1]:.1f}"


def _points(places: Sequence[Place]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
