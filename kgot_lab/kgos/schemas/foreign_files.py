"""Read the graph in an SQLite file of another program, and report what could not be read."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments, parse_json
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import UNTYPED
from kgot_lab.graph.validation import Vocabulary, validate_value
from kgot_lab.io.processes import without_garbage_collection
from kgot_lab.io.sqlite.copies import open_copy
from kgot_lab.kgos.schemas.check import edge_text
from kgot_lab.kgos.schemas.profiles import (
    EDGE_TYPE_COLUMNS,
    Profile,
    Tables,
    detect_profile,
    end_columns,
    first_match,
    list_references,
    list_tables,
    name_columns,
    quote_name,
)
from kgot_lab.kgos.schemas.rules import RuleReport, UnreadRow, check_rules
from kgot_lab.kgos.schemas.vocabularies import VOCABULARIES
from kgot_lab.stores.files.elements import Elements, RawEdge, distinct_edges
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json, Node

# Read the rows of a table, and the properties in their JSON and other columns.


class Rows(NamedTuple):
    """The rows of a table, and the numbers of those with invalid UTF-8, which was replaced.

    `number` is the column that only numbers the rows, if there is one.
    """

    table: str
    records: list[dict[str, Json]]
    number: str
    replaced: frozenset[int]


def read_table(connection: sqlite3.Connection, table: str) -> Rows:
    """Read all rows of a table, in their order.

    Raises sqlite3.Error if it cannot be read.
    """
    table_info = connection.execute(f"PRAGMA table_info({quote_name(table)})").fetchall()
    names, keys = [row[1] for row in table_info], [row for row in table_info if row[5]]
    number = keys[0][1] if len(keys) == 1 and keys[0][2].upper() == "INTEGER" else ""
    query = f"SELECT {', '.join(map(quote_name, names))} FROM {quote_name(table)} NOT INDEXED"  # an index would give them in its own order
    replaced: frozenset[int] = frozenset()
    try:
        rows = connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        connection.text_factory = lambda data: data.decode(errors="replace")
        rows = connection.execute(query).fetchall()
        connection.text_factory = str
        replaced = frozenset(n for n, row in enumerate(rows, start=1) if "\ufffd" in "".join(map(str, row)))
    return Rows(table, [dict(zip(names, row, strict=True)) for row in rows], number, replaced)


def _text(value: Json) -> str | None:
    """Return a cell as text. NULL and bytes are None."""
    return None if value is None or type(value) is bytes else str(value)


def _properties(
    record: Mapping[str, Json], in_json: str, besides: Collection[str]
) -> tuple[dict[str, Json], str]:
    """Return the properties of a row, and what is wrong with its JSON, or "".

    They are those in its JSON and its other columns, except `besides`. If both have a name, JSON takes
    precedence, since that is where SQL looks for dimensions. A row with malformed JSON has none of its JSON
    properties. NULL, blank JSON, infinite numbers and bytes, which are mostly vectors, are skipped.
    """
    problem, known = "", dict[str, Json]()
    if in_json and record[in_json] is not None:
        try:
            known = _parse_object(record[in_json])
        except BadInput as error:
            problem = f"its {in_json} {error}, so it has none of them"
    own = {
        name: value
        for name, value in record.items()
        if value is not None and name != in_json and name not in besides and type(value) is not bytes
    }
    return {name: v for name, v in own.items() if type(v) is not float or not math.isinf(v)} | known, problem


@lru_cache(1 << 12)  # many rows are equal
def _parse_object(text: Json) -> dict[str, Json]:
    """Parse a JSON object, or return an empty one for blanks. Raises BadInput, saying what is wrong."""
    try:
        text = text.decode() if isinstance(text, bytes) else str(text)
        found = parse_json(text) if text.strip() else {}
    except RecursionError:
        raise BadInput("are nested too deeply") from None
    except ValueError as error:  # malformed JSON, no UTF-8, a number of thousands of digits
        raise BadInput(f"are no JSON ({error}: {short_repr(text)})") from None
    if not isinstance(found, dict):
        raise BadInput(f"are JSON, but no object: {short_repr(text)}")
    try:
        return dict(validate_value(found, "a property"))
    except BadInput as error:
        raise BadInput(f"cannot be kept ({error})") from None


# Build a graph from two tables, and report the rows that cannot be taken as they are.

# tables whose name says nothing of their edges; that of another is their type if it has no column for it
_GENERIC_TABLES = ("edge", "link", "relation", "relationship", "connection", "arc")


def _table_relation(table: str) -> str:
    return UNTYPED if table.casefold().removesuffix("s") in _GENERIC_TABLES else table


def build_graph(profile: Profile, nodes: Rows, edges: Rows) -> tuple[PropertyGraph, tuple[UnreadRow, ...]]:
    """Build the graph of two tables, and list the rows that were not taken as they are, nodes first.

    Nodes without an id or with that of an earlier row are left out, as are edges with an end that is not a
    node (rule 3). A row with malformed JSON loses those properties (rule 8). Of edges with the same ends and
    type, all but the first have their number as key. A column that only numbers the edges is not a property.
    """
    unread: list[UnreadRow] = []

    def properties(
        rows: Rows, row: int, ends: tuple[str | None, ...], in_json: str, besides: Collection[str]
    ) -> dict[str, Json]:
        found, problem = _properties(rows.records[row - 1], in_json, besides)
        if problem:
            unread.append(UnreadRow(8, rows.table, row, _describe(*ends), problem))
        if row in rows.replaced:
            why = "a text in it is not UTF-8; the letters that could not be read were replaced"
            unread.append(UnreadRow(0, rows.table, row, _describe(*ends), why))
        return found

    row_of: dict[str, int] = {}
    read_nodes, read_edges = list[Node](), list[Edge]()
    for row, record in enumerate(nodes.records, start=1):
        id = _text(record[profile.id])
        if id is None or not id.strip() or id in row_of:
            why = f"row {row_of[id]:,} has its id already" if id in row_of else "it has no id"
            if isinstance(record[profile.id], bytes):
                why = "its id is bytes, and ids are texts or numbers"
            unread.append(
                UnreadRow(0, nodes.table, row, f"node {short_repr(id)}", f"{why}, so it is left out")
            )
            continue
        row_of[id] = row
        name, type = (_text(record.get(column)) for column in (profile.called, profile.type))
        besides = (profile.id, profile.called, profile.type)
        known = properties(nodes, row, (id,), profile.properties, besides)
        labels = (type,) if type and type.strip() else ()
        read_nodes.append(Node(id, labels, known if name is None else {**known, "name": name}))
    default = _table_relation(profile.edges)
    structure = (profile.source, profile.target, profile.relation, edges.number)
    is_bare = not edges.replaced and all(name in structure for each in edges.records[:1] for name in each)
    for row, record in enumerate(edges.records, start=1):
        source, target = (_text(record[column]) for column in (profile.source, profile.target))
        relation = _text(record[profile.relation]) or "" if profile.relation else default
        known = {}
        if source is None or target is None or source not in row_of or target not in row_of:
            gone = " and no node ".join(short_repr(end) for end in (source, target) if end not in row_of)
            why = f"there is no node {gone}, so it is left out"
            unread.append(UnreadRow(3, edges.table, row, _describe(source, relation, target), why))
            continue
        if not relation.strip():
            relation, why = UNTYPED, f"it has no relation, and is read as {UNTYPED}"
            unread.append(UnreadRow(3, edges.table, row, _describe(source, relation, target), why))
        if not is_bare:
            known = properties(edges, row, (source, relation, target), profile.edge_properties, structure)
        read_edges.append(Edge(source, relation, target, known))
    return PropertyGraph.of(read_nodes, distinct_edges(read_edges)), tuple(unread)


def _describe(id: str | None, relation: str | None = None, target: str | None = None) -> str:
    """Describe a node, or an edge by its ends."""
    return f"node {short_repr(id)}" if relation is None else edge_text(id, relation, target)


_MAX_ROWS = 5


@dataclass(frozen=True, eq=False, repr=False)
class ForeignGraph:
    """The graph in a file of another program, the profile of its tables, the rows that were not taken as they
    are, and the tables that were not read.
    """

    graph: PropertyGraph
    profile: Profile
    unread: tuple[UnreadRow, ...] = ()
    others: tuple[str, ...] = ()

    def check(self, vocabulary: Vocabulary | None = None) -> RuleReport:
        """Check the twelve rules, including the unread rows of the file, by the vocabulary of its profile."""
        return check_rules(self.graph, vocabulary or VOCABULARIES[self.profile.name], unread=self.unread)

    def __repr__(self) -> str:
        lines = [f"<{self.profile}: {self.graph}>"]
        if self.unread:
            unread = format_count(len(self.unread), "row")
            lines.append(f"{unread} of the file not in the graph as they stand:")
            lines += [f"  {each}" for each in self.unread[:_MAX_ROWS]]
            lines += [f"  … {len(self.unread) - _MAX_ROWS:,} more"] if len(self.unread) > _MAX_ROWS else []
        return "\n".join(lines)


@check_arguments
def read_foreign(path: Path | str, *, columns: Mapping[str, str] | None = None) -> ForeignGraph:
    """Read the graph in an SQLite file with the profile that fits its tables.

    `columns` are by fields of a Profile (called, type, relation, source, target) where its names mislead.

    The file is copied and the copy is read. Nothing is written to the file or beside it, and the contents of
    a log beside it are read too. Raises BadInput if it is not an SQLite file or, listing what was probed, has
    no graph. Raises UnknownName if there is no such column and StoreUnavailable if the file cannot be
    copied.
    """
    path = Path(path)
    with _open_copy(path) as connection:
        found = detect_profile(connection, path, columns)
        with without_garbage_collection():
            nodes, edges = read_table(connection, found.nodes), read_table(connection, found.edges)
            graph, unread = build_graph(found, nodes, edges)
        others = tuple(sorted(list_tables(connection).keys() - {found.nodes, found.edges}))
    return ForeignGraph(graph, found, unread, others)


NO_REFERENCE = "no column such as city_id, with nine of ten values found, joins it to another table"


def read_references(path: Path | str, columns: Mapping[str, str]) -> Elements:
    """Read the tables of an SQLite file that refer to each other, which no profile fits.

    A row is a node of the type of its table, with its name, and a column that refers to a row an edge of the name of
    the column. A row of references alone, or without a key, is an edge from the first row that it refers to, to the
    others, of the name of its table, or between its source and target if it refers to none. A guessed reference to a row
    that is missing is no edge, but a property, and counted. Raises as `read_foreign`.
    """
    with _open_copy(Path(path)) as connection:
        tables = list_tables(connection)
        references, keys, guesses = list_references(connection, tables, columns)
        found = Elements("SQLite by references between its tables")
        found.notes += [f"by names and values, {', '.join(guesses)}, as a guess"] if guesses else []
        used = {*chain(*(each.values() for each in references.values()))}
        records = {table: read_table(connection, table).records for table in references}
        known = {f"{table}:{row[keys[table]]}" for table in used for row in records[table]}
        for table, refers in references.items():
            key, names, ends = keys[table], tables[table], end_columns(tables[table], columns)
            if not (refers or table in used or all(ends)):
                found.notes.append(f"left out: the table {table}, as {NO_REFERENCE}")
                continue
            called = [columns["called"]] if columns.get("called") in names else name_columns(names) or [key]
            is_edge = len(refers) > 1 and table not in used and (not key or {*names} == {key, *refers})
            kind = None if first_match(EDGE_TYPE_COLUMNS, names) else _table_relation(table)
            besides = {*refers, key} if is_edge else {*refers, *called} - {key}
            guessed = {name for name in refers if f"{table}.{name} refers to {refers[name]}" in guesses}
            for row in records[table]:
                fields = {
                    name: value for name, value in row.items() if name not in besides and value is not None
                }
                named = {name: f"{refers[name]}:{row[name]}" for name in refers if row[name] is not None}
                gone = {name: row[name] for name in named if name in guessed and named[name] not in known}
                targets = [(name, end) for name, end in named.items() if name not in gone]
                fields |= gone
                lost = () if is_edge and len(targets) < 2 else gone
                found.left_out.update(f"edge of {table}.{name} to no row of {refers[name]}" for name in lost)
                if is_edge and len(targets) > 1:
                    found.edges += [RawEdge(targets[0][1], end, kind, fields) for _, end in targets[1:]]
                elif key and not is_edge and (refers or table in used):
                    name = " ".join(str(row[each]) for each in called if row[each] is not None)
                    fields |= {"name": name} if name and (called != [key] or not name.isdecimal()) else {}
                    id = found.put_node(f"{table}:{row[key]}", (table,), fields)
                    found.edges += [
                        RawEdge(id, end, re.sub("(?i)_id$", "", name), {}) for name, end in targets
                    ]
                elif all(ends) and None not in (row[ends[0]], row[ends[1]]):
                    found.add_edge(fields, f"{path}: {table}", names=ends)
                    found.edges[-1] = found.edges[-1]._replace(type=kind)
                else:
                    found.left_out[f"row of {table} without two ends"] += 1
    return found


@contextmanager
def _open_copy(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a file within a block, whose errors of SQLite become BadInput."""
    with open_copy(path) as connection:
        try:
            connection.execute("PRAGMA trusted_schema = OFF")  # limits what its schema may call
            yield connection
        except sqlite3.DatabaseError as error:
            raise BadInput(f"{path}: SQLite cannot read it: {error}; give a whole SQLite file") from None


