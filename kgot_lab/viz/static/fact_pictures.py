"""Pictures of facts: a certificate as a path with its weak links marked, and a briefing with its paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from kgot_lab.domains.investment.briefing import DISCLAIMER, Briefing
from kgot_lab.domains.investment.view import display_name
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.times import format_time
from kgot_lab.memory.claims.certificate import FACT_STATES, Certificate, CertifiedFact, Ruling, hedge_answer
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.marks import Style
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.live import StaticOutput, static_output
from kgot_lab.viz.static.drawing import (
    Drawing,
    Part,
    draw_circle,
    draw_lines,
    draw_rect,
    draw_text,
    drawing,
    fit_lines,
    stack_parts,
)
from kgot_lab.viz.static.markup import Markup, bullet_list, concat, element, first_lines, shorten
from kgot_lab.viz.static.table import Sheet, Table, sheet

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


# A briefing: its signal, the paths to the user's assets as a graph, and the evidence.

_MAX_EVIDENCE = 4  # maximum pieces of evidence listed


def show_briefing(briefing: Briefing) -> StaticOutput:
    """Show a briefing: its signal, the paths from it to each asset as a graph, and its evidence.

    An asset has the bearing that remains there. Each arrow points as its edge does, even where the path goes
    against it. The table lists the hops. The recipient of the briefing is not shown, only what is held.
    """
    graph = _path_graph(briefing)
    title = f"{briefing.action.capitalize()} signal, strength {briefing.strength:.2f}"
    picture = svg(graph, width=760, height=min(200 + 24 * len(graph), 620))
    paths = (" ".join(["this signal", *map(str, each.path)]) for each in briefing.reached)
    parts = (element("h4", title), element("p", briefing.summary), Markup(picture._repr_html_()))
    notes = bullet_list([*paths, *_briefing_notes(briefing)])
    return static_output(Table((_hop_sheet(briefing),)), *parts, notes)


def _path_graph(briefing: Briefing) -> PropertyGraph:
    nodes = {briefing.signal: ("signal", "this signal")}
    edges: dict[tuple[str, str, str], Edge] = {}
    for each in briefing.reached:
        kind = "held" if each.symbol in briefing.held else "watched"
        nodes[each.asset.id] = (kind, f"{each.symbol} ({kind}), {each.weight:.2f}")
        for hop in each.path:
            source, target = (hop.source, hop.target) if hop.forward else (hop.target, hop.source)
            edges[source.id, hop.by, target.id] = Edge(source.id, hop.by, target.id)
            nodes.setdefault(hop.target.id, ("between", display_name(hop.target)))
    named = (Node(id, (kind,), {"name": name}) for id, (kind, name) in nodes.items())
    return PropertyGraph.of(named, edges.values())


def _briefing_notes(briefing: Briefing) -> list[str]:
    """Return the notes under the graph: evidence, freshness and the disclaimer."""
    evidence = [f"From: {display_name(node)}{_format_origin(node.properties)}" for node in briefing.evidence]
    until = format_time(briefing.live_until) if briefing.live_until else "no time that is known"
    return [
        *first_lines(evidence, _MAX_EVIDENCE),
        f"Generated {format_time(briefing.generated_at)}, fresh until {until}. Beside an asset: the weight of its path.",
        DISCLAIMER,
    ]


def _format_origin(properties: Mapping[str, object]) -> str:
    date = str(properties.get("published_at") or properties.get("date") or "")[: len("2026-02-05")]
    parts = [str(properties.get("source") or ""), date]
    return f" ({', '.join(filter(None, parts))})" if any(parts) else ""


def _hop_sheet(briefing: Briefing) -> Sheet:
    rows = ((r.symbol, hop.source.id, hop.by, hop.target.id) for r in briefing.reached for hop in r.path)
    return sheet(("reaches", "from", "edge", "to"), rows, "Hops of the briefing")
