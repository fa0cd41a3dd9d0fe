"""Functions of the SQL stores: values to rows and back, diffs from journals, and allowed statements.

Each store has the tables nodes(id, labels, properties) and edges(source, type, target, key, properties), with
labels and properties in JSON, and the view facts(subject, relation, object, key, properties) of the edges. A
row inserted there adds an edge and its missing nodes, or adds its properties to the edge that exists.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from kgot_lab.errors import BadInput, QueryFailed
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Identity, MutableGraph, compare_tables, same_element
from kgot_lab.graph.validation import validate_edge, validate_node, validate_value
from kgot_lab.stores.protocol import DIALECT_TEXTS, Dialect, Fact, Schema, UndoableStore
from kgot_lab.stores.statements import require_statement
from kgot_lab.types import Diff, Edge, Json, Node

SqlRow = tuple[Any, ...]
SqlTable = Literal["nodes", "edges"]


Change = tuple[Node | Edge | None, Node | Edge | None]  # an element before and after a change, None for none


def journal_diff(journal: Iterable[Change]) -> Diff:
    """Return the exact diff of a journal of changes in the order they were made.

    Changes of one row become one, and a change and its undo none. A row whose identity changed is one removed
    and one added.
    """
    first, last = dict[Any, Node | Edge | None](), dict[Any, Node | Edge | None]()
    for change in journal:
        for element, after in ((change[0], None), (change[1], change[1])):
            if element is not None:
                identity = element.id if isinstance(element, Node) else element.identity
                first.setdefault(identity, element if after is None else None)
                last[identity] = after
    changes: list[Any] = []
    for kind in (Node, Edge):
        both = (first, last)
        old, new = ({key: e for key, e in states.items() if isinstance(e, kind)} for states in both)
        changes += compare_tables(old, new, same_element)
    return Diff(*changes)


def _row_element(table: str, row: Any) -> Node | Edge:
    if table == "nodes":
        id, labels, properties = row
        return Node(id, tuple(labels), properties)
    source, type, target, key, properties = row
    return Edge(source, type, target, properties, key)


# --- rows and values ---

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def json_text(value: Json, owner: str) -> str:
    """Serialize a value as JSON text that parses back to exactly that value.

    Raises BadInput, which names what the value belongs to, if there is no such text.
    """
    return _encode(validate_value(value, owner))


def parse_json(text: str, owner: str) -> Json:
    """Parse JSON text.

    Raises BadInput if it is not valid.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{owner} is not JSON: {error}") from None


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


def parse_change(
    table: SqlTable, before: str | None, after: str | None, parse: Callable[[str, str], Json] = parse_json
) -> Change:
    """Parse one line of a journal, whose rows are JSON lists.

    Raises BadInput if the new row is no valid node or edge: an id may be blank, a label no text, a number too large.
    """
    old, new = (
        None if text is None else _row_element(table, parse(text, f"a row of {table}, {text[:60]}…,"))
        for text in (before, after)
    )
    if new is not None:
        validate_node(new) if isinstance(new, Node) else validate_edge(new)
    return old, new


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
_WRITES = {"INSERT", "UPDATE", "DELETE"}
_WRITE_WORDS = _WRITES | {"MERGE", "INTO"}  # in a CTE, or SELECT … INTO a new table


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


def refuse_unless_sql_write(statement: str, *, brackets: bool = True) -> None:
    """Raise QueryFailed unless a statement is a single INSERT, UPDATE or DELETE, perhaps after WITH."""
    words = _statement_words(statement, brackets)
    if words[0] not in _WRITES and not (words[0] == "WITH" and _WRITES.intersection(words)):
        allowed = "a write is one INSERT, UPDATE or DELETE on nodes, edges or facts"
        raise QueryFailed(statement, f"{allowed}, not {words[0]}")


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


# SQL, as the prompts describe it, and the statements built by rule. The module docstring describes the tables.

MAX_PART_LENGTH = 60  # characters of a name that is matched as a part of other names


def sql_literal(text: str) -> str:
    """Format a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def sql_dialect(name: str, *, merged: str = "merged(nodes.properties, excluded.properties)") -> Dialect:
    """Describe SQL for a prompt.

    `name` is the name of the dialect, and `merged` the engine's expression for the properties of a node that a
    row adds to.
    """
    return Dialect(
        name=name,
        **DIALECT_TEXTS["sql"],
        add=_add_facts,
        about=_neighbourhood_query,
        paths=_refuse_paths,
        node=lambda node: _format_row(node_row(node)),
        edge=lambda edge: _format_row(edge_row(edge)),
        label=partial(_label_nodes, merged=merged),
    )


def _format_row(texts: Iterable[str]) -> str:
    return f"({', '.join(map(sql_literal, texts))})"


def _add_facts(facts: Sequence[Fact]) -> str:
    edges = (Edge(triple.subject, triple.relation, triple.object, properties) for triple, properties in facts)
    rows = map(edge_row, edges)
    values = ",\n".join(_format_row((*ends, properties)) for *ends, _, properties in rows)
    return f"INSERT INTO facts (subject, relation, object, properties) VALUES\n{values}"


def _label_nodes(nodes: Sequence[Node], merged: str) -> str:
    values = ",\n".join(_format_row(node_row(node)) for node in nodes)
    return (
        f"INSERT INTO nodes (id, labels, properties) VALUES\n{values}\n"
        f"ON CONFLICT (id) DO UPDATE SET labels = excluded.labels, properties = {merged}"
    )


def _refuse_paths(names: Sequence[str], scores: Mapping[str, float], limit: int) -> str:
    raise BadInput("paths of sentences are read in Python, Cypher and SPARQL: take a store for one of these")


_NEIGHBOURHOOD = Path(__file__).with_name("neighbourhood.sql").read_text(encoding="utf-8").rstrip("\n")


def _neighbourhood_query(names: Sequence[str], hops: int) -> str:
    """Build the query for the edges around some names, one row per edge, nearest first.

    Names are compared without case. A name that no node has matches all nodes whose id contains it.
    """
    patterns = (f"({sql_literal(name)}, {sql_literal(_like_pattern(name))})" for name in names)
    wanted = ", ".join(patterns) or "(NULL, NULL)"
    return _NEIGHBOURHOOD.format(wanted=wanted, farther_hops=max(1, hops) - 1)


def _like_pattern(name: str) -> str:
    """Return the LIKE pattern for texts that contain a name.

    Empty for a long name, which then matches nothing, because engines limit the length of patterns.
    """
    return "%" + re.sub(r"([!%_])", r"!\1", name) + "%" if len(name) <= MAX_PART_LENGTH else ""
