"""Schema profiles: which tables and columns of an SQLite file hold the nodes and the edges of a graph.

The document's table has no columns for the type and properties of nodes or the properties of edges. They are
found by their usual names. The document speaks of six profiles and lists seven. The seventh is the fallback
that looks for any fitting pair of tables.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgot_lab.errors import BadInput, require_known
from kgot_lab.graph.exchange import COLUMNS
from kgot_lab.stores.files.elements import find_ends
from kgot_lab.text.cleaning import format_count

Tables = Mapping[str, Sequence[str]]  # the columns of each table of a file

NODE_TYPE_COLUMNS = ("type", "node_type", "entity_type", "kind", "label", "labels", "category")
PROPERTY_COLUMNS = ("properties", "props", "attributes", "metadata", "data", "json")


@dataclass(frozen=True)
class Profile:
    """The tables of nodes and edges and their columns; "" for a missing one."""

    name: str
    nodes: str
    id: str
    called: str  # the column of the name
    edges: str
    source: str
    target: str
    relation: str  # the column of the type of an edge
    type: str = ""
    properties: str = ""
    edge_properties: str = ""

    def __str__(self) -> str:
        nodes = ", ".join(filter(None, (self.id, self.called, self.type, self.properties)))
        edges = ", ".join(filter(None, (self.source, self.target, self.relation, self.edge_properties)))
        return f"{self.name}: {self.nodes}({nodes}) and {self.edges}({edges})"

    def missing_columns(self, tables: Tables) -> list[str]:
        """List the required tables and columns that a file does not have.

        Names are compared without case, as in SQLite.
        """
        missing = []
        edge_columns = (self.source, self.target, self.relation)
        for table, columns in ((self.nodes, (self.id, self.called)), (self.edges, edge_columns)):
            actual_table = match_case(table, tables)
            if actual_table is None:
                missing.append(f"table {table}")
            else:
                missing += [f"{table}.{c}" for c in columns if match_case(c, tables[actual_table]) is None]
        return missing

    def complete(self, tables: Tables) -> Profile:
        """Return this profile with the file's spelling of names and its type and property columns."""
        nodes, edges = match_case(self.nodes, tables) or "", match_case(self.edges, tables) or ""
        of = dict.fromkeys(("id", "called"), tables[nodes])
        of |= dict.fromkeys(("source", "target", "relation"), tables[edges])
        spelled = {name: first_match([getattr(self, name)], columns) for name, columns in of.items()}
        return replace(self, nodes=nodes, edges=edges, **spelled).with_usual(tables[nodes], tables[edges])

    def with_usual(self, of_nodes: Sequence[str], of_edges: Sequence[str]) -> Profile:
        """Return this profile with the columns of types and properties that have a usual name."""
        return replace(
            self,
            type=first_match(
                NODE_TYPE_COLUMNS, [each for each in of_nodes if each not in (self.id, self.called)]
            ),
            properties=first_match(PROPERTY_COLUMNS, of_nodes),
            edge_properties=first_match(PROPERTY_COLUMNS, of_edges),
        )


def match_case(name: str, names: Sequence[str] | Tables) -> str | None:
    """Return a name as it is spelled among some names, ignoring case, or None."""
    return next((each for each in names if each.casefold() == name.casefold()), None)


def first_match(wanted: Sequence[str], names: Sequence[str]) -> str:
    """Return the first of the wanted names that exists, as it is spelled there, or ""."""
    return next((found for each in wanted if (found := match_case(each, names)) is not None), "")


# `standard`, `claude`, `hal` and `from_node` share the names of their tables. Columns decide, and profiles
# with columns of their own come first.
PROFILES = tuple(
    Profile(*row.split())
    for row in (
        "unified unified_nodes node_id name unified_edges source_node_id target_node_id edge_type",
        "claude nodes node_id name edges source_node_id target_node_id edge_type",
        "hal nodes id name edges source_id target_id edge_type",
        "from_node nodes id name edges from_node to_node type",
        "entities entities id name relations source_id target_id relation_type",
        "standard nodes id name edges source target type",
    )
)
HEURISTIC = "heuristic"


# Detect the profile of an SQLite file: one of the six by its columns, or else the best pair of tables.

_SAMPLED_EDGES = 500  # edges whose ends are looked up
_ENOUGH = 0.9  # share of the values of a column that are keys of a table to which it refers, as a guess
_MAX_TABLES_IN_ERROR = 30  # tables in an error
_ID_COLUMNS = ("id", "node_id", "entity_id", "uid", "uuid", "guid", "key", "code")
_NAME_COLUMNS = ("name", "title", "label", "full_name", "fullname", "display_name")
_PARTS = ("first_name firstname given_name", "last_name lastname surname family_name")
_OTHER_NAME_COLUMNS = tuple("login handle nickname nick entity term email text value".split())
# columns that refer to rows of their own table
_OWN = "parent manager boss supervisor superior leader mentor reportsto replyto inreplyto repliesto predecessor previous".split()
_SOURCE_NAMES = "source_node_id source_id from_node from_id source_node start_id src_id head_id subject_id"
_SOURCE_COLUMNS = (*_SOURCE_NAMES.split(), *COLUMNS["source"])
_TARGET_NAMES = "target_node_id target_id to_node to_id target_node end_id dst_id tail_id object_id"
_TARGET_COLUMNS = (*_TARGET_NAMES.split(), *COLUMNS["target"])
_RELATION_NAMES = "edge_type relation_type relationship_type rel_type".split()
EDGE_TYPE_COLUMNS = (*_RELATION_NAMES, *COLUMNS["type"], "kind")
_RELATION_COLUMNS = (*EDGE_TYPE_COLUMNS, "name")


