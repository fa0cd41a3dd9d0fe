"""The investment graph as an owner sees it at a time, and the names and ids of its nodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kgot_lab.arguments import check_arguments, check_names
from kgot_lab.domains.investment import statements as sql
from kgot_lab.errors import BadInput, describe_value, require, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.io.times import from_micros, from_micros_or_none
from kgot_lab.stores.tables.layout import TableStorage
from kgot_lab.text.cleaning import checked_text, plain_text
from kgot_lab.types import Edge, Json, Node

# Ids, names and symbols of nodes in the investment graph. The same thing always has the same id.

# of the types that are not named by their name
_NAME_PROPERTIES = {"Asset": "symbol", "MarketEvent": "summary", "News": "headline", "Insight": "summary"}
DATE_PROPERTIES = ("date", "published_at", "generated_at")  # the property with the date of a node
MAX_ID_LENGTH = 200  # characters: an index of PostgreSQL can hold three such ids
SYMBOL_PROPERTIES = {"Asset": "symbol", "Company": "ticker"}


@check_arguments
def investment_node(type: str, /, *, owner: str = "", **properties: Json | datetime) -> Node:
    """Create a node of a type with an id derived from its name, so that writing it again gives the same node.

    An asset is named by its symbol, events, news and insights by their words and date (calls also by action
    and giver), everything else by its name. The id of an owner's node begins with the owner.
    """
    properties = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in properties.items()}
    name = properties.get(_NAME_PROPERTIES.get(type, "name"))
    if not isinstance(name, str) or not name.strip():
        expected = f"a node of type {type} is named by its {_NAME_PROPERTIES.get(type, 'name')}, a text"
        raise BadInput(f"{expected}, not {describe_value(name)}")
    key = name_key(name)
    if type == "Asset":
        key = symbol_key(name)
    elif type in ("MarketEvent", "News", "Insight"):
        dates = [properties.get(date) for date in DATE_PROPERTIES]
        call = [properties.get("action"), properties["said_by"]] if properties.get("said_by") else []
        identity = json.dumps([type, properties.get("type"), key, dates, *call])
        key = hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
    # a / ends the owner prefix of an id
    return Node(f"{owned_prefix(owner)}{type}:{key.replace('/', '|')}", (type,), properties)


def owned_prefix(owner: str) -> str:
    """Return the prefix of the ids of an owner's nodes, which is empty for shared nodes."""
    return f"{owner}/" if owner else ""


def display_name(node: Node) -> str:
    """Return the display name of a node: its name, or else its symbol or words, or else its id."""
    named_by = ("name", _NAME_PROPERTIES.get(node.labels[0], "name"))
    return next((str(node.properties[key]) for key in named_by if node.properties.get(key)), node.id)


def name_key(name: str) -> str:
    """Normalize a name for comparison: lower case, with one space between words."""
    return " ".join(plain_text(name).split()).casefold()


def action_of(node: Node) -> str:
    """Return the action that a signal recommends, or '' for a node that is no signal with an action."""
    is_signal = node.labels == ("Insight",) and node.properties.get("type") == "signal"
    return str(node.properties.get("action") or "") if is_signal else ""


def symbol_of(type: str, properties: Mapping[str, Json]) -> str:
    """Return the symbol of an asset or the ticker of a company in capitals, or '' for other types."""
    return symbol_key(properties.get(SYMBOL_PROPERTIES.get(type, "")))


def symbol_key(symbol: Json) -> str:
    """Normalize a symbol for comparison: in capitals, stripped, and cut to the length an index allows.

    Returns '' for a value that is no text.
    """
    return plain_text(symbol).strip().upper()[:MAX_ID_LENGTH] if isinstance(symbol, str) else ""


@dataclass(frozen=True)
class Dated:
    """A version with its owner and its times, in microseconds since 1970.

    An owner of '' means shared. Times are when it was created, expires (None: never), was opened and closed.
    """

    owner: str
    created: int
    expires: int | None
    opened: int
    closed: int | None

    @property
    def created_at(self) -> datetime:
        return from_micros(self.created)

    @property
    def expires_at(self) -> datetime | None:
        return from_micros_or_none(self.expires)


@dataclass(frozen=True)
class DatedNode(Dated):
    """A version of a node."""

    node: Node


@dataclass(frozen=True)
class DatedEdge(Dated):
    """A version of an edge. The edge's own `key` is its owner."""

    edge: Edge


def node_from_row(row: Sequence[Any]) -> DatedNode:
    """Convert a row to a node."""
    owner, id, type, properties, created, expires, opened, closed = row
    return DatedNode(owner, created, expires, opened, closed, Node(id, (type,), json.loads(properties)))


def edge_from_row(row: Sequence[Any]) -> DatedEdge:
    """Convert a row to an edge."""
    owner, source, type, target, properties, created, expires, opened, closed = row
    edge = Edge(source, type, target, json.loads(properties), owner)
    return DatedEdge(owner, created, expires, opened, closed, edge)


