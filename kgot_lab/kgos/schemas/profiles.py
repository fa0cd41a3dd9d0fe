"""Schema profiles: which tables and columns of an SQLite file hold the nodes and the edges of a graph.

The document's table has no columns for the type and properties of nodes or the properties of edges. They are
found by their usual names. The document speaks of six profiles and lists seven. The seventh is the fallback
that looks for any fitting pair of tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph.exchange import COLUMNS
from kgot_lab.text.cleaning import format_count

Tables = Mapping[str, Sequence[str]]  # the columns of each table of a file

TYPES_OF_NODES = ("type", "node_type", "entity_type", "kind", "label", "labels", "category")
PROPERTIES = ("properties", "props", "attributes", "metadata", "data", "json")


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

    def lacks(self, tables: Tables) -> list[str]:
        """List the required tables and columns that a file does not have.

        Names are compared without case, as in SQLite.
        """
        missing = []
        for table, columns in (
            (self.nodes, (self.id, self.called)),
            (self.edges, (self.source, self.target, self.relation)),
        ):
            there = actual(table, tables)
            if there is None:
                missing.append(f"table {table}")
            else:
                missing += [f"{table}.{each}" for each in columns if actual(each, tables[there]) is None]
        return missing

    def completed(self, tables: Tables) -> Profile:
        """Return this profile with the file's spelling of names and its type and property columns."""
        nodes, edges = actual(self.nodes, tables) or "", actual(self.edges, tables) or ""
        of_nodes, of_edges = tables[nodes], tables[edges]
        taken = {self.id.casefold(), self.called.casefold()}
        return replace(
            self,
            nodes=nodes,
            edges=edges,
            id=actual(self.id, of_nodes) or "",
            called=actual(self.called, of_nodes) or "",
            source=actual(self.source, of_edges) or "",
            target=actual(self.target, of_edges) or "",
            relation=actual(self.relation, of_edges) or "",
            type=first_named(TYPES_OF_NODES, [each for each in of_nodes if each.casefold() not in taken]),
            properties=first_named(PROPERTIES, of_nodes),
            edge_properties=first_named(PROPERTIES, of_edges),
        )


def actual(name: str, names: Sequence[str] | Tables) -> str | None:
    """Return a name as it is spelled among some names, ignoring case, or None."""
    return next((each for each in names if each.casefold() == name.casefold()), None)


def first_named(wanted: Sequence[str], names: Sequence[str]) -> str:
    """Return the first of the wanted names that exists, as it is spelled there, or ""."""
    return next((found for each in wanted if (found := actual(each, names)) is not None), "")


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

_SAMPLE = 500  # edges whose ends are looked up
_MANY = 30  # tables in an error
_IDS = ("id", "node_id", "entity_id", "uid", "uuid", "guid", "key", "code")
_NAMES = ("name", "title", "label", "entity", "term", "text", "value")
_SOURCES = (
    *"source_node_id source_id from_node from_id source_node start_id src_id head_id subject_id".split(),
    *COLUMNS["source"],
)
_TARGETS = (
    *"target_node_id target_id to_node to_id target_node end_id dst_id tail_id object_id".split(),
    *COLUMNS["target"],
)
_RELATIONS = ("edge_type", "relation_type", "relationship_type", "rel_type", *COLUMNS["type"], "kind", "name")


@dataclass(frozen=True)
class Tried:
    """A possible pair of tables, and the share of the ends of sampled edges that are node ids."""

    profile: Profile
    share: float


def quoted_name(name: str) -> str:
    """Quote a table or column name for SQLite, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def tables_of(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return the tables of a file with their columns.

    Views are left out, since they may run forever, and virtual tables, since they run code.
    """
    asked = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%'"
    names = [name for (name,) in connection.execute(f"{asked} ORDER BY name")]
    return {
        name: tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quoted_name(name)})"))
        for name in names
    }


