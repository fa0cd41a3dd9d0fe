"""Load the parent's graph into ArcadeDB: a few elements in a transaction, many by the bulk loader.

The names of types are encoded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from kgot_lab.sandbox.cypher.engine import OWN_PREFIX, Database, StoredProperties
from kgot_lab.sandbox.cypher.mapping import backticked, to_stored_edge, to_stored_node
from kgot_lab.sandbox.worker.values import ElementChange

# ArcadeDB's names of labels and relations: the same name if the engine accepts it, and another if not.
#
# In the engine a name is either a label or a relation, and files are named after both. A graph may have both
# an Award and an edge AWARD that is also written Award, or a label with a comma: such a name is stored under
# another, and statements that use it are rewritten, at the positions where the engine's own parser finds a
# label or a relation.

_NODES, _EDGES = "nodes", "edges"
# characters of a file's name in the engine's encoding, for one label and for all labels of a node
_MAX_NAME_LENGTH, _MAX_JOINED_LENGTH = (100, 160)
_REFUSED_CHARACTERS = frozenset("~,*")
_NAME_CONTEXTS = {
    "NodePattern": _NODES,
    "NodeLabels": _NODES,
    "LabelComparison": _NODES,
    "RelationshipPattern": _EDGES,
}
_GRAMMAR = "com.arcadedb.query.opencypher.grammar.Cypher25"


def _is_usable(name: str) -> bool:
    if name.startswith(OWN_PREFIX) or not _REFUSED_CHARACTERS.isdisjoint(name):
        return False
    return len(quote(name, safe="")) <= _MAX_NAME_LENGTH


class TypeNames:
    """The types of one database, and the names that they stand for.

    Types are created and dropped outside transactions.
    """

    def __init__(self, database: Database):
        self._database = database
        self._odd: dict[tuple[str, str], str] = {}  # kind and name, and the type
        self._names: dict[str, str] = {}
        self._own: dict[frozenset[str], str] = {}

    def name(self, type: str) -> str:
        """Return the label or relation that a type stands for."""
        return self._names.get(type, type)

    def label_type(self, label: str, *, both: bool = False) -> str:
        """Return the type of nodes with a label, creating it if it is missing.

        `both` means that a relation has the same name.
        """
        return self._database.node_type([self._type_for(_NODES, label, both)])

    def node_type(self, labels: Iterable[str]) -> str:
        """Return the type of nodes with exactly these labels, creating it if it is missing."""
        types = sorted({self._odd.get((_NODES, label), label) for label in labels})
        if len(types) < 2 or len("~".join(quote(type, safe="") for type in types)) <= _MAX_JOINED_LENGTH:
            return self._database.node_type(types)
        own_type = self._own.setdefault(frozenset(types), f"{OWN_PREFIX}{len(self._own) + 1}")
        return self._database.node_type(types, own_type)

    def edge_type(self, relation: str, *, both: bool = False) -> str:
        """Return the type of edges of a relation, creating it if it is missing.

        `both` means that a label has the same name.
        """
        return self._database.edge_type(self._type_for(_EDGES, relation, both))

    def known_edge_type(self, relation: str) -> str:
        """Return the type of edges of an existing relation."""
        return self._odd.get((_EDGES, relation), relation)

    def learn(self, statement: str) -> bool:
        """Find other names for those in a statement that the engine does not accept.

        Returns whether there were any.
        """
        before = len(self._odd)
        names = {(kind, name) for kind, name, *_ in self._name_uses(statement)}
        for kind, name in sorted(names):
            self._type_for(kind, name, both=(_EDGES if kind == _NODES else _NODES, name) in names)
        return len(self._odd) > before

    def translate(self, statement: str) -> tuple[str, dict[str, str]]:
        """Return a statement with the engine's names, and the rewritten expressions with their original
        texts.

        labels() and type() still return the usual names.
        """
        if not self._odd:
            return statement, {}
        uses = (use for use in self._name_uses(statement) if use[:2] in self._odd)
        edits = [(start, stop, backticked(self._odd[kind, name])) for kind, name, start, stop in uses]
        pairs = self._names.items()
        names = (f"{backticked(type)}: {json.dumps(name, ensure_ascii=False)}" for type, name in pairs)
        names_map = "{" + ", ".join(names) + "}"
        rewritten = {}
        for function, start, stop in self._function_calls(statement):
            call = statement[start:stop]
            replacement = (
                f"[_each IN {call} | coalesce({names_map}[_each], _each)]"
                if function == "labels"
                else f"coalesce({names_map}[{call}], {call})"
            )
            rewritten[replacement] = call
            edits.append((start, stop, replacement))
        for start, stop, text in sorted(edits, reverse=True):
            statement = statement[:start] + text + statement[stop:]
        return statement, rewritten

    def ends_transaction(self, statement: str) -> bool:
        """Return whether part of a statement would be committed before the rest has run."""
        rule = "subqueryInTransactionsParameters"
        return "transaction" in statement.lower() and bool(self._find_rule(statement, rule))

    def _type_for(self, kind: str, name: str, both: bool) -> str:
        if (kind, name) in self._odd:
            return self._odd[kind, name]
        existing_kind = self._database.kind(name)
        is_used = bool(existing_kind) and not self._database.is_empty(name)
        is_taken = is_used and existing_kind != kind
        # a label and a relation of the same name: the label keeps it
        gives_way = both and kind == _EDGES and not is_used
        if _is_usable(name) and not is_taken and not gives_way:
            if existing_kind not in ("", kind):  # left by a statement that was rolled back
                self._database.drop_type(name)
            return name
        is_plain = _is_usable(name) and not name.isdigit()
        type = OWN_PREFIX + (name if is_plain else f"x{hashlib.sha256(name.encode()).hexdigest()[:20]}")
        self._odd[kind, name] = type
        self._names[type] = name
        return type

    def _name_uses(self, statement: str) -> Iterator[tuple[str, str, int, int]]:
        """Yield where a statement names a label or a relation: kind, name, start and end of the word."""
        for word in self._find_rule(statement, "symbolicNameString"):
            if _context_name(word.getParent()) in ("LabelName", "LabelType"):
                text = str(word.getText())
                name = text[1:-1].replace("``", "`") if text.startswith("`") else text
                yield _name_kind(word), name, *_extent(word)

    def _function_calls(self, statement: str) -> Iterator[tuple[str, int, int]]:
        for call in self._find_rule(statement, "functionInvocation"):
            function = str(call.getChild(0).getText()).lower()
            if function in ("type", "labels"):
                yield function, *_extent(call)

    def _find_rule(self, statement: str, rule: str) -> list[Any]:
        """Return the nodes of a grammar rule in the engine's parse tree of a statement."""
        java = self._database.java
        lexer = java(_GRAMMAR + "Lexer")(java("org.antlr.v4.runtime.CharStreams").fromString(statement))
        lexer.removeErrorListeners()
        parser = java(_GRAMMAR + "Parser")(java("org.antlr.v4.runtime.CommonTokenStream")(lexer))
        parser.removeErrorListeners()
        xpath = java("org.antlr.v4.runtime.tree.xpath.XPath")
        return list(xpath.findAll(parser.statements(), f"//{rule}", parser))


