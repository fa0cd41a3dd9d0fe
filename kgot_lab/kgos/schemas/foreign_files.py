"""Read the graph in an SQLite file of another program, and report what could not be read."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput, require, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints, make_read_only
from kgot_lab.graph.validation import Vocabulary, validate_value
from kgot_lab.io.processes import without_garbage_collection
from kgot_lab.io.sqlite_files import open_copy
from kgot_lab.kgos.schemas.profiles import (
    Profile,
    Tables,
    detect_profile,
    first_match,
    list_tables,
    quote_name,
)
from kgot_lab.kgos.schemas.rules import RuleReport, UnreadRow, check_rules, count_repeats
from kgot_lab.kgos.schemas.vocabularies import VOCABULARIES
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

# Read the columns of a table, and the properties of its rows from JSON and other columns.

# what may become half a surrogate pair, or an infinite number
_RISKY_JSON = re.compile(r"\\u|\d[eE]\+?\d{3}")
_MAX_PLAIN_JSON = 300  # characters of JSON within which no number is infinite by its digits alone, and nothing nests too deeply
_DescribeRow = Callable[[int], str]  # describes a row in a report, by its position


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, and the positions of rows with invalid UTF-8, which was replaced.

    `number` is the column that only numbers the rows, if there is one.
    """

    table: str
    rows: int
    values: Mapping[str, Sequence[Json]]
    number: str = ""
    replaced: tuple[int, ...] = ()

    def texts(self, column: str) -> list[str | None]:
        """Return a column as texts.

        Numbers are converted to text. NULL and bytes are None, and so is every row if there is no such
        column.
        """
        if not column:
            return [None] * self.rows
        return [
            value if type(value) is str else None if value is None or type(value) is bytes else str(value)
            for value in self.values[column]
        ]


class _ReplacedText(str):
    """A text with invalid UTF-8 that was replaced."""


def read_table(connection: sqlite3.Connection, table: str) -> TableColumns:
    """Read all values of a table, in the order of its rows.

    Raises sqlite3.Error if it cannot be read.
    """
    table_info = connection.execute(f"PRAGMA table_info({quote_name(table)})").fetchall()
    names, keys = [row[1] for row in table_info], [row for row in table_info if row[5]]
    number = keys[0][1] if len(keys) == 1 and keys[0][2].upper() == "INTEGER" else ""
    query = f"SELECT {', '.join(map(quote_name, names))} FROM {quote_name(table)} NOT INDEXED"  # an index would give them in its own order
    replaced: tuple[int, ...] = ()
    try:
        rows = connection.execute(query).fetchall()
    except sqlite3.OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        connection.text_factory = _decode_text
        rows = connection.execute(query).fetchall()
        connection.text_factory = str
        replaced = tuple(i for i, row in enumerate(rows) if any(type(cell) is _ReplacedText for cell in row))
        rows = [tuple(str(value) if type(value) is _ReplacedText else value for value in row) for row in rows]
    values = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    return TableColumns(table, len(rows), values, number, replaced)


def row_properties(
    columns: TableColumns, in_json: str, besides: Collection[str], describe_row: _DescribeRow
) -> tuple[list[dict[str, Json]], list[UnreadRow]]:
    """Return the properties of each row, and the rows whose JSON is malformed.

    Properties are those in the JSON column and the other columns, except `besides`. If both have a name, JSON
    takes precedence, since that is where SQL looks for dimensions. A row with malformed JSON has none of its
    JSON properties. NULL, blank JSON and bytes, which are mostly vectors, are skipped.
    """
    unread: list[UnreadRow] = []
    of_json: list[dict[str, Json]] = [{}] * columns.rows
    if in_json:
        texts = columns.values[in_json]
        table: dict[Json, dict[str, Json]] = {}
        problems: dict[Json, str] = {}
        for text in set(texts):  # many rows are equal
            try:
                table[text] = _parse_object(text)
            except BadInput as error:
                table[text], problems[text] = {}, str(error)
        of_json = [table[text] for text in texts]
        if problems:
            for position, text in enumerate(texts):
                if text in problems:
                    why = f"its {in_json} {problems[text]}, so it has none of them"
                    unread.append(UnreadRow(8, columns.table, position + 1, describe_row(position), why))
    left_out = {in_json, *besides}
    own = {name: _without_binary(column) for name, column in columns.values.items() if name not in left_out}
    more = {name: column for name, column in own.items() if any(value is not None for value in column)}
    if not more:
        return of_json, unread
    own_properties = (dict(zip(more, row, strict=True)) for row in zip(*more.values(), strict=True))
    if any(None in column for column in more.values()):
        own_properties = ({name: v for name, v in p.items() if v is not None} for p in own_properties)
    return [each | known for each, known in zip(own_properties, of_json, strict=True)], unread


