"""The retrieval explorer as a static picture: the question, the pipeline, and the first hits with what made
their scores.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from kgot_lab.retrieval.stage import Stage
from kgot_lab.viz.explorer.fusion_weights import LETTERS, ScorePart
from kgot_lab.viz.explorer.hits import Piece, Shown
from kgot_lab.viz.static.drawing import WIDE_HALO, Drawing, draw_path, draw_rect, draw_text, drawing
from kgot_lab.viz.static.markup import Markup, element, escaped, joined, shortened, text_width
from kgot_lab.viz.static.pipeline import sketch

_WIDTH, _EDGE, INDENT = 760.0, 18.0, 30.0
_BAR, BAR_HEIGHT = 460.0, 13.0  # a score of 1, and how high a bar is
_MOST = 10  # hits that are drawn
_LINE = 112  # characters of a line
_INK, _MUTED = "#111111", "#555555"
LANE_COLOURS: Mapping[str, str] = {
    "embedding": "#56B4E9",
    "text": "#E69F00",
    "graph": "#009E73",
    "intent": "#CC79A7",
}
GOLD = "#F0E442"


def hits_picture(
    question: str, hits: Sequence[Shown], told: Sequence[str], stage: Stage, lanes: Mapping[str, Stage]
) -> Drawing:
    """The first hits of a pipeline for a question; `told` are the lines above them, `lanes` those the
    pipeline joins.
    """
    y, parts = 34.0, []
    for line in _wrapped(question or "(no question)", 80)[:2]:
        parts.append(draw_text(line, _EDGE, y, 16, _INK, bold=True))
        y += 22
    for line in (part for each in told for part in _wrapped(each, 118)):
        parts.append(draw_text(line, _EDGE, y, 12.5, _INK))
        y += 18
    drawn = sketch(
        stage, {lanes[name].name: colour for name, colour in LANE_COLOURS.items() if name in lanes}
    )
    scale = min(1.0, (_WIDTH - 2 * _EDGE) / drawn.width)
    parts.append(
        element("g", drawn.markup, transform=f"translate({_EDGE - 6:.0f} {y:.0f}) scale({scale:.3f})")
    )
    y += drawn.height * scale + 22
    if hits and hits[0].parts:
        parts.append(_legend(hits[0].parts, y))
        y += 24
    for hit in hits[:_MOST]:
        made, height = _hit(hit, y)
        parts.append(made)
        y += height
    if len(hits) > _MOST:
        parts.append(draw_text(f"and {len(hits) - _MOST} more", _EDGE + INDENT, y + 4, 12, _MUTED))
        y += 20
    return drawing(_alt(question, hits, told, stage), _WIDTH, y + 6, *parts)


def _legend(parts: Sequence[ScorePart], y: float) -> Markup:
    """Which lane is which, and what it counts."""
    made, x = [], _EDGE + INDENT
    for part in parts:
        text = f"{LETTERS[part.lane]} {part.lane}, counts {part.share:.2f}"
        made += [_segment(part.lane, x, y - 11, 22), draw_text(text, x + 28, y, 12, _MUTED)]
        x += text_width(text, 12) + 50
    return joined(made)


def _hit(hit: Shown, y: float) -> tuple[Markup, float]:
    """One hit, and how high it is."""
    left, title = _EDGE + INDENT, shortened(hit.name, 78)
    parts = [
        element("title", _exact(hit)),
        draw_path(f"M{_EDGE:.0f} {y - 3:.1f} H{_WIDTH - _EDGE:.0f}", "#E4E4E4", 1),
        draw_text(str(hit.rank), _EDGE + 18, y + 16, 14, _MUTED, text_anchor="end"),
        draw_text(title, left, y + 16, 14, _INK, bold=True),
    ]
    if hit.gold:
        parts.append(_gold(_WIDTH - _EDGE - 52, y + 16))
    parts += [
        *_bar(hit, left, y + 24),
        draw_text(f"{hit.score:.3f}", left + max(_BAR * hit.score, 0) + 8, y + 35, 12, _INK),
    ]
    height = 44.0
    for line, size in ((hit.snippet, 12.0), ((("path: " + hit.path, False),) if hit.path else (), 11.5)):
        if line:
            parts.append(_marked(line, left, y + height + 8, size))
            height += 17
    return element("g", *parts), height + 9


def _bar(hit: Shown, x: float, y: float) -> list[Markup]:
    """The score as a bar, a segment for each lane; one plain bar for a hit whose score has no parts."""
    if not hit.parts:
        return [draw_rect(x, y, max(_BAR * min(hit.score, 1.0), 1.0), BAR_HEIGHT, "#BBBBBB")]
    made = []
    for part in hit.parts:
        width = _BAR * part.value
        if width > 0:
            made.append(_segment(part.lane, x, y, width))
        x += width
    return made


def _segment(lane: str, x: float, y: float, width: float) -> Markup:
    """A piece of a bar: colour, marks and letter say which lane it is."""
    right, bottom = x + width, y + BAR_HEIGHT
    parts = [draw_rect(x, y, float(width), BAR_HEIGHT, LANE_COLOURS[lane], stroke="#fff", stroke_width=1)]
    lines = {
        "text": [f"M{x:.1f} {y + part * BAR_HEIGHT / 4:.1f} H{right:.1f}" for part in (1, 3)],
        "graph": [f"M{at:.1f} {y:.1f} V{bottom:.1f}" for at in _steps(x + 3, right - 1, 6)],
        "intent": [
            f"M{at:.1f} {y + row:.1f} h1.6" for row in (3.5, 9.5) for at in _steps(x + 3, right - 3, 6)
        ],
    }.get(lane, [])
    if lines:
        parts.append(draw_path(" ".join(lines), "#00000055", 1.4 if lane == "intent" else 1))
    if width >= 26:
        look: dict[str, Any] = {**WIDE_HALO, "stroke": LANE_COLOURS[lane], "text_anchor": "middle"}
        parts.append(draw_text(LETTERS[lane], x + width / 2, y + 10.5, 11, _INK, bold=True, **look))
    return joined(parts)


def _steps(start: float, end: float, step: float) -> list[float]:
    return [start + step * number for number in range(max(0, int((end - start) // step) + 1))]


def _gold(x: float, y: float) -> Markup:
    frame = draw_rect(x, y - 12, 52.0, 16.0, GOLD, rx=3, stroke="#555", stroke_width=1)
    return joined([frame, draw_text("★ gold", x + 26, y, 12, _INK, bold=True, text_anchor="middle")])


def _marked(pieces: Sequence[Piece], x: float, y: float, size: float) -> Markup:
    """A line of at most so many characters as there is room for, marked words in bold."""
    spans, room = [], _LINE
    for text, is_marked in pieces:
        kept = text if len(text) <= room else text[: max(room - 1, 0)] + "…"
        spans.append(
            element("tspan", kept, font_weight="bold", fill=_INK) if is_marked else Markup(escaped(kept))
        )
        room -= len(text)
        if room <= 0:
            break
    return element("text", *spans, x=x, y=y, font_size=size, fill=_MUTED)


def _exact(hit: Shown) -> str:
    return "\n".join(
        (
            f"{hit.name}: {hit.score:.4f}",
            *(f"{LETTERS[part.lane]} {part.lane}: {part.numbers}" for part in hit.parts),
        )
    )


def _wrapped(text: str, length: int) -> list[str]:
    """A text in lines of at most so many characters, broken between words."""
    return textwrap.wrap(shortened(text, 8 * length), length) or [""]


def _alt(question: str, hits: Sequence[Shown], told: Sequence[str], stage: Stage) -> str:
    """The picture in words."""
    named = "; ".join(
        f"{hit.rank}. {hit.name}{' (gold)' if hit.gold else ''}, {hit.score:.3f}" for hit in hits[:_MOST]
    )
    asked = shortened(question, 300)
    return f"The hits of {shortened(stage.name, 300)} for “{asked}”. {' '.join(told)} {named or 'No hits'}."
