"""The facts of an item as a model that reads news states them: by names, and in words that the item has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from kgot_lab.domains.monitor.asking import BY_THE_ITEM, OF_THE_ITEM
from kgot_lab.domains.monitor.grounding import says_name, says_symbol, unsaid_names
from kgot_lab.domains.monitor.news import NewsItem
from kgot_lab.experiments.briefings.said import SaidEdge, SaidFacts, SaidThing
from kgot_lab.types import Json


def stated_reply(facts: SaidFacts, item: NewsItem) -> str:
    """Facts of an item as JSON in the form that `news_prompt` asks for, without symbols, and names in a summary, that the item does not have.

    What the form has no words for is left out: directions of events, and events of other items; an insight about such an event is about
    what the item mentions.
    """
    named = {ref: str(thing.get("name") or thing.get("symbol")) for ref, thing in facts.things.items() if thing["is"] not in OF_THE_ITEM}
    symbols = {ref: str(facts.things[ref].get("symbol") or facts.things[ref].get("ticker") or "") for ref in named}
    named |= {ref: symbols[ref] for ref in named if facts.things[ref]["is"] == "Asset"}
    symbols = {ref: symbol if says_symbol(item.shown, symbol) else "" for ref, symbol in symbols.items()}
    events = [ref for ref in facts.said if facts.things[ref]["is"] == "MarketEvent"]
    told = {
        "sentiment": facts.sentiment,
        "things": [{"type": facts.things[ref]["is"], "name": name, "symbol": symbols[ref]} for ref, name in named.items()],
        "events": [_event(facts, ref, named, item) for ref in events],
        "links": [
            {"source": named[edge.source], "type": edge.type, "target": named[edge.target]}
            for edge in facts.edges
            if edge.type not in BY_THE_ITEM and edge.source in named
        ],
        "insights": [_insight(facts, ref, named, events, item) for ref in facts.said if facts.things[ref]["is"] == "Insight"],
        "withdrawn": [_withdrawn(facts.things[end], facts.mentions, named) for end in facts.ends if _is_call(facts, end)],
    }
    return json.dumps(told, ensure_ascii=False)


def _event(facts: SaidFacts, ref: str, named: Mapping[str, str], item: NewsItem) -> Json:
    affected = _from(facts, ref, "affects")
    issuers = [edge for edge in affected if edge.properties.get("role") == "issuer"]
    return {
        "type": facts.things[ref]["type"],
        "summary": _in_words_of(item, str(facts.things[ref]["summary"])),
        "affects": [named[edge.target] for edge in affected if edge not in issuers],
        "issuer": named[issuers[0].target] if issuers else "",
    }


def _insight(facts: SaidFacts, ref: str, named: Mapping[str, str], events: list[str], item: NewsItem) -> Json:
    thing, about = facts.things[ref], [edge.target for edge in _from(facts, ref, "about")]
    meant: Iterable[str] = about if all(each in named for each in about) else facts.mentions
    because = [events.index(edge.target) + 1 for edge in _from(facts, ref, "derived_from") if edge.target in events]
    told = {"type": thing["type"], "summary": _in_words_of(item, str(thing["summary"])), "action": thing.get("action") or ""}
    told |= {"strength": thing["strength"], "about": [named[each] for each in meant], "because": because}
    given = str(thing["generated_at"])
    house = _house(thing)
    return told | {
        "said_by": house if says_name(item.shown, house) else "",
        "date": given if given[:10] != item.published_at.date().isoformat() else "",
        "until": facts.expires.get(ref, ""),
    }


def _withdrawn(call: SaidThing, mentions: Iterable[str], named: Mapping[str, str]) -> Json:
    return {"said_by": _house(call), "action": call["action"], "about": [named[each] for each in mentions]}


def _is_call(facts: SaidFacts, end: str | SaidEdge) -> bool:
    return isinstance(end, str) and bool(facts.things[end].get("action"))


def _house(thing: SaidThing) -> str:
    """Who gives a call: gold writes it before a colon."""
    house, colon, _ = str(thing["summary"]).partition(": ")
    return house if colon else ""


def _in_words_of(item: NewsItem, summary: str) -> str:
    """A summary without the names and numbers that an item does not have: who reads only the item cannot write them."""
    unsaid = set(unsaid_names(item.shown, summary))
    return " ".join(word for word in summary.split() if not unsaid.intersection(re.findall(r"\w+", word)))


def _from(facts: SaidFacts, ref: str, type: str) -> list[SaidEdge]:
    return [edge for edge in facts.edges if (edge.source, edge.type) == (ref, type)]
