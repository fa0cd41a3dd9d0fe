"""Graph snapshots as the Knowledge Graph of Thoughts project stores them: JSON lines, in the form of Neo4j's
APOC or of NetworkX.

An APOC relationship has an id, which becomes the edge's key. An edge whose key cannot serve as that id is
written with a fresh id and one more field, "key", so that reading back gives the same graph.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_regular, utf8_text, write_whole
from kgot_lab.types import Edge, Json, Node

Variant = Literal["apoc", "networkx"]
Record = dict[str, Json]
RECORD_EXAMPLE = (
    'one a line, as in {"type": "node", "id": "a", "labels": ["tool"], "properties": {"name": "A"}} and '
    '{"type": "relationship", "label": "uses", "start": {"id": "a"}, "end": {"id": "b"}}'
)
_NODE_KEYS = {"type", "id", "labels", "properties"}


def read_snapshot(path: Path | str) -> PropertyGraph:
    """The graph in a snapshot of either form; an empty file is an empty graph.

    An edge end that has no line of its own is made from the copy inside the edge. Raises BadInput, naming
    file and line.
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

    Raises BadInput for a value that is not JSON and for a file that cannot be written; a snapshot that was
    there then stays.
    """
    if variant not in _FORMS:
        raise UnknownName("snapshot variant", variant, _FORMS)
    write_whole(path, _FORMS[variant](graph), "the snapshot")  # a lone surrogate becomes its JSON escape


# --- reading
# ----------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines that are not blank, each with its place; only \\n ends a line, since JSON may hold other separators."""
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
    """The edge of a record, its key changed if another edge already has its identity."""
    label, own = record.get("label"), record.get("key", record.get("id"))
    if not isinstance(label, str):
        raise BadInput(f"{place}: a relationship without label")
    key = "" if own is None else str(own)
    keys = chain((key,), (f"{key}.{n}" if key else str(n) for n in count(2)))
    made = (Edge(source.id, label, target.id, _properties(record, place), key) for key in keys)
    return next(edge for edge in made if edge.identity not in taken)


# --- writing
# ----------------------------------------------------------------------------------------------------------


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
    """Each edge with its relationship id: its key if that is a decimal number nobody had before, else the
    next number no key uses.
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