def profile_of(connection: sqlite3.Connection, path: Path, wanted: str = "") -> Profile:
    """Return the most specific profile that fits an open file, or the wanted one.

    Raises UnknownName if there is no such profile. Raises BadInput, listing what was probed, if no profile
    fits the file.
    """
    names = [*(each.name for each in PROFILES), HEURISTIC]
    if wanted and wanted not in names:
        raise UnknownName("schema profile", wanted, names)
    tables = tables_of(connection)
    for profile in PROFILES:
        if wanted in ("", profile.name) and not profile.lacks(tables):
            return profile.completed(tables)
    tried = sorted(_tried(connection, tables), key=_worth) if wanted in ("", HEURISTIC) else []
    if tried and tried[-1].share >= 0.5:
        return tried[-1].profile
    raise BadInput(
        "\n".join(
            [f"{path}: no tables that hold a graph in a way that is known", *_probed(tables, tried, wanted)]
        )
    )


def _tried(connection: sqlite3.Connection, tables: Tables) -> Iterator[Tried]:
    """Yield every pair of tables that could be nodes and edges, with each possible id column."""
    for edges, of_edges in tables.items():
        source, target = first_named(_SOURCES, of_edges), first_named(_TARGETS, of_edges)
        if not source or not target or source == target:
            continue
        rest = [each for each in of_edges if each not in (source, target)]
        for nodes, of_nodes in tables.items():
            called = first_named(_NAMES, of_nodes)
            usual = (first_named([each], of_nodes) for each in _IDS)
            ids = dict.fromkeys(filter(None, (*usual, _own_key(connection, nodes), called)))
            for id in ids if nodes != edges else ():
                profile = Profile(
                    HEURISTIC, nodes, id, called, edges, source, target, first_named(_RELATIONS, rest),
                    type=first_named([each for each in TYPES_OF_NODES if each != called.casefold()], of_nodes),
                    properties=first_named(PROPERTIES, of_nodes), edge_properties=first_named(PROPERTIES, rest),
                )  # fmt: skip
                yield Tried(profile, _share(connection, profile))


def _own_key(connection: sqlite3.Connection, table: str) -> str:
    """Return the primary key column of a table, or "" if it has none or a composite one."""
    keys = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted_name(table)})") if row[5]]
    return str(keys[0]) if len(keys) == 1 else ""


def _share(connection: sqlite3.Connection, profile: Profile) -> float:
    """Return the share of edge ends that are node ids.

    A number equals its digits. The share is 1 if there are no edges.
    """
    ends = " UNION ALL ".join(
        f"SELECT CAST({quoted_name(end)} AS TEXT) AS it FROM (SELECT {quoted_name(end)} FROM {quoted_name(profile.edges)} LIMIT {_SAMPLE})"
        for end in (profile.source, profile.target)
    )
    ids = f"SELECT CAST({quoted_name(profile.id)} AS TEXT) FROM {quoted_name(profile.nodes)}"
    count, found = connection.execute(f"SELECT count(*), total(it IN ({ids})) FROM ({ends})").fetchone()
    return found / count if count else 1.0


def _worth(tried: Tried) -> tuple[float, int, tuple[str, ...]]:
    """Return the sort key of a pair of tables, larger for a better fit.

    It compares the share of ends that are nodes, then the number of optional columns. Ties are broken by
    name.
    """
    profile = tried.profile
    optional = (profile.called, profile.relation, profile.type, profile.properties, profile.edge_properties)
    there = sum(map(bool, optional))
    return tried.share, there + (profile.id != profile.called), (profile.nodes, profile.id, profile.edges)


def _probed(tables: Tables, tried: list[Tried], wanted: str) -> Iterator[str]:
    """Yield lines that say what was looked for and what the file has."""
    for profile in PROFILES:
        if wanted in ("", profile.name):
            yield f"  {profile.name}: lacks {', '.join(profile.lacks(tables))}"
    if wanted in ("", HEURISTIC):
        if tried:
            best, share = tried[-1].profile, tried[-1].share
            yield f"  {HEURISTIC}: {share:.0%} of the ends in {best.edges} are in {best.nodes}.{best.id}, and half of them should be"
        else:
            yield f"  {HEURISTIC}: no table with two ends (such as source and target) beside a table with an id (such as id or name)"
    told = [f"{name}({', '.join(columns)})" for name, columns in list(tables.items())[:_MANY]]
    yield (
        f"It has {format_count(len(tables), 'table')}: {'; '.join(told)}{' …' if len(tables) > _MANY else ''}"
        if tables
        else "It has no tables"
    )
