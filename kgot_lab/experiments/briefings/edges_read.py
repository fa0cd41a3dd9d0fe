"""What a reader of news took from items against what gold says of them, edge by edge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kgot_lab.domains.investment.monitor.facts import NewsFacts
from kgot_lab.domains.investment.view import InvestmentView
from kgot_lab.experiments.briefings.month import GoldMonth
from kgot_lab.types import Node

ToldEdge = tuple[str, str, str]
_OF_THEIR_WORDS = ("MarketEvent", "News")  # known by their type alone, since their words are the reader's


@dataclass(frozen=True)
class EdgesRead:
    """Edges that gold has, that were read, and those in common; an edge may be there several times."""

    gold: Mapping[ToldEdge, int] = field(hash=False)
    read: Mapping[ToldEdge, int] = field(hash=False)

    @property
    def both(self) -> Counter[ToldEdge]:
        """What was read rightly."""
        return Counter(self.gold) & Counter(self.read)

    @property
    def missed(self) -> Counter[ToldEdge]:
        """What gold has and was not read."""
        return Counter(self.gold) - Counter(self.read)

    @property
    def beyond(self) -> Counter[ToldEdge]:
        """What was read and gold has not."""
        return Counter(self.read) - Counter(self.gold)

    def by_type(self) -> Mapping[str, tuple[int, int, int]]:
        """For each type of edge how many gold has, how many were read, and how many of these are right."""
        counts = {type: [0, 0, 0] for type in sorted({type for _, type, _ in (*self.gold, *self.read)})}
        for place, edges in enumerate((self.gold, self.read, self.both)):
            for (_, type, _), count in edges.items():
                counts[type][place] += count
        return {type: (gold, read, both) for type, (gold, read, both) in counts.items()}


def edges_of_item(facts: NewsFacts, node: Callable[[str], Node]) -> Counter[ToldEdge]:
    """The edges of an item by types and names; that an insight comes from its own item goes without saying."""
    told = ((node(edge.source), edge.type, node(edge.target)) for edge in facts.edges)
    return Counter(
        _told(one, type, other)
        for one, type, other in told
        if (type, other.labels[0]) != ("derived_from", "News")
    )


def edges_of_month(
    month: GoldMonth, read: Iterable[NewsFacts], view: InvestmentView
) -> Mapping[str, EdgesRead]:
    """For each item of a month what was read of it; `view` tells of things that were there before."""
    found = {facts.item: edges_of_item(facts, lambda id: view.history(id)[-1].node) for facts in read}
    return {item: EdgesRead(_gold(month, item), found.get(item, Counter())) for item in month.facts}


def added_edges(many: Iterable[EdgesRead]) -> EdgesRead:
    """What was read of several items, counted together; an edge of one item is not that of another, so none
    makes up for one that lacks.
    """
    gold, read = Counter[ToldEdge](), Counter[ToldEdge]()
    for number, each in enumerate(many):
        gold.update(
            {
                (f"{number} {source}", type, target): count
                for (source, type, target), count in each.gold.items()
            }
        )
        read.update(
            {
                (f"{number} {source}", type, target): count
                for (source, type, target), count in each.read.items()
            }
        )
    return EdgesRead(gold, read)


def _gold(month: GoldMonth, item: str) -> Counter[ToldEdge]:
    facts = month.facts[item]
    stated = [_told(facts.node(edge.source), edge.type, facts.node(edge.target)) for edge in facts.edges]
    return Counter([*stated, *(("News", "mentions", _name(facts.node(ref))) for ref in facts.mentions)])


def _told(source: Node, type: str, target: Node) -> ToldEdge:
    one, other = _name(source), _name(target)
    return (
        (min(one, other), type, max(one, other)) if type == "correlated" else (one, type, other)
    )  # which is read both ways


def _name(node: Node) -> str:
    """A thing by its id, an insight by what it calls for."""
    (type, *_), properties = node.labels, node.properties
    if type == "Insight":
        return f"Insight:{properties.get('action') or properties.get('type')}"
    return type if type in _OF_THEIR_WORDS else node.id
