"""Functions of the SQL stores: values to rows and back, and allowed statements.

Each store has the tables nodes(id, labels, properties) and edges(source, type, target, key, properties), with
labels and properties in JSON, and the view facts(subject, relation, object, key, properties) of the edges.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Identity, MutableGraph
from kgot_lab.graph.validation import validate_edge, validate_node, validate_value
from kgot_lab.stores.protocol import DIALECT_TEXTS, Dialect, Schema, UndoableStore
from kgot_lab.stores.statements import require_statement
from kgot_lab.types import Diff, Edge, Json, Node

SqlRow = tuple[Any, ...]


# --- rows and values ---

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def json_text(value: Json, owner: str) -> str:
    """Serialize a value as JSON text that parses back to exactly that value.

    Raises BadInput, which names what the value belongs to, if there is no such text.
    """
    return _encode(validate_value(value, owner))


def node_row(node: Node) -> tuple[str, str, str]:
    """Return a node as id, labels and properties, the latter two as JSON text.

    Raises BadInput if a value cannot be stored exactly.
    """
    valid = validate_node(node)
    return valid.id, _encode(valid.labels), _encode(valid.properties)


def edge_row(edge: Edge) -> tuple[str, str, str, str, str]:
    """Return an edge as source, type, target, key and properties, the last as JSON text.

    Raises BadInput if a value cannot be stored exactly.
    """
    valid = validate_edge(edge)
    return valid.source, valid.type, valid.target, valid.key, _encode(valid.properties)


def node_from_row(row: SqlRow, parse: Callable[[str], Any] = json.loads) -> Node:
    """Convert a row, with labels and properties as JSON text, to a node."""
    id, labels, properties = row
    return Node(
        id, tuple(parse(labels)) if labels != "[]" else (), parse(properties) if properties != "{}" else {}
    )


def edge_from_row(row: SqlRow, parse: Callable[[str], Any] = json.loads) -> Edge:
    """Convert a row, with properties as JSON text, to an edge."""
    source, type, target, key, properties = row
    return Edge(source, type, target, parse(properties) if properties != "{}" else {}, key)


def refuse_null(text: str, owner: str) -> str:
    """Return JSON text. Raises BadInput if it holds the character NUL, which PostgreSQL cannot keep."""
    if "\\u0000" in text.replace("\\\\", ""):
        raise BadInput(f"{owner} holds a null byte, which PostgreSQL cannot keep in a text: {text[:100]}")
    return text


# --- diffs ---


def touched_keys(diff: Diff) -> tuple[list[str], list[Identity]]:
    """Return the node ids and edge identities whose rows decide whether a diff can be applied.

    The edges at the removed nodes decide too, and are not included.
    """
    nodes = (*diff.added_nodes, *diff.removed_nodes, *(before for before, _ in diff.changed_nodes))
    edges = (*diff.added_edges, *diff.removed_edges, *(before for before, _ in diff.changed_edges))
    ends = (end for edge in diff.added_edges for end in (edge.source, edge.target))
    ids = dict.fromkeys((*(node.id for node in nodes), *ends))
    return list(ids), list(dict.fromkeys(edge.identity for edge in edges))


def require_fit(diff: Diff, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """Raise BadInput unless a diff fits the graph.

    `nodes` and `edges` are the touched nodes, the touched edges and the edges at removed nodes.
    """
    node_by_id, edge_by_identity = {node.id: node for node in nodes}, {edge.identity: edge for edge in edges}
    for edge in edge_by_identity.values():
        for end in (edge.source, edge.target):
            node_by_id.setdefault(end, Node(end))
    MutableGraph(node_by_id.values(), edge_by_identity.values()).check(diff)


# --- queries ---


class SqlGraph(UndoableStore):
    """The queries that every SQL store answers alike, with parameters named as in :id."""

    select_nodes: ClassVar[str]  # the columns that `_nodes` converts
    select_edges: ClassVar[str]
    _rows: Callable[..., list[Any]]  # [] for a text that the database cannot hold
    _snapshot: Callable[[], AbstractContextManager[object]]  # in which all queries see one state of the graph
    _nodes: Callable[[Iterable[SqlRow]], Iterator[Node]]
    _edges: Callable[[Iterable[SqlRow]], Iterator[Edge]]

    def write(self, statement: str) -> Diff:
        """Raise QueryFailed: a graph in SQL is changed by diffs."""
        require_statement(statement)
        raise QueryFailed(statement, _BY_DIFFS)

    def graph(self) -> PropertyGraph:
        """Return the whole graph in its current state, oldest elements first."""
        with self._snapshot():
            selects = (self.select_nodes, self.select_edges)
            nodes, edges = (self._rows(f"{select} ORDER BY number") for select in selects)
        return PropertyGraph.of(self._nodes(nodes), self._edges(edges))

    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type, by name."""
        with self._snapshot():
            groups = self._rows("SELECT CAST(labels AS text), count(*) FROM nodes GROUP BY labels")
            types = dict(self._rows("SELECT type, count(*) FROM edges GROUP BY type"))
        labels = Counter[str]()
        for text, times in groups:
            labels.update(dict.fromkeys(json.loads(text), times))
        nodes, edges = sum(times for _, times in groups), sum(types.values())
        return Schema(dict(sorted(labels.items())), dict(sorted(types.items())), nodes, edges)

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges, oldest first.

        Empty if there is no such node.
        """
        query = f"{self.select_edges} WHERE source = :id OR target = :id ORDER BY number"
        return tuple(self._edges(self._rows(query, id=id)))


# --- statements ---

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*(?:.*?\*/)?)|(?P<text>'(?:[^']++|'')*+')|(?P<name>\"(?:[^\"]++|\"\")*+\")|(?P<dollar>\$\w*\$)"
    r"|(?P<space>\s+)|(?P<word>[^\W\d][\w$]*)|(?P<number>\d+)|(?P<sign>.)",
    re.DOTALL,
)
_READS = {"SELECT", "WITH", "VALUES"}
_WRITE_WORDS = {"INSERT", "UPDATE", "DELETE", "MERGE", "INTO"}  # in a CTE, or SELECT … INTO a new table
_BY_DIFFS = "a graph in SQL is read by SELECT and changed by diffs (apply): statements that write are Python, Cypher or SPARQL"


def refuse_unless_sql_read(statement: str, *, brackets: bool = True) -> None:
    """Raise QueryFailed unless a statement is a single SELECT, WITH or VALUES without words that write.

    Words in quotes do not count. Without `brackets`, [ is refused too, because some engines read it as a
    quote. A statement that is ambiguous is refused.
    """
    words = _statement_words(statement, brackets)
    if words[0] not in _READS:
        raise QueryFailed(statement, f"a read begins with SELECT, WITH or VALUES, not {words[0]}")
    for word in words:
        if word in _WRITE_WORDS:
            problem = f"a read cannot {word}; put a name that is spelled so between quotes"
            raise QueryFailed(statement, f'{problem}: "{word.lower()}"')


def _statement_words(statement: str, brackets: bool) -> list[str]:
    """Return the words of a statement outside quotes and comments, in upper case.

    There is at least one. Raises QueryFailed if the statement is empty or uses syntax that is not allowed.
    """
    require_statement(statement)
    words: list[str] = []
    has_ended = False
    for token in _TOKEN.finditer(statement):
        kind, text = token.lastgroup, token[0]
        if kind == "comment":
            _refuse_ambiguous_comment(statement, text)
        if kind in ("space", "comment"):
            continue
        if has_ended:
            raise QueryFailed(statement, "one statement at a time: there is more after the semicolon")
        if not words and kind != "word" and text != "(":
            raise QueryFailed(statement, f"a statement begins with a word, not with {text[:20]!r}")
        has_ended = text == ";"
        if text in ("'", '"', "`", "\0") or kind == "dollar" or (text == "[" and not brackets):
            allowed = "texts stand between two ', names between two \""
            raise QueryFailed(statement, f"{text!r} cannot be used here: {allowed}")
        before = statement[token.start() - 1 : token.start()]
        if kind == "text" and "\\" in text and before in ("e", "E", "&"):
            raise QueryFailed(statement, "texts with escapes cannot be used here")
        if kind == "word":
            words.append(text.upper() if text.isascii() else text)
    if not words:
        raise QueryFailed(statement, "there is no statement")
    return words


def _refuse_ambiguous_comment(statement: str, comment: str) -> None:
    """Refuse a comment whose end engines disagree on, since neither reading is safe.

    Raises QueryFailed.
    """
    is_closed = comment.startswith("--") or (comment.endswith("*/") and len(comment) > 3)
    if not is_closed or "/*" in comment[2:] or "\r" in comment.rstrip("\r"):
        problem = "a comment that is open, holds another, or holds a bare carriage return"
        raise QueryFailed(statement, f"{problem} cannot be used here")


def sql_dialect(name: str) -> Dialect:
    """Describe SQL, in which a graph is read by SELECT. The statements that a loop makes are refused."""
    return Dialect(
        name=name,
        **DIALECT_TEXTS["sql"],
        add=_refuse_statement,
        about=_refuse_statement,
        paths=_refuse_statement,
        node=repr,
        edge=repr,
        label=_refuse_statement,
    )


def _refuse_statement(*_: object) -> str:
    raise BadInput(_BY_DIFFS)
