"""Parse Cypher patterns strictly, to mark each node of a statement, and search a namespace.

The search does not read the whole namespace. Brackets in a pattern contain an expression, which may contain
further patterns. `confined` parses it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from kgot_lab.sandbox.cypher.mapping import edge_properties, node_properties, ordered_labels, own_key
from kgot_lab.stores.cypher.connection import Ask
from kgot_lab.stores.cypher.dump import timeless
from kgot_lab.stores.cypher.statements import CypherToken, RefusedClause, cypher_tokens
from kgot_lab.stores.lookup import WordIndex, path_between, scalars_in
from kgot_lab.stores.protocol import Scalar, Schema
from kgot_lab.text.words import casefold_words
from kgot_lab.types import Edge, Node

# the properties that mark the namespace of a node, and that its store knows it
OWN_PROPERTIES = ("_run", "_kept")
OPENING = {"(": ")", "[": "]", "{": "}"}
NO_TOKEN = CypherToken("sign", "")
_ESCAPED = re.compile(r"\\u+([0-9a-fA-F]{4})")
_SELECTING = frozenset("ANY ALL SHORTEST GROUP GROUPS PATH PATHS".split())
_SHORTEST = ("SHORTESTPATH", "ALLSHORTESTPATHS")
_DEEPEST = 100  # nested brackets; each costs a recursive call here


@dataclass
class Frame:
    """An open bracket.

    A subquery has its own variables, and may return some.
    """

    closing: str
    outer: frozenset[str] | None = None  # the variables of the outer scope, for a subquery
    base: frozenset[str] = frozenset()  # the variables at the beginning of each part of a UNION
    hands_out: bool = False
    returned: frozenset[str] = frozenset()


class Patterns:
    """A position in a statement, and a parser for the patterns that begin there.

    It records where the mark, a property of a node, must be inserted.
    """

    def __init__(self, statement: str, mark: str):
        self.statement, self.mark = statement, mark
        self.tokens = list(cypher_tokens(statement))
        self.pairs = _pairs(self.tokens)
        self.at, self.walks = 0, False
        self.added: list[tuple[int, str]] = []
        # variables that are certainly bound; an uncertain one is marked, and the server refuses it
        self.known: frozenset[str] = frozenset()
        self.frames: list[Frame] = [Frame("")]

    def step(self) -> None:
        """Parse one token of an expression, or everything that it opens."""
        raise NotImplementedError

    # --- tokens ---

    def peek(self, ahead: int = 0) -> CypherToken:
        at = self.at + ahead
        return self.tokens[at] if 0 <= at < len(self.tokens) else NO_TOKEN

    def named(self, token: CypherToken) -> str:
        """Return the name that a word or a quoted name denotes, or "" for any other token."""
        text = self.statement[token.start : token.end]
        if token.kind == "quoted":
            return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text[1:-1].replace("``", "`"))
        return text if token.kind == "word" else ""

    def expect(self, text: str, where: str) -> None:
        if self.peek().text != text:
            self.refuse(where)
        self.at += 1

    def refuse(self, why: str) -> NoReturn:
        token = self.peek()
        near = self.statement[token.start : token.start + 30] if token is not NO_TOKEN else "the end"
        raise RefusedClause(f"{why} (near {near!r})")

    def open(self, frame: Frame) -> None:
        if len(self.frames) > _DEEPEST:
            self.refuse(f"brackets are nested more than {_DEEPEST} deep")
        self.frames.append(frame)
        self.at += 1

    def close(self) -> None:
        frame = self.frames.pop()
        if frame.outer is not None:
            self.known = frame.outer | (frame.returned if frame.hands_out else frozenset())
        self.at += 1

    def until(self, end: int) -> None:
        """Parse all tokens up to the position `end`."""
        while self.at < end:
            self.step()

    # --- patterns ---

    def patterns(self, *, reading: bool) -> None:
        """Parse comma-separated paths."""
        self.path(reading=reading)
        while self.peek().text == ",":
            self.at += 1
            self.path(reading=reading)

    def path(self, *, reading: bool) -> None:
        """Parse a path of nodes and relationships.

        A reading pattern may also have parenthesized groups of both.
        """
        if self.named(self.peek()) and self.peek(1).text == "=":
            self.known |= {self.named(self.peek())}
            self.at += 2
        while self.peek().text in _SELECTING or self.peek().kind == "number":
            self.walks = True
            self.at += 1
        if self.peek().text in _SHORTEST and self.peek(1).text == "(":
            self.walks = True
            self.at += 1
            self._group(reading=reading)
            return
        while True:
            if self._is_group():
                self._group(reading=reading)
                self._quantifier()
            else:
                self._node(reading=reading)
            if self._begins_relationship(self.at):
                self._relationship(reading=reading)
            elif self.peek().text != "(":
                return

    def _is_group(self) -> bool:
        return self.peek().text == "(" and (
            self.peek(1).text == "(" or (bool(self.named(self.peek(1))) and self.peek(2).text == "=")
        )

    def _group(self, *, reading: bool) -> None:
        if not reading:
            self.refuse("CREATE and MERGE take no path in brackets")
        self.walks = True
        end = self.pairs[self.at]
        self.open(Frame(")"))
        self.path(reading=reading)
        self.until(end)  # perhaps a WHERE
        self.close()

    def _quantifier(self) -> None:
        if self.peek().text in ("+", "*"):
            self.walks = True
            self.at += 1
        elif self.peek().text == "{":
            if not all(
                each.kind == "number" or each.text == ","
                for each in self.tokens[self.at + 1 : self.pairs[self.at]]
            ):
                self.refuse("how often a part of a path may follow itself is written {1,3}")
            self.walks = True
            self.at = self.pairs[self.at] + 1

    def _node(self, *, reading: bool) -> None:
        """Parse a node in parentheses: (name :labels {properties} WHERE condition), each part optional."""
        if self.peek().text != "(":
            self.refuse("a pattern of nodes should stand here")
        end = self.pairs[self.at]
        self.open(Frame(")"))
        name = "" if self.peek().text in ("WHERE", "IS") else self.named(self.peek())
        self.at += bool(name)
        bare = bool(name) and self.at == end
        self._labels()
        if self.peek().text == "{":
            empty = self.peek(1).text == "}"
            self.added.append((self.peek().end, f"{OWN_PROPERTIES[0]}: {self.mark}{'' if empty else ', '}"))
            closing = self.pairs[self.at]
            self.open(Frame("}"))
            self.until(closing)
            self.close()
        elif reading or not (bare and name in self.known):
            self.added.append((self.peek(-1).end, f" {{{OWN_PROPERTIES[0]}: {self.mark}}}"))
        if self.peek().text == "WHERE" and self.at < end:
            self.at += 1
            self.until(end)
        if self.at != end:
            self.refuse("a node is written (name:Label {property: value})")
        self.close()
        self.known |= {name} - {""}

    def _labels(self) -> None:
        if self.peek().text != ":" and self.peek().text != "IS":
            return
        while self.peek().text in (":", "IS", "|", "&", "!", "%", "(") or self.named(self.peek()):
            if self.peek().text == "WHERE" and self.peek(-1).text not in (":", "|", "&", "!", "IS"):
                return
            if self.peek().text == "(":
                inside = self.tokens[self.at + 1 : self.pairs[self.at]]
                if not all(
                    self.named(each) or each.text in (":", "|", "&", "!", "%", "(", ")") for each in inside
                ):
                    self.refuse("the labels of a node are written out")
                self.at = self.pairs[self.at]
            self.at += 1

    def begins_path(self) -> bool:
        """Return whether a parenthesis in an expression opens a path, judged by its shape.

        A path is a node followed by a relationship and another node.
        """
        after = self.pairs[self.at] + 1
        return self._begins_relationship(after) and self._text(self._end_of_relationship(after)) in (
            "(",
            "+",
            "*",
            "{",
        )

    def _begins_relationship(self, at: int) -> bool:
        at += self._text(at) == "<"
        return self._text(at) == "-" and self._text(at + 1) in ("-", "[")

    def _end_of_relationship(self, at: int) -> int:
        at += self._text(at) == "<"
        at += 1
        at = self.pairs[at] + 1 if self._text(at) == "[" else at
        at += self._text(at) == "-"
        return at + (self._text(at) == ">")

    def _text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _relationship(self, *, reading: bool) -> None:
        """Parse a relationship with its arrow: -->, <-[name:TYPE*1..3 {properties}]-.

        In a reading pattern a quantifier may follow.
        """
        end = self._end_of_relationship(self.at)
        while self.at < end and self.peek().text != "[":
            self.at += 1
        if self.peek().text == "[":
            closing = self.pairs[self.at]
            self.open(Frame("]"))
            if self.named(self.peek()) and self.peek().text not in ("WHERE", "IS"):
                self.known |= {self.named(self.peek())}
                self.at += 1
            self.walks = self.walks or any(each.text == "*" for each in self.tokens[self.at : closing])
            self.until(closing)
            self.close()
            self.at = end
        if reading:
            self._quantifier()


def _pairs(tokens: list[CypherToken]) -> dict[int, int]:
    """Map the position of each opening bracket to that of its closing one.

    Raises RefusedClause if a bracket is not closed, or is closed by another kind.
    """
    open_at: list[int] = []
    pairs: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if token.text in OPENING:
            open_at.append(at)
        elif token.text in OPENING.values():
            if not open_at or OPENING[tokens[open_at[-1]].text] != token.text:
                raise RefusedClause(f"the bracket {token.text} closes none")
            pairs[open_at.pop()] = at
    if open_at:
        raise RefusedClause(f"the bracket {tokens[open_at[-1]].text} is not closed")
    return pairs


# Search a namespace of a Bolt server without reading all of it: one step of a walk is one query, from however
# many nodes.
#
# A node is found by its element id (its place), remembered since it was last seen. If another node or none
# has that id now, or the node was never seen, all nodes are scanned once.

_SCAN = (  # a map is looked up, a list would be searched for each node
    "MATCH (n {_run: $run}) WHERE $ids[n.id] IS NOT NULL RETURN n.id, elementId(n)"
)
_HERE = "UNWIND $rows AS row MATCH (n) WHERE elementId(n) = row[1] AND n.id = row[0] AND n._run = $run "
_EDGES = (
    _HERE
    + "OPTIONAL MATCH (n)-[r]-(m {_run: $run}) RETURN n.id, startNode(r) = n, type(r), m.id, properties(r), elementId(m)"
)
_NEXT = _HERE + "OPTIONAL MATCH (n)--(m {_run: $run}) RETURN DISTINCT m.id, elementId(m)"
_LABELS = "MATCH (n {_run: $run}) RETURN labels(n), count(n)"
_TYPES = "MATCH ({_run: $run})-[r]->({_run: $run}) RETURN type(r), count(r) ORDER BY type(r)"
_FOUND = """
MATCH (n {_run: $run})
WITH n, toLower(n.id) AS name, [key IN keys(n) WHERE NOT key IN ['id', '_run', '_kept', '_labels']] AS own
WITH n, name, reduce(found = [], key IN own | found + n[key]) AS found
WITH n, name, toLower(reduce(text = '', value IN found | text + ' ' + coalesce(toStringOrNull(value), ''))) AS text
WITH n, name, reduce(score = 0, word IN $words | score + CASE WHEN name CONTAINS word THEN 2 * size(word) ELSE 0 END
  + CASE WHEN text CONTAINS word THEN size(word) ELSE 0 END) AS score
