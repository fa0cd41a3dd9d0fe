"""Parse Cypher patterns strictly, to mark each node of a statement, and search a namespace.

The search does not read the whole namespace. Brackets in a pattern contain an expression, which may contain
further patterns. `confine_statement` parses it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import NoReturn

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_count
from kgot_lab.sandbox.cypher.mapping import edge_properties, node_properties, ordered_labels, own_key
from kgot_lab.stores.cypher.connection import RunQuery
from kgot_lab.stores.cypher.dump import temporal_as_text
from kgot_lab.stores.cypher.statements import CypherToken, RefusedClause, cypher_tokens
from kgot_lab.stores.lookup import WordIndex
from kgot_lab.stores.protocol import Schema
from kgot_lab.text.words import casefold_words
from kgot_lab.types import Edge, Node

# the properties that mark the namespace of a node, and that its store knows it
OWN_PROPERTIES = ("_run", "_kept")
BRACKETS = {"(": ")", "[": "]", "{": "}"}
NO_TOKEN = CypherToken("sign", "")
_ESCAPED = re.compile(r"\\u+([0-9a-fA-F]{4})")
_PATH_SELECTORS = frozenset("ANY ALL SHORTEST GROUP GROUPS PATH PATHS".split())
_SHORTEST = ("SHORTESTPATH", "ALLSHORTESTPATHS")
_MAX_NESTING = 100  # nested brackets; each costs a recursive call here


@dataclass
class Frame:
    """An open bracket.

    A subquery has its own variables, and may return some.
    """

    closing: str
    outer_variables: frozenset[str] | None = None  # the variables of the outer scope, for a subquery
    initial_variables: frozenset[str] = frozenset()  # the variables at the beginning of each part of a UNION
    exports_variables: bool = False
    returned: frozenset[str] = frozenset()


class PatternParser:
    """A position in a statement, and a parser for the patterns that begin there.

    It records where the mark, a property of a node, must be inserted.
    """

    def __init__(self, statement: str, mark: str):
        self.statement, self.mark = statement, mark
        self.tokens = list(cypher_tokens(statement))
        self.pairs = _bracket_pairs(self.tokens)
        self.position, self.has_variable_length_path = 0, False
        self.insertions: list[tuple[int, str]] = []
        # variables that are certainly bound; an uncertain one is marked, and the server refuses it
        self.bound_variables: frozenset[str] = frozenset()
        self.frames: list[Frame] = [Frame("")]

    def parse_step(self) -> None:
        """Parse one token of an expression, or everything that it opens."""
        raise NotImplementedError

    # --- tokens ---

    def peek(self, ahead: int = 0) -> CypherToken:
        index = self.position + ahead
        return self.tokens[index] if 0 <= index < len(self.tokens) else NO_TOKEN

    def token_name(self, token: CypherToken) -> str:
        """Return the name that a word or a quoted name denotes, or "" for any other token."""
        text = self.statement[token.start : token.end]
        if token.kind == "quoted":
            return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text[1:-1].replace("``", "`"))
        return text if token.kind == "word" else ""

    def expect(self, text: str, where: str) -> None:
        if self.peek().text != text:
            self.refuse(where)
        self.position += 1

    def refuse(self, why: str) -> NoReturn:
        token = self.peek()
        near = self.statement[token.start : token.start + 30] if token is not NO_TOKEN else "the end"
        raise RefusedClause(f"{why} (near {near!r})")

    def open_frame(self, frame: Frame) -> None:
        if len(self.frames) > _MAX_NESTING:
            self.refuse(f"brackets are nested more than {_MAX_NESTING} deep")
        self.frames.append(frame)
        self.position += 1

    def close_frame(self) -> None:
        frame = self.frames.pop()
        if frame.outer_variables is not None:
            returned = frame.returned if frame.exports_variables else frozenset()
            self.bound_variables = frame.outer_variables | returned
        self.position += 1

    def parse_until(self, end: int) -> None:
        """Parse all tokens up to the position `end`."""
        while self.position < end:
            self.parse_step()

    # --- patterns ---

    def parse_patterns(self, *, reading: bool) -> None:
        """Parse comma-separated paths."""
        self.parse_path(reading=reading)
        while self.peek().text == ",":
            self.position += 1
            self.parse_path(reading=reading)

    def parse_path(self, *, reading: bool) -> None:
        """Parse a path of nodes and relationships.

        A reading pattern may also have parenthesized groups of both.
        """
        if self.token_name(self.peek()) and self.peek(1).text == "=":
            self.bound_variables |= {self.token_name(self.peek())}
            self.position += 2
        while self.peek().text in _PATH_SELECTORS or self.peek().kind == "number":
            self.has_variable_length_path = True
            self.position += 1
        if self.peek().text in _SHORTEST and self.peek(1).text == "(":
            self.has_variable_length_path = True
            self.position += 1
            self._parse_group(reading=reading)
            return
        while True:
            if self._is_group():
                self._parse_group(reading=reading)
                self._parse_quantifier()
            else:
                self._parse_node(reading=reading)
            if self._begins_relationship(self.position):
                self._parse_relationship(reading=reading)
            elif self.peek().text != "(":
                return

    def _is_group(self) -> bool:
        return self.peek().text == "(" and (
            self.peek(1).text == "(" or (bool(self.token_name(self.peek(1))) and self.peek(2).text == "=")
        )

    def _parse_group(self, *, reading: bool) -> None:
        if not reading:
            self.refuse("CREATE and MERGE take no path in brackets")
        self.has_variable_length_path = True
        end = self.pairs[self.position]
        self.open_frame(Frame(")"))
        self.parse_path(reading=reading)
        self.parse_until(end)  # perhaps a WHERE
        self.close_frame()

    def _parse_quantifier(self) -> None:
        if self.peek().text in ("+", "*"):
            self.has_variable_length_path = True
            self.position += 1
        elif self.peek().text == "{":
            inside = self.tokens[self.position + 1 : self.pairs[self.position]]
            if not all(token.kind == "number" or token.text == "," for token in inside):
                self.refuse("how often a part of a path may follow itself is written {1,3}")
            self.has_variable_length_path = True
            self.position = self.pairs[self.position] + 1

    def _parse_node(self, *, reading: bool) -> None:
        """Parse a node in parentheses: (name :labels {properties} WHERE condition), each part optional."""
        if self.peek().text != "(":
            self.refuse("a pattern of nodes should stand here")
        end = self.pairs[self.position]
        self.open_frame(Frame(")"))
        name = "" if self.peek().text in ("WHERE", "IS") else self.token_name(self.peek())
        self.position += bool(name)
        is_bare = bool(name) and self.position == end
        self._parse_labels()
        if self.peek().text == "{":
            separator = "" if self.peek(1).text == "}" else ", "
            self.insertions.append((self.peek().end, f"{OWN_PROPERTIES[0]}: {self.mark}{separator}"))
            closing = self.pairs[self.position]
            self.open_frame(Frame("}"))
            self.parse_until(closing)
            self.close_frame()
        elif reading or not (is_bare and name in self.bound_variables):
            self.insertions.append((self.peek(-1).end, f" {{{OWN_PROPERTIES[0]}: {self.mark}}}"))
        if self.peek().text == "WHERE" and self.position < end:
            self.position += 1
            self.parse_until(end)
        if self.position != end:
            self.refuse("a node is written (name:Label {property: value})")
        self.close_frame()
        self.bound_variables |= {name} - {""}

    def _parse_labels(self) -> None:
        if self.peek().text != ":" and self.peek().text != "IS":
            return
        while self.peek().text in (":", "IS", "|", "&", "!", "%", "(") or self.token_name(self.peek()):
            if self.peek().text == "WHERE" and self.peek(-1).text not in (":", "|", "&", "!", "IS"):
                return
            if self.peek().text == "(":
                inside = self.tokens[self.position + 1 : self.pairs[self.position]]
                operators = (":", "|", "&", "!", "%", "(", ")")
                if not all(self.token_name(token) or token.text in operators for token in inside):
                    self.refuse("the labels of a node are written out")
                self.position = self.pairs[self.position]
            self.position += 1

    def begins_path(self) -> bool:
        """Return whether a parenthesis in an expression opens a path, judged by its shape.

        A path is a node followed by a relationship and another node.
        """
        after = self.pairs[self.position] + 1
        if not self._begins_relationship(after):
            return False
        return self._token_text(self._relationship_end(after)) in ("(", "+", "*", "{")

    def _begins_relationship(self, index: int) -> bool:
        index += self._token_text(index) == "<"
        return self._token_text(index) == "-" and self._token_text(index + 1) in ("-", "[")

    def _relationship_end(self, index: int) -> int:
        index += self._token_text(index) == "<"
        index += 1
        index = self.pairs[index] + 1 if self._token_text(index) == "[" else index
        index += self._token_text(index) == "-"
        return index + (self._token_text(index) == ">")

    def _token_text(self, index: int) -> str:
        return self.tokens[index].text if index < len(self.tokens) else ""

    def _parse_relationship(self, *, reading: bool) -> None:
        """Parse a relationship with its arrow: -->, <-[name:TYPE*1..3 {properties}]-.

        In a reading pattern a quantifier may follow.
        """
        end = self._relationship_end(self.position)
        while self.position < end and self.peek().text != "[":
            self.position += 1
        if self.peek().text == "[":
            closing = self.pairs[self.position]
            self.open_frame(Frame("]"))
            if self.token_name(self.peek()) and self.peek().text not in ("WHERE", "IS"):
                self.bound_variables |= {self.token_name(self.peek())}
                self.position += 1
            inside = self.tokens[self.position : closing]
            self.has_variable_length_path |= any(token.text == "*" for token in inside)
            self.parse_until(closing)
            self.close_frame()
            self.position = end
        if reading:
            self._parse_quantifier()


def _bracket_pairs(tokens: list[CypherToken]) -> dict[int, int]:
    """Map the position of each opening bracket to that of its closing one.

    Raises RefusedClause if a bracket is not closed, or is closed by another kind.
    """
    open_at: list[int] = []
    pairs: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token.text in BRACKETS:
            open_at.append(index)
        elif token.text in BRACKETS.values():
            if not open_at or BRACKETS[tokens[open_at[-1]].text] != token.text:
                raise RefusedClause(f"the bracket {token.text} closes none")
            pairs[open_at.pop()] = index
    if open_at:
        raise RefusedClause(f"the bracket {tokens[open_at[-1]].text} is not closed")
    return pairs


# Search a namespace of a Bolt server without reading all of it.

_EDGES = "MATCH (n {_run: $run, id: $id})-[r]-(m {_run: $run}) RETURN startNode(r) = n, type(r), m.id, properties(r)"
_LABELS = "MATCH (n {_run: $run}) RETURN labels(n), count(n)"
_TYPES = "MATCH ({_run: $run})-[r]->({_run: $run}) RETURN type(r), count(r) ORDER BY type(r)"
_SEARCH = """
MATCH (n {_run: $run})
WITH n, toLower(n.id) AS name, [key IN keys(n) WHERE NOT key IN ['id', '_run', '_kept', '_labels']] AS own
WITH n, name, reduce(found = [], key IN own | found + n[key]) AS found
WITH n, name, toLower(reduce(text = '', value IN found | text + ' ' + coalesce(toStringOrNull(value), ''))) AS text
WITH n, name, reduce(score = 0, word IN $words | score + CASE WHEN name CONTAINS word THEN 2 * size(word) ELSE 0 END
  + CASE WHEN text CONTAINS word THEN size(word) ELSE 0 END) AS score
