"""From the records that a statement touched to what it claims to have changed: nodes by their id, edges by
their identity.

A node that a statement makes under an id that is there is that node, and adds to it, as do the edges that it
makes there. A node that loses its id keeps it. Nothing depends on the order in which an engine lists what is
new: a server's statement leads to the same graph. Runs inside the sandbox: imports the standard library and
its sisters only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from kgot_lab.sandbox.cypher.changes import Touched
from kgot_lab.sandbox.cypher.engine import Database, EdgeRecord, NodeRecord
from kgot_lab.sandbox.cypher.loading import Between, Known
from kgot_lab.sandbox.cypher.mapping import (
    clash,
    edge_properties,
    free_id,
    free_key,
    labels_of,
    node_properties,
    own_id,
    own_key,
)
from kgot_lab.sandbox.worker.values import Account, RefusedValue, canonical, json_value

_Identity = tuple[str, str, str, str]


class CypherChanges:
    """The claims of one statement, found while its transaction lasts; raises Refused where no graph can be
    made of what it did.
    """

    def __init__(self, database: Database, known: Known, touched: Touched, name: Callable[[str], str]):
        self._database, self._known, self._touched, self._name = database, known, touched, name
        self._ids: dict[
            str, str
        ] = {}  # the ids that nodes have now, by record number, where they are not as before
        self._made: dict[str, list[str]] = {}  # by id, the record numbers of nodes that were made under it
        self._said: dict[str, dict[str, Any]] = {}  # the properties that those were made with
        # the record numbers of nodes that were made under an id that was there, or that others got as well
        self._again: set[str] = set()
        self._bases: dict[
            str, list[str]
        ] = {}  # the labels that nodes had before new ones of their id added theirs
        self.nodes: dict[str, Account] = {}
        self.edges: dict[_Identity, Account] = {}
        renamed = self._find_nodes()
        self._find_edges([edge for rid in renamed for edge in database.edges_at(rid)])

    def claims(self) -> dict[str, list[Account]]:
        """All claims, removals among them."""
        return {"nodes": list(self.nodes.values()), "edges": list(self.edges.values())}

    def id(self, rid: str) -> str:
        """The id of a node, by its record number."""
        return self._ids.get(rid) or self._known.ids[rid]

    # --- nodes ---

    def _find_nodes(self) -> list[str]:
        """Claim what became of nodes; returns the record numbers of those that have another id than before."""
        gone = [self._known.ids[rid] for rid in self._touched.gone_nodes if rid in self._known.ids]
        self.nodes.update({id: [id] for id in gone})
        old = [
            node
            for node in self._touched.nodes
            if node.rid in self._known.ids and node.rid not in self._touched.new
        ]
        renamed = []
        for node in old:
            before = self._known.ids[node.rid]
            id = own_id(node.stored) or before
            if id != before:
                if self._there(id):
                    raise RefusedValue(f"two nodes would have the id {id!r}; give it to one of them only")
                self.nodes[before] = [before]
                renamed.append(node.rid)
            self._claim(id, node, before)
        new = [node for node in self._touched.nodes if node.rid in self._touched.new]
        for node in new:
            if id := own_id(node.stored):
                self._make(id, node)
        nameless = (node for node in new if not own_id(node.stored))
        for node in sorted(
            nameless, key=lambda node: canonical([self._labels(node, ""), node_properties(node.stored)])
        ):
            id = free_id(self._labels(node, ""), {**node.stored, "id": None}, _Taken(self._there))
            self._claim(id, node, id)
        return renamed

    def _make(self, id: str, node: NodeRecord) -> None:
        """Claim a new node under an id of its own."""
        said, own = self._said.setdefault(id, {}), node_properties(node.stored)
        if name := clash(said, own):
            raise RefusedValue(
                f"the statement makes the node {id!r} twice, with different values of {name!r}; make it once"
            )
        said.update(own)
        there, made = self._there(id), self._made.setdefault(id, [])
        made.append(node.rid)
        if there:
            self._again.update(made)
        else:
            self._bases[id] = []
        self._claim(id, node, id, adds=there)

    def _there(self, id: str) -> bool:
        return len(self.nodes[id]) > 1 if id in self.nodes else id in self._known.rids

    def _labels(self, node: NodeRecord, before: str) -> list[str]:
        labels = [self._name(label) for label in node.labels]
        noted = self._known.labels.get(before)
        return labels_of(labels, {"_labels": noted, **node.stored} if noted else node.stored)

    def _claim(self, id: str, node: NodeRecord, before: str, *, adds: bool = False) -> None:
        labels, properties = self._labels(node, before), _checked(node_properties(node.stored), f"of {id!r}")
        if adds:
            _, old_labels, old = self.nodes.get(id) or self._as_before(id)
            kept = self._bases.setdefault(id, old_labels)
            labels, properties = [*kept, *sorted({*old_labels, *labels} - set(kept))], {**old, **properties}
        self.nodes.pop(id, None)  # so that it comes after the removal of what had the id before
        self.nodes[id] = [id, labels, properties]
        self._ids[node.rid] = id

    def _as_before(self, id: str) -> Account:
        node = self._database.node(self._known.rids[id])
        return [id, self._labels(node, id), node_properties(node.stored)]

    # --- edges ---

    def _find_edges(self, moved: Iterable[EdgeRecord]) -> None:
        """Claim what became of edges, those between the same two nodes together: they differ only by their
        keys.
        """
        touched = {edge.rid: edge for edge in (*self._touched.edges, *moved)}
        old = [edge for edge in touched.values() if edge.rid not in self._touched.new]
        gone: dict[Between, list[EdgeRecord]] = {}
        for edge in (
            *self._touched.gone_edges,
            *(edge for edge in old if self._between(edge, before=True) != self._between(edge)),
        ):
            gone.setdefault(self._between(edge, before=True), []).append(edge)
        there: dict[Between, list[EdgeRecord]] = {}
        for edge in touched.values():
            there.setdefault(self._between(edge), []).append(edge)
        for between in {**gone, **there}:
            self._settle(between, gone.get(between, []), there.get(between, []))

    def _between(self, edge: EdgeRecord, *, before: bool = False) -> Between:
        source, target = (
            self._known.ids[end] if before and end in self._known.ids else self.id(end)
            for end in (edge.source, edge.target)
        )
        return source, self._name(edge.type), target

    def _settle(self, between: Between, gone: list[EdgeRecord], there: list[EdgeRecord]) -> None:
        """Give each edge between two nodes its key: its own, or the one it had, or the next that is free."""
        before = self._known.keys.get(between, ())
        new = [edge for edge in there if edge.rid in self._touched.new or edge.source not in self._known.ids]
        old = [edge for edge in there if edge not in new]
        new.sort(key=lambda edge: canonical(edge_properties(edge.stored)))
        alone = before in ((), ("",))  # one edge without a key of its own, as nearly always
        left = (
            list(before[len(gone) :])
            if alone
            else [key for key in before if key not in [own_key(edge.stored) for edge in gone]]
        )
        if alone and any(self._between(edge, before=True) == between for edge in old):
            left = []  # it is there, perhaps under another key
        given = {own_key(edge.stored): edge for edge in old if alone or "_key" in edge.stored}
        # a statement may have changed keys, or replaced all properties, the key among them
        if old and not alone:
            rids = {edge.rid for edge in there}
            found = self._database.edges_between(there[0].type, there[0].source, there[0].target)
            others = {own_key(edge.stored) for edge in found if edge.rid not in rids}
            free = [key for key in left if key not in others and key not in given]
            given.update(zip(free, [edge for edge in old if edge not in given.values()], strict=False))
            left = [key for key in left if key in others or key in given]
        for edge in new:
            key = own_key(edge.stored)
            # it could not see what it repeats
            if key in {*left, *given} and not self._again.isdisjoint((edge.source, edge.target)):
                given[key] = replace(
                    edge,
                    stored={
                        **(given.get(key) or self._edge_before(between, edge.type, key)).stored,
                        **edge.stored,
                    },
                )
            else:
                given[free_key(key, {*left, *given})] = edge
        source, type, target = between
        for key in before:
            if key not in left and key not in given:
                self.edges[(*between, key)] = [source, type, target, key]
        for key, edge in given.items():
            properties = _checked(edge_properties(edge.stored), f"of {source} -> {target}")
            self.edges[(*between, key)] = [source, type, target, key, properties]

    def _edge_before(self, between: Between, type: str, key: str) -> EdgeRecord:
        """An edge that was there and still is."""
        found = self._database.edges_between(type, self._known.rids[between[0]], self._known.rids[between[2]])
        return next(edge for edge in found if own_key(edge.stored) == key)


class _Taken:
    """The ids that are taken, as something to look into."""

    def __init__(self, taken: Callable[[str], bool]):
        self._taken = taken

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._taken(id)


def _checked(properties: dict[str, Any], of: str) -> dict[str, Any]:
    return {name: json_value(value, f"property {name!r} {of}") for name, value in properties.items()}