WHERE score > 0
RETURN n.id, labels(n), properties(n) ORDER BY score DESC, size(name), name LIMIT $most
"""  # long words have a higher weight, because they are rarer


_PART = "any(key IN keys(x) WHERE NOT key IN ['id', '_run', '_kept', '_labels', '_key'] AND {test})"
_HELD = (  # IN takes lists and single values alike; a time is held as the text that rows show
    "$value IN ([] + x[key]) OR (toStringOrNull(x[key]) = $text AND toFloatOrNull(x[key]) IS NULL AND toBooleanOrNull(x[key]) IS NULL)"
)
_ENCODED = "toStringOrNull(x[key]) STARTS WITH 'json:' AND toStringOrNull(x[key]) CONTAINS $piece"
_HOLDS = (
    f"MATCH (x {{_run: $run}}) WHERE x.id = $value OR $value IN labels(x) OR {_PART.format(test=f'({_HELD})')} RETURN 1 LIMIT 1",
    f"MATCH ({{_run: $run}})-[x]->({{_run: $run}}) WHERE type(x) = $value OR {_PART.format(test=f'({_HELD})')} RETURN 1 LIMIT 1",
)
_MAY_HOLD = tuple(
    f"MATCH {pattern} WHERE {_PART.format(test=_ENCODED)} RETURN properties(x) LIMIT 1000"
    for pattern in ("(x {_run: $run})", "({_run: $run})-[x]->({_run: $run})")
)
_BETWEEN = (
    _HERE
    + "MATCH (n)-[r]->(m {_run: $run}) WHERE $ids[m.id] IS NOT NULL RETURN n.id, type(r), m.id, properties(r)"
)


class Looking:
    """Queries of a graph, with the element ids of the nodes seen so far."""

    def __init__(self, ask: Ask):
        self._ask = ask
        self.places: dict[str, str] = {}

    def moved(self, gone: Iterable[str], places: Mapping[str, str]) -> None:
        """Drop the element ids of some nodes, and record those of others."""
        for id in gone:
            self.places.pop(id, None)
        self.places.update(places)

    def locate(self, ask: Ask, ids: Iterable[str]) -> dict[str, str]:
        """Return the element ids of the nodes that exist, by node id."""
        ids = list(ids)
        known = [[id, self.places[id]] for id in ids if id in self.places]
        found = dict(ask(_HERE + "RETURN n.id, elementId(n)", {"rows": known})) if known else {}
        missing = {id: True for id in ids if id not in found}
        if missing:
            found |= dict(ask(_SCAN, {"ids": missing}))
        self.places.update(found)
        return found

    def incident(self, ids: list[str]) -> dict[str, list[Edge]]:
        """Return the edges of some nodes, by node id.

        A node that does not exist has no entry.
        """
        known = [[id, self.places[id]] for id in ids if id in self.places]
        rows = self._ask(_EDGES, {"rows": known}) if known else []
        if len({row[0] for row in rows}) < len(ids):  # some have moved, or are unknown
            rows = self._ask(_EDGES, {"rows": [list(each) for each in self.locate(self._ask, ids).items()]})
        edges: dict[str, list[Edge]] = {row[0]: [] for row in rows}
        for id, leaves, type, other, stored, place in rows:
            if type is not None:
                ends = (id, type, other) if leaves else (other, type, id)
                edges[id].append(Edge(*ends, edge_properties(timeless(stored)), own_key(stored)))
                self.places[other] = place
        return edges

    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type, by name."""
        kinds = self._ask(_LABELS, {})
        relations = {type: int(number) for type, number in self._ask(_TYPES, {})}
        labels: dict[str, int] = {}
        for names, number in kinds:
            for label in names:
                labels[label] = labels.get(label, 0) + number
        return Schema(
            dict(sorted(labels.items())),
            relations,
            sum(number for _, number in kinds),
            sum(relations.values()),
        )

    def search(self, words: str, limit: int) -> tuple[Node, ...]:
        """Return the nodes that share words with a query, best first.

        The server matches substrings. Whole words are matched here.
        """
        wanted = casefold_words(words)
        if not wanted or limit < 1:
            return ()
        rows = self._ask(
            _FOUND, {"words": sorted({*wanted, *words.lower().split()}), "most": 100 + 20 * limit}
        )
        index, nodes = WordIndex(), {}
        for id, labels, stored in rows:
            nodes[id] = Node(id, tuple(ordered_labels(labels, stored)), node_properties(timeless(stored)))
            index.add(nodes[id])
        return tuple(nodes[id] for id in index.best(wanted, limit))

    def holds(self, value: Scalar) -> bool:
        """Return whether the graph contains a text or a number exactly.

        Lists and dicts that the server cannot store natively are searched here.
        """
        text = value if isinstance(value, str) else None
        if any(self._ask(query, {"value": _storable(value), "text": text}) for query in _HOLDS):
            return True
        found = (stored for query in _MAY_HOLD for (stored,) in self._ask(query, {"piece": _spelled(value)}))
        return any(value in scalars_in(node_properties(timeless(stored))) for stored in found)

    def edges_between(self, ids: Collection[str]) -> tuple[Edge, ...]:
        """Return the edges whose two ends are both among the given nodes."""
        places = [list(each) for each in self.locate(self._ask, ids).items()]
        rows = self._ask(_BETWEEN, {"rows": places, "ids": dict.fromkeys(ids, True)}) if places else []
        return tuple(
            Edge(one, type, other, edge_properties(timeless(own)), own_key(own))
            for one, type, other, own in rows
        )

    def within(self, id: str, hops: int) -> dict[str, int]:
        """Return the nodes within some hops, each with its distance, by breadth-first search."""
        depth: dict[str, int] = {}
        frontier = self.locate(self._ask, [id])
        for level in range(hops + 1):
            depth.update(dict.fromkeys(frontier, level))
            if level == hops or not frontier:
                break
            rows = self._ask(_NEXT, {"rows": [list(each) for each in frontier.items()]})
            frontier = {end: place for end, place in rows if end is not None and end not in depth}
            self.places.update(frontier)
        return depth

    def path(self, source: str, target: str, most: int) -> tuple[Edge, ...]:
        """Return a shortest undirected path of at most `most` edges, or () if there is none."""
        return path_between(source, target, most, _Frontiers(self.incident))


def _storable(value: Scalar) -> Scalar | None:
    """Return a value as it can be sent to a server.

    A number that is too large becomes None, which no graph contains.
    """
    return value if not isinstance(value, int) or -(2**63) <= value < 2**63 else None


def _spelled(value: Scalar) -> str:
    """Return the text with which a value begins in JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return (
        str(int(value))
        if isinstance(value, int) or (math.isfinite(value) and value.is_integer() and abs(value) < 1e15)
        else repr(value)
    )


class _Frontiers:
    """The edges of a node, read together with those of all nodes that were found in the same step."""

    def __init__(self, incident: Callable[[list[str]], dict[str, list[Edge]]]):
        self._incident = incident
        self._edges: dict[str, list[Edge]] = {}
        self._together: dict[str, list[str]] = {}

    def __call__(self, id: str) -> list[Edge]:
        if id not in self._edges:
            ids = self._together.get(id, [id])
            self._edges |= {each: [] for each in ids} | self._incident(ids)
            ends = dict.fromkeys(
                end for each in ids for edge in self._edges[each] for end in (edge.source, edge.target)
            )
            found = [end for end in ends if end not in self._edges and end not in self._together]
            self._together |= dict.fromkeys(found, found)
        return self._edges[id]
