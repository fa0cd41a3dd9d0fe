"""FinDKG's relations as a table, and an importer of its rows: what of a dynamic financial graph fits the
eight node and edge types.

FinDKG (Li and Sanna Passino 2024, arXiv 2407.10909) has 12 types of entities and 15 relations, with a date
for each row. A general organisation (ORG) is a Company where it has a ticker and else an Institution, which
its rows do not say, so the caller does. Countries become properties; people, products and concepts have no
node here: what is said of them is left out, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from kgot_lab.domains.investment.naming import investment_node
from kgot_lab.errors import BadInput, UnknownName, shortly
from kgot_lab.kgos.schemas.check import time_of
from kgot_lab.types import Edge, Json, Node

FINDKG_TYPES: Mapping[str, str] = {  # theirs: our node type, or '' for none
    "FIN INST": "Asset",
    "COMP": "Company",
    "SECTOR": "Sector",
    "EVENT": "MarketEvent",
    "ECON IND": "MarketEvent",  # the release of an indicator
    "ORG": "Institution",  # a Company where it has a ticker
    "ORG/GOV": "Institution",
    "ORG/REG": "Institution",
    "CONCEPT": "",
    "GPE": "",
    "PERSON": "",
    "PRODUCT": "",
}


class RelationRule(NamedTuple):
    """What a relation between two of our types becomes: an edge, perhaps turned round, with properties."""

    relation: str
    heads: tuple[str, ...]
    tails: tuple[str, ...]
    edge: str
    turned: bool = False
    properties: Mapping[str, Json] = {}


_STANDING = ("Asset", "Company", "Sector")
_EVENT, _BODY, _COMPANY = ("MarketEvent",), ("Institution",), ("Company",)
_UP, _DOWN, _ISSUER = {"direction": "positive"}, {"direction": "negative"}, {"role": "issuer"}
RELATION_RULES: tuple[
    RelationRule, ...
] = (  # the first that fits; what fits none is left out, with its reason
    RelationRule("Has", _COMPANY, ("Asset",), "issued_by", turned=True),
    RelationRule("Announce", _BODY, _EVENT, "affects", turned=True, properties=_ISSUER),
    RelationRule("Announce", _COMPANY, _EVENT, "affects", turned=True),
    RelationRule("Operate In", _COMPANY, ("Sector",), "in_sector"),
    RelationRule("Introduce", _BODY, _EVENT, "affects", turned=True, properties=_ISSUER),
    RelationRule("Introduce", _COMPANY, _EVENT, "affects", turned=True),
    RelationRule("Produce", _COMPANY, ("Asset",), "issued_by", turned=True),
    RelationRule("Control", _COMPANY, _COMPANY, "owns"),
    RelationRule("Control", _BODY, _STANDING, "affects", properties={"role": "regulates"}),
    RelationRule("Participates In", _STANDING, _EVENT, "affects", turned=True),
    RelationRule("Participates In", _BODY, _EVENT, "affects", turned=True),
    RelationRule("Impact", (*_EVENT, *_BODY), _STANDING, "affects"),
    RelationRule("Impact", _EVENT, _BODY, "affects"),
    RelationRule("Positive Impact On", (*_EVENT, *_BODY), _STANDING, "affects", properties=_UP),
    RelationRule("Positive Impact On", _EVENT, _BODY, "affects", properties=_UP),
    RelationRule("Negative Impact On", (*_EVENT, *_BODY), _STANDING, "affects", properties=_DOWN),
    RelationRule("Negative Impact On", _EVENT, _BODY, "affects", properties=_DOWN),
    RelationRule("Relate To", ("Asset",), ("Asset",), "correlated"),
    RelationRule("Relate To", _COMPANY, ("Sector",), "in_sector"),
    RelationRule("Is Member Of", _COMPANY, ("Sector",), "in_sector"),
    RelationRule("Invests In", _COMPANY, _COMPANY, "owns", properties={"share": "part"}),
    RelationRule("Raise", _BODY, _EVENT, "affects", turned=True, properties=_ISSUER | _UP),
    RelationRule("Raise", _EVENT, _STANDING, "affects", properties=_UP),
    RelationRule("Decrease", _BODY, _EVENT, "affects", turned=True, properties=_ISSUER | _DOWN),
    RelationRule("Decrease", _EVENT, _STANDING, "affects", properties=_DOWN),
)
RELATION_NAMES = tuple(dict.fromkeys(rule.relation for rule in RELATION_RULES))


class FinRow(NamedTuple):
    """A row of FinDKG: head and tail with their types, the relation, and the day it was reported."""

    head: str
    head_type: str
    relation: str
    tail: str
    tail_type: str
    day: str


class LeftOut(NamedTuple):
    """A row that was not taken, and why."""

    row: FinRow
    reason: str


@dataclass(frozen=True)
class Imported:
    """What rows became: nodes and edges to write into a graph that knows owns (INVESTMENT_WITH_COMPANIES),
    and what was left out.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left: tuple[LeftOut, ...]


