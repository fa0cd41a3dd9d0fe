"""What ArcadeDB calls a label or a relation: its own name wherever the engine takes it, and another where
not.

The engine keeps labels and relations under one roof, so that a name is one or the other, and in files named
after them. A graph may have both an Award and an edge AWARD that is written Award too, or a label with a
comma: such a name is kept under another, and statements that use it are rewritten, at the places where the
engine's own parser sees a label or a relation. Runs inside the sandbox: imports the standard library and its
sisters only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from kgot_lab.sandbox.cypher.engine import OWN, Database
from kgot_lab.sandbox.cypher.mapping import backticked

_NODES, _EDGES = "nodes", "edges"
# characters of a file's name as the engine spells it, of one label and of all that a node has
_LONGEST, _LONGEST_TOGETHER = (100, 160)
_NOT_TAKEN = frozenset("~,*")
_PLACES = {
    "NodePattern": _NODES,
    "NodeLabels": _NODES,
    "LabelComparison": _NODES,
    "RelationshipPattern": _EDGES,
}
_GRAMMAR = "com.arcadedb.query.opencypher.grammar.Cypher25"


def _usable(name: str) -> bool:
    return not name.startswith(OWN) and _NOT_TAKEN.isdisjoint(name) and len(quote(name, safe="")) <= _LONGEST


class TypeNames:
    """The types of one database, and the names they stand for. Types are made and dropped outside of
    transactions.
    """

    def __init__(self, database: Database):
        self._database = database
        self._odd: dict[tuple[str, str], str] = {}  # kind and name, and the type
        self._names: dict[str, str] = {}
        self._own: dict[frozenset[str], str] = {}

    def name(self, type: str) -> str:
        """The label or relation that a type stands for."""
        return self._names.get(type, type)

    def label_type(self, label: str, *, both: bool = False) -> str:
        """The type of nodes with a label, made where it is missing; `both` says that a relation has the name
        too.
        """
        return self._database.node_type([self._type(_NODES, label, both)])

    def node_type(self, labels: Iterable[str]) -> str:
        """The type of nodes with just these labels, made where it is missing."""
        types = sorted({self._odd.get((_NODES, label), label) for label in labels})
        if len(types) < 2 or len("~".join(quote(type, safe="") for type in types)) <= _LONGEST_TOGETHER:
            return self._database.node_type(types)
        return self._database.node_type(
            types, self._own.setdefault(frozenset(types), f"{OWN}{len(self._own) + 1}")
        )

    def edge_type(self, relation: str, *, both: bool = False) -> str:
        """The type of edges of a relation, made where it is missing; `both` says that a label has the name
        too.
        """
        return self._database.edge_type(self._type(_EDGES, relation, both))

    def known_edge_type(self, relation: str) -> str:
        """The type of edges of a relation that is there."""
        return self._odd.get((_EDGES, relation), relation)

    def learn(self, statement: str) -> bool:
        """Find other names for those in a statement that the engine does not take; returns whether there were
        any.
        """
        before = len(self._odd)
        found = {(kind, name) for kind, name, *_ in self._uses(statement)}
        for kind, name in sorted(found):
            self._type(kind, name, both=(_EDGES if kind == _NODES else _NODES, name) in found)
        return len(self._odd) > before

    def translated(self, statement: str) -> tuple[str, dict[str, str]]:
        """A statement with the engine's names in it, and the texts of expressions that were rewritten, each
        with what it was.

        labels() and type() give the usual names again.
        """
        if not self._odd:
            return statement, {}
        edits = [
            (start, stop, backticked(self._odd[kind, name]))
            for kind, name, start, stop in self._uses(statement)
            if (kind, name) in self._odd
        ]
        usual = (
            "{"
            + ", ".join(
                f"{backticked(type)}: {json.dumps(name, ensure_ascii=False)}"
                for type, name in self._names.items()
            )
            + "}"
        )
        rewritten = {}
        for function, start, stop in self._calls(statement):
            call = statement[start:stop]
            again = (
                f"[_each IN {call} | coalesce({usual}[_each], _each)]"
                if function == "labels"
                else f"coalesce({usual}[{call}], {call})"
            )
            rewritten[again] = call
            edits.append((start, stop, again))
        for start, stop, text in sorted(edits, reverse=True):
            statement = statement[:start] + text + statement[stop:]
        return statement, rewritten

    def ends_transaction(self, statement: str) -> bool:
        """Whether a part of a statement would be kept before the rest of it has run."""
        return "transaction" in statement.lower() and bool(
            self._found(statement, "subqueryInTransactionsParameters")
        )

    def _type(self, kind: str, name: str, both: bool) -> str:
        if (kind, name) in self._odd:
            return self._odd[kind, name]
        there = self._database.kind(name)
        used = bool(there) and not self._database.empty(name)
        taken = used and there != kind
        # a label and a relation that come together: the label has the name
        yields = both and kind == _EDGES and not used
        if _usable(name) and not taken and not yields:
            if there not in ("", kind):  # left by a statement that was undone
                self._database.drop_type(name)
            return name
        type = (
            OWN + name
            if _usable(name) and not name.isdigit()
            else f"{OWN}x{hashlib.sha256(name.encode()).hexdigest()[:20]}"
        )
        self._odd[kind, name] = type
        self._names[type] = name
        return type

    def _uses(self, statement: str) -> Iterator[tuple[str, str, int, int]]:
        """Where a statement names a label or a relation: the kind, the name, and where the word begins and
        ends.
        """
        for word in self._found(statement, "symbolicNameString"):
            if _class(word.getParent()) in ("LabelName", "LabelType"):
                text = str(word.getText())
                name = text[1:-1].replace("``", "`") if text.startswith("`") else text
                yield _kind(word), name, *_extent(word)

    def _calls(self, statement: str) -> Iterator[tuple[str, int, int]]:
        for call in self._found(statement, "functionInvocation"):
            function = str(call.getChild(0).getText()).lower()
            if function in ("type", "labels"):
                yield function, *_extent(call)

    def _found(self, statement: str, rule: str) -> list[Any]:
        """The places in a statement that the engine's parser calls so."""
        java = self._database.java
        lexer = java(_GRAMMAR + "Lexer")(java("org.antlr.v4.runtime.CharStreams").fromString(statement))
        lexer.removeErrorListeners()
        parser = java(_GRAMMAR + "Parser")(java("org.antlr.v4.runtime.CommonTokenStream")(lexer))
        parser.removeErrorListeners()
        return list(
            java("org.antlr.v4.runtime.tree.xpath.XPath").findAll(parser.statements(), f"//{rule}", parser)
        )


def _class(place: Any) -> str:
    return type(place).__name__.replace("$", ".").rpartition(".")[2].removesuffix("Context")


def _extent(place: Any) -> tuple[int, int]:
    return int(place.getStart().getStartIndex()), int(place.getStop().getStopIndex()) + 1


def _kind(place: Any) -> str:
    while place is not None and _class(place) not in _PLACES:
        place = place.getParent()
    return _PLACES[_class(place)] if place is not None else _NODES
