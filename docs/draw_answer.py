"""Draw docs/graph.svg: an answer of a bundled run, the facts it rests on and the sentences they come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import supports_of
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.events import Answered, Event, Started, ToolReturned
from kgot_lab.loop.trace import Trace, load_run
from kgot_lab.text.words import content_words, sentences
from kgot_lab.types import Document, Edge
from kgot_lab.viz.graph.marks import AnswerSupport, find_support
from kgot_lab.viz.static.drawing import (
    Drawing,
    draw_arrow_head,
    draw_lines,
    draw_path,
    draw_rect,
    draw_text,
    drawing,
    fit_lines,
    line_width,
)
from kgot_lab.viz.static.markup import Markup, element, shorten
from kgot_lab.viz.static.table import Sheet

_STRONG_COLOUR, STRONG_INK, TINT = "#0072B2", "#005A8C", "#E8F1F8"
_FAINT_LINE, FAINT_INK = "#A6A6A6", "#666666"
# of the picture, around it, the size of the small words above each part
_NARROWEST, _EDGE, _LABEL = (860.0, 24.0, 12.0)
_QUESTION, _ANSWER, _QUOTE, _NOTE = 20.0, 26.0, 14.0, 12.0  # sizes of type
_BESIDE, _QUOTES, _LINES = 3, 3, 3  # faint facts and sentences drawn at most, and lines of each text


@dataclass(frozen=True)
class _Part:
    """Some markup, to be moved to its place, and how high it is."""

    markup: Sequence[Markup]
    height: float


@dataclass(frozen=True)
class Quotation:
    """A sentence that is the source of facts, and the title of its document."""

    sentence: str
    title: str


@dataclass(frozen=True)
class ToldAnswer:
    """An answer and what it rests on.

    `beside` are other facts about the ends of the marked ones, `quoted` the sentences of the marked ones.
    """

    support: AnswerSupport
    question: str
    guess: bool
    model: str
    beside: tuple[Edge, ...]
    quoted: tuple[Quotation, ...]

    @property
    def answer(self) -> str:
        return self.support.answer

    @property
    def telling(self) -> tuple[Edge, ...]:
        return self.support.telling

    def name(self, node: str) -> str:
        """The display name of a node."""
        return self.support.graph.node(node).text

    def question_pieces(self) -> Iterator[tuple[str, bool]]:
        """The question in pieces, each with whether a marked fact mentions it."""
        facts = (f"{self.name(edge.source)} {edge.type} {self.name(edge.target)}" for edge in self.telling)
        fact_words, start = {word for fact in facts for word in content_words(fact)}, 0
        for match in re.finditer(r"\w+", self.question):
            yield self.question[start : match.start()], False
            yield match[0], bool(fact_words & set(content_words(match[0])))
            start = match.end()
        yield self.question[start:], False


def told_answer(run: Trace | Iterable[Event]) -> ToldAnswer:
    """What the answer of a run rests on. Raises BadInput for a run without an answer."""
    events = run.events if isinstance(run, Trace) else tuple(run)
    support = find_support(events)
    started = next(event for event in events if isinstance(event, Started))
    answered = next(event for event in reversed(events) if isinstance(event, Answered))
    returned = (document for event in events if isinstance(event, ToolReturned) for document in event.sources)
    passages = [document for document in returned if document.id in answered.passages]
    others = (edge for edge in support.read if edge not in support.telling)
    ends = _ends(support.telling)
    beside = tuple(edge for edge in others if not {edge.source, edge.target}.isdisjoint(ends))
    quoted = tuple(_quotations(support.telling, passages, support.graph))
    return ToldAnswer(support, started.question, answered.forced, started.planning, beside, quoted)


def _quotations(facts: Iterable[Edge], passages: list[Document], graph: PropertyGraph) -> Iterator[Quotation]:
    """The sentences from which facts were taken, once each.

    If a fact has no sentence of its own, the first sentence that names both its ends is used.
    """
    titles: Mapping[str, str] = {document.id: document.title for document in passages}
    seen: set[str] = set()
    for edge in facts:
        supports = [support for support in supports_of(edge.properties) if support.sentence]
        sentence, title = (
            (supports[-1].sentence, titles.get(supports[-1].source, "")) if supports else ("", "")
        )
        ends = [graph.node(end).text.lower() for end in (edge.source, edge.target)]
        candidates = (
            (part, passage.title)
            for passage in passages
            for part in sentences(passage.text)
            if all(end in part.lower() for end in ends)
        )
        sentence, title = (sentence, title) if sentence else next(candidates, ("", ""))
        if sentence and sentence not in seen:
            seen.add(sentence)
            yield Quotation(sentence, title)


def answer_picture(run: Trace | Iterable[Event]) -> Drawing:
    """Draw what the answer of a run rests on, from its question to its sentences; `table` lists the facts.

    Marked are the fewest of the facts read that say what they all say of the question and the answer; a few
    others stand faint beside them, and the picture says how many are left out. Raises BadInput for a run
    without an answer.
    """
    told = told_answer(run)
    graph = _graph(told)
    width = max(_NARROWEST, graph.width + 2 * _EDGE)
    y, placed = 20.0, []
    for part in (
        _question(told, width),
        _facts(told, graph, width),
        _answer(told, width),
        _note(told, graph, width),
    ):
        placed.append(element("g", *part.markup, transform=f"translate(0 {y:.1f})"))
        y += part.height
    return drawing(_alt(told), width, y, *placed, sheets=[_sheet(told)])


def _graph(told: ToldAnswer) -> FactGraph:
    """The marked facts, and a few of the others that touch them."""
    beside = [edge for edge in told.beside if {edge.source, edge.target} & _ends(told.telling)][:_BESIDE]
    facts = [*told.telling, *beside]
    names = {end: told.name(end) for end in _ends(facts)}
    return fact_graph(
        FactSelection(facts, names, told.support.hub, told.telling, is_answer=told.support.hub_is_answer)
    )


# --- parts ---


def _question(told: ToldAnswer, width: float) -> _Part:
    """The question, with the words that a marked fact speaks of in its colour."""
    lines = _coloured(told.question_pieces(), width - 2 * _EDGE)
    texts = [
        element("text", *line, x=_EDGE, y=44.0 + 26 * number, font_size=_QUESTION, fill="#111")
        for number, line in enumerate(lines)
    ]
    return _Part([_label("Question", 14), *texts], 44.0 + 26 * len(lines) + 12)


def _coloured(pieces: Iterable[tuple[str, bool]], width: float) -> list[list[Markup | str]]:
    """Pieces of a text in lines, those that are told in bold; what has no room in the last line is cut."""
    lines: list[list[Markup | str]] = [[]]
    used = 0.0
    for text, strong in _words(pieces):
        wide = line_width(text, _QUESTION, bold=strong)
        if used + wide > width and used:
            if len(lines) == _LINES:
                lines[-1].append("…")
                return lines
            lines.append([])
            used, text = 0.0, text.lstrip()
        (text,) = fit_lines(text, width, _QUESTION * 1.08, 1)[0] if wide > width else [text]
        lines[-1].append(element("tspan", text, fill=STRONG_INK, font_weight="bold") if strong else text)
        used += wide
    return lines


def _words(pieces: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Pieces broken before their spaces, so that a line can end there."""
    for text, strong in pieces:
        for number, word in enumerate(text.replace("\n", " ").split(" ")):
            if word or number:
                yield (f" {word}" if number else word), strong


