"""The facts of an item as a model that reads news states them: by names, and in words that the item has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from kgot_lab.domains.investment.monitor.entity_resolution import (
    contains_name,
    contains_symbol,
    unsupported_names,
)
from kgot_lab.domains.investment.monitor.news import ITEM_EDGE_TYPES, ITEM_NODE_TYPES, NewsItem
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Json

from .said import SaidEdge, SaidFacts, SaidThing


def stated_reply(facts: SaidFacts, item: NewsItem) -> str:
    """Facts of an item as JSON in the form that `news_prompt` asks for, with no symbol and no name that the
    item does not have.

    An event that another item told of is meant by those of its words that this item has too. Directions of
    events are left out: the form has no words for them.
    """
    named = {
        ref: str(thing.get("name") or thing.get("symbol"))
        for ref, thing in facts.things.items()
        if thing["is"] not in ITEM_NODE_TYPES
    }
    symbols = {
        ref: str(facts.things[ref].get("symbol") or facts.things[ref].get("ticker") or "") for ref in named
    }
    named |= {ref: symbols[ref] for ref in named if facts.things[ref]["is"] == "Asset"}
    symbols = {ref: symbol if contains_symbol(item.shown, symbol) else "" for ref, symbol in symbols.items()}
    events = [ref for ref in facts.said if facts.things[ref]["is"] == "MarketEvent"]
    ends = [end for end in facts.ends if isinstance(end, str)]
    told = {
        "sentiment": facts.sentiment,
        "things": [
            {"type": facts.things[ref]["is"], "name": name, "symbol": symbols[ref]}
            for ref, name in named.items()
        ],
        "events": [_event(facts, ref, named, item) for ref in events],
        "links": [
            {"source": named[edge.source], "type": edge.type, "target": named[edge.target]}
            for edge in facts.edges
            if edge.type not in ITEM_EDGE_TYPES and edge.source in named
        ],
        "insights": [
            _insight(facts, ref, named, events, item)
            for ref in facts.said
            if facts.things[ref]["is"] == "Insight"
        ],
        "withdrawn": [
            _withdrawn(facts.things[end], facts.mentions, named)
            for end in ends
            if facts.things[end].get("action")
        ],
        "untrue": [
            _words_for(facts.things[end], item) for end in ends if not facts.things[end].get("action")
        ],
        "ended": [
            {"source": named[end.source], "type": end.type, "target": named[end.target]}
            for end in facts.ends
            if isinstance(end, SaidEdge)
        ],
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
    thing, sources = facts.things[ref], [edge.target for edge in _from(facts, ref, "derived_from")]
    about = [
        named[to] if to in named else _words_for(facts.things[to], item)
        for _, _, to, _ in _from(facts, ref, "about")
    ]
    told = {
        "type": thing["type"],
        "summary": _in_words_of(item, str(thing["summary"])),
        "action": thing.get("action") or "",
    }
    told |= {
        "strength": thing["strength"],
        "about": about,
        "because": [events.index(each) + 1 for each in sources if each in events],
    }
    told |= {"earlier": [_words_for(facts.things[each], item) for each in sources if each not in events]}
    given = str(thing["generated_at"])
    house = _house(thing)
    return told | {
        "said_by": house if contains_name(item.shown, house) else "",
        "date": given if given[:10] != item.published_at.date().isoformat() else "",
        "until": facts.expires.get(ref, ""),
    }


def _withdrawn(call: SaidThing, mentions: Iterable[str], named: Mapping[str, str]) -> Json:
    return {"said_by": _house(call), "action": call["action"], "about": [named[each] for each in mentions]}


def _words_for(told: SaidThing, item: NewsItem) -> str:
    """What an item calls that which another told of: the words of both."""
    has = set(name_tokens(item.shown))
    words = f"{str(told['type']).replace('_', ' ')} {told['summary']}".replace(":", "").split()
    return " ".join(word for word in dict.fromkeys(words) if has.issuperset(name_tokens(word)))


def _house(thing: SaidThing) -> str:
    """Who gives a call: gold writes it before a colon."""
    house, colon, _ = str(thing["summary"]).partition(": ")
    return house if colon else ""


def _in_words_of(item: NewsItem, summary: str) -> str:
    """A summary without the names and numbers that an item does not have, and "of" before them: who reads
    only the item writes none.
    """
    unsaid = set(unsupported_names(item.shown, summary))
    kept = list[str]()
    for word in summary.split():
        if not unsaid.intersection(re.findall(r"\w+", word)):
            kept.append(word)
        elif kept and kept[-1] == "of":
            kept.pop()
    return " ".join(kept)


def _from(facts: SaidFacts, ref: str, type: str) -> list[SaidEdge]:
    return [edge for edge in facts.edges if (edge.source, edge.type) == (ref, type)]
