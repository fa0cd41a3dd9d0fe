"""Puts into ArcadeDB what the parent says of the graph: a few elements one by one in a transaction, many by
the engine's bulk loader.

Runs inside the sandbox: imports the standard library and its sisters only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kgot_lab.sandbox.cypher.engine import Database, StoredProperties
from kgot_lab.sandbox.cypher.loading import TypeNames
from kgot_lab.sandbox.cypher.mapping import stored_edge, stored_node
from kgot_lab.sandbox.worker.values import Account

Between = tuple[str, str, str]  # source, type, target
_FEW = 300  # new elements that are added one by one
_ONE_EDGE = ("",)
_ENDS = frozenset(("_src", "_dst"))  # what the bulk loader calls an edge's ends


@dataclass
class Known:
    """What is in the database between statements: nodes by id with their record numbers, and the keys of the
    edges between two nodes.
    """

    rids: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    # of nodes whose labels are not in alphabetical order
    labels: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[Between, tuple[str, ...]] = field(default_factory=dict)
    longest: int = 0  # characters of an id

    def add_node(self, id: str, labels: list[str], rid: str) -> None:
        """Note where a node is now."""
        self.ids.pop(self.rids.get(id, ""), None)
        self.rids[id], self.ids[rid] = rid, id
        self.labels.pop(id, None)
        if labels != sorted(set(labels)):
            self.labels[id] = labels
        self.longest = max(self.longest, len(id))

    def remove_node(self, id: str) -> str:
        """Forget a node; returns where it was."""
        rid = self.rids.pop(id)
        del self.ids[rid]
        self.labels.pop(id, None)
        return rid

    def has_edge(self, between: Between, key: str) -> bool:
        """Whether there is such an edge."""
        return key in self.keys.get(between, ())

    def add_edge(self, between: Between, key: str) -> None:
        """Note an edge."""
        before = self.keys.get(between, ())
        self.keys[between] = (*before, key) if before or key else _ONE_EDGE

    def remove_edge(self, between: Between, key: str) -> None:
        """Forget an edge."""
        left = tuple(each for each in self.keys[between] if each != key)
        if left:
            self.keys[between] = left
        else:
            del self.keys[between]


def put(
    database: Database, names: TypeNames, known: Known, nodes: list[Account], edges: list[Account]
) -> None:
    """Make the database agree with some claims, each of another element."""
    if nodes or edges:
        _Put(database, names, known, nodes, edges).run()


class _Put:
    def __init__(
        self, database: Database, names: TypeNames, known: Known, nodes: list[Account], edges: list[Account]
    ):
        self._database, self._known = database, known
        self._nodes, self._edges = nodes, edges
        labels = {label for claim in nodes if len(claim) == 3 for label in claim[1]}
        relations = {claim[1] for claim in edges if len(claim) == 5}
        sets = {tuple(claim[1]) for claim in nodes if len(claim) == 3}
        self._label_types = {label: names.label_type(label, both=label in relations) for label in labels}
        self._node_types = {each: names.node_type(each) for each in sets}
        self._edge_types = {
            relation: names.edge_type(relation, both=relation in labels) for relation in relations
        }
        self._known_type = names.known_edge_type

    def run(self) -> None:
        """Removals and changes first, then what is new; edges go before their nodes, and come after them."""
        new_nodes = [claim for claim in self._nodes if len(claim) == 3 and claim[0] not in self._known.rids]
        new_edges = [
            claim
            for claim in self._edges
            if len(claim) == 5 and not self._known.has_edge(_between(claim), claim[3])
        ]
        many = len(new_nodes) + len(new_edges) > _FEW
        if not many or len(new_nodes) + len(new_edges) < len(self._nodes) + len(self._edges):
            with self._database.transaction():
                self._remove()
                self._change(new_nodes)
                if not many:
                    self._add_nodes(new_nodes)
                    self._add_edges(new_edges)
        if many:
            self._load(new_nodes, new_edges)
        for type in self._label_types.values():
            self._database.index(type, self._known.longest)

    def _remove(self) -> None:
        for claim in self._edges:
            # else it came and went since the last statement
            if len(claim) == 4 and self._known.has_edge(_between(claim), claim[3]):
                self._database.remove(self._rid_of(claim))
                self._known.remove_edge(_between(claim), claim[3])
        for claim in self._nodes:
            if len(claim) == 1 and claim[0] in self._known.rids:
                self._database.remove(self._known.remove_node(claim[0]))

    def _change(self, new_nodes: list[Account]) -> None:
        fresh = {claim[0] for claim in new_nodes}
        for claim in self._nodes:
            if len(claim) == 3 and claim[0] not in fresh:
                id, labels, properties = claim
                stored = stored_node(id, labels, properties)
                rid = self._database.change_node(
                    self._known.rids[id], self._node_types[tuple(labels)], stored
                )
                self._known.add_node(id, labels, rid)
        for claim in self._edges:
            if len(claim) == 5 and self._known.has_edge(_between(claim), claim[3]):
                self._database.change(self._rid_of(claim), stored_edge(claim[3], claim[4]))

    def _rid_of(self, claim: Account) -> str:
        """The record number of an edge that is there."""
        source, relation, target, key = claim[:4]
        ends = (self._known.rids[source], self._known.rids[target])
        found = self._database.edges_between(self._known_type(relation), *ends)
        return next(edge.rid for edge in found if edge.stored.get("_key", "") == key)

    def _add_nodes(self, claims: Iterable[Account]) -> None:
        for id, labels, properties in claims:
            rid = self._database.add_node(
                self._node_types[tuple(labels)], stored_node(id, labels, properties)
            )
            self._known.add_node(id, labels, rid)

    def _add_edges(self, claims: Iterable[Account]) -> None:
        for source, relation, target, key, properties in claims:
            ends = (self._known.rids[source], self._known.rids[target])
            self._database.add_edge(self._edge_types[relation], *ends, stored_edge(key, properties))
            self._known.add_edge((source, relation, target), key)

    def _load(self, nodes: list[Account], edges: list[Account]) -> None:
        special = [claim for claim in edges if not _ENDS.isdisjoint(claim[4])]
        with self._database.loading(len(edges)) as batch:
            by_labels: dict[tuple[str, ...], list[Account]] = {}
            for claim in nodes:
                by_labels.setdefault(tuple(claim[1]), []).append(claim)
            for labels, claims in by_labels.items():
                rows = [stored_node(*claim) for claim in claims]
                for claim, rid in zip(
                    claims, self._database.load_nodes(batch, self._node_types[labels], rows), strict=True
                ):
                    self._known.add_node(claim[0], claim[1], rid)
            rids, by_relation = self._known.rids, dict[str, list[StoredProperties]]()
            for source, relation, target, key, properties in (
                claim for claim in edges if _ENDS.isdisjoint(claim[4])
            ):
                row = {"_src": rids[source], "_dst": rids[target]}
                by_relation.setdefault(relation, []).append(
                    {**row, **stored_edge(key, properties)} if key or properties else row
                )
                self._known.add_edge((source, relation, target), key)
            for relation, rows in by_relation.items():
                self._database.load_edges(batch, self._edge_types[relation], rows)
        with self._database.transaction():
            self._add_edges(special)


def _between(claim: Account) -> Between:
    return claim[0], claim[1], claim[2]