def _facts(told: ToldAnswer, graph: FactGraph, width: float) -> _Part:
    """The facts in the middle of the picture, or a word where there are none."""
    label = _label("The facts it rests on", 12)
    if not told.telling:
        words = "None of the graph: the model guessed." if told.guess else "None that the run names."
        return _Part([label, _text([words], _EDGE, 36.0, _QUOTE)], 62.0)
    placed = element("g", graph.markup, transform=f"translate({(width - graph.width) / 2:.1f} 34)")
    return _Part([label, placed], graph.height + 62)


def _answer(told: ToldAnswer, width: float) -> _Part:
    """The answer, large, and the sentences that the marked facts were taken from."""
    room = width - 2 * _EDGE - 32
    lines = (
        fit_lines(told.answer, room, _ANSWER * 1.08, _LINES)[0] if told.answer.strip() else ["(no answer)"]
    )
    parts = [_label("Answer, a guess" if told.guess else "Answer", 24, indent=16)]
    parts.append(_text(lines, _EDGE + 16, 54.0, _ANSWER, colour=STRONG_INK, bold=True))
    y = 54.0 + _ANSWER * 1.3 * (len(lines) - 1) + 26
    for quoted in told.quoted[:_QUOTES]:
        said = fit_lines(_quotation(quoted), room, _QUOTE, _LINES)[0]
        parts.append(_text(said, _EDGE + 16, y, _QUOTE))
        y += 19 * len(said) + 3
    panel = element("rect", x=_EDGE, y=0, width=width - 2 * _EDGE, height=y, rx=8, fill=TINT)
    return _Part([panel, *parts], y + 22)


