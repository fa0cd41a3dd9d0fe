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
        of_nodes, of_edges = tables[nodes], tables[edges]
        taken = {self.id.casefold(), self.called.casefold()}
        required = {"id": of_nodes, "called": of_nodes}
        required |= dict.fromkeys(("source", "target", "relation"), of_edges)
        spelled = {name: match_case(getattr(self, name), names) or "" for name, names in required.items()}
        return replace(
            self,
            **spelled,
            nodes=nodes,
            edges=edges,
            type=first_match(NODE_TYPE_COLUMNS, [node for node in of_nodes if node.casefold() not in taken]),
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
_MAX_TABLES_IN_ERROR = 30  # tables in an error
_ID_COLUMNS = ("id", "node_id", "entity_id", "uid", "uuid", "guid", "key", "code")
_NAME_COLUMNS = ("name", "title", "label", "entity", "term", "text", "value")
_SOURCE_NAMES = "source_node_id source_id from_node from_id source_node start_id src_id head_id subject_id"
_SOURCE_COLUMNS = (*_SOURCE_NAMES.split(), *COLUMNS["source"])
_TARGET_NAMES = "target_node_id target_id to_node to_id target_node end_id dst_id tail_id object_id"
_TARGET_COLUMNS = (*_TARGET_NAMES.split(), *COLUMNS["target"])
_RELATION_NAMES = "edge_type relation_type relationship_type rel_type".split()
_RELATION_COLUMNS = (*_RELATION_NAMES, *COLUMNS["type"], "kind", "name")


@dataclass(frozen=True)
class TablePair:
    """A possible pair of tables, and the share of the ends of sampled edges that are node ids."""

    profile: Profile
    share: float


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
    pairs = sorted(_possible_pairs(connection, tables, given), key=_pair_sort_key)
    if pairs and pairs[-1].share >= 0.5:
        return _with(pairs[-1].profile, given, tables)
    problem = f"{path}: no tables that hold a graph in a way that is known"
    raise BadInput("\n".join([problem, *_describe_probing(tables, pairs)]))


def _with(profile: Profile, given: Mapping[str, str], tables: Tables) -> Profile:
    require_known("column", {*tables[profile.nodes], *tables[profile.edges]}, *given.values())
    return replace(profile, **given)


def _possible_pairs(
    connection: sqlite3.Connection, tables: Tables, given: Mapping[str, str]
) -> Iterator[TablePair]:
    """Yield every pair of tables that could be nodes and edges, with each possible id column."""
    for edges, of_edges in tables.items():
        source, target = end_columns(of_edges, given)
        if not source or not target or source == target:
            continue
        rest = [edge for edge in of_edges if edge not in (source, target)]
        for nodes, of_nodes in tables.items():
            called = first_match(_NAME_COLUMNS, of_nodes) or next(
                (column for column in of_nodes if column.casefold().endswith("name")), ""
            )
            usual = (first_match([column], of_nodes) for column in _ID_COLUMNS)
            ids = dict.fromkeys(filter(None, (*usual, key_column(connection, nodes), called)))
            for id in ids if nodes != edges else ():
                profile = Profile(
                    HEURISTIC, nodes, id, called, edges, source, target, first_match(_RELATION_COLUMNS, rest),
                    type=first_match([column for column in NODE_TYPE_COLUMNS if column != called.casefold()], of_nodes),
                    properties=first_match(PROPERTY_COLUMNS, of_nodes), edge_properties=first_match(PROPERTY_COLUMNS, rest),
                )  # fmt: skip
                yield TablePair(profile, _matching_share(connection, profile))


def end_columns(columns: Sequence[str], given: Mapping[str, str]) -> tuple[str, str]:
    """Return the columns of sources and targets, as given or by their names; "" for one that is missing."""
    if "source" in given:
        return first_match([given["source"]], columns), first_match([given["target"]], columns)
    starts = (column for column in columns if re.match("(start|from|source|src|origin)_", column, re.I))
    ends = (column for column in columns if re.match("(end|to|target|dst|dest|destination)_", column, re.I))
    source = first_match(_SOURCE_COLUMNS, columns) or next(starts, "")
    return source, first_match(_TARGET_COLUMNS, columns) or next(ends, "")


def list_references(connection: sqlite3.Connection, tables: Tables) -> dict[str, dict[str, str]]:
    """Return the tables that columns of each table refer to, by column.

    Such a column is declared as a foreign key, or called album_id where there is a table album or albums.
    """
    keys = {table: key_column(connection, table) for table in tables}
    stems = {_stem(table): table for table, key in keys.items() if key}
    references = {}
    for table, columns in tables.items():
        rows = connection.execute(f"PRAGMA foreign_key_list({quote_name(table)})")
        found = {
            column: stems.get(_stem(column), "") for column in columns if _stem(column) != column.casefold()
        }
        found |= {row[3]: match_case(row[2], tables) or "" for row in rows}
        references[table] = {
            column: found[column]
            for column in columns
            if column != keys[table] and keys.get(found.get(column, ""))
        }
    return references


def _stem(name: str) -> str:
    return re.sub("(_id|s)$", "", name.casefold())


def key_column(connection: sqlite3.Connection, table: str) -> str:
    """Return the primary key column of a table, or "" if it has none or a composite one."""
    keys = [row[1] for row in connection.execute(f"PRAGMA table_info({quote_name(table)})") if row[5]]
    return str(keys[0]) if len(keys) == 1 else ""


def _matching_share(connection: sqlite3.Connection, profile: Profile) -> float:
    """Return the share of edge ends that are node ids.

    A number equals its digits. The share is 1 if there are no edges.
    """
    ends = " UNION ALL ".join(
        f"SELECT CAST({quote_name(end)} AS TEXT) AS it FROM (SELECT {quote_name(end)} FROM {quote_name(profile.edges)} LIMIT {_SAMPLED_EDGES})"
        for end in (profile.source, profile.target)
    )
    ids = f"SELECT CAST({quote_name(profile.id)} AS TEXT) FROM {quote_name(profile.nodes)}"
    count, found = connection.execute(f"SELECT count(*), total(it IN ({ids})) FROM ({ends})").fetchone()
    return found / count if count else 1.0


def _pair_sort_key(tried: TablePair) -> tuple[float, int, tuple[str, ...]]:
    """Return the sort key of a pair of tables, larger for a better fit.

    It compares the share of ends that are nodes, then the number of optional columns. Ties are broken by
    name.
    """
    profile = tried.profile
    optional = (profile.called, profile.relation, profile.type, profile.properties, profile.edge_properties)
    present_count = sum(map(bool, optional))
    names = (profile.nodes, profile.id, profile.edges)
    return tried.share, present_count + (profile.id != profile.called), names


def _describe_probing(tables: Tables, pairs: list[TablePair]) -> Iterator[str]:
    """Yield lines that say what was looked for and what the file has."""
    for profile in PROFILES:
        yield f"  {profile.name}: lacks {', '.join(profile.missing_columns(tables))}"
    if pairs:
        best, share = pairs[-1].profile, pairs[-1].share
        yield f"  {HEURISTIC}: {share:.0%} of the ends in {best.edges} are in {best.nodes}.{best.id}, and half of them should be"
    else:
        yield f"  {HEURISTIC}: no table with two ends (such as source and target) beside a table with an id (such as id or name)"
    listed = list(tables.items())[:_MAX_TABLES_IN_ERROR]
    tables_text = [f"{name}({', '.join(columns)})" for name, columns in listed]
    if not tables:
        yield "It has no tables"
    else:
        more = " …" if len(tables) > _MAX_TABLES_IN_ERROR else ""
        yield f"It has {format_count(len(tables), 'table')}: {'; '.join(tables_text)}{more}"