def _parse_object(text: Json) -> dict[str, Json]:
    """Parse a JSON object, or return an empty one for NULL and blanks.

    Raises BadInput, saying what is wrong.
    """
    if text is None:
        return {}
    # the common case, which needs no conversion
    plain = type(text) is str and text.startswith("{") and len(text) <= _MAX_PLAIN_JSON
    if plain and not _RISKY_JSON.search(text):
        try:
            found, end = _scan_json(text, 0)
        except (StopIteration, ValueError):
            end = -1
        if end == len(text):
            return found  # type: ignore[no-any-return]
    try:
        text = text.decode() if isinstance(text, bytes) else str(text)
        found = _DECODER.decode(text) if text.strip() else {}
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


def _without_binary(column: Sequence[Json]) -> Sequence[Json]:
    """Replace bytes and infinite numbers, which JSON does not have, with None."""
    if not {float, bytes} & set(map(type, column)):
        return column
    return [None if type(v) is bytes or (type(v) is float and math.isinf(v)) else v for v in column]


def _decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ReplacedText(data.decode(errors="replace"))


def _refuse_constant(constant: str) -> Json:
    raise ValueError(f"{constant} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
# returns the value at a position of a text and its end; raises StopIteration if there is none
_scan_json: Callable[[str, int], tuple[Json, int]] = _DECODER.scan_once  # type: ignore[attr-defined]


# Build a graph from two tables, column by column, and report the rows that cannot be taken as they are.

DEFAULT_EDGE_TYPE = "related_to"  # the edge type of a file without a column for it


def build_graph(
    profile: Profile, nodes: TableColumns, edges: TableColumns
) -> tuple[PropertyGraph, tuple[UnreadRow, ...]]:
    """Build the graph of two tables, and list the rows that were not taken as they are, nodes first.

    Nodes without an id or with that of an earlier row are left out, as are edges with an end that is not a
    node (rule 3). A row with malformed JSON loses those properties (rule 8). Of edges with the same ends and
    type, all but the first have their number as key. A column that only numbers the edges is not a property.
    """
    ids = nodes.texts(profile.id)
    is_node, unread = _select_node_rows(nodes.table, ids)
    row_of = {id: row for row, id in enumerate(compress(ids, is_node)) if id is not None}
    named_columns = (profile.id, profile.called, profile.type)
    of_nodes, unread_properties = row_properties(
        nodes, profile.properties, named_columns, lambda row: f"node {short_repr(ids[row])}"
    )
    names, types = nodes.texts(profile.called), nodes.texts(profile.type)
    pairs = zip(names, of_nodes, strict=True)
    named = [known if name is None else {**known, "name": name} for name, known in pairs]
    replaced = (_replaced_text_row(nodes, row, f"node {short_repr(ids[row])}") for row in nodes.replaced)
    unread += [*unread_properties, *replaced]

    sources, targets = edges.texts(profile.source), edges.texts(profile.target)
    relations = (
        [text or "" for text in edges.texts(profile.relation)]
        if profile.relation
        else [DEFAULT_EDGE_TYPE] * edges.rows
    )
    indices = ([-1 if id is None else row_of.get(id, -1) for id in ends] for ends in (sources, targets))
    begin, end = (np.array(rows, dtype=np.int32) for rows in indices)
    whole = (begin >= 0) & (end >= 0)

    def describe_edge(row: int) -> str:
        return f"edge {short_repr(sources[row])} -{relations[row]}-> {short_repr(targets[row])}"

    for row in np.flatnonzero(~whole).tolist():
        ends = (sources[row], begin[row]), (targets[row], end[row])
        gone = " and no node ".join(short_repr(id) for id, end_row in ends if end_row < 0)
        why = f"there is no node {gone}, so it is left out"
        unread.append(UnreadRow(3, edges.table, row + 1, describe_edge(row), why))
    besides = (profile.source, profile.target, profile.relation, edges.number)
    of_edges, unread_properties = row_properties(edges, profile.edge_properties, besides, describe_edge)
    replaced = (_replaced_text_row(edges, row, describe_edge(row)) for row in edges.replaced)
    unread += [*unread_properties, *replaced]

    begin, end, has_both_ends = begin[whole], end[whole], whole.tolist()
    code_of = {name: code for code, name in enumerate(dict.fromkeys(compress(relations, has_both_ends)))}
    codes = np.array([code_of[name] for name in compress(relations, has_both_ends)], dtype=np.int32)
    graph = PropertyGraph(
        ids=tuple(row_of),
        node_labels=tuple((each,) if each and each.strip() else () for each in compress(types, is_node)),
        node_properties=tuple(compress(named, is_node)),
        sources=make_read_only(begin),
        targets=make_read_only(end),
        type_codes=make_read_only(codes),
        type_names=tuple(code_of),
        edge_properties=tuple(compress(of_edges, has_both_ends)),
        edge_keys=_edge_keys(begin, end, codes, len(row_of)),
    )
    return graph, tuple(sorted(unread, key=lambda each: (each.table != nodes.table, each.row)))


def _select_node_rows(table: str, ids: Sequence[str | None]) -> tuple[list[bool], list[UnreadRow]]:
    """Return which rows become nodes, and why the others do not."""
    first: dict[str, int] = {}
    is_node, unread = [], []
    for row, id in enumerate(ids):
        is_node.append(id is not None and first.setdefault(id, row) == row)
        if not is_node[-1]:
            why = "it has no id" if id is None else f"row {first[id] + 1:,} has its id already"
            unread.append(UnreadRow(0, table, row + 1, f"node {short_repr(id)}", f"{why}, so it is left out"))
    return is_node, unread


def _replaced_text_row(columns: TableColumns, row: int, of: str) -> UnreadRow:
    why = "a text in it is not UTF-8; the letters that could not be read were replaced"
    return UnreadRow(0, columns.table, row + 1, of, why)


def _edge_keys(begin: Ints, end: Ints, codes: Ints, nodes: int) -> tuple[str, ...]:
    """Return the key of each edge.

    It is "" for the first edge with its ends and type, and "2", "3" … for later ones.
    """
    repeats = count_repeats(begin, end, codes, nodes).tolist()
    return tuple("" if each == 0 else str(each + 1) for each in repeats)


_MAX_ROWS = 5


@dataclass(frozen=True, eq=False, repr=False)
class ForeignGraph:
    """The graph in a file of another program, the profile of its tables, and the rows that were not taken as
    they are.
    """

    graph: PropertyGraph
    profile: Profile
    unread: tuple[UnreadRow, ...] = ()

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary that a file of this profile should follow."""
        return VOCABULARIES[self.profile.name]

    def check(self, vocabulary: Vocabulary | None = None) -> RuleReport:
        """Check the twelve rules, including the unread rows of the file."""
        return check_rules(self.graph, vocabulary or self.vocabulary, unread=self.unread)

    def __repr__(self) -> str:
        lines = [f"<{self.profile}: {self.graph}>"]
        if self.unread:
            unread = format_count(len(self.unread), "row")
            lines.append(f"{unread} of the file not in the graph as they stand:")
            lines += [f"  {each}" for each in self.unread[:_MAX_ROWS]]
            lines += [f"  … {len(self.unread) - _MAX_ROWS:,} more"] if len(self.unread) > _MAX_ROWS else []
        return "\n".join(lines)


def read_foreign(path: Path | str, *, profile: str = "") -> ForeignGraph:
    """Read the graph in an SQLite file with the profile that fits its tables, or the given one.

    The file is copied and the copy is read. Nothing is written to the file or beside it, and the contents of
    a log beside it are read too. Raises BadInput if it is not an SQLite file or, listing what was probed, has
    no graph. Raises UnknownName if there is no such profile and StoreUnavailable if the file cannot be
    copied.
    """
    require(path, (str, Path), "what is read is the path of an SQLite file")
    path = Path(path)
    with _open_copy(path) as connection:
        found = detect_profile(connection, path, profile)
        with without_garbage_collection():
            nodes, edges = read_table(connection, found.nodes), read_table(connection, found.edges)
            graph, unread = build_graph(found, nodes, edges)
    return ForeignGraph(graph, found, unread)


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