def _note(told: ToldAnswer, graph: FactGraph, width: float) -> _Part:
    """How much of the graph is shown, and who answered."""
    facts, blue = len(told.support.graph.edges), sum(edge in told.telling for edge in graph.drawn)
    said = [f"The graph has {_counted(facts, 'fact')}."]
    said += [f"Blue: {blue} that speak of the question."] if blue else []
    said += [f"Grey: {len(graph.drawn) - blue} more that it read."] if len(graph.drawn) > blue else []
    said += [f"Not drawn: {facts - len(graph.drawn):,}."] if facts > len(graph.drawn) else []
    lines = fit_lines(" ".join([*said, f"Model: {told.model or 'unknown'}."]), width - 2 * _EDGE, _NOTE, 2)[0]
    return _Part([_text(lines, _EDGE, 6.0, _NOTE, colour=FAINT_INK)], 6.0 + 16 * len(lines) + 6)


# --- words ---


def _quotation(quoted: Quotation) -> str:
    return f"“{quoted.sentence}”" + (f" ({quoted.title})" if quoted.title else "")


def _text(
    lines: Sequence[str], x: float, y: float, size: float, *, colour: str = "#222222", bold: bool = False
) -> Markup:
    look = {"font_size": size, "fill": colour, "font_weight": "bold" if bold else None}
    return element(
        "g",
        *(element("text", line, x=x, y=y + 1.3 * size * number, **look) for number, line in enumerate(lines)),
    )


def _label(word: str, y: float, *, indent: float = 0.0) -> Markup:
    return _text([word.upper()], _EDGE + indent, y, _LABEL, colour=FAINT_INK)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _ends(facts: Iterable[Edge]) -> set[str]:
    return {end for edge in facts for end in (edge.source, edge.target)}


def _alt(told: ToldAnswer) -> str:
    """The picture in words."""
    facts = "; ".join(
        f"{shorten(told.name(e.source), 60)} {shorten(e.type, 60)} {shorten(told.name(e.target), 60)}"
        for e in told.telling
    )
    rests = f"It rests on: {facts}." if facts else "It rests on no fact of the graph."
    return f"Question: {shorten(told.question, 300)} Answer{' (a guess)' if told.guess else ''}: {shorten(told.answer, 300)}. {rests}"


def _sheet(told: ToldAnswer) -> Sheet:
    """All facts that hang together with the answer, the marked ones first."""
    rows = [
        (told.name(e.source), e.type, told.name(e.target), mark)
        for mark, some in (("yes", told.telling), ("", told.beside))
        for e in some
    ]
    return Sheet(
        ("subject", "relation", "object", "marked"), tuple(rows), len(rows), "Facts that the answer rests on"
    )


# --- facts around a node: boxes in columns, so that no line passes through a box that is not its end ---

# sizes: bend of a line, padding of a box, line distance, gap between boxes, arrow head
_BEND, _PAD, _LINE_GAP, _ROW_GAP, _HEAD = (56.0, 12.0, 22.0, 14.0, 9.0)
# width and lines of a node's caption, and font size of a line's caption
_MAX_CAPTION_WIDTH, _MAX_CAPTION_LINES, _LINE_CAPTION_SIZE = (190.0, 3, 13.0)
_MAX_LINE_CAPTION_WIDTH = 200.0  # maximum width of a line's caption


@dataclass(frozen=True)
class FactSelection:
    """The facts to draw, the names of their nodes, the node in the middle, and the facts to emphasize."""

    facts: Sequence[Edge]
    names: Mapping[str, str]
    hub: str
    telling: Sequence[Edge]
    is_answer: bool  # whether the hub is the answer itself


@dataclass
class _Box:
    lines: list[str]
    size: float
    strong: bool
    x: float = 0.0
    y: float = 0.0  # y of the middle; x is that of the left edge
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True)
class FactGraph:
    """The drawing of some facts, its size, and the facts that are in it."""

    markup: Markup
    width: float
    height: float
    drawn: tuple[Edge, ...]


