"""Select nodes by filters, list the neighbours of a node, and compare two graphs."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_count, require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.dimensions import Filters, select_rows, validate_filters
from kgot_lab.kgos.methods.formatting import TableFound
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.schemas.rules import edge_rows_of_types
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Node

ALTERNATIVE_TYPES = ("alternative_to", "pattern_alternative_to")
_IDENTITY_COLUMNS = ("id", "name", "type")


# one parameter for each filter
@check_arguments
def select_nodes(
    graph: PropertyGraph,
    *,
    types: Collection[str] = (),
    edge_types: Collection[str] = (),
    min_edges: int = 0,
    max_edges: int | None = None,
    properties: Mapping[str, object] | None = None,
    has_property: Collection[str] = (),
    dimensions: Filters | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> TableFound:
    """Select the nodes that pass all given filters, in graph order, or draw `sample` of them at random.

    `types`: one of these labels; `edge_types`: an edge of one of these; `properties`: these values, compared
    as texts without case; `has_property`: these names; `dimensions`: within these bounds. Raises UnknownName
    for what no node or edge has, and BadInput.
    """
    index = graph_index(graph)
    selected = np.ones(len(graph), bool)
    why: list[str] = []
    require_known("node type", index.rows_by_label, *types)
    require_known("edge type", graph.types(), *edge_types)
    require_count(min_edges, 0, "min_edges")
    if max_edges is not None:
        require_count(max_edges, min_edges, "max_edges", "it is not below min_edges")
    degrees = np.bincount(np.concatenate([graph.sources, graph.targets]), minlength=len(graph))
    if types:
        selected &= np.isin(np.arange(len(graph)), np.concatenate([index.rows_by_label[t] for t in types]))
    if edge_types:
        chosen = edge_rows_of_types(graph, *edge_types)
        ends = np.concatenate([graph.sources[chosen], graph.targets[chosen]])
        selected &= np.isin(np.arange(len(graph)), ends)
    selected &= degrees >= min_edges
    if max_edges is not None:
        selected &= degrees <= max_edges
    names = {name for properties_ in graph.node_properties for name in properties_}
    require_known("property", names, *has_property, *(properties or {}))
    for row in np.flatnonzero(selected).tolist():
        node_properties = graph.node_properties[row]
        lacks_property = any(node_properties.get(name) in (None, "") for name in has_property)
        selected[row] = not lacks_property and all(
            name in node_properties and _folded_text(node_properties[name]) == _folded_text(value)
            for name, value in (properties or {}).items()
        )
    if dimensions:
        within, reasons = select_rows(index, validate_filters(dimensions))
        selected &= within
        why += reasons
    rows = np.flatnonzero(selected).tolist()
    passing = len(rows)
    if sample is not None:
        require_count(sample, 1, "sample")
        rows = sorted(random.Random(seed).sample(rows, min(sample, len(rows))))
    if limit is not None:
        require_count(limit, 1, "limit")
        rows = rows[:limit]
    if len(rows) < passing:
        why.append(f"{len(rows)} of {format_count(passing, 'node')} that pass")
    found = tuple((*index.identity(row), int(degrees[row]), _node_description(graph, row)) for row in rows)
    title = f"{format_count(passing, 'node')} of {len(graph):,}"
    columns = (*_IDENTITY_COLUMNS, "edges", "description")
    return TableFound(title, columns, found, tuple(why), tuple(graph.ids[row] for row in rows))


@check_arguments
def list_related_nodes(
    graph: PropertyGraph, node: str, *, edge_types: Collection[str] = (), limit: int | None = None
) -> TableFound:
    """List the edges of a node and their other ends, outgoing edges first, then by type and id.

    Raises UnknownName for an unknown node, with similar ids, or for an edge type that the graph lacks.
    """
    index = graph_index(graph)
    row = index.row(node)
    require_known("edge type", graph.types(), *edge_types)
    id = graph.ids[row]
    edges = graph.neighbours(id, "both", edge_types or None)
    rows = []
    for edge in edges:
        other = edge.target if edge.source == id else edge.source
        arrow = f"-{edge.type}->" if edge.source == id else f"<-{edge.type}-"
        rows.append((*index.identity(graph.row(other)), arrow, _format_location(edge.properties)))
    rows.sort(key=lambda row: (row[3], row[0]))
    shown, edges_told = tuple(rows[:limit]), format_count(len(rows), "edge")
    about = (id, *(row[0] for row in shown))
    columns = (*_IDENTITY_COLUMNS, "edge", "where")
    return TableFound(f"related to {id}: {edges_told}", columns, shown, (f"{edges_told} of {id}",), about)


@check_arguments
def find_alternatives(graph: PropertyGraph, node: str, *, limit: int = 10) -> TableFound:
    """List the alternatives to a node: those that edges state, then nodes with the same edges.

    The latter share a label with the node, and edges of the same type to or from the same nodes. Their score
    is the share of those edges (Jaccard 1912). Raises UnknownName for an unknown node, with similar ids, and
    BadInput.
    """
    require_count(limit, 1, "limit")
    index = graph_index(graph)
    id = graph.ids[index.row(node)]
    edges = [edge for edge in graph.neighbours(id, "both") if edge.type in ALTERNATIVE_TYPES]
    stated = {edge.target if edge.source == id else edge.source: edge.type for edge in edges}
    roles = _edge_roles(graph, id)
    scores: dict[str, float] = {}
    for _, type, other, out in roles:
        for edge in graph.neighbours(other, "in" if out else "out", (type,)):
            candidate = edge.source if out else edge.target
            shared = set(graph.node(candidate).labels) & set(graph.node(id).labels)
            if candidate != id and candidate not in stated and shared:
                scores[candidate] = 0.0
    own = {role[1:] for role in roles}
    for candidate in scores:
        theirs = {role[1:] for role in _edge_roles(graph, candidate)}
        scores[candidate] = len(own & theirs) / len(own | theirs)
    best = sorted(scores, key=lambda score: (-scores[score], score))[:limit]
    reasons = [(each, 1.0, type) for each, type in sorted(stated.items())]
    reasons += [(each, round(scores[each], 6), "the same edges") for each in best]
    rows = tuple((*index.identity(graph.row(each)), score, why) for each, score, why in reasons[:limit])
    why = (f"{format_count(len(stated), 'alternative')} said by an edge",)
    about = (id, *(row[0] for row in rows))
    columns = (*_IDENTITY_COLUMNS, "score", "why")
    return TableFound(f"alternatives to {id}: {len(reasons)}", columns, rows, why, about)


@check_arguments
def list_changes(graph: PropertyGraph, earlier: PropertyGraph) -> TableFound:
    """List what was added, removed and changed since an earlier graph: nodes by id, edges by their ends."""
    diff: Diff = earlier.diff(graph)
    rows: list[tuple[str, str, str, str]] = []
    for word, nodes in (("added", diff.added_nodes), ("removed", diff.removed_nodes)):
        rows += [(word, "node", node.id, " ".join(node.labels)) for node in nodes]
    rows += [("changed", "node", new.id, _changed_names(old, new)) for old, new in diff.changed_nodes]
    for word, edges in (("added", diff.added_edges), ("removed", diff.removed_edges)):
        rows += [(word, "edge", _format_edge(edge), "") for edge in edges]
    changed = diff.changed_edges
    rows += [("changed", "edge", _format_edge(new), _changed_names(old, new)) for old, new in changed]
    about = tuple(row[2] for row in rows if row[1] == "node" and row[2] in graph)
    columns = ("change", "kind", "what", "how")
    return TableFound(format_count(len(rows), "change"), columns, tuple(rows), (), about)


def _edge_roles(graph: PropertyGraph, id: str) -> set[tuple[str, str, str, bool]]:
    """Return the edges of a node as (id, type, other end, whether it is outgoing)."""
    return {(id, neighbour.type, neighbour.target, True) for neighbour in graph.neighbours(id, "out")} | {
        (id, neighbour.type, neighbour.source, False) for neighbour in graph.neighbours(id, "in")
    }


def _changed_names(before: Node | Edge, after: Node | Edge) -> str:
    one, other = before.properties, after.properties
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    labels = isinstance(before, Node) and isinstance(after, Node) and before.labels != after.labels
    return ", ".join(["type"] * labels + names)


def _format_edge(edge: Edge) -> str:
    return f"{edge.source} -{edge.type}-> {edge.target}"


def _folded_text(value: object) -> str:
    return str(value).casefold()


def _node_description(graph: PropertyGraph, row: int) -> str:
    return str(graph.node_properties[row].get("description") or "")


def _format_location(properties: Mapping[str, Any]) -> str:
    lines = properties.get("lines")
    lines = lines if isinstance(lines, list) else []
    return f"{properties.get('file', '')}:{','.join(map(str, lines[:5]))}".strip(":")