def _context_name(context: Any) -> str:
    return type(context).__name__.replace("$", ".").rpartition(".")[2].removesuffix("Context")


def _extent(context: Any) -> tuple[int, int]:
    return int(context.getStart().getStartIndex()), int(context.getStop().getStopIndex()) + 1


def _name_kind(context: Any) -> str:
    while context is not None and _context_name(context) not in _NAME_CONTEXTS:
        context = context.getParent()
    return _NAME_CONTEXTS[_context_name(context)] if context is not None else _NODES


EdgeGroup = tuple[str, str, str]  # source, type, target
_BULK_THRESHOLD = 300  # new elements up to which they are added one by one
_SINGLE_KEYLESS_EDGE = ("",)
_END_PROPERTIES = frozenset(("_src", "_dst"))  # the bulk loader's names of an edge's ends


@dataclass
class Contents:
    """The contents of the database between statements.

    It maps nodes by id to their record numbers, and pairs of nodes to the keys of the edges between them.
    """

    rids: dict[str, str] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    # of nodes whose labels are not in alphabetical order
    labels: dict[str, list[str]] = field(default_factory=dict)
    keys: dict[EdgeGroup, tuple[str, ...]] = field(default_factory=dict)
    longest: int = 0  # characters of an id

    def add_node(self, id: str, labels: list[str], rid: str) -> None:
        """Record the record number of a node."""
        self.ids.pop(self.rids.get(id, ""), None)
        self.rids[id], self.ids[rid] = rid, id
        self.labels.pop(id, None)
        if labels != sorted(set(labels)):
            self.labels[id] = labels
        self.longest = max(self.longest, len(id))

    def remove_node(self, id: str) -> str:
        """Remove a node and return its record number."""
        rid = self.rids.pop(id)
        del self.ids[rid]
        self.labels.pop(id, None)
        return rid

    def has_edge(self, between: EdgeGroup, key: str) -> bool:
        """Return whether an edge exists."""
        return key in self.keys.get(between, ())

    def add_edge(self, between: EdgeGroup, key: str) -> None:
        """Record an edge."""
        before = self.keys.get(between, ())
        self.keys[between] = (*before, key) if before or key else _SINGLE_KEYLESS_EDGE

    def remove_edge(self, between: EdgeGroup, key: str) -> None:
        """Remove the record of an edge."""
        left = tuple(each for each in self.keys[between] if each != key)
        if left:
            self.keys[between] = left
        else:
            del self.keys[between]


def edge_rid(database: Database, names: TypeNames, known: Contents, change: ElementChange) -> str:
    """Return the record number of an existing edge."""
    source, relation, target, key = change[:4]
    ends = (known.rids[source], known.rids[target])
    edges = database.edges_between(names.known_edge_type(relation), *ends)
    return next(edge.rid for edge in edges if edge.stored.get("_key", "") == key)