# Read the vectors of nodes in an SQLite file of another program.

_VECTOR_COLUMNS = tuple("embedding embeddings vector vectors embedding_vector embedding_blob vec emb".split())
_ID_COLUMNS = ("node_id", "entity_id", "id", "item_id", "key", "uid", "uuid", "name")
_MODEL_COLUMNS = ("embedding_model", "model", "model_name", "embedder", "model_id")
_SIZE_COLUMNS = ("embedding_dim", "dimension", "dimensions", "dim", "dims")
_FLOAT_TYPES = {2: "<f2", 4: "<f4", 8: "<f8"}  # of a number


class VectorColumns(NamedTuple):
    """The table of vectors and its columns; "" for a missing one."""

    table: str
    id: str
    vector: str
    model: str
    size: str


def read_vectors(path: Path | str) -> StoredVectors:
    """Read the vectors in an SQLite file, by the ids of their rows.

    A vector is stored as a JSON list, as bytes of 32-bit numbers, or as bytes whose width follows from a
    column with the number of values. The file is copied and the copy is read, as `read_foreign` does. Rows
    without a vector are left out. Raises BadInput if the file has no vectors, listing what was looked for, or
    if they come from several models or have several sizes. Raises StoreUnavailable if the file cannot be
    copied.
    """
    path = Path(path)
    with _open_copy(path) as connection:
        columns = _find_vector_columns(list_tables(connection), path)
        selected = ", ".join(quote_name(name) if name else "NULL" for name in columns[1:])
        query = f"SELECT {selected} FROM {quote_name(columns.table)} NOT INDEXED"
        rows = connection.execute(query).fetchall()
    vector_rows = [row for row in rows if row[0] is not None and row[1] not in (None, "", b"")]
    if not vector_rows:
        raise BadInput(f"{path}: no row of {columns.table} has a vector in {columns.vector}")
    problem = f"{path}: the vectors in {columns.table} come from several makers"
    model = _single_value(problem, (row[2] for row in vector_rows))
    problem = f"{path}: the {columns.vector} of"
    numbers = [_parse_vector(v, size, f"{problem} {short_repr(str(id))}") for id, v, _, size in vector_rows]
    _single_value(f"{path}: the vectors in {columns.table} have several sizes", map(len, numbers))
    return StoredVectors.of([str(row[0]) for row in vector_rows], np.stack(numbers), model=model)