WHERE score > 0
RETURN n.id, labels(n), properties(n) ORDER BY score DESC, size(name), name LIMIT $most
"""  # long words have a higher weight, because they are rarer


@check_arguments
class NodeLookup:
    """The queries of a namespace."""

    _query: RunQuery

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges, in the server's order.

        Empty if there is no such node.
        """
        edges: list[Edge] = []
        for is_outgoing, type, other_id, stored in self._query(_EDGES, {"id": id}):
            source, target = (id, other_id) if is_outgoing else (other_id, id)
            edges.append(
                Edge(source, type, target, edge_properties(temporal_as_text(stored)), own_key(stored))
            )
        return tuple(edges)

    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type, by name."""
        label_counts = self._query(_LABELS, {})
        relations = {type: int(count) for type, count in self._query(_TYPES, {})}
        labels = Counter[str]()
        for names, count in label_counts:
            labels.update(dict.fromkeys(names, count))
        nodes, edges = sum(count for _, count in label_counts), sum(relations.values())
        return Schema(dict(sorted(labels.items())), relations, nodes, edges)

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query in their name or properties, best first.

        The server matches substrings. Whole words are matched and scored here.
        """
        require_count(limit, 0, "limit")
        wanted = casefold_words(words)
        if not wanted or not limit:
            return ()
        searched = sorted({*wanted, *words.lower().split()})
        rows = self._query(_SEARCH, {"words": searched, "most": 100 + 20 * limit})
        index, nodes = WordIndex(), {}
        for id, labels, stored in rows:
            properties = node_properties(temporal_as_text(stored))
            nodes[id] = Node(id, tuple(ordered_labels(labels, stored)), properties)
            index.add(nodes[id])
        return tuple(nodes[id] for id in index.best_matches(wanted, limit))
