"""Draw docs/loop.svg: a question, a vote, facts that are fetched and written, and an answer that is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgot_lab.viz.static.drawing import Drawing, drawing
from kgot_lab.viz.static.markup import Markup, element

_WIDTH, _HEIGHT = 860.0, 240.0
_INSERT, _RETRIEVE, _LINE = "#00614a", "#005a8c", "#555"  # as in the stepper: what is written, what is read
_ALT = (
    "The loop: a question; a vote whether the graph answers it. INSERT: tools are called, each sentence becomes facts, they are written "
    "into the graph, and the vote is held again. RETRIEVE: the graph is read, and the answer names the facts it rests on."
)


@dataclass(frozen=True)
class _Box:
    """A box of the drawing: its middle, its size, and its lines, the first one bold."""

    x: float
    y: float
    width: float
    lines: tuple[str, ...]
    colour: str = _LINE

    @property
    def height(self) -> float:
        return 20.0 + 17 * len(self.lines)

    def drawn(self) -> Markup:
        """The box with its lines."""
        top = self.y - self.height / 2
        texts = [
            element("text", line, x=self.x, y=top + 24 + 17 * number, text_anchor="middle", fill="#111" if number == 0 else "#444",
                    font_size=14 if number == 0 else 12, font_weight="bold" if number == 0 else None)
            for number, line in enumerate(self.lines)
        ]  # fmt: skip
        left, look = (
            self.x - self.width / 2,
            {"rx": 5, "fill": "#fff", "stroke": self.colour, "stroke_width": 2},
        )
        frame = element("rect", x=left, y=top, width=self.width, height=self.height, **look)
        return element("g", frame, *texts)


_QUESTION = _Box(74, 118, 112, ("Question",))
_VOTE = _Box(250, 118, 150, ("Vote", "does the graph", "answer it?"))
_TOOLS = _Box(420, 46, 128, ("Tools", "search, read, …"), _INSERT)
_FACTS = _Box(590, 46, 140, ("Facts", "sentence by sentence"), _INSERT)
_GRAPH = _Box(766, 118, 150, ("Graph", "each fact with its", "sentence and source"))
_READ = _Box(590, 190, 140, ("Read", "a query, rows"), _RETRIEVE)
_ANSWER = _Box(420, 190, 128, ("Answer", "and its evidence"), _RETRIEVE)
_BOXES = (_QUESTION, _VOTE, _TOOLS, _FACTS, _GRAPH, _READ, _ANSWER)


def loop_drawing() -> Drawing:
    """Draw the loop as it runs: votes, INSERT above, RETRIEVE below."""
    arrows = [
        _arrow((130, 118), (175, 118)),
        _arrow((250, 82), (250, 46), (356, 46), colour=_INSERT),
        _arrow((484, 46), (520, 46), colour=_INSERT),
        _arrow((660, 46), (766, 46), (766, 82), colour=_INSERT),
        _arrow((691, 118), (325, 118)),
        _arrow((250, 154), (250, 230), (590, 230), (590, 217), colour=_RETRIEVE),
        _arrow((766, 154), (766, 190), (660, 190), colour=_RETRIEVE),
        _arrow((520, 190), (484, 190), colour=_RETRIEVE),
    ]
    words = [
        _word("no: INSERT", 292, 38, _INSERT), _word("yes: RETRIEVE", 304, 223, _RETRIEVE),
        _word("written", 720, 38, _INSERT), _word("read", 714, 183, _RETRIEVE),
        _word("and again, now with more in it", 508, 111, "#444"),
    ]  # fmt: skip
    return drawing(_ALT, _WIDTH, _HEIGHT, *arrows, *words, *(box.drawn() for box in _BOXES))


def _arrow(*points: tuple[float, float], colour: str = _LINE) -> Markup:
    """A line through points, with a head at its end."""
    line = element(
        "path",
        d="M" + " L".join(f"{x:.0f},{y:.0f}" for x, y in points),
        fill="none",
        stroke=colour,
        stroke_width=2,
    )
    (x0, y0), (x, y) = points[-2:]
    dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
    corners = (x, y), (x - 9 * dx - 5 * dy, y - 9 * dy - 5 * dx), (x - 9 * dx + 5 * dy, y - 9 * dy + 5 * dx)
    return element(
        "g", line, element("polygon", points=" ".join(f"{a:.0f},{b:.0f}" for a, b in corners), fill=colour)
    )


def _word(text: str, x: float, y: float, colour: str) -> Markup:
    return element(
        "text", text, x=x, y=y, text_anchor="middle", font_size=12, font_weight="bold", fill=colour
    )


if __name__ == "__main__":
    loop_drawing().save(Path(__file__).parent / "loop.svg")