def _find_vector_columns(tables: Tables, path: Path) -> VectorColumns:
    for table, names in tables.items():
        vector, id = first_match(_VECTOR_COLUMNS, names), first_match(_ID_COLUMNS, names)
        if vector and id and vector != id:
            model, size = first_match(_MODEL_COLUMNS, names), first_match(_SIZE_COLUMNS, names)
            return VectorColumns(table, id, vector, model, size)
    tables_text = "; ".join(f"{name}({', '.join(columns)})" for name, columns in tables.items())
    raise BadInput(
        f"{path}: no table has a column of vectors ({', '.join(_VECTOR_COLUMNS)}) beside one of ids ({', '.join(_ID_COLUMNS)}). "
        f"It has {format_count(len(tables), 'table')}: {tables_text or 'none'}"
    )


def _single_value(problem: str, values: Iterable[object]) -> str:
    counts = Counter(values)
    if len(counts) > 1:
        common = ((v if v is not None else "none said", count) for v, count in counts.most_common(4))
        values_text = ", ".join(f"{value} ({count:,})" for value, count in common)
        raise BadInput(f"{problem}: {values_text}; they cannot be compared, so keep the vectors of one")
    (value,) = counts
    return "" if value is None else str(value)


def _parse_vector(value: object, size: object, what: str) -> NDArray[np.float64]:
    if isinstance(value, bytes):
        width = len(value) / size if isinstance(size, int) and size > 0 else 4
        if width not in _FLOAT_TYPES or len(value) % width:
            expected = f"{size} numbers" if size else "numbers of 4 bytes"
            raise BadInput(f"{what} has {len(value):,} bytes, which are no {expected}")
        return np.frombuffer(value, _FLOAT_TYPES[int(width)]).astype(np.float64)
    try:
        found = np.asarray(json.loads(str(value)), np.float64)
    except (ValueError, TypeError, RecursionError):
        value_text = short_repr(str(value))
        raise BadInput(f"{what} is neither bytes nor a JSON list of numbers: {value_text}") from None
    if found.ndim != 1:
        raise BadInput(f"{what} is no list of numbers: {short_repr(str(value))}")
    return found