def fact_graph(selection: FactSelection) -> FactGraph:
    """Draw facts around a node: incoming facts on the left, outgoing on the right, by distance."""
    if not selection.facts:
        return FactGraph(Markup(), 0.0, 0.0, ())
    sides = _node_columns(selection)
    drawn = [edge for edge in selection.facts if abs(sides[edge.source] - sides[edge.target]) == 1]
    canvas = _FactCanvas(selection, sides, drawn)
    boxes = [canvas.draw_node(id) for id in canvas.boxes]
    markup = element("g", *(canvas.draw_line(edge) for edge in drawn), *boxes)
    return FactGraph(markup, canvas.width, canvas.height, tuple(drawn))


def _other_end(edge: Edge, id: str) -> str:
    return edge.target if edge.source == id else edge.source


def _node_columns(selection: FactSelection) -> dict[str, int]:
    """Return the column of each node: its signed distance in facts from the hub, which is 0.

    Sources are to the left of what they lead to.
    """
    columns: dict[str, int] = {}
    # a component without the hub has its own root
    roots = [selection.hub, *(edge.source for edge in selection.facts)]
    for root in roots:
        if root in columns:
            continue
        columns[root], queue = 0, [root]
        for node in queue:
            for edge in selection.facts:
                if node not in (edge.source, edge.target):
                    continue
                other = _other_end(edge, node)
                if other not in columns:
                    direction = 1 if columns[node] > 0 or (columns[node] == 0 and edge.source == node) else -1
                    columns[other] = columns[node] + direction
                    queue.append(other)
    return columns