class ChangeLoader:
    """Applies claims to the database, each of a different element."""

    def __init__(
        self,
        database: Database,
        names: TypeNames,
        known: Contents,
        nodes: list[ElementChange],
        edges: list[ElementChange],
    ):
        self._database, self._known = database, known
        self._edge_rid = partial(edge_rid, database, names, known)
        self._nodes, self._edges = nodes, edges
        labels = {label for change in nodes if len(change) == 3 for label in change[1]}
        relations = {change[1] for change in edges if len(change) == 5}
        sets = {tuple(change[1]) for change in nodes if len(change) == 3}
        self._label_types = {label: names.label_type(label, both=label in relations) for label in labels}
        self._node_types = {labels_of_node: names.node_type(labels_of_node) for labels_of_node in sets}
        self._edge_types = {r: names.edge_type(r, both=r in labels) for r in relations}

    def run(self) -> None:
        """Apply removals and changes first, then additions.

        Edges are removed before their nodes and added after them.
        """
        new_nodes = [c for c in self._nodes if len(c) == 3 and c[0] not in self._known.rids]
        whole = [change for change in self._edges if len(change) == 5]
        new_edges = [change for change in whole if not self._known.has_edge(_edge_group(change), change[3])]
        use_bulk_loader = len(new_nodes) + len(new_edges) > _BULK_THRESHOLD
        if not use_bulk_loader or len(new_nodes) + len(new_edges) < len(self._nodes) + len(self._edges):
            with self._database.transaction():
                self._remove()
                self._change(new_nodes)
                if not use_bulk_loader:
                    self._add_nodes(new_nodes)
                    self._add_edges(new_edges)
        if use_bulk_loader:
            self._load(new_nodes, new_edges)
        for type in self._label_types.values():
            self._database.create_id_index(type, self._known.longest)

    def _remove(self) -> None:
        for change in self._edges:
            # otherwise it was created and deleted since the last statement
            if len(change) == 4 and self._known.has_edge(_edge_group(change), change[3]):
                self._database.remove(self._edge_rid(change))
                self._known.remove_edge(_edge_group(change), change[3])
        for change in self._nodes:
            if len(change) == 1 and change[0] in self._known.rids:
                self._database.remove(self._known.remove_node(change[0]))

    def _change(self, new_nodes: list[ElementChange]) -> None:
        new_ids = {change[0] for change in new_nodes}
        for change in self._nodes:
            if len(change) == 3 and change[0] not in new_ids:
                id, labels, properties = change
                stored = to_stored_node(id, labels, properties)
                node_type = self._node_types[tuple(labels)]
                rid = self._database.change_node(self._known.rids[id], node_type, stored)
                self._known.add_node(id, labels, rid)
        for change in self._edges:
            if len(change) == 5 and self._known.has_edge(_edge_group(change), change[3]):
                self._database.change(self._edge_rid(change), to_stored_edge(change[3], change[4]))

    def _add_nodes(self, changes: Iterable[ElementChange]) -> None:
        for id, labels, properties in changes:
            stored = to_stored_node(id, labels, properties)
            rid = self._database.add_node(self._node_types[tuple(labels)], stored)
            self._known.add_node(id, labels, rid)

    def _add_edges(self, changes: Iterable[ElementChange]) -> None:
        for source, relation, target, key, properties in changes:
            ends = (self._known.rids[source], self._known.rids[target])
            self._database.add_edge(self._edge_types[relation], *ends, to_stored_edge(key, properties))
            self._known.add_edge((source, relation, target), key)

    def _load(self, nodes: list[ElementChange], edges: list[ElementChange]) -> None:
        conflicting = [change for change in edges if not _END_PROPERTIES.isdisjoint(change[4])]
        with self._database.loading(len(edges)) as batch:
            by_labels: dict[tuple[str, ...], list[ElementChange]] = {}
            for change in nodes:
                by_labels.setdefault(tuple(change[1]), []).append(change)
            for labels, changes in by_labels.items():
                rows = [to_stored_node(*change) for change in changes]
                new_rids = self._database.load_nodes(batch, self._node_types[labels], rows)
                for change, rid in zip(changes, new_rids, strict=True):
                    self._known.add_node(change[0], change[1], rid)
            rids, by_relation = self._known.rids, dict[str, list[StoredProperties]]()
            for source, relation, target, key, properties in (
                change for change in edges if _END_PROPERTIES.isdisjoint(change[4])
            ):
                row = {"_src": rids[source], "_dst": rids[target]}
                by_relation.setdefault(relation, []).append(
                    {**row, **to_stored_edge(key, properties)} if key or properties else row
                )
                self._known.add_edge((source, relation, target), key)
            for relation, rows in by_relation.items():
                self._database.load_edges(batch, self._edge_types[relation], rows)
        with self._database.transaction():
            self._add_edges(conflicting)


def _edge_group(change: ElementChange) -> EdgeGroup:
    return change[0], change[1], change[2]
