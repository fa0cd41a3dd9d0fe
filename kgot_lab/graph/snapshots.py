"""Graph snapshots of the Knowledge Graph of Thoughts project.

They are JSON lines in the format of Neo4j's APOC or of NetworkX. The id of an APOC relationship becomes the
key of the edge. An edge whose key is not a valid id is written with a new id and a field "key", so that
reading returns the same graph.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_regular, utf8_text, write_whole
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json, Node

Variant = Literal["apoc", "networkx"]
Record = dict[str, Json]
RECORD_EXAMPLE = (
    'one a line, as in {"type": "node", "id": "a", "labels": ["tool"], "properties": {"name": "A"}} and '
    '{"type": "relationship", "label": "uses", "start": {"id": "a"}, "end": {"id": "b"}}'
)
_NODE_KEYS = {"type", "id", "labels", "properties"}


def read_snapshot(path: Path | str) -> PropertyGraph:
    """Read the graph in a snapshot of either format. An empty file is an empty graph.

    An edge end without a line of its own is built from the copy inside the edge. Raises BadInput, which names
    file and line, for a malformed snapshot.
    """
    nodes: dict[str, Node] = {}
    ends: dict[str, Node] = {}
    edges: dict[tuple[str, str, str, str], Edge] = {}
    for place, line in _lines(Path(path)):
        record = _record(line, place)
        if record["type"] == "node":
            if unread := [
                name for name in record.keys() - _NODE_KEYS if isinstance(record[name], list | dict)
            ]:
                raise BadInput(
                    f"{place}: {', '.join(sorted(unread))} of the node would not be read: put values into its "
                    "properties, and each edge into a line of its own, of the type relationship"
                )
            node = _node(record, place)
            if nodes.setdefault(node.id, node) != node:
                raise BadInput(f"{place}: a second, different node has the id {node.id!r}")
        else:
            source, target = _node(record.get("start"), place), _node(record.get("end"), place)
            edge = _edge(record, source, target, place, edges)
            edges[edge.identity] = edge
            ends.setdefault(source.id, source)
            ends.setdefault(target.id, target)
    dangling = [end for id, end in ends.items() if id not in nodes]
    return PropertyGraph.of([*nodes.values(), *dangling], edges.values())


def write_snapshot(graph: PropertyGraph, path: Path | str, variant: Variant = "apoc") -> None:
    """Write a graph as a snapshot that `read_snapshot` reads back without loss.

    Raises BadInput for a value that is not JSON and for a file that cannot be written. An existing snapshot
    is then unchanged.
    """
    if variant not in _FORMS:
        raise UnknownName("snapshot variant", variant, _FORMS)
    write_whole(path, _FORMS[variant](graph), "the snapshot")  # a lone surrogate becomes its JSON escape


# --- reading ---


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    r"""Yield the location and text of each line that is not blank.

    Only \n ends a line, since JSON may contain other separators.
    """
    try:
        text = utf8_text(read_regular(path), path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as a snapshot: {error}") from None
    return (
        (f"{path}, line {number}", line)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    )


def _record(line: str, place: str) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place}: not JSON: {error}") from None
    if not isinstance(record, dict) or record.get("type") not in ("node", "relationship"):
        raise BadInput(
            f'{place}: expected an object with "type" "node" or "relationship", {RECORD_EXAMPLE}; it is {line[:100]}'
        )
    return record


def _node(record: Any, place: str) -> Node:
    if not isinstance(record, dict) or record.get("id") is None:
        raise BadInput(f"{place}: a node without id")
    labels = record.get("labels") or ()
    return Node(
        str(record["id"]),
        (labels,) if isinstance(labels, str) else tuple(map(str, labels)),
        _properties(record, place),
    )


def _properties(record: Record, place: str) -> Mapping[str, Json]:
    properties = record.get("properties") or {}
    if not isinstance(properties, dict):
        raise BadInput(f"{place}: properties are not an object")
    return properties


def _edge(
    record: Record, source: Node, target: Node, place: str, taken: Mapping[tuple[str, str, str, str], Edge]
) -> Edge:
    """Build the edge of a record, with a new key if another edge already has its identity."""
    label, own = record.get("label"), record.get("key", record.get("id"))
    if not isinstance(label, str):
        raise BadInput(f"{place}: a relationship without label")
    key = "" if own is None else str(own)
    keys = chain((key,), (f"{key}.{n}" if key else str(n) for n in count(2)))
    made = (Edge(source.id, label, target.id, _properties(record, place), key) for key in keys)
    return next(edge for edge in made if edge.identity not in taken)


# --- writing ---


def _apoc(graph: PropertyGraph) -> str:
    records = {
        node.id: {"id": node.id, "labels": list(node.labels), **_if_any(node.properties)}
        for node in graph.nodes
    }
    nodes = ({"type": "node", **record} for record in records.values())
    edges = (
        {
            "type": "relationship",
            "id": id,
            "label": edge.type,
            **({} if id == edge.key else {"key": edge.key}),
            **_if_any(edge.properties),
            "start": records[edge.source],
            "end": records[edge.target],
        }
        for edge, id in _with_ids(graph.edges)
    )
    return "\n".join(_json(record, (",", ":")) for record in chain(nodes, edges))


def _networkx(graph: PropertyGraph) -> str:
    records = {
        node.id: {
            "type": "node",
            "id": node.id,
            "labels": _one_or_list(node.labels),
            "properties": dict(node.properties),
        }
        for node in graph.nodes
    }
    edges = (
        {
            "type": "relationship",
            "label": edge.type,
            **({"key": edge.key} if edge.key else {}),
            "properties": dict(edge.properties),
            "start": records[edge.source],
            "end": records[edge.target],
        }
        for edge in graph.edges
    )
    return "".join(_json(record, (", ", ": ")) + "\n" for record in chain(records.values(), edges))


_FORMS: dict[str, Callable[[PropertyGraph], str]] = {"apoc": _apoc, "networkx": _networkx}


def _with_ids(edges: Iterable[Edge]) -> Iterator[tuple[Edge, str]]:
    """Yield each edge with its relationship id.

    The id is its key, if that is a decimal number not yet used, else the next number that is no key.
    """
    keys = {edge.key for edge in edges}
    fresh = (id for id in map(str, count()) if id not in keys)
    taken: set[str] = set()
    for edge in edges:
        id = edge.key if _is_decimal(edge.key) and edge.key not in taken else next(fresh)
        taken.add(id)
        yield edge, id


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _if_any(properties: Mapping[str, Json]) -> Record:
    return {"properties": dict(properties)} if properties else {}


def _one_or_list(labels: tuple[str, ...]) -> Json:
    return None if not labels else labels[0] if len(labels) == 1 else list(labels)


def _json(record: Record, separators: tuple[str, str]) -> str:
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=separators)
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{record['type']} {record.get('id', '')!r} holds a value that is not JSON: {error}"
        ) from None


# Names for nodes of other programs' graphs, whose ids are numbers or IRIs that no question mentions.

SOURCE_ID = "source_id"  # the property with a node's old id
# common properties for names, such as rdfs:label and foaf:name
_NAMES = ("name", "label", "title", "prefLabel")
# 17, n17 in GraphML of Neo4j, 4:5e0c…:17 as Neo4j's element ids
_NUMBER = re.compile(r"n?\d+|\d+:[\w-]+:\d+")
_IRI = re.compile(r"((https?|file|ftp)://|urn:)\S+", re.I)


@dataclass(frozen=True)
class NamedGraph:
    """A graph with names as node ids, and a sentence on what was renamed, or ""."""

    graph: PropertyGraph
    note: str = ""


def with_names_as_ids(graph: PropertyGraph) -> NamedGraph:
    """Replace ids that are numbers or IRIs by the names of the nodes.

    The old id becomes the property `source_id`. A name that several nodes share is made unique by the old id.
    A node without a name keeps its number, or gets the local name of its IRI. Relations, labels and
    properties that are IRIs are replaced by their local names where these are unambiguous.
    """
    ids = _new_ids(graph)
    types = _local_names(graph.type_names)
    labels = _local_names({label for labels in graph.node_labels for label in labels})
    words = _local_names({word for each in (*graph.node_properties, *graph.edge_properties) for word in each})
    if not (ids or types or labels or words):
        return NamedGraph(graph)

    def rename(properties: Mapping[str, Json]) -> dict[str, Json]:
        return {words.get(word, word): value for word, value in properties.items()}

    nodes = (
        Node(
            ids.get(node.id, node.id),
            tuple(labels.get(label, label) for label in node.labels),
            ({SOURCE_ID: node.id} if node.id in ids else {}) | rename(node.properties),
        )
        for node in graph.nodes
    )
    edges = (
        replace(
            edge,
            source=ids.get(edge.source, edge.source),
            type=types.get(edge.type, edge.type),
            target=ids.get(edge.target, edge.target),
            properties=rename(edge.properties),
        )
        for edge in graph.edges
    )
    return NamedGraph(PropertyGraph.of(nodes, edges), _note(len(ids), len(graph), len(types)))


def _note(named: int, nodes: int, types: int) -> str:
    parts = (
        [
            f"{named:,} of {format_count(nodes, 'node')} by their names, not by numbers or IRIs (kept as {SOURCE_ID})"
        ]
        if named
        else []
    )
    parts += [f"{format_count(types, 'relation')} by the last part of the IRI"] if types else []
    return f"the graph of another program: {'; '.join(parts or ['labels and properties by the last part of their IRIs'])}"


def _new_ids(graph: PropertyGraph) -> dict[str, str]:
    """Return the new id of each node whose id is a number or an IRI, if there is a better one."""
    wanted: dict[str, str] = {}
    for node in graph.nodes:
        if _NUMBER.fullmatch(node.id) or _is_iri(node.id):
            name = _name(node.properties) or _local(node.id)
            if name and name != node.id:
                wanted[node.id] = name
    several = Counter(wanted.values())
    taken = {id for id in graph.ids if id not in wanted}
    new: dict[str, str] = {}
    for id, name in wanted.items():
        first = [name] if several[name] == 1 else []
        choices = chain(
            first, (f"{name} ({_local(id) or id})",), (f"{name} ({id}){'′' * more}" for more in count())
        )
        new[id] = next(
            each for each in choices if each not in taken and (each == name or each not in several)
        )
        taken.add(new[id])
    return new


def _name(properties: Mapping[str, Json]) -> str:
    """Return the name among properties of any vocabulary, or "" if there is none."""
    by_word = {
        (_local(word) if _is_iri(word) else word): value for word, value in reversed(list(properties.items()))
    }
    for word in _NAMES:
        value = by_word.get(word)
        first = value[0] if isinstance(value, list | tuple) and value else value
        if isinstance(first, str) and first.strip():
            return " ".join(first.split())
    return ""


def _local_names(iris: Iterable[str]) -> dict[str, str]:
    """Return the local name of each IRI, if no other word has that name."""
    words = set(iris)
    local = {word: _local(word) for word in words if _is_iri(word)}
    several = Counter(local.values())
    return {iri: name for iri, name in local.items() if name and several[name] == 1 and name not in words}


def _is_iri(text: str) -> bool:
    return bool(_IRI.fullmatch(text))


def _local(iri: str) -> str:
    """Return the part of an IRI after its last #, / or :, or "" if there is none or it is not an IRI."""
    return unquote(re.split("[#/:]", iri.rstrip("#/"))[-1]) if _is_iri(iri) else ""
