"""A certificate as a picture: the path of facts that an answer needs, from top to bottom, its weak links
marked by sign and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgot_lab.memory.claims.certificate import (
    FACT_STATES,
    Certificate,
    CertifiedFact,
    FactState,
    Ruling,
    hedged,
)
from kgot_lab.viz.static.drawing import (
    Drawing,
    draw_circle,
    draw_lines,
    draw_rect,
    draw_text,
    drawing,
    fitted,
)
from kgot_lab.viz.static.markup import Markup, element, joined, shortened
from kgot_lab.viz.static.table import Sheet

# of the picture, around it, of a box; where lines and texts begin
_WIDTH, _EDGE, _BOX, _SPINE, _TEXT = (760.0, 24.0, 300.0, 64.0, 104.0)
_NAME, _RELATION, _SMALL, _QUESTION = 15.0, 14.0, 12.5, 18.0  # sizes of type
_QUOTED, _LINES = 2, 2  # supports of a fact that are quoted, and lines of each
_INK, _FAINT = "#111111", "#555555"


@dataclass(frozen=True)
class LinkLook:
    """How a fact in a state looks: its sign, the width and dashes of its line, whether that is double, and
    its colour.
    """

    sign: str
    width: float
    colour: str
    dashes: str | None = None
    double: bool = False


LINK_LOOKS: Mapping[
    FactState, LinkLook
] = {  # colours after Okabe and Ito, dark enough for text; sign and line say the same in grey
    "holds": LinkLook("✓", 4.0, "#00614A"),
    "one source": LinkLook("1", 1.6, "#005A8C"),
    "contested": LinkLook("≠", 1.6, "#9C4400", double=True),
    "out of date": LinkLook("†", 2.4, "#6B4E00", "7 4"),
    "missing": LinkLook("×", 3.2, "#8A1538", "2.5 3.5"),
}
_RULED: Mapping[Ruling, str] = {
    "passes": "The certificate passes",
    "hedged": "The answer is hedged",
    "withheld": "The answer is withheld",
}


@dataclass(frozen=True)
class _Piece:
    markup: Markup
    height: float


def certificate_picture(certificate: Certificate, *, question: str = "", answer: str = "") -> Drawing:
    """Draw the facts of a certificate as a path, each with how it stands and what says it, and below what a
    reader is told.

    `table` lists the facts with all their sources. Nothing of it gives away an answer that is withheld.
    """
    told, certificate = _told(certificate, answer), certificate.certificate_text(answer)
    y, placed = 18.0, []
    for piece in (
        *_heading(question),
        *_path(certificate.facts),
        *_ruling(certificate, told),
        *_legend(certificate),
    ):
        placed.append(element("g", piece.markup, transform=f"translate(0 {y:.1f})"))
        y += piece.height
    return drawing(
        certificate_in_words(certificate, question), _WIDTH, y + 8, *placed, sheets=[_sheet(certificate)]
    )


def certificate_in_words(certificate: Certificate, question: str = "") -> str:
    """A certificate as a text that says all that its picture marks."""
    facts = (
        f"{number}. {_said(fact)}: {_standing(fact)}"
        for number, fact in enumerate(certificate.facts, start=1)
    )
    asked = [f"Question: {shortened(question, 300)}"] if question else []
    return " ".join(
        [
            *asked,
            f"{_RULED[certificate.ruling]}.",
            *(facts if certificate.facts else ["It rests on no fact."]),
        ]
    )


# --- pieces, from top to bottom
# ---------------------------------------------------------------------------------------


def _heading(question: str) -> Iterator[_Piece]:
    if question.strip():
        lines = fitted(question, _WIDTH - 2 * _EDGE, _QUESTION * 1.08, 3)[0]
        yield _Piece(
            draw_lines(lines, _EDGE, 16, _QUESTION, _INK, bold=True), 1.3 * _QUESTION * len(lines) + 12
        )


def _path(facts: Sequence[CertifiedFact]) -> Iterator[_Piece]:
    """A box for each name, and between them the facts; a fact that does not begin where the one before it
    ended begins a new path.
    """
    ended: str | None = None
    for number, fact in enumerate(facts):
        start, end = _ends(fact)
        if start != ended and (start != "?" or not number):
            yield _box(start, first=number > 0)
        yield _link(fact)
        yield _box(end)
        ended = end


def _box(name: str, *, first: bool = False) -> _Piece:
    """A name in a box, with a dashed rim where it is not known; the first of a path that is not the first of
    all stands apart.
    """
    lines = fitted(name, _BOX - 24, _NAME * 1.08, 2)[0] or ["?"]
    height, gap = 1.3 * _NAME * len(lines) + 14, 18.0 if first else 0.0
    look: dict[str, Any] = (
        {"stroke_width": 1.2, "stroke_dasharray": "4 4"} if name == "?" else {"stroke_width": 2.0}
    )
    rim = draw_rect(_EDGE, gap, _BOX, height, "#FFFFFF", rx=7, stroke=_INK, **look)
    return _Piece(
        joined([rim, draw_lines(lines, _EDGE + 12, gap + 7 + _NAME, _NAME, _INK, bold=True)]), height + gap
    )


def _link(fact: CertifiedFact) -> _Piece:
    """A line from box to box with its sign, and beside it what the fact says, how it stands, and what says
    it.
    """
    look, room = LINK_LOOKS[fact.state], _WIDTH - _TEXT - _EDGE
    relation = fitted(_relation(fact), room, _RELATION * 1.08, 2)[0]
    standing = fitted(_standing(fact), room, _SMALL * 1.08, 3)[0]
    quotes = [line for quote in _quotes(fact) for line in fitted(quote, room, _SMALL, _LINES)[0]]
    y, parts = 22.0, []
    for lines, size, colour, bold in (
        (relation, _RELATION, _INK, False), (standing, _SMALL, look.colour, True), (quotes, _SMALL, _FAINT, False),
    ):  # fmt: skip
        parts.append(draw_lines(lines, _TEXT, y, size, colour, bold=bold))
        y += 1.3 * size * len(lines) + (3 if lines else 0)
    height = max(y, 66.0)
    xs = (_SPINE - 3, _SPINE + 3) if look.double else (_SPINE,)
    stroke = {
        "stroke": look.colour,
        "stroke_width": look.width,
        "stroke_dasharray": look.dashes,
        "fill": "none",
    }
    lines = [element("path", d=f"M{x:.1f} 0 V{height - 10:.1f}", **stroke) for x in xs]
    head = element(
        "polygon",
        points=f"{_SPINE},{height - 1:.1f} {_SPINE - 6},{height - 11:.1f} {_SPINE + 6},{height - 11:.1f}",
        fill=look.colour,
    )
    return _Piece(joined([*lines, head, _sign(look, _SPINE, height / 2 - 4), *parts]), height)


def _ruling(certificate: Certificate, told: str) -> Iterator[_Piece]:
    """What becomes of the answer, and what a reader is told."""
    ruled, room = _RULED[certificate.ruling], _WIDTH - 2 * _EDGE - 28
    lines = fitted(told, room, _RELATION, 5)[0] if told else []
    height = 40.0 + 1.3 * _RELATION * len(lines)
    panel = draw_rect(_EDGE, 20, _WIDTH - 2 * _EDGE, height, "#F2F2F2", rx=7, stroke=_INK, stroke_width=1)
    verdict = draw_text(ruled, _EDGE + 14, 42, _NAME, _INK, bold=True)
    reasons = draw_lines(lines, _EDGE + 14, 64, _RELATION, _INK)
    yield _Piece(joined([panel, verdict, reasons]), height + 32)


def _legend(certificate: Certificate) -> Iterator[_Piece]:
    """The signs that stand in the picture."""
    parts, x = [], _EDGE + 10
    for state in (each for each in FACT_STATES if each in certificate.states):
        parts += [_sign(LINK_LOOKS[state], x, 10), draw_text(state, x + 16, 14, _SMALL, _FAINT)]
        x += 46 + 6.2 * len(state)
    if parts:
        yield _Piece(joined(parts), 26)


def _sign(look: LinkLook, x: float, y: float) -> Markup:
    disc = draw_circle(x, y, 10.0, "#FFFFFF", stroke=look.colour, stroke_width=1.8)
    return joined([disc, draw_text(look.sign, x, y + 5, 14.0, look.colour, bold=True, text_anchor="middle")])


# --- words
# ------------------------------------------------------------------------------------------------------------


def _told(certificate: Certificate, answer: str) -> str:
    return (
        hedged(answer, certificate)
        if answer.strip() or certificate.ruling == "withheld"
        else "; ".join(certificate.reasons)
    )


def _ends(fact: CertifiedFact) -> tuple[str, str]:
    told = fact.fact or fact.needed
    return getattr(told, "subject", "") or "?", "?" if fact.state == "missing" else getattr(
        told, "object", "?"
    )


def _relation(fact: CertifiedFact) -> str:
    wanted = getattr(fact.needed, "object", "")
    return f"{fact.needed.relation} {wanted}".strip() if fact.state == "missing" else fact.needed.relation


def _standing(fact: CertifiedFact) -> str:
    """How a fact stands, without the fact itself."""
    others = ", ".join(shortened(rival.object, 80) for rival in fact.rivals)
    if fact.state == "contested":
        return f"contested: {others} is said as well"
    if fact.state == "out of date":
        ends = " ".join(
            f"{word} {time.date()}" for word, time in (("from", fact.since), ("until", fact.until)) if time
        )
        return (
            f"out of date: it holds {ends or 'at another time'}{f', in its place {others}' if others else ''}"
        )
    if fact.state == "missing":
        return "missing: nothing says it"
    return "rests on one source" if fact.state == "one source" else f"holds by {len(fact.sources)} sources"


def _quotes(fact: CertifiedFact) -> list[str]:
    """What says a fact: the sentence and its document, or the document alone."""
    told = [
        f"“{shortened(claim.span.text, 130)}” ({shortened(claim.said_by or claim.source, 40)})"  # both fit into their lines
        if claim.span and claim.span.text
        else f"said by {claim.source}"
        for claim in fact.supports
    ]
    more = [f"and {len(told) - _QUOTED} more"] if len(told) > _QUOTED else []
    return [*told[:_QUOTED], *more]


def _said(fact: CertifiedFact) -> str:
    start, _ = _ends(fact)
    end = getattr(fact.fact or fact.needed, "object", "?")
    return f"{shortened(start, 80)} – {shortened(fact.needed.relation, 80)} – {shortened(end, 80)}"


def _sheet(certificate: Certificate) -> Sheet:
    rows = tuple(
        (
            *_said(fact).split(" – ", 2),
            fact.state,
            ", ".join(fact.sources),
            ", ".join(rival.object for rival in fact.rivals),
        )
        for fact in certificate.facts
    )
    return Sheet(
        ("subject", "relation", "object", "state", "sources", "others say"),
        rows,
        len(rows),
        _RULED[certificate.ruling],
    )
