"""The facts of an item in plainer words: things, events, links and insights by their names, as a model without ids is asked for them."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kgot_lab.experiments.briefings.said import SaidEdge, SaidFacts
from kgot_lab.types import Json

_OF_THE_ITEM = ("MarketEvent", "Insight")
_BY_THE_ITEM = ("mentions", "about", "derived_from")


def stated_reply(facts: SaidFacts) -> str:
    """Facts as JSON of things, events, links and insights, which name each other by name.

    What this form has no words for is left out: what ends when, what is taken back, dates, directions, and events of other items; an
    insight about such an event is about what the item mentions.
    """
    named = {ref: str(thing.get("name") or thing.get("symbol")) for ref, thing in facts.things.items() if thing["is"] not in _OF_THE_ITEM}
    symbols = {ref: str(facts.things[ref].get("symbol") or facts.things[ref].get("ticker") or "") for ref in named}
    named |= {ref: symbols[ref] for ref in named if facts.things[ref]["is"] == "Asset"}
    events = [ref for ref in facts.said if facts.things[ref]["is"] == "MarketEvent"]
    told = {
        "sentiment": facts.sentiment,
        "things": [{"type": facts.things[ref]["is"], "name": name, "symbol": symbols[ref]} for ref, name in named.items()],
        "events": [_event(facts, ref, named) for ref in events],
        "links": [
            {"source": named[edge.source], "type": edge.type, "target": named[edge.target]}
            for edge in facts.edges
            if edge.type not in _BY_THE_ITEM and edge.source in named
        ],
        "insights": [_insight(facts, ref, named, events) for ref in facts.said if facts.things[ref]["is"] == "Insight"],
    }
    return json.dumps(told, ensure_ascii=False)


def _event(facts: SaidFacts, ref: str, named: dict[str, str]) -> Json:
    affected = _from(facts, ref, "affects")
    issuers = [edge for edge in affected if edge.properties.get("role") == "issuer"]
    return {
        "type": facts.things[ref]["type"],
        "summary": facts.things[ref]["summary"],
        "affects": [named[edge.target] for edge in affected if edge not in issuers],
        "issuer": named[issuers[0].target] if issuers else "",
    }


def _insight(facts: SaidFacts, ref: str, named: dict[str, str], events: list[str]) -> Json:
    thing, about = facts.things[ref], [edge.target for edge in _from(facts, ref, "about")]
    meant: Iterable[str] = about if all(each in named for each in about) else facts.mentions
    because = [events.index(edge.target) + 1 for edge in _from(facts, ref, "derived_from") if edge.target in events]
    told = {"type": thing["type"], "summary": thing["summary"], "action": thing.get("action") or "", "strength": thing["strength"]}
    return {**told, "about": [named[each] for each in meant], "because": because}


def _from(facts: SaidFacts, ref: str, type: str) -> list[SaidEdge]:
    return [edge for edge in facts.edges if (edge.source, edge.type) == (ref, type)]
