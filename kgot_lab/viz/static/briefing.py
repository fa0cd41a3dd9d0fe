"""A briefing at a glance: what the signal says, the paths to what the user holds or watches, and what it was
derived from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgot_lab.domains.investment.briefing import DISCLAIMER, Briefing
from kgot_lab.domains.investment.reach import PathHop
from kgot_lab.domains.investment.view import shown_name
from kgot_lab.memory.claims.claim import format_time
from kgot_lab.text.counted import counted
from kgot_lab.types import Edge
from kgot_lab.viz.static.briefing import FAINT_INK, STRONG_INK, TINT, FactGraph, FactSelection, fact_graph
from kgot_lab.viz.static.drawing import Drawing, draw_lines, draw_rect, draw_text, drawing, fitted
from kgot_lab.viz.static.markup import element, shortened
from kgot_lab.viz.static.table import Sheet

_NARROWEST, _EDGE = 760.0, 24.0  # of the picture, around it
_TITLE, _WORDS, _NOTE = 24.0, 15.0, 12.0  # sizes of type
_LINES, _EVIDENCE = 3, 4  # lines of a text, and pieces of evidence that are named


def briefing_picture(briefing: Briefing) -> Drawing:
    """Draw the paths of a briefing from its signal to each asset, with what is left of the bearing there;
    `table` lists the hops.

    Each arrow points as its edge does, also where the path walks against it. Whom the briefing is for is not
    shown, only what is held.
    """
    graph = _paths(briefing)
    width = max(_NARROWEST, graph.width + 2 * _EDGE)
    room = width - 2 * _EDGE
    title = f"{briefing.action.capitalize()} signal, strength {briefing.strength:.2f}"
    summary = fitted(briefing.summary, room, _WORDS * 1.08, _LINES)[0]
    below = 52.0 + 1.3 * _WORDS * len(summary)
    foot = below + graph.height + 34
    notes = [
        line for said in _notes(briefing, graph) for line in fitted(said, room - 32, _NOTE + 1, _LINES)[0]
    ]
    height = foot + 19 * len(notes) + 22
    return drawing(
        f"{title}: {shortened(briefing.summary, 300)}. {'. '.join(_format_path(each.path) for each in briefing.reached)}.",
        width, height + 14,
        draw_text(title, _EDGE, 40.0, _TITLE, STRONG_INK, bold=True),
        draw_lines(summary, _EDGE, 66.0, _WORDS, leading=19.0),
        element("g", graph.markup, transform=f"translate({(width - graph.width) / 2:.1f} {below + 8:.1f})"),
        draw_rect(_EDGE, foot, room, height - foot, TINT, rx=8),
        element("g", draw_lines(notes, _EDGE, 24.0, _NOTE + 1, FAINT_INK, leading=19.0), transform=f"translate(16 {foot:.1f})"),
        sheets=[_sheet(briefing)],
    )  # fmt: skip


def _paths(briefing: Briefing) -> FactGraph:
    names: dict[str, str] = {briefing.signal: "this signal"}
    facts: dict[tuple[str, str, str], Edge] = {}
    for each in briefing.reached:
        names[each.asset.id] = f"{_format_asset(briefing, each.symbol)}, {each.weight:.2f}"
        for hop in each.path:
            source, target = (hop.source, hop.target) if hop.forward else (hop.target, hop.source)
            facts[source.id, hop.by, target.id] = Edge(source.id, hop.by, target.id)
            names.setdefault(hop.target.id, shown_name(hop.target))
    edges = list(facts.values())
    return fact_graph(FactSelection(edges, names, briefing.signal, edges, is_answer=True))


def _format_asset(briefing: Briefing, symbol: str) -> str:
    return f"{symbol} ({'held' if symbol in briefing.held else 'watched'})"


def _notes(briefing: Briefing, graph: FactGraph) -> list[str]:
    """What stands under the paths: evidence, freshness, and that it is no advice."""
    told = [f"From: {shown_name(node)}{_when(node.properties)}" for node in briefing.evidence[:_EVIDENCE]]
    told += [f"and {len(briefing.evidence) - _EVIDENCE} more"] if len(briefing.evidence) > _EVIDENCE else []
    hops = {(hop.source.id, hop.by, hop.target.id) for each in briefing.reached for hop in each.path}
    told += (
        [f"Not drawn: {counted(len(hops) - len(graph.drawn), 'hop')}; the table lists all."]
        if len(hops) > len(graph.drawn)
        else []
    )
    until = format_time(briefing.live_until) if briefing.live_until else "no time that is known"
    return [
        *told,
        f"Generated {format_time(briefing.generated_at)}, fresh until {until}. Beside an asset: what is left of the bearing.",
        DISCLAIMER,
    ]


def _when(properties: Mapping[str, object]) -> str:
    said = [
        str(properties.get("source") or ""),
        str(properties.get("published_at") or properties.get("date") or "")[: len("2026-02-05")],
    ]
    return f" ({', '.join(filter(None, said))})" if any(said) else ""


def _format_path(path: Sequence[PathHop]) -> str:
    return " ".join(["this signal", *map(str, path)])


def _sheet(briefing: Briefing) -> Sheet:
    rows = tuple(
        (each.symbol, hop.source.id, hop.by, hop.target.id) for each in briefing.reached for hop in each.path
    )
    return Sheet(("reaches", "from", "edge", "to"), rows, len(rows), "Hops of the briefing")
