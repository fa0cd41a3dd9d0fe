"""Read an item of news with a model.

One call has a reply schema, and a filter accepts only what the item states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import product

from kgot_lab.domains.investment.monitor import news
from kgot_lab.domains.investment.monitor.entity_resolution import (
    MAX_NAME_LENGTH,
    ItemNames,
    clean_text,
    contains_name,
    contains_symbol,
    make_node,
    require_one_node,
    unsupported_names,
)
from kgot_lab.domains.investment.versions import EdgeKey
from kgot_lab.domains.investment.view import InvestmentView, action_of, name_key
from kgot_lab.errors import BadInput, BadReply, short_repr
from kgot_lab.kgos.schemas.check import Fault, check_edge, check_node, parse_time
from kgot_lab.llm.structured import structured
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.text.words import name_tokens
from kgot_lab.types import LLM, Edge, Json, Node

# Accept facts from a reply that are stated in the item, of known types, and whose names resolve to one node.
#
# Every fact is accepted or refused by itself, with a reason: it may not be in the item, not allowed by the
# vocabulary, or ambiguous.

MAX_STATED = 40  # facts of one kind that are accepted from an item
_MISSING_END = "an end of it is not known, or does not stand in the item"
_UNKNOWN_END = Fault("error", _MISSING_END, "the edge", "name both ends as the item does")


class FactFilter:
    """Accepts the facts of one item one by one, and records what it refuses."""

    def __init__(self, item: news.NewsItem, view: InvestmentView, sentiment: str = "") -> None:
        self._item, self._vocabulary, self._text = item, view.vocabulary, item.shown
        self._published = item.published_at.isoformat()
        self._names = ItemNames(self._text, view)
        self._edges: dict[tuple[str, str, str], Edge] = {}
        self._refused: list[str] = []
        self._warnings: list[str] = []
        self._expires: dict[str, str] = {}
        self._ends: dict[str | EdgeKey, None] = {}
        properties = {"headline": item.headline, "source": item.source}
        properties |= {"published_at": self._published, "item": item.id}
        self._news = make_node("News", **properties)
        with_sentiment = make_node("News", **properties, sentiment=sentiment)
        if not self._refuse_if_faulty(check_node(self._vocabulary, with_sentiment), "its sentiment"):
            self._news = with_sentiment
        self._accept_node(self._news)

    def facts(self, other_refusals: Iterable[str] = ()) -> news.NewsFacts:
        """Return everything that was accepted, and everything that was refused."""
        truncation = []
        if self._item.tokens_left_out:
            truncation = [f"about {self._item.tokens_left_out} tokens at the end of the item were not read"]
        refused = tuple(map(replace_surrogates, (*self._refused, *other_refusals, *truncation)))
        nodes, edges = self._names.changed_nodes(), tuple(self._edges.values())
        expires = {node.id: self._expires[node.id] for node in nodes if node.id in self._expires}
        warnings, ends = tuple(self._warnings), tuple(self._ends)
        return news.NewsFacts(self._item.id, nodes, edges, refused, warnings, expires, ends)

    # --- kinds of facts ---

    def accept_thing(self, thing: news.StatedThing) -> None:
        """Accept a thing that the item names, as a node of the graph or a new one.

        An edge records that the item mentions it.
        """
        name = clean_text(thing.name)
        symbol = clean_text(thing.symbol)
        what = f"{thing.type} {short_repr(thing.name)}"
        if thing.type == "Asset":
            symbol = symbol or name
        if symbol and not contains_symbol(self._text, symbol):
            self._refuse(f"the symbol {short_repr(symbol)} of {what}", "it does not stand in the item")
            symbol = ""
        is_named = bool(symbol) if thing.type == "Asset" else contains_name(self._text, name)
        if thing.type in news.ITEM_NODE_TYPES:
            self._refuse(what, "it is no thing: events and insights have lists of their own")
        elif not is_named or max(len(name), len(symbol)) > MAX_NAME_LENGTH:
            self._refuse(what, "what names it does not stand in the item")
        else:
            try:
                node = self._names.thing(thing.type, name, symbol)
            except BadInput as error:
                self._refuse(what, str(error))
            else:
                if not self._refuse_if_faulty(check_node(self._vocabulary, node), what):
                    self._accept_node(node)
                    self._accept_edge([self._news], "mentions", [node], what)

    def accept_event(self, event: news.StatedEvent) -> Node | None:
        """Accept an event with what it affects, if at least one of that is known or named in the item."""
        what = f"event {short_repr(event.summary)}"
        type = name_key(clean_text(event.type)).replace(" ", "_")
        properties = {"summary": event.summary, "type": type, "date": self._published}
        node = self._make_summarized_node("MarketEvent", what, **properties)
        if node is None:
            return None
        roles = dict.fromkeys(event.affects[:MAX_STATED], "")
        if event.issuer.strip():
            roles[event.issuer] = "issuer"
        joined = []
        for name, role in roles.items():
            role_property = {"role": role} if role else {}
            what_edge, affected = f"{what} -affects-> {short_repr(name)}", self._names.meant(name)
            joined.append(self._accept_edge([node], "affects", affected, what_edge, **role_property))
        if not any(joined):
            self._refuse(what, "nothing that it affects is known, or stands in the item")
        return node if any(joined) else None

    def accept_link(self, link: news.StatedLink) -> None:
        """Accept an edge between two things."""
        what = f"{short_repr(link.source)} -{link.type}-> {short_repr(link.target)}"
        self._accept_edge(self._names.meant(link.source), link.type, self._names.meant(link.target), what)

    def accept_insight(self, insight: news.StatedInsight, events: Sequence[Node | None]) -> None:
        """Accept an insight about at least one known or named thing, with what it is derived from.

        Sources are the item itself and events. If the same person gave a call before with the same action on
        the same things, and it is live, this item becomes evidence of that call. A call with another action
        ends it.
        """
        what = f"{insight.type} {short_repr(insight.summary)}"
        nodes_by_name = {
            name: self._names.meant(name) or self._find_earlier(name, what, "MarketEvent")
            for name in insight.about[:MAX_STATED]
        }
        about = [node for nodes in nodes_by_name.values() for node in nodes[:1]]
        calls = self._names.calls(clean_text(insight.said_by), about) if insight.action else {}
        node = self._find_or_make_insight(insight, what, calls)
        if node is None:
            return
        joined = [
            self._accept_edge([node], "about", candidates, f"{what} -about-> {short_repr(name)}")
            for name, candidates in nodes_by_name.items()
        ]
        if not any(joined):
            self._refuse(what, "nothing that it is about is known, or stands in the item")
            return
        if node.id not in calls:
            self._ends |= dict.fromkeys(self._names.superseded(calls))
        self._accept_edge([node], "derived_from", [self._news], what)
        for number in dict.fromkeys(insight.because[:MAX_STATED]):
            source = events[number - 1] if 0 < number <= len(events) else None
            number_edge = f"{what} -derived_from-> event {number}"
            self._accept_edge([node], "derived_from", [source] if source else [], number_edge)
        for words in dict.fromkeys(insight.earlier[:MAX_STATED]):
            for before in self._find_earlier(words, what, "MarketEvent"):
                self._accept_edge([node], "derived_from", [before], what)

    def accept_withdrawal(self, call: news.StatedCall) -> None:
        """Accept that a call was withdrawn or wrong. It ends when the facts are written."""
        about = [each for name in call.about[:MAX_STATED] for each in self._names.meant(name)[:1]]
        calls = self._names.calls(clean_text(call.said_by), about)
        found = [id for id in calls if action_of(self._names.there[id]) == name_key(call.action)]
        self._ends |= dict.fromkeys(found)
        if not found:
            what = f"{call.action} of {short_repr(call.said_by)}, withdrawn"
            self._refuse(what, "no such call is live on what the item names")

    def accept_denial(self, words: str) -> None:
        """Accept that an event or an observation did not happen. It ends when the facts are written."""
        denied = self._find_earlier(words, "untrue", "MarketEvent", "Insight")
        self._ends |= dict.fromkeys(node.id for node in denied)

    def accept_ended_link(self, link: news.StatedLink) -> None:
        """Accept that a link is over. It ends when the facts are written."""
        what = f"{short_repr(link.source)} -{link.type}-> {short_repr(link.target)}, over"
        sources, targets = ([n.id for n in self._names.meant(name)] for name in (link.source, link.target))
        edges = self._names.edges_between(sources, link.type, targets)
        ids = {(edge.source, edge.type, edge.target) for edge in edges}
        self._ends |= dict.fromkeys(sorted(ids))
        if not ids:
            self._refuse(what, "no such link is live between things that the item names")

    def _find_earlier(self, words: str, what: str, *types: str) -> list[Node]:
        """Return the earlier node that some words of the item refer to, or an empty list and a refusal."""
        try:
            return [self._names.earlier_event(words, *types)]
        except BadInput as error:
            self._refuse(f"{what}: {short_repr(words)}", str(error))
            return []

    def _find_or_make_insight(
        self, insight: news.StatedInsight, what: str, calls: Iterable[str]
    ) -> Node | None:
        """Return the insight that is meant: a live call, or a new insight with its date and expiry."""
        said_by = clean_text(insight.said_by)
        if said_by and not contains_name(self._text, said_by):
            self._refuse(f"{what}, said by {short_repr(said_by)}", "that name does not stand in the item")
            said_by = ""
        live_calls = [self._names.there[id] for id in calls if said_by and id not in self._ends]
        for call in live_calls:
            if action_of(call) == name_key(insight.action):
                return call
        given = self._parse_stated_time(insight.date, what)
        ends = self._parse_stated_time(insight.until, what)
        dated = min(given or self._item.published_at, self._item.published_at)  # an earlier one expires first
        if any(datetime.fromisoformat(call.properties["generated_at"]) > dated for call in live_calls):
            self._refuse(what, "a later call of the same giver on the same thing is live")
            return None
        properties: dict[str, Json] = {"summary": insight.summary, "generated_at": dated.isoformat()}
        properties |= {"type": insight.type, "action": insight.action}
        properties |= {"strength": insight.strength, "said_by": said_by}
        node = self._make_summarized_node("Insight", what, **properties)
        if node is not None and ends is not None:
            self._expires[node.id] = ends.isoformat()
        return node

    def _parse_stated_time(self, date_text: str, what: str) -> datetime | None:
        """Parse a time from a model if the item contains its day of the month, else refuse it.

        An invented time could end a call too early.
        """
        time = parse_time(date_text)
        if date_text.strip() and (time is None or str(time.day) not in name_tokens(self._text)):
            which = f"{what}, the time {short_repr(date_text)}"
            self._refuse(which, "it is none, or its day does not stand in the item")
            return None
        return time

    # --- acceptance and refusal ---

    def _make_summarized_node(
        self, kind: str, what: str, /, *, summary: str, **properties: Json
    ) -> Node | None:
        """Create an event or insight if the item contains the names and numbers of its summary."""
        if not summary.strip() or len(summary) > 3 * MAX_NAME_LENGTH:
            self._refuse(what, "its summary is no sentence")
            return None
        if unsupported := unsupported_names(self._text, summary):
            names = ", ".join(map(short_repr, unsupported[:5]))
            self._refuse(what, f"{names} in its summary does not stand in the item")
            return None
        node = make_node(kind, summary=clean_text(summary), **properties)
        return None if self._refuse_if_faulty(check_node(self._vocabulary, node), what) else node

    def _accept_edge(
        self, sources: Sequence[Node], type: str, targets: Sequence[Node], what: str, **properties: Json
    ) -> bool:
        """Accept the first edge between candidate ends that the vocabulary allows.

        Returns whether there was one.
        """
        first_faults: Sequence[Fault] = ()
        for source, target in product(sources, targets):
            edge = self._vocabulary.stored_form(Edge(source.id, type, target.id, properties))
            types = {each.id: each.labels[0] for each in (source, target)}
            faults_found = check_edge(self._vocabulary, edge, types)
            if any(each.level == "error" for each in faults_found):
                first_faults = first_faults or faults_found
                continue
            try:
                ends = [
                    require_one_node([other for other in others if other.labels == end.labels])
                    for end, others in ((source, sources), (target, targets))
                ]
            except BadInput as error:
                self._refuse(what, str(error))
                return False
            for end in ends:
                self._accept_node(end)
            self._edges[edge.source, edge.type, edge.target] = edge
            return True
        self._refuse_if_faulty(first_faults or [_UNKNOWN_END], what)
        return False

    def _accept_node(self, node: Node) -> None:
        self._names.taken[node.id] = node

    def _refuse_if_faulty(self, found: Iterable[Fault], what: str) -> bool:
        """Refuse something that has an error, note warnings, and return whether there was an error."""
        errors = False
        for fault in found:
            if fault.level == "error":
                self._refuse(what, f"{fault.what}; {fault.do}")
                errors = True
            else:
                self._warnings.append(f"{what}: {fault.what}; {fault.do}")
        return errors

    def _refuse(self, what: str, why: str) -> None:
        self._refused.append(f"{what}: {why}")


def read_item(llm: LLM, item: news.NewsItem, view: InvestmentView) -> news.NewsFacts:
    """Read the facts of an item with one call of a model.

    An invalid reply is repaired once. If that fails, the item itself is the only fact. Names are resolved in
    `view`. Raises LLMError if the model cannot be called.
    """
    try:
        stated = structured(llm, news.news_prompt(item, view.vocabulary), news.StatedNews)
    except BadReply as error:
        why = f"nothing was read: the model's reply is not in the shape asked for ({error.reason})"
        return FactFilter(item, view).facts([why])
    return filter_facts(stated, item, view)


def filter_facts(stated: news.StatedNews, item: news.NewsItem, view: InvestmentView) -> news.NewsFacts:
    """Return the facts of a reply that are accepted, and why the others are refused."""
    with view.reading():
        fact_filter = FactFilter(item, view, stated.sentiment)
        for thing in stated.things[:MAX_STATED]:
            fact_filter.accept_thing(thing)
        events = [fact_filter.accept_event(event) for event in stated.events[:MAX_STATED]]
        for link in stated.links[:MAX_STATED]:
            fact_filter.accept_link(link)
        for call in stated.withdrawn[:MAX_STATED]:
            fact_filter.accept_withdrawal(call)
        for words in stated.untrue[:MAX_STATED]:
            fact_filter.accept_denial(words)
        for link in stated.ended[:MAX_STATED]:
            fact_filter.accept_ended_link(link)
        for insight in stated.insights[:MAX_STATED]:
            fact_filter.accept_insight(insight, events)
    kinds = vars(stated).values()
    left_out = f"more than {MAX_STATED} of a kind were stated, and the others left out"
    return fact_filter.facts([left_out for k in kinds if isinstance(k, list) and len(k) > MAX_STATED])