@check_arguments
class InvestmentView:
    """A read-only view of what is live for an owner at a time, in microseconds.

    The owner '' sees shared nodes only.
    """

    def __init__(self, storage: TableStorage, owner: str, at: int, vocabulary: Vocabulary) -> None:
        self.storage, self.owner, self.at, self.vocabulary = storage, owner, at, vocabulary

    @property
    def time(self) -> datetime:
        """The time of the view."""
        return from_micros(self.at)

    def reading(self) -> AbstractContextManager[object]:
        """Return a context in which all reads see one state of the tables, whatever others write."""
        return self.storage.reading()

    # --- what is live ---

    def node(self, id: str) -> DatedNode:
        """Return a live node by its id.

        Raises BadInput if there is none for this owner at this time.
        """
        for found in self.nodes_by_id([checked_text(id, "the id of a node")]):
            return found
        problem = f"there is no live node {short_repr(id)} for this owner at {self.time.isoformat()}"
        raise BadInput(f"{problem}; history() tells of those that were")

    def nodes(self, *types: str) -> tuple[DatedNode, ...]:
        """Return the live nodes of some types, or all, by id."""
        chosen = [self.vocabulary.node_type(type).name for type in types]
        return self._nodes("n.type = ANY(:types)" if chosen else "true", types=chosen)

    def nodes_by_id(self, ids: Iterable[str]) -> tuple[DatedNode, ...]:
        """Return those of some nodes that are live."""
        return self._nodes("n.id = ANY(:ids)", ids=sorted(set(ids)))

    def edges(self) -> tuple[DatedEdge, ...]:
        """Return the live edges. Both ends of a live edge are live."""
        return self._edges("true")

    def edges_from(self, ids: Iterable[str], types: Iterable[str]) -> tuple[DatedEdge, ...]:
        """Return the live edges of some types that start at some nodes."""
        return self._edges_at("source", ids, types)

    def edges_to(self, ids: Iterable[str], types: Iterable[str]) -> tuple[DatedEdge, ...]:
        """Return the live edges of some types that end at some nodes."""
        return self._edges_at("target", ids, types)

    def _edges_at(self, end: str, ids: Iterable[str], types: Iterable[str]) -> tuple[DatedEdge, ...]:
        values = {"ids": sorted(set(ids)), "types": sorted(types)}
        return self._edges(f"e.{end} = ANY(:ids) AND e.type = ANY(:types)", **values)

    def graph(self) -> PropertyGraph:
        """Return everything that is live, as a graph to draw, search and compare."""
        with self.reading():
            return PropertyGraph.of([n.node for n in self.nodes()], [e.edge for e in self.edges()])

    # --- history ---

    def history(self, id: str) -> tuple[DatedNode, ...]:
        """Return every version of a node that this owner may see at any time, the first one first.

        It is for an audit, not for an answer.
        """
        return tuple(map(node_from_row, self._history(sql.NODE_HISTORY, id)))

    def edge_history(self, id: str) -> tuple[DatedEdge, ...]:
        """Return every version of a node's edges that this owner may see, the first ones first."""
        return tuple(map(edge_from_row, self._history(sql.EDGE_HISTORY, id)))

    def _history(self, statement: str, id: str) -> Sequence[Any]:
        values = {"owner": self.owner, "id": checked_text(id, "the id of a node")}
        return self.storage.rows(statement, values)

    # --- resolution of names ---

    def symbols_meant(self, symbol: str) -> tuple[str, ...]:
        """Return the symbols of assets that a symbol may refer to.

        It is the symbol itself if an asset has it, else the symbols of all companies with that ticker.
        """
        if self._nodes_by_symbol("Asset", symbol):
            return (symbol_key(symbol),)
        companies = [each.node.id for each in self._nodes_by_symbol("Company", symbol)]
        issued = self.nodes_by_id(each.edge.source for each in self.edges_to(companies, ["issued_by"]))
        return tuple(symbol_key(each.node.properties["symbol"]) for each in issued)

    @check_names
    def named(self, text: str) -> tuple[DatedNode, ...]:
        """Return all nodes that a text may refer to.

        These are assets by symbol, then companies by ticker, then nodes by name.
        """
        require(text, str, "what is looked for is a text")
        found = [
            *(each for type in SYMBOL_PROPERTIES for each in self._nodes_by_symbol(type, text)),
            *self._nodes("n.name = :name", name=name_key(text)),
        ]
        return tuple({each.node.id: each for each in found}.values())

    def _nodes_by_symbol(self, type: str, symbol: str) -> tuple[DatedNode, ...]:
        key = symbol_key(symbol)
        return self._nodes("n.symbol = :symbol AND n.type = :type", symbol=key, type=type) if key else ()

    def _nodes(self, condition: str, **values: Any) -> tuple[DatedNode, ...]:
        statement = f"{sql.LIVE_NODES} AND {condition} ORDER BY n.id"
        rows = self.storage.rows(statement, {"owner": self.owner, "at": self.at} | values)
        return tuple(map(node_from_row, rows))

    def _edges(self, condition: str, **values: Any) -> tuple[DatedEdge, ...]:
        statement = f"{sql.LIVE_EDGES} AND {condition} ORDER BY e.source, e.type, e.target, e.owner"
        rows = self.storage.rows(statement, {"owner": self.owner, "at": self.at} | values)
        return tuple(map(edge_from_row, rows))
