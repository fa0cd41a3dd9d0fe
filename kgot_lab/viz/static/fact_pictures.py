"""Views of facts: a certificate with its weak facts marked, and a briefing with its paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kgot_lab.domains.investment.briefing import DISCLAIMER, Briefing
from kgot_lab.domains.investment.view import display_name
from kgot_lab.graph import PropertyGraph
from kgot_lab.memory.claims.certificate import Certificate, CertifiedFact, Ruling, hedge_answer
from kgot_lab.memory.claims.claim import format_time
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.live import StaticOutput, static_output
from kgot_lab.viz.static.markup import Markup, bullet_list, element, first_lines, shorten
from kgot_lab.viz.static.table import Sheet, Table, sheet

_MAX_QUOTES = 2  # quoted supports per fact

# Okabe and Ito, dark enough for text, and a sign that encodes the same
STATE_LOOKS: Mapping[str, tuple[str, str]] = {
    "holds": ("✓", "#00614A"),
    "one source": ("1", "#005A8C"),
    "contested": ("≠", "#9C4400"),
    "out of date": ("†", "#6B4E00"),
    "unsure": ("~", "#5A3E85"),
    "missing": ("×", "#8A1538"),
}
_VERDICTS: Mapping[Ruling, str] = {
    "passes": "The certificate passes",
    "hedged": "The answer is hedged",
    "withheld": "The answer is withheld",
}


def show_certificate(certificate: Certificate, *, question: str = "", answer: str = "") -> StaticOutput:
    """Show the facts of a certificate in order, each with its state and sources, and the verdict below.

    The table lists the facts with all sources. A withheld answer is not revealed anywhere.
    """
    verdict, certificate = _verdict_text(certificate, answer), certificate.redacted(answer)
    facts = element("ol", *(element("li", *_fact_parts(fact)) for fact in certificate.facts))
    parts = [element("h4", question)] if question.strip() else []
    parts += [facts if certificate.facts else element("p", "It rests on no fact.")]
    parts += [element("p", element("b", f"{_VERDICTS[certificate.ruling]}. "), verdict)]
    return static_output(Table((_fact_sheet(certificate),)), *parts)


def _fact_parts(fact: CertifiedFact) -> Iterator[Markup]:
    sign, colour = STATE_LOOKS[fact.state]
    yield element("b", f"{sign} ", style=f"color:{colour}")
    yield element("b", _format_fact(fact))
    yield element("div", fact.description, style=f"color:{colour}")
    if fact.supports:
        yield bullet_list(_format_sources(fact))


def _verdict_text(certificate: Certificate, answer: str) -> str:
    if answer.strip() or certificate.ruling == "withheld":
        return hedge_answer(answer, certificate)
    return "; ".join(certificate.reasons)


def _format_sources(fact: CertifiedFact) -> list[str]:
    """Return the sources of a fact: the sentence and its document, or the document alone."""
    sources = [
        f"“{shorten(claim.span.text, 130)}” ({shorten(claim.said_by or claim.source, 40)})"
        if claim.span and claim.span.text
        else f"said by {claim.source}"
        for claim in fact.supports
    ]
    return first_lines(sources, _MAX_QUOTES)


def _format_fact(fact: CertifiedFact) -> str:
    known = fact.fact or fact.needed
    start, end = (getattr(known, name, "") or "?" for name in ("subject", "object"))
    return f"{shorten(start, 80)} – {shorten(fact.needed.relation, 80)} – {shorten(end, 80)}"


def _fact_sheet(certificate: Certificate) -> Sheet:
    rows = []
    for fact in certificate.facts:
        rivals = ", ".join(rival.object for rival in fact.rivals)
        rows.append((*_format_fact(fact).split(" – ", 2), fact.state, ", ".join(fact.sources), rivals))
    columns = ("subject", "relation", "object", "state", "sources", "others say")
    return sheet(columns, rows, _VERDICTS[certificate.ruling])


# A briefing: its signal, the paths to the user's assets as a graph, and the evidence.

STRONG_INK, TINT, FAINT_INK = "#005A8C", "#E8F1F8", "#666666"
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
