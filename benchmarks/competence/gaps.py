"""Where the loop let go of a chain: the first fact of it that the graph lacks, and how far that fact came."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.competence.gold import GoldChain, GoldStep
from kgot_lab.loop.events import Asked, Event, Refused, ToolReturned, Wrote
from kgot_lab.types import Triple

GAPS = (
    "not looked up",
    "looked up and not found",
    "found and not shown to the model",
    "shown and not written",
    "refused",
    "not answered from",
)


def first_gap(events: Iterable[Event], chain: GoldChain) -> str:
    """One of GAPS, for the first step that the graph lacks; the last one where it lacks none."""
    events = tuple(events)
    graph = {
        Triple(edge.source, edge.type, edge.target)
        for event in events
        if isinstance(event, Wrote)
        for edge in event.diff.added_edges
    }
    missing = next((step for step in chain.steps if step.fact not in graph), None)
    return GAPS[-1] if missing is None else _how_far(events, missing)


def _how_far(events: tuple[Event, ...], step: GoldStep) -> str:
    returned = [event for event in events if isinstance(event, ToolReturned)]
    if not any(
        step.sentence in " ".join(document.text.split()) for event in returned for document in event.sources
    ):
        return GAPS[1] if any(step.fact.subject in str(event.call) for event in returned) else GAPS[0]
    shown = (
        event.prompt.messages[-1].text
        for event in events
        if isinstance(event, Asked) and event.role.startswith("write")
    )
    if not any(step.sentence in " ".join(text.split()) for text in shown):
        return GAPS[2]
    refused = any(isinstance(event, Refused) and str(step.fact) in event.statement for event in events)
    return GAPS[4] if refused else GAPS[3]
