"""A change of the graph: the versions of nodes and edges that it closes and opens, all dated by one time.

No version is ever rewritten, so any time can be looked at again. What is written again never expires earlier
than it would have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

from kgot_lab.domains.investment import statements as sql
from kgot_lab.domains.investment.versions import Lifetime, edge_expiry, later, node_expiry
from kgot_lab.domains.investment.view import (
    DatedEdge,
    DatedNode,
    InvestmentView,
    dated_edge,
    dated_node,
    fold,
    shown_name,
    symbol_of,
)
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.vocabulary import Vocabulary
from kgot_lab.memory.claims.claim import instant
from kgot_lab.memory.tables import TableStorage
from kgot_lab.types import Edge, Json, Node

EdgeIds = tuple[str, str, str]  # source, type, target
# when what is written expires, where that was said, in microseconds
GivenEnds = Mapping[str | EdgeIds, int | None]


class GraphChange:
    """A change of what an owner has, to be made within `storage.changing()`; it is noted once it changes
    something.
    """

    def __init__(self, storage: TableStorage, owner: str, now: Callable[[], datetime]) -> None:
        self._storage, self._owner = storage, owner
        # read within: to wait for another process is not to go back in time
        self._clock = instant(now(), "now")
        self.at = last_time(storage, self._clock)
        self._begun = False

    def last_nodes(self, ids: Iterable[str]) -> dict[str, DatedNode]:
        """Those of some nodes that were written, as they were last, expired or not."""
        rows = self._storage.rows(sql.OPEN_NODES, {"owner": self._owner, "ids": sorted(set(ids))})
        return {dated.node.id: dated for dated in map(dated_node, rows)}

    def last_edges(self, sources: Iterable[str]) -> dict[EdgeIds, DatedEdge]:
        """The edges from some nodes as they were last written, expired or not."""
        rows = self._storage.rows(sql.OPEN_EDGES, {"owner": self._owner, "ids": sorted(set(sources))})
        return {edge_ids(dated.edge): dated for dated in map(dated_edge, rows)}

    def begin(self) -> None:
        """Note that there is a change, once."""
        if not self._begun:
            self._begun = True
            number = int(self._storage.rows(sql.LAST_NUMBER)[0][0]) + 1
            self._storage.rows(sql.ADD_CHANGE, {"id": number, "at": self.at, "clock": self._clock})

    def keep_node(
        self, node: Node, before: DatedNode | None, lifetimes: Collection[Lifetime], given: GivenEnds
    ) -> bool:
        """Open a new version of a node where anything is new, and say whether."""
        expires = given[node.id] if node.id in given else node_expiry(node, self.at, lifetimes)
        if before is not None and node.id not in given:
            expires = later(expires, before.expires)
        if before is not None and before.node == node and before.expires == expires:
            return False
        self._put_node(node, before.created if before else self.at, expires)
        return True

    def keep_edge(
        self,
        edge: Edge,
        before: DatedEdge | None,
        source: Node,
        classes: Collection[str],
        lifetimes: Collection[Lifetime],
        given: GivenEnds,
    ) -> DatedEdge | None:
        """The new version of an edge, or None where nothing is new; `classes` are those that assets at its
        ends belong to themselves.
        """
        identity = edge_ids(edge)
        edge = Edge(*identity, merged_properties(before.edge.properties if before else {}, edge.properties))
        expires = edge_expiry(edge, source, classes, self.at, lifetimes)
        if identity in given:
            expires = given[identity]
        elif before is not None:
            expires = later(expires, before.expires)
        if before is not None and before.edge.properties == edge.properties and before.expires == expires:
            return None
        created = before.created if before else self.at
        self._put_edge(edge, created, expires)
        return DatedEdge(self._owner, created, expires, self.at, None, edge)

    def end_node(self, node: DatedNode) -> bool:
        """Let a node end now, and say whether it had not ended."""
        if node.expires is not None and node.expires <= self.at:
            return False
        self._put_node(node.node, node.created, self.at)
        return True

    def end_edge(self, edge: DatedEdge) -> bool:
        """Let an edge end now, and say whether it had not ended."""
        if edge.expires is not None and edge.expires <= self.at:
            return False
        self._put_edge(edge.edge, edge.created, self.at)
        return True

    def own_classes(
        self, edges: Sequence[Edge], nodes: Mapping[str, Node], vocabulary: Vocabulary
    ) -> dict[str, set[str]]:
        """The names of the classes that assets at the ends of edges belong to themselves, by the asset's id."""
        assets = {
            end for edge in edges for end in (edge.source, edge.target) if nodes[end].labels == ("Asset",)
        }
        view = InvestmentView(self._storage, self._owner, self.at, vocabulary)
        links = [(edge.source, edge.target) for edge in edges if edge.type == "belongs_to"]
        if assets:
            links += [
                (dated.edge.source, dated.edge.target) for dated in view.edges_from(assets, ["belongs_to"])
            ]
        named = {id: node for id, node in nodes.items() if node.labels == ("AssetClass",)}
        if unnamed := {target for source, target in links if source in assets and target not in named}:
            named |= {dated.node.id: dated.node for dated in view.nodes_by_id(unnamed)}
        classes: dict[str, set[str]] = {}
        for source, target in links:
            if source in assets and target in named:
                classes.setdefault(source, set()).add(str(named[target].properties["name"]))
        return classes

    # --- inside
    # -------------------------------------------------------------------------------------------------------

    def _put_node(self, node: Node, created: int, expires: int | None) -> None:
        self.begin()
        self._storage.rows(sql.CLOSE_NODE, {"id": node.id, "owner": self._owner, "at": self.at})
        type, properties = node.labels[0], node.properties
        values = {
            "owner": self._owner,
            "id": node.id,
            "type": type,
            "name": fold(shown_name(node)),
            "symbol": symbol_of(type, properties),
        }
        dates = {"created_at": created, "expires_at": expires, "at": self.at}
        self._storage.rows(sql.OPEN_NODE, values | dates | {"properties": _json(properties)})

    def _put_edge(self, edge: Edge, created: int, expires: int | None) -> None:
        self.begin()
        ends = {
            "owner": self._owner,
            "source": edge.source,
            "type": edge.type,
            "target": edge.target,
            "at": self.at,
        }
        self._storage.rows(sql.CLOSE_EDGE, ends)
        dates = {"created_at": created, "expires_at": expires}
        self._storage.rows(sql.OPEN_EDGE, ends | dates | {"properties": _json(edge.properties)})


def last_time(storage: TableStorage, clock: int) -> int:
    """What a clock says, or the time of the last change where the clock is behind it, in microseconds."""
    return max(clock, int(storage.rows(sql.LAST_TIME, {"least": clock})[0][0]))


def edge_ids(edge: Edge) -> EdgeIds:
    """What tells an edge from the others of its owner."""
    return edge.source, edge.type, edge.target


def _json(properties: Mapping[str, Json]) -> str:
    return json.dumps(dict(properties), sort_keys=True)
