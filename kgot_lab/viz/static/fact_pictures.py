"""Pictures of facts: a certificate as a path with its weak links marked, and facts around a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from kgot_lab.domains.investment.briefing import DISCLAIMER, Briefing
from kgot_lab.domains.investment.view import display_name
from kgot_lab.memory.claims.certificate import FACT_STATES, Certificate, CertifiedFact, Ruling, hedge_answer
from kgot_lab.memory.claims.claim import format_time
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge
from kgot_lab.viz.graph.marks import Style
from kgot_lab.viz.static.drawing import (
    Drawing,
    Part,
    draw_arrow_head,
    draw_circle,
    draw_lines,
    draw_path,
    draw_rect,
    draw_text,
    drawing,
    fit_lines,
    line_width,
    stack_parts,
)
from kgot_lab.viz.static.markup import Markup, concat, element, first_lines, shorten
from kgot_lab.viz.static.table import Sheet, sheet

# widths of picture, margin and box, and x coordinates of lines and texts
_WIDTH, _EDGE, _BOX_WIDTH, _LINE_X, _TEXT_X = (760.0, 24.0, 300.0, 64.0, 104.0)
_NAME_SIZE, _RELATION_SIZE, _SMALL_SIZE, _QUESTION_SIZE = 15.0, 14.0, 12.5, 18.0  # sizes of type
_MAX_QUOTES, _MAX_QUOTE_LINES = 2, 2  # quoted supports per fact, and lines of each
_INK, _FAINT = "#111111", "#555555"


# Okabe and Ito, dark enough for text; sign and line encode the same in grey, and a contested fact has two lines
LINK_LOOKS: Mapping[str, Style] = {
    "holds": Style("#00614A", "#00614A", 4.0, None, "✓"),
    "one source": Style("#005A8C", "#005A8C", 1.6, None, "1"),
    "contested": Style("#9C4400", "#9C4400", 1.6, None, "≠"),
    "out of date": Style("#6B4E00", "#6B4E00", 2.4, "7 4", "†"),
    "unsure": Style("#5A3E85", "#5A3E85", 1.6, "5 3", "~"),
    "missing": Style("#8A1538", "#8A1538", 3.2, "2.5 3.5", "×"),
}
_VERDICTS: Mapping[Ruling, str] = {
    "passes": "The certificate passes",
    "hedged": "The answer is hedged",
    "withheld": "The answer is withheld",
}


def certificate_picture(certificate: Certificate, *, question: str = "", answer: str = "") -> Drawing:
    """Draw the facts of a certificate as a path, with the verdict below.

    Each fact has its state and its sources. `table` of the drawing lists the facts with all sources. A
    withheld answer is not revealed anywhere.
    """
    verdict, certificate = _verdict_text(certificate, answer), certificate.redacted(answer)
    heading, path = _heading_parts(question), _path_parts(certificate.facts)
    parts = chain(heading, path, _verdict_parts(certificate, verdict), _legend_parts(certificate))
    elements, y = stack_parts(parts, 18.0)
    text = describe_certificate(certificate, question)
    return drawing(text, _WIDTH, y + 8, *elements, sheets=[_fact_sheet(certificate)])


def describe_certificate(certificate: Certificate, question: str = "") -> str:
    """Describe a certificate in words, with everything that its picture marks."""
    facts = (
        f"{number}. {_format_fact(fact)}: {fact.description}"
        for number, fact in enumerate(certificate.facts, start=1)
    )
    question_part = [f"Question: {shorten(question, 300)}"] if question else []
    fact_parts = facts if certificate.facts else ["It rests on no fact."]
    return " ".join([*question_part, f"{_VERDICTS[certificate.ruling]}.", *fact_parts])


# --- parts, from top to bottom ---


def _heading_parts(question: str) -> Iterator[Part]:
    if question.strip():
        lines = fit_lines(question, _WIDTH - 2 * _EDGE, _QUESTION_SIZE * 1.08, 3)[0]
        drawn = draw_lines(lines, _EDGE, 16, _QUESTION_SIZE, _INK, bold=True)
        yield Part(drawn, 1.3 * _QUESTION_SIZE * len(lines) + 12)


def _path_parts(facts: Sequence[CertifiedFact]) -> Iterator[Part]:
    """Yield a box for each name and a link for each fact between them.

    A fact that does not begin where the previous one ended begins a new path.
    """
    previous_end: str | None = None
    for number, fact in enumerate(facts):
        start, end = _fact_ends(fact)
        if start != previous_end and (start != "?" or not number):
            yield _name_box(start, first=number > 0)
        yield _fact_link(fact)
        yield _name_box(end)
        previous_end = end


def _name_box(name: str, *, first: bool = False) -> Part:
    """Draw a name in a box, with a dashed rim if the name is unknown.

    The `first` box of a later path is set apart by a gap.
    """
    lines = fit_lines(name, _BOX_WIDTH - 24, _NAME_SIZE * 1.08, 2)[0] or ["?"]
    height, gap = 1.3 * _NAME_SIZE * len(lines) + 14, 18.0 if first else 0.0
    look = {"stroke_width": 1.2, "stroke_dasharray": "4 4"} if name == "?" else {"stroke_width": 2.0}
    rim = draw_rect(_EDGE, gap, _BOX_WIDTH, height, "#FFFFFF", rx=7, stroke=_INK, **look)
    name_lines = draw_lines(lines, _EDGE + 12, gap + 7 + _NAME_SIZE, _NAME_SIZE, _INK, bold=True)
    return Part(concat([rim, name_lines]), height + gap)


def _fact_link(fact: CertifiedFact) -> Part:
    """Draw the line between two boxes, with the sign, text, state and sources of the fact."""
    look, text_width = LINK_LOOKS[fact.state], _WIDTH - _TEXT_X - _EDGE
    relation_lines = fit_lines(_format_relation(fact), text_width, _RELATION_SIZE * 1.08, 2)[0]
    state_lines = fit_lines(fact.description, text_width, _SMALL_SIZE * 1.08, 3)[0]
    quotes = _fit_texts(_format_sources(fact), text_width, _SMALL_SIZE, _MAX_QUOTE_LINES)
    y, parts = 22.0, []
    for lines, size, colour, bold in (
        (relation_lines, _RELATION_SIZE, _INK, False), (state_lines, _SMALL_SIZE, look.colour, True), (quotes, _SMALL_SIZE, _FAINT, False),
    ):  # fmt: skip
        parts.append(draw_lines(lines, _TEXT_X, y, size, colour, bold=bold))
        y += 1.3 * size * len(lines) + (3 if lines else 0)
    height = max(y, 66.0)
    xs = (_LINE_X - 3, _LINE_X + 3) if fact.state == "contested" else (_LINE_X,)
    stroke = {"stroke": look.colour, "stroke_width": look.width, "stroke_dasharray": look.dashes}
    lines = [element("path", d=f"M{x:.1f} 0 V{height - 10:.1f}", **stroke, fill="none") for x in xs]
    points = f"{_LINE_X},{height - 1:.1f} {_LINE_X - 6},{height - 11:.1f} {_LINE_X + 6},{height - 11:.1f}"
    head = element("polygon", points=points, fill=look.colour)
    return Part(concat([*lines, head, _draw_sign(look, _LINE_X, height / 2 - 4), *parts]), height)


def _fit_texts(texts: Sequence[str], width: float, size: float, max_lines: int) -> list[str]:
    """Return the first lines of each text."""
    return [line for text in texts for line in fit_lines(text, width, size, max_lines)[0]]


def _verdict_parts(certificate: Certificate, text: str) -> Iterator[Part]:
    """Draw the verdict on the answer and the message to the reader."""
    title, text_width = _VERDICTS[certificate.ruling], _WIDTH - 2 * _EDGE - 28
    lines = fit_lines(text, text_width, _RELATION_SIZE, 5)[0] if text else []
    height = 40.0 + 1.3 * _RELATION_SIZE * len(lines)
    panel = draw_rect(_EDGE, 20, _WIDTH - 2 * _EDGE, height, "#F2F2F2", rx=7, stroke=_INK, stroke_width=1)
    verdict = draw_text(title, _EDGE + 14, 42, _NAME_SIZE, _INK, bold=True)
    reasons = draw_lines(lines, _EDGE + 14, 64, _RELATION_SIZE, _INK)
    yield Part(concat([panel, verdict, reasons]), height + 32)


def _legend_parts(certificate: Certificate) -> Iterator[Part]:
    """Draw the legend of the signs used in the picture."""
    parts, x = [], _EDGE + 10
    for state in sorted({fact.state for fact in certificate.facts}, key=FACT_STATES.index):
        parts += [_draw_sign(LINK_LOOKS[state], x, 10), draw_text(state, x + 16, 14, _SMALL_SIZE, _FAINT)]
        x += 46 + 6.2 * len(state)
    if parts:
        yield Part(concat(parts), 26)


def _draw_sign(look: Style, x: float, y: float) -> Markup:
    disc = draw_circle(x, y, 10.0, "#FFFFFF", stroke=look.colour, stroke_width=1.8)
    return concat([disc, draw_text(look.sign, x, y + 5, 14.0, look.colour, bold=True, text_anchor="middle")])


# --- text ---


def _verdict_text(certificate: Certificate, answer: str) -> str:
    if answer.strip() or certificate.ruling == "withheld":
        return hedge_answer(answer, certificate)
    return "; ".join(certificate.reasons)


def _fact_ends(fact: CertifiedFact) -> tuple[str, str]:
    source = fact.fact or fact.needed
    end = "?" if fact.state == "missing" else getattr(source, "object", "?")
    return getattr(source, "subject", "") or "?", end


def _format_relation(fact: CertifiedFact) -> str:
    object = getattr(fact.needed, "object", "")
    return f"{fact.needed.relation} {object}".strip() if fact.state == "missing" else fact.needed.relation


def _format_sources(fact: CertifiedFact) -> list[str]:
    """Return the sources of a fact: the sentence and its document, or the document alone."""
    sources = [
        f"“{shorten(claim.span.text, 130)}” ({shorten(claim.said_by or claim.source, 40)})"  # both fit into their lines
        if claim.span and claim.span.text
        else f"said by {claim.source}"
        for claim in fact.supports
    ]
    return first_lines(sources, _MAX_QUOTES)


def _format_fact(fact: CertifiedFact) -> str:
    start, _ = _fact_ends(fact)
    end = getattr(fact.fact or fact.needed, "object", "?")
    return f"{shorten(start, 80)} – {shorten(fact.needed.relation, 80)} – {shorten(end, 80)}"


def _fact_sheet(certificate: Certificate) -> Sheet:
    rows = []
    for fact in certificate.facts:
        rivals = ", ".join(rival.object for rival in fact.rivals)
        rows.append((*_format_fact(fact).split(" – ", 2), fact.state, ", ".join(fact.sources), rivals))
    columns = ("subject", "relation", "object", "state", "sources", "others say")
    return sheet(columns, rows, _VERDICTS[certificate.ruling])


# A briefing as a picture: the signal, the paths to the user's assets, and the evidence.

# A few facts as boxes in columns, so that no line passes through a box that is not its end.
#
# A line joins boxes of neighbouring columns and runs in the gap between them. All boxes of a column have the
# same width. Facts within a column or across one are left out, so the facts that were drawn are returned.

_STRONG_COLOUR, STRONG_INK, TINT = "#0072B2", "#005A8C", "#E8F1F8"
_FAINT_LINE, FAINT_INK = "#A6A6A6", "#666666"
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


_MIN_WIDTH, _MARGIN = 760.0, 24.0  # minimum width of the picture, and its margin
_TITLE_SIZE, _BODY_SIZE, _NOTE_SIZE = 24.0, 15.0, 12.0  # font sizes
_MAX_TEXT_LINES, _MAX_EVIDENCE = 3, 4  # maximum lines of a text, and pieces of evidence listed


def briefing_picture(briefing: Briefing) -> Drawing:
    """Draw the paths of a briefing from its signal to each asset, with the bearing that remains there.

    `table` of the drawing lists the hops. Each arrow points as its edge does, even where the path goes
    against it. The recipient of the briefing is not shown, only what is held.
    """
    graph = _path_graph(briefing)
    width = max(_MIN_WIDTH, graph.width + 2 * _MARGIN)
    text_width = width - 2 * _MARGIN
    title = f"{briefing.action.capitalize()} signal, strength {briefing.strength:.2f}"
    summary = fit_lines(briefing.summary, text_width, _BODY_SIZE * 1.08, _MAX_TEXT_LINES)[0]
    graph_top = 52.0 + 1.3 * _BODY_SIZE * len(summary)
    notes_top = graph_top + graph.height + 34
    notes = _fit_texts(_briefing_notes(briefing, graph), text_width - 32, _NOTE_SIZE + 1, _MAX_TEXT_LINES)
    height = notes_top + 19 * len(notes) + 22
    paths = (" ".join(["this signal", *map(str, each.path)]) for each in briefing.reached)
    return drawing(
        f"{title}: {shorten(briefing.summary, 300)}. {'. '.join(paths)}.",
        width, height + 14,
        draw_text(title, _MARGIN, 40.0, _TITLE_SIZE, STRONG_INK, bold=True),
        draw_lines(summary, _MARGIN, 66.0, _BODY_SIZE, leading=19.0),
        element("g", graph.markup, transform=f"translate({(width - graph.width) / 2:.1f} {graph_top + 8:.1f})"),
        draw_rect(_MARGIN, notes_top, text_width, height - notes_top, TINT, rx=8),
        element("g", draw_lines(notes, _MARGIN, 24.0, _NOTE_SIZE + 1, FAINT_INK, leading=19.0), transform=f"translate(16 {notes_top:.1f})"),
        sheets=[_hop_sheet(briefing)],
    )  # fmt: skip


def _path_graph(briefing: Briefing) -> FactGraph:
    names: dict[str, str] = {briefing.signal: "this signal"}
    facts: dict[tuple[str, str, str], Edge] = {}
    for each in briefing.reached:
        kind = "held" if each.symbol in briefing.held else "watched"
        names[each.asset.id] = f"{each.symbol} ({kind}), {each.weight:.2f}"
        for hop in each.path:
            source, target = (hop.source, hop.target) if hop.forward else (hop.target, hop.source)
            facts[source.id, hop.by, target.id] = Edge(source.id, hop.by, target.id)
            names.setdefault(hop.target.id, display_name(hop.target))
    edges = list(facts.values())
    return fact_graph(FactSelection(edges, names, briefing.signal, edges, is_answer=True))


def _briefing_notes(briefing: Briefing, graph: FactGraph) -> list[str]:
    """Return the notes under the paths: evidence, freshness and the disclaimer."""
    evidence = [f"From: {display_name(node)}{_format_origin(node.properties)}" for node in briefing.evidence]
    lines = first_lines(evidence, _MAX_EVIDENCE)
    hops = {(hop.source.id, hop.by, hop.target.id) for each in briefing.reached for hop in each.path}
    if len(hops) > len(graph.drawn):
        lines.append(f"Not drawn: {format_count(len(hops) - len(graph.drawn), 'hop')}; the table lists all.")
    until = format_time(briefing.live_until) if briefing.live_until else "no time that is known"
    return [
        *lines,
        f"Generated {format_time(briefing.generated_at)}, fresh until {until}. Beside an asset: what is left of the bearing.",
        DISCLAIMER,
    ]


def _format_origin(properties: Mapping[str, object]) -> str:
    date = str(properties.get("published_at") or properties.get("date") or "")[: len("2026-02-05")]
    parts = [str(properties.get("source") or ""), date]
    return f" ({', '.join(filter(None, parts))})" if any(parts) else ""


def _hop_sheet(briefing: Briefing) -> Sheet:
    rows = ((r.symbol, hop.source.id, hop.by, hop.target.id) for r in briefing.reached for hop in r.path)
    return sheet(("reaches", "from", "edge", "to"), rows, "Hops of the briefing")