# the share of the ends of sampled edges that are ids of nodes, how well the columns fit, and a profile of two tables
TablePair = tuple[float, int, Profile]


def quote_name(name: str) -> str:
    """Quote a table or column name for SQLite, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def list_tables(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return the tables of a file with their columns.

    Views are left out, since they may run forever, and virtual tables, since they run code.
    """
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    names = [name for (name,) in connection.execute(f"{query} ORDER BY name")]
    queries = {name: f"PRAGMA table_info({quote_name(name)})" for name in names}
    return {name: tuple(row[1] for row in connection.execute(query)) for name, query in queries.items()}


def detect_profile(
    connection: sqlite3.Connection, path: Path, columns: Mapping[str, str] | None = None
) -> Profile:
    """Return the most specific profile that fits an open file, with the given columns.

    `columns` are by fields of a profile. Raises UnknownName if there is no such column. Raises BadInput,
    listing what was probed, if no profile fits the file.
    """
    tables, given = list_tables(connection), dict(columns or {})

    for profile in PROFILES if "source" not in given else ():
        if not profile.missing_columns(tables):
            return _with(profile.complete(tables), given, tables)
    pairs = _possible_pairs(connection, tables, given)
    if pairs and pairs[-1][0] >= 0.5:
        return _with(pairs[-1][2], given, tables)
    problem = f"{path}: no tables that hold a graph in a way that is known"
    raise BadInput("\n".join([problem, *_describe_probing(tables, pairs)]))


def _with(profile: Profile, given: Mapping[str, str], tables: Tables) -> Profile:
    require_known("column", {*tables[profile.nodes], *tables[profile.edges]}, *given.values())
    return replace(profile, **given)


def _possible_pairs(
    connection: sqlite3.Connection, tables: Tables, given: Mapping[str, str]
) -> list[TablePair]:
    """Return every pair of tables that could be nodes and edges, with each possible id column, the best last."""
    found = []
    for edges, of_edges in tables.items():
        source, target = end_columns(of_edges, given)
        rest = [edge for edge in of_edges if edge not in (source, target)]
        for nodes, of_nodes in tables.items() if source and target and source != target else ():
            called = next(iter(name_columns(of_nodes)), "")
            usual = (first_match([column], of_nodes) for column in _ID_COLUMNS)
            ids = dict.fromkeys(filter(None, (*usual, key_column(connection, nodes), called)))
            for id in ids if nodes != edges else ():
                share = _found_share(connection, (edges, source, target), (nodes, id))
                relation = first_match(_RELATION_COLUMNS, rest)
                profile = Profile(HEURISTIC, nodes, id, called, edges, source, target, relation)
                profile = profile.with_usual(of_nodes, rest)
                fit = sum(map(bool, (*vars(profile).values(), id != called)))
                found.append((1.0 if share is None else share, fit, profile))
    return sorted(found, key=lambda pair: (*pair[:2], pair[2].nodes, pair[2].id))


def end_columns(columns: Sequence[str], given: Mapping[str, str]) -> tuple[str, str]:
    """Return the columns of sources and targets, as given or by their names; "" for one that is missing."""
    if "source" in given:
        return first_match([given["source"]], columns), first_match([given["target"]], columns)
    starts = (column for column in columns if re.match("(start|from|source|src|origin)_", column, re.I))
    ends = (column for column in columns if re.match("(end|to|target|dst|dest|destination)_", column, re.I))
    source = first_match(_SOURCE_COLUMNS, columns) or next(starts, "")
    target = first_match(_TARGET_COLUMNS, columns) or next(ends, "")
    return (source, target) if source and target else find_ends(tuple(columns)) or (source, target)


def name_columns(columns: Sequence[str]) -> list[str]:
    """Return the columns that make the name of a row, such as name, first_name and last_name, or username."""
    parts = [first_match(names.split(), columns) for names in _PARTS]
    endings = [column for column in columns if column.casefold().endswith("name")][:1]
    known, others = ([first_match(names, columns)] for names in (_NAME_COLUMNS, _OTHER_NAME_COLUMNS))
    return next((found for found in (known, parts, endings, others) if found and all(found)), [])


