"""What an item of news says, in the investment vocabulary, as gold has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kgot_lab.domains.investment.view import investment_node
from kgot_lab.types import Json, Node

SaidThing = Mapping[str, Json]  # a node: its type under "is", and its properties


class SaidEdge(NamedTuple):
    """An edge between two things by the names that the item's facts have for them."""

    source: str
    type: str
    target: str
    properties: Mapping[str, Json] = {}


@dataclass(frozen=True)
class SaidFacts:
    """The facts of an item, whole in themselves: `things` by name hold all that edges join; `said` are those
    that the item itself says.

    `expires` says by name when a thing ends, `ends` what the item takes back: things by name, and edges.
    """

    things: Mapping[str, SaidThing] = field(default_factory=dict, hash=False)
    edges: tuple[SaidEdge, ...] = ()
    said: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()
    sentiment: str = "neutral"
    expires: Mapping[str, str] = field(default_factory=dict, hash=False)
    ends: tuple[str | SaidEdge, ...] = ()

    def node(self, ref: str) -> Node:
        """The node of a thing, with the id that what names it gives."""
        properties = dict(self.things[ref])
        return investment_node(str(properties.pop("is")), **properties)