class _FactCanvas:
    """The positions of boxes and lines."""

    def __init__(self, selection: FactSelection, sides: Mapping[str, int], drawn: Sequence[Edge]) -> None:
        self.selection, self.node_columns, self.drawn = selection, sides, drawn
        strong = {end for edge in selection.telling for end in (edge.source, edge.target)}
        order = sorted(sides, key=lambda id: (id != selection.hub, id not in strong))
        self.boxes = {id: self._box(id, id in strong) for id in order}
        numbers = sorted(set(sides.values()))
        self.columns = {number: [id for id in self.boxes if sides[id] == number] for number in numbers}
        self._order_columns()
        self.height = max(self._column_height(ids) for ids in self.columns.values())
        # the gaps before each column except the first
        self.gaps = {side: self._gap_width(side) for side in list(self.columns)[1:]}
        self.width = self._place_boxes()

    def _box(self, id: str, strong: bool) -> _Box:
        is_hub = id == self.selection.hub
        size = 19.0 if is_hub else 15.0 if strong else 13.0
        name, scale = self.selection.names[id], 1.08 if strong else 1.0
        lines, _ = fit_lines(name, _MAX_CAPTION_WIDTH, size * scale, _MAX_CAPTION_LINES)
        degree = max(len(self._edges_at(id, out)) for out in (-1, 1))
        text_height = size * 1.3 * len(lines) + (18 if is_hub else 12)
        height = max(text_height, degree * (_HEAD + 4 if is_hub else _LINE_GAP) + 4)
        width = max(line_width(line, size, bold=strong) for line in lines or [""])
        return _Box(lines or [""], size, strong, width=width, height=height)

    def _edges_at(self, id: str, direction: int) -> list[Edge]:
        """Return the drawn lines on one side of a box."""
        ends = ((edge, _other_end(edge, id)) for edge in self.drawn if id in (edge.source, edge.target))
        return [edge for edge, other in ends if self.node_columns[other] == self.node_columns[id] + direction]

    def _order_columns(self) -> None:
        """Order the boxes of outer columns like those that they link to, so that few lines cross."""
        for side in sorted((side for side in self.columns if abs(side) > 1), key=abs):
            inner = self.columns[side - 1 if side > 0 else side + 1]
            self.columns[side].sort(key=lambda id: min(map(inner.index, self._inner_neighbours(id))))

    def _inner_neighbours(self, id: str) -> list[str]:
        ends = {_other_end(edge, id) for edge in self.drawn if id in (edge.source, edge.target)}
        return [end for end in ends if abs(self.node_columns[end]) < abs(self.node_columns[id])]

    def _column_height(self, ids: Sequence[str]) -> float:
        return sum(self.boxes[id].height for id in ids) + _ROW_GAP * (len(ids) - 1)

    def _gap_width(self, side: int) -> float:
        """Return the width of the gap before a column: its longest caption and the bend of its lines."""
        at = self.node_columns
        edges = (e for e in self.drawn if {at[e.source], at[e.target]} == {side - 1, side})
        widths = (line_width(self._edge_caption(edge), _LINE_CAPTION_SIZE, bold=True) for edge in edges)
        return max(widths, default=0.0) + 20 + _BEND

    def _place_boxes(self) -> float:
        x = 0.0
        for side, ids in self.columns.items():
            x += self.gaps.get(side, 0.0)
            width = max(self.boxes[id].width for id in ids) + 2 * _PAD
            y = (self.height - self._column_height(ids)) / 2
            for id in ids:
                box = self.boxes[id]
                box.x, box.width, box.y = x, width, y + box.height / 2
                y += box.height + _ROW_GAP
            x += width
        return x

    def _edge_caption(self, edge: Edge) -> str:
        return (fit_lines(edge.type, _MAX_LINE_CAPTION_WIDTH, _LINE_CAPTION_SIZE * 1.08, 1)[0] or [""])[0]

    # --- drawing ---

    def _line_end(self, id: str, edge: Edge, direction: int) -> tuple[float, float]:
        """Return where a line meets a box.

        The lines of a side are ordered vertically by their other ends.
        """
        box = self.boxes[id]
        edges = self._edges_at(id, direction)
        edges.sort(key=lambda edge: (self.boxes[_other_end(edge, id)].y, self.drawn.index(edge)))
        # space for captions where lines begin
        step = _LINE_GAP if abs(self.node_columns[id] + direction) < abs(self.node_columns[id]) else _HEAD + 4
        y = box.y + (edges.index(edge) - (len(edges) - 1) / 2) * step
        return (box.x + box.width if direction > 0 else box.x), y

    def draw_line(self, edge: Edge) -> Markup:
        """Draw a line with its caption and an arrow head at its target.

        It is horizontal next to the outer box, then bends to the inner one.
        """
        is_strong = edge in self.selection.telling
        inner, outer = sorted((edge.source, edge.target), key=lambda id: abs(self.node_columns[id]))
        direction = self.node_columns[outer] - self.node_columns[inner]
        (x0, y0), (x1, y1) = self._line_end(outer, edge, -direction), self._line_end(inner, edge, direction)
        start = x0 - direction * (_HEAD if edge.target == outer else 0)
        end = x1 + direction * (_HEAD if edge.target == inner else 0)
        turn, middle = end + direction * (_BEND - 8), end + direction * (_BEND - 8) / 2
        path = f"M{start:.1f} {y0:.1f} H{turn:.1f} C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {end:.1f} {y1:.1f}"
        colour, ink = (_STRONG_COLOUR, STRONG_INK) if is_strong else (_FAINT_LINE, FAINT_INK)
        tip, back, y = (x0, start, y0) if edge.target == outer else (x1, end, y1)
        look: dict[str, Any] = {"bold": is_strong, "text_anchor": "middle"}
        text = f"{self.selection.names[edge.source]} – {edge.type} – {self.selection.names[edge.target]}"
        return element(
            "g", element("title", text),
            draw_path(path, colour, 3.0 if is_strong else 1.2),
            draw_arrow_head(tip, back, y, colour),
            draw_text(self._edge_caption(edge), (start + turn) / 2, y0 - 6, _LINE_CAPTION_SIZE, ink, **look),
        )  # fmt: skip

    def draw_node(self, id: str) -> Markup:
        """Draw a box with a node's caption.

        The answer is filled. A node without a supporting fact has a pale rim.
        """
        box, is_answer = self.boxes[id], id == self.selection.hub and self.selection.is_answer
        fill = _STRONG_COLOUR if is_answer else TINT if box.strong else "#FFFFFF"
        rim = _STRONG_COLOUR if is_answer or box.strong else _FAINT_LINE
        ink = "#FFFFFF" if is_answer else "#111111" if box.strong else FAINT_INK
        look: dict[str, Any] = {"rx": 8, "stroke": rim, "stroke_width": 2.0 if box.strong else 1.0}
        frame = draw_rect(box.x, box.y - box.height / 2, box.width, box.height, fill, **look)
        first = box.y - (len(box.lines) - 1) * box.size * 0.65 + box.size * 0.35
        middle, look = box.x + box.width / 2, {"bold": box.strong, "text_anchor": "middle"}
        lines = draw_lines(box.lines, middle, first, box.size, ink, **look)
        return element("g", element("title", self.selection.names[id]), frame, lines)


if __name__ == "__main__":
    demo = load_run(bundled_path("traces/hotpotqa_demo.jsonl"))
    answer_picture(demo).save(Path(__file__).parent / "graph.svg")