def list_references(
    connection: sqlite3.Connection, tables: Tables, given: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], dict[str, str], list[str]]:
    """Return the tables that columns of each table refer to, the keys of the tables, and which of it is guessed.

    A reference is guessed where nine of ten values are found among the keys of a table and the names say it: person_id
    where there is a table person, persons or people, parent_id to its own table, or two ends, such as caller and callee.
    """
    keys, guesses = {table: key_column(connection, table) for table in tables}, list[str]()
    pairs = [pair[2] for pair in _possible_pairs(connection, tables, given) if pair[0] >= _ENOUGH]
    by_ends = {pair.edges: pair for pair in pairs if pair.id == keys[pair.nodes]}
    references = {}
    for table, columns in tables.items():
        rows = connection.execute(f"PRAGMA foreign_key_list({quote_name(table)})")
        declared = {row[3]: match_case(row[2], tables) or "" for row in rows}
        guessed = {
            column: other
            for column in columns
            if column not in (*declared, keys[table])
            and (other := _named_table(column, table, keys))
            and (_found_share(connection, (table, column), (other, keys[other])) or 0) >= _ENOUGH
        }
        if not guessed and not declared and (pair := by_ends.get(table)):
            guessed = {pair.source: pair.nodes, pair.target: pair.nodes}
        guesses += [f"{table}.{column} refers to {other}" for column, other in guessed.items()]
        known = {name: other for name, other in declared.items() if name != keys[table] and keys.get(other)}
        references[table] = {name: (guessed | known)[name] for name in columns if name in guessed | known}
    return references, keys, guesses


def _named_table(column: str, table: str, keys: Mapping[str, str]) -> str:
    """Return the table that a column refers to by its name, or "" if there is none."""
    stem = _stem(column)
    if keys[table] and stem.replace("_", "") in _OWN:
        return table
    stems = {_stem(other): other for other, key in keys.items() if key}
    return stems.get(stem) or next((stems[each] for each in stems if stem.endswith(f"_{each}")), "")


def _stem(name: str) -> str:
    """Return the singular of a name in small letters, without what marks a key."""
    stem = re.sub("_?(id|key|fk|code)$", "", name.casefold())
    singular = re.sub("people$", "person", re.sub("ies$", "y", stem))
    return re.sub("(?<=[sxzh])es$|(?<!s)s$", "", singular)


def _found_share(connection: sqlite3.Connection, ends: Sequence[str], key: tuple[str, str]) -> float | None:
    """Return the share of the values of a table's columns that are in a column of another, None if there are none.

    The columns come after the name of their table. A number equals its digits. Of two ends some rows are sampled.
    """
    (table, *columns), (other, id) = map(quote_name, ends), map(quote_name, key)
    limit = f"LIMIT {_SAMPLED_EDGES}" if columns[1:] else ""
    values = (
        f"SELECT CAST({column} AS TEXT) AS it FROM (SELECT {column} FROM {table} WHERE {column} IS NOT NULL {limit})"
        for column in columns
    )
    ids = f"SELECT CAST({id} AS TEXT) FROM {other} WHERE {id} IS NOT NULL"
    query = f"SELECT total(it IN ({ids})) / count(*) FROM ({' UNION ALL '.join(values)})"
    return connection.execute(query).fetchone()[0]  # type: ignore[no-any-return]


def key_column(connection: sqlite3.Connection, table: str) -> str:
    """Return the primary key column of a table, or one called id with a value of its own in each row, or ""."""
    columns = connection.execute(f"PRAGMA table_info({quote_name(table)})").fetchall()
    keys = [str(row[1]) for row in columns if row[5]]
    id = first_match(("id", f"{_stem(table)}_id", f"{_stem(table)}id"), [row[1] for row in columns])
    if not keys and id:
        query = f"SELECT count(*) = count(DISTINCT {quote_name(id)}) FROM {quote_name(table)}"
        return id if connection.execute(query).fetchone()[0] else ""
    return keys[0] if len(keys) == 1 else ""


def _describe_probing(tables: Tables, pairs: list[TablePair]) -> Iterator[str]:
    """Yield lines that say what was looked for and what the file has."""
    for profile in PROFILES:
        yield f"  {profile.name}: lacks {', '.join(profile.missing_columns(tables))}"
    share, _, best = pairs[-1] if pairs else (0.0, 0, PROFILES[-1])
    found = (
        f"{share:.0%} of the ends in {best.edges} are in {best.nodes}.{best.id}, and half of them should be"
    )
    none = "no table with two ends (such as source and target) beside a table with an id (such as id or name)"
    yield f"  {HEURISTIC}: {found if pairs else none}"
    listed = [f"{name}({', '.join(columns)})" for name, columns in tables.items()]
    more = " …" if len(listed) > _MAX_TABLES_IN_ERROR else ""
    shown = f": {'; '.join(listed[:_MAX_TABLES_IN_ERROR])}{more}" if listed else ""
    yield f"It has {format_count(len(tables), 'table') if tables else 'no tables'}{shown}"
