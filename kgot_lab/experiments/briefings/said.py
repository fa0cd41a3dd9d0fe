"""What an item of news says, in the investment vocabulary: as gold has it, as a model replies, and as it is written into a graph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from kgot_lab.domains.investment.graph import EdgeIds, GraphUpdate, InvestmentGraph
from kgot_lab.domains.investment.naming import investment_node
from kgot_lab.errors import BadReply
from kgot_lab.types import Edge, Json, Node

SaidThing = Mapping[str, Json]  # a node: its type under "is", and its properties


@dataclass(frozen=True)
class MonthItem:
    """An item of news: all that a reader of it is given."""

    id: str
    published_at: datetime
    source: str
    headline: str
    text: str

    def node(self, sentiment: str = "neutral") -> Node:
        """The node of the item."""
        at = self.published_at.isoformat()
        return investment_node("News", headline=self.headline, source=self.source, published_at=at, sentiment=sentiment)


class SaidEdge(NamedTuple):
    """An edge between two things by the names that the item's facts have for them."""

    source: str
    type: str
    target: str
    properties: Mapping[str, Json] = {}


@dataclass(frozen=True)
class SaidFacts:
    """The facts of an item, whole in themselves: `things` by name hold all that edges join; `said` are those that the item itself says.

    `expires` says by name when a thing ends, `ends` what the item takes back: things by name, and edges.
    """

    things: Mapping[str, SaidThing] = field(default_factory=dict, hash=False)
    edges: tuple[SaidEdge, ...] = ()
    said: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    sentiment: str = "neutral"
    expires: Mapping[str, str] = field(default_factory=dict, hash=False)
    ends: tuple[str | SaidEdge, ...] = ()

    def as_text(self) -> str:
        """The facts as a reply of JSON."""
        told = {name: getattr(self, name) for name in ("sentiment", "mentions", "said", "edges", "expires", "ends")}
        return json.dumps({"things": [{"ref": ref, **thing} for ref, thing in self.things.items()], **told}, ensure_ascii=False)

    @classmethod
    def of_text(cls, text: str) -> SaidFacts:
        """The facts in a reply of `as_text`; raises BadReply for another."""
        try:
            told: Any = json.loads(text)
            things = {thing.pop("ref"): thing for thing in told.pop("things")}
            edges = tuple(SaidEdge(*edge) for edge in told.pop("edges"))
            ends = tuple(end if isinstance(end, str) else SaidEdge(*end) for end in told.pop("ends"))
            said, mentions = tuple(told.pop("said")), tuple(told.pop("mentions"))
            return cls(things, edges, said, mentions, ends=ends, **told)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadReply(f"no facts of an item of news: {error!r}", text) from error

    def node(self, ref: str) -> Node:
        """The node of a thing, with the id that it has wherever it is written."""
        properties = dict(self.things[ref])
        return investment_node(str(properties.pop("is")), **properties)


def write_facts(graph: InvestmentGraph, item: MonthItem, facts: SaidFacts) -> GraphUpdate:
    """Write an item and its facts into a graph, and end what it takes back where that is live; gives what was written.

    Raises BadInput with all that the vocabulary has against it, and then nothing is written.
    """
    nodes = {ref: facts.node(ref) for ref in facts.things}
    ids = {ref: node.id for ref, node in nodes.items()}
    news = item.node(facts.sentiment)
    edges = [Edge(ids[edge.source], edge.type, ids[edge.target], edge.properties) for edge in facts.edges]
    edges += [Edge(news.id, "mentions", ids[ref]) for ref in facts.mentions]
    edges += [Edge(ids[ref], "derived_from", news.id) for ref in facts.said if nodes[ref].labels == ("Insight",)]
    ended = {ids[end] for end in facts.ends if isinstance(end, str)}  # what is written again begins to live again
    kept = [news, *(node for node in nodes.values() if node.id not in ended)]
    expires: dict[str | EdgeIds, datetime | None] = {ids[ref]: datetime.fromisoformat(time) for ref, time in facts.expires.items()}
    update = graph.write(kept, edges, expires_at=expires)
    view = graph.view()
    live: list[str | EdgeIds] = [each.node.id for each in view.nodes_by_id(ended)]
    for end in facts.ends:
        if isinstance(end, SaidEdge):
            live += [
                (end_there.edge.source, end.type, end_there.edge.target)
                for end_there in view.edges_from([ids[end.source]], [end.type])
                if end_there.edge.target == ids[end.target]
            ]
    graph.expire(*live)
    return update
