"""What a statement added to a namespace, found without reading the rest, where the server's counts prove that
it did no more.

Most statements that a model writes only add. What they made is not yet noted as known. When the server counts
nothing removed, and no property or label set but those of what was made, nothing else has changed: whatever
something new has was set, and so counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kgot_lab.sandbox.cypher.mapping import edge_properties
from kgot_lab.stores.cypher.connection import Ask
from kgot_lab.stores.cypher.dump import MARK_NODES, BoltRow, StoredNode, ids_of, timeless
from kgot_lab.types import Diff, Edge

if TYPE_CHECKING:
    from neo4j import SummaryCounters, Transaction

_NODES = "MATCH (n {_run: $run}) WHERE n._kept IS NULL RETURN elementId(n), labels(n), properties(n)"
_EDGES = (
    "MATCH (a {_run: $run})-[r]->(b {_run: $run}) WHERE r._run IS NULL "
    "RETURN elementId(a), a.id, elementId(r), type(r), elementId(b), b.id, properties(r)"
)  # fmt: skip
_OF_ID = "MATCH (n {_run: $run}) WHERE $ids[n.id] IS NOT NULL RETURN count(n)"
_ALIKE = "UNWIND $rows AS row MATCH (a)-[r]->(b) WHERE elementId(a) = row[0] AND type(r) = row[1] AND elementId(b) = row[2] RETURN count(r)"
_MARK_EDGES = "UNWIND $rows AS row MATCH (a)-[r]->() WHERE elementId(a) = row[0] AND elementId(r) = row[1] SET r._run = $run"


class NotOnlyAdded(Exception):
    """A statement did more than add, or what it added needs names that depend on the rest."""


def counts_truly(transaction: Transaction) -> bool:
    """Whether a server counts what statements do; tried on a node, which is left to the caller to take back."""
    counters = transaction.run("CREATE (n {a: 1}) SET n.b = 2").consume().counters
    return counters.nodes_created == 1 and counters.properties_set == 2


def added(ask: Ask, counters: SummaryCounters) -> tuple[Diff, dict[str, str]]:
    """What the statement before this added, now with ids and marks, and where its nodes are; raises
    NotOnlyAdded.
    """
    if not counters.contains_updates:
        return Diff(), {}
    _require(
        not counters.nodes_deleted and not counters.relationships_deleted and not counters.labels_removed
    )
    rows = (
        [BoltRow(place, labels, stored, []) for place, labels, stored in ask(_NODES, {})]
        if counters.nodes_created
        else []
    )
    edges = ask(_EDGES, {}) if counters.relationships_created else []
    _require((counters.nodes_created, counters.relationships_created) == (len(rows), len(edges)))
    _require(counters.labels_added == sum(len(row.labels) for row in rows))
    _require(
        counters.properties_set
        == sum(len(row.properties) for row in rows) + sum(len(edge[-1]) for edge in edges)
    )
    ids = ids_of(rows, {})
    _require(len(set(ids.values())) == len(ids))
    ends = {place: id for edge in edges for place, id in (edge[:2], edge[4:6])} | ids
    _mark_nodes(ask, ids)
    nodes = [StoredNode(ids[row.place], row.place, row.labels, row.properties).node() for row in rows]
    made = [Edge(ends[edge[0]], edge[3], ends[edge[4]], edge_properties(timeless(edge[6]))) for edge in edges]
    _mark_edges(ask, edges)
    return Diff(added_nodes=tuple(nodes), added_edges=tuple(made)), {id: place for place, id in ids.items()}


def _mark_nodes(ask: Ask, ids: dict[str, str]) -> None:
    """Give new nodes their ids, which no other node may have."""
    if ids:
        ask(MARK_NODES, {"rows": [[place, {"id": id, "_kept": True}] for place, id in ids.items()]})
        _require(ask(_OF_ID, {"ids": dict.fromkeys(ids.values(), True)}) == [[len(ids)]])


def _mark_edges(ask: Ask, edges: list[list[Any]]) -> None:
    """Mark new edges, none of which may have its source, type and target in common with another."""
    if edges:
        alike = {(edge[0], edge[3], edge[4]) for edge in edges}
        _require(len(alike) == len(edges) and not any("_key" in edge[6] for edge in edges))
        _require(ask(_ALIKE, {"rows": [list(each) for each in alike]}) == [[len(edges)]])
        ask(_MARK_EDGES, {"rows": [[edge[0], edge[2]] for edge in edges]})


def _require(holds: bool) -> None:
    if not holds:
        raise NotOnlyAdded