def import_findkg(
    rows: Iterable[FinRow], *, told: Mapping[str, Mapping[str, Json]] | None = None
) -> Imported:
    """Nodes and edges of the investment vocabulary from rows of FinDKG; `told` gives properties of entities
    by name.

    An asset is found by the symbol it is told to have, or else by its name; an ORG with a ticker is a
    Company. Relations may be written with underscores, as in its files. Raises BadInput for a relation, a
    type or a day that is none.
    """
    told = told or {}
    nodes: dict[str, Node] = {}
    edges: dict[tuple[str, str, str], Edge] = {}
    left: list[LeftOut] = []
    for row in map(_checked, rows):
        if located := _located(row, told):
            nodes[located.id] = _joined(nodes.get(located.id), located)
            continue
        ends = [
            _node(name, kind, row.day, told.get(name, {}))
            for name, kind in ((row.head, row.head_type), (row.tail, row.tail_type))
        ]
        head, tail = ends
        if head is None or tail is None:
            what = row.head_type if head is None else row.tail_type
            left.append(LeftOut(row, f"{what} has no node in the investment vocabulary"))
            continue
        rule = _rule(row.relation, head.labels[0], tail.labels[0])
        if rule is None or head.id == tail.id:
            left.append(
                LeftOut(
                    row,
                    f"{row.relation} from {head.labels[0]} to {tail.labels[0]} is no edge of the investment vocabulary",
                )
            )
            continue
        source, target = (tail, head) if rule.turned else (head, tail)
        for node in (head, tail):
            nodes[node.id] = _joined(nodes.get(node.id), node)
        if rule.edge == "correlated":
            source, target = sorted((source, target), key=lambda node: node.id)
        edges[source.id, rule.edge, target.id] = Edge(source.id, rule.edge, target.id, dict(rule.properties))
    return Imported(tuple(nodes.values()), tuple(edges.values()), tuple(left))


def _checked(row: FinRow) -> FinRow:
    row = FinRow(*row)._replace(relation=row[2].replace("_", " "))
    if row.relation not in RELATION_NAMES:
        raise UnknownName("relation of FinDKG", row.relation, RELATION_NAMES)
    for kind in (row.head_type, row.tail_type):
        if kind not in FINDKG_TYPES:
            raise UnknownName("entity type of FinDKG", kind, FINDKG_TYPES)
    if time_of(row.day) is None:
        raise BadInput(f"the day of a row is a date such as {date(2026, 2, 5)}, not {shortly(row.day)}")
    return row


def _located(row: FinRow, told: Mapping[str, Mapping[str, Json]]) -> Node | None:
    """A company or a body with its country, where that is what a row says."""
    if row.relation != "Operate In" or row.tail_type != "GPE":
        return None
    node = _node(row.head, row.head_type, row.day, told.get(row.head, {}))
    return (
        Node(node.id, node.labels, dict(node.properties) | {"country": row.tail})
        if node and node.labels[0] in ("Company", "Institution")
        else None
    )


def _node(name: str, kind: str, day: str, told: Mapping[str, Json]) -> Node | None:
    type = "Company" if kind == "ORG" and told.get("ticker") else FINDKG_TYPES[kind]
    if not type:
        return None
    if type == "Asset":
        return investment_node(type, **({"symbol": name, "name": name} | dict(told)))
    if type == "MarketEvent":
        released = "indicator_release" if kind == "ECON IND" else "event"
        return investment_node(type, **({"type": released, "summary": name, "date": day} | dict(told)))
    return investment_node(type, **({"name": name} | dict(told)))


def _joined(before: Node | None, node: Node) -> Node:
    return (
        node
        if before is None
        else Node(node.id, node.labels, dict(before.properties) | dict(node.properties))
    )


def _rule(relation: str, head: str, tail: str) -> RelationRule | None:
    return next(
        (
            each
            for each in RELATION_RULES
            if each.relation == relation and head in each.heads and tail in each.tails
        ),
        None,
    )
