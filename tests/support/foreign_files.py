"""SQLite files as other programs make them: a small graph in the tables of each schema profile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

NODES = [
    ("cache", "Prompt caching", "technique", '{"pricing_tier": 0.1, "description": "Keeps a prefix."}'),
    ("cost", "Lower cost", "goal", None),
    ("stale", "Stale answers", "limitation", "{}"),
]
EDGES = [("cache", "cost", "enables", '{"weight": 0.5}'), ("cache", "stale", "has_limitation", None)]
TABLES = {  # of each profile: the tables as the document lists them, with a column for types and one for properties
    "unified": (
        "unified_nodes(node_id, name, type, properties)",
        "unified_edges(source_node_id, target_node_id, edge_type, properties)",
    ),
    "standard": ("nodes(id, name, type, properties)", "edges(source, target, type, properties)"),
    "claude": (
        "nodes(node_id, name, node_type, metadata)",
        "edges(source_node_id, target_node_id, edge_type, metadata)",
    ),
    "hal": ("nodes(id, name, kind, data)", "edges(source_id, target_id, edge_type, data)"),
    "from_node": ("nodes(id, name, category, attributes)", "edges(from_node, to_node, type, attributes)"),
    "entities": (
        "entities(id, name, entity_type, props)",
        "relations(source_id, target_id, relation_type, props)",
    ),
    "heuristic": ("things(uuid, title, kind, json)", "links(head, tail, rel, json)"),
}


def made(path: Path, tables: Iterable[str], *rows: Iterable[tuple[object, ...]], more: str = "") -> Path:
    """An SQLite file with some tables and their rows; `more` is run last."""
    with closing(sqlite3.connect(path)) as connection:
        for table, values in zip(tables, rows, strict=True):
            connection.execute(f"CREATE TABLE {table}")
            name = table.partition("(")[0]
            connection.executemany(
                f"INSERT INTO {name} VALUES ({', '.join('?' * (table.count(',') + 1))})", values
            )
        connection.executescript(more)
        connection.commit()
    return path


def of_profile(
    path: Path,
    profile: str,
    nodes: Iterable[tuple[object, ...]] = NODES,
    edges: Iterable[tuple[object, ...]] = EDGES,
) -> Path:
    """A file with the tables of a profile."""
    return made(path, TABLES[profile], nodes, edges)
