"""A profile: which tables and columns of an SQLite file hold the nodes and the edges of a graph.

The document's table has no columns for the type and the properties of a node, nor for the properties of an
edge; they are looked for by their usual names. It speaks of six profiles and lists seven: the seventh is the
fallback that looks for any fitting pair of tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

Tables = Mapping[str, Sequence[str]]  # the columns of each table of a file

TYPES_OF_NODES = ("type", "node_type", "entity_type", "kind", "label", "labels", "category")
PROPERTIES = ("properties", "props", "attributes", "metadata", "data", "json")


@dataclass(frozen=True)
class Profile:
    """The tables of nodes and edges, and which columns are what; "" for what there is not."""

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
        """The tables and columns that this profile must find and a file does not have; letters may be capital
        or small, as in SQLite.
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
                missing += [
                    f"{table}.{column}" for column in columns if actual(column, tables[there]) is None
                ]
        return missing

    def completed(self, tables: Tables) -> Profile:
        """This profile as the file writes its names, with the columns of types and properties that it has."""
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
    """A name as it is written among some names, whatever its capitals."""
    return next((each for each in names if each.casefold() == name.casefold()), None)


def first_named(wanted: Sequence[str], names: Sequence[str]) -> str:
    """The first of the wanted names that is there, as it is written there; "" where none is."""
    return next((found for each in wanted if (found := actual(each, names)) is not None), "")


# `standard`, `claude`, `hal` and `from_node` share the names of their tables: columns decide, those that only
# one profile has first.
PROFILES = (
    Profile(
        "unified",
        "unified_nodes",
        "node_id",
        "name",
        "unified_edges",
        "source_node_id",
        "target_node_id",
        "edge_type",
    ),
    Profile("claude", "nodes", "node_id", "name", "edges", "source_node_id", "target_node_id", "edge_type"),
    Profile("hal", "nodes", "id", "name", "edges", "source_id", "target_id", "edge_type"),
    Profile("from_node", "nodes", "id", "name", "edges", "from_node", "to_node", "type"),
    Profile("entities", "entities", "id", "name", "relations", "source_id", "target_id", "relation_type"),
    Profile("standard", "nodes", "id", "name", "edges", "source", "target", "type"),
)
HEURISTIC = "heuristic"
