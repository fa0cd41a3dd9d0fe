"""Read graphs from JSON objects with nodes and links, and from edge lists (CSV, TSV).

The object is {"nodes": […], "links": […]} or has "edges", as in NetworkX, D3 and vis.js.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, describe_value, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import COLUMNS, TYPE_ATTRIBUTES, UNTYPED
from kgot_lab.graph.snapshots import RECORD_EXAMPLE, read_snapshot
from kgot_lab.io.files import read_file_as, utf8_text
from kgot_lab.types import Edge, Json, Node

_EDGE_LIST_NAMES = ("links", "edges")
_EXAMPLE = '{"nodes": [{"id": "a", "type": "tool", "name": "A"}], "links": [{"source": "a", "type": "uses", "target": "b"}]}'
_ADVICE = (
    f"edges are objects with a source and a target in one list links or edges, as in {_EXAMPLE}: move them "
    "there, or remove what is no edge"
)
_OTHER_END_NAMES = {"source": ("sources", "parent"), "target": ("targets", "child")}
_NOT_LETTERS = re.compile(r"[^a-z0-9]")
_MAX_NAMED_KEYS = 8  # keys in an error


def read_json_graph(path: Path | str) -> PropertyGraph:
    """Read a graph from a JSON file: a snapshot, one record a line, or one object with nodes and links.

    A record is a node or a relationship. Raises BadInput, naming the file and the position in it, if the file
    is neither.
    """
    path = Path(path)
    graph_object = _parse_graph_object(utf8_text(read_file_as("a graph", path), path), path)
    return read_snapshot(path) if graph_object is None else node_link_graph(graph_object, str(path))


def node_link_graph(data: Mapping[str, Any], source: str) -> PropertyGraph:
    """Build a graph from an object with "nodes" and "links" or "edges".

    A node is an object with an id, or an id. Its types are `labels`, or else `type`, or else `label`. Beside
    a `type`, `label` is its name. An edge has a source and a target, and optionally a type, under these or
    similar names (COLUMNS). A node that only edges name is created. If all ends are numbers and none is an
    id, they count the nodes from 0, as in D3. `what` names the object in an error. Raises BadInput with the
    position, and naming the key if edges are found elsewhere.
    """
    for name in ("nodes", *_EDGE_LIST_NAMES):
        if not isinstance(data.get(name, []), list):
            found = describe_value(data[name])
            raise BadInput(f"{source}: nodes and links are lists, and {name} is {found}; as in {_EXAMPLE}")
    if all(data.get(name) for name in _EDGE_LIST_NAMES):
        raise BadInput(f"{source}: it has edges in both links and edges: put all into one of them")
    links: Any = next((data[name] for name in _EDGE_LIST_NAMES if data.get(name)), [])
    nodes = [_parse_node(record, f"{source}, node {n}") for n, record in enumerate(data["nodes"], start=1)]
    edges = [_parse_edge(record, f"{source}, link {number}") for number, record in enumerate(links, start=1)]
    ids = [node.id for node in nodes]
    _refuse_unread_edges(data, nodes, source, has_edges=bool(edges))
    is_indexed = bool(edges) and _ends_are_indices(links, ids)
    id_by_index = dict(zip(map(str, range(len(ids))), ids, strict=True)) if is_indexed else {}
    return PropertyGraph.of(nodes, distinct_edges(_replace_indices(edges, id_by_index)), dangling="add")


def _parse_graph_object(text: str, path: Path) -> Mapping[str, Any] | None:
    """Return a text that is one object with nodes, parsed.

    None for a snapshot, and for a text that is neither, for which the snapshot reader has the better error.
    Raises BadInput for other JSON.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _begins_with_nodes(text):
            raise BadInput(f"{path}: not JSON: {error}") from None
        return None
    if isinstance(value, dict) and "nodes" in value:
        return value
    if isinstance(value, dict) and value.get("type") in ("node", "relationship"):
        return None
    is_filled = isinstance(value, dict) and value
    found = f"an object with {_list_names(value)}" if is_filled else describe_value(value)
    raise BadInput(
        f"{path}: a graph in JSON is one object with nodes and links, as in {_EXAMPLE}, or nodes and "
        f"relationships, {RECORD_EXAMPLE}; this is {found}"
    )


def _begins_with_nodes(text: str) -> bool:
    """Return whether a text that is not JSON is meant as one object with nodes, not as a record a line."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    try:
        record = json.loads(first)
    except ValueError:
        return text.lstrip().startswith("{") and '"nodes"' in text
    except RecursionError:
        return False
    return isinstance(record, dict) and "nodes" in record


def _refuse_unread_edges(
    data: Mapping[str, Any], nodes: Sequence[Node], source: str, *, has_edges: bool
) -> None:
    """Raise BadInput if a key that is not read contains edges.

    If there are edges that are read, a list of something else is allowed.
    """
    ids = {node.id for node in nodes}
    unread = {name: value for name, value in data.items() if name not in ("nodes", *_EDGE_LIST_NAMES)}

    def may_hold_edges(name: str, value: Any) -> bool:
        is_only_list = isinstance(value, list) and value and not has_edges
        names_edges = "edge" in name.lower() and _contains_containers(value)
        return is_only_list or names_edges or _contains_edges(value, ids)

    if found := [name for name, value in unread.items() if may_hold_edges(name, value)]:
        raise BadInput(f"{source}: {_list_names(found)} would not be read; {_ADVICE}")
    if not has_edges:
        for number, node in enumerate(nodes, start=1):
            others = ids - {node.id}
            if names := [name for name, value in node.properties.items() if _lists_ends(value, others)]:
                raise BadInput(f"{source}, node {number}: {_list_names(names)} would be no edges; {_ADVICE}")


def _contains_edges(value: Any, ids: set[str]) -> bool:
    """Return whether a value contains edges.

    Edges are objects with two ends, lists that begin with two ends or a triple, or nodes with the list of
    their neighbours.
    """
    if isinstance(value, dict):
        if _has_ends(value):
            return True
        items = value.items()
        return any(_contains_edges(v, ids) or (name in ids and _lists_ends(v, ids)) for name, v in items)
    if not isinstance(value, list):
        return False
    if len(value) in (2, 3) and all(isinstance(item, str) and item in ids for item in (value[0], value[-1])):
        return True
    return any(_contains_edges(i, ids) or (isinstance(i, list) and _lists_ends(i, ids)) for i in value)


def _has_ends(record: Mapping[str, Any]) -> bool:
    names = {_NOT_LETTERS.sub("", name.lower()).removesuffix("node").removesuffix("id") for name in record}
    return all(names & {*COLUMNS[end], *_OTHER_END_NAMES[end]} for end in ("source", "target"))


def _lists_ends(value: Any, ids: set[str]) -> bool:
    """Return whether a value lists nodes, by id or as objects with an id, or is an object keyed by id."""
    if isinstance(value, dict):
        return not ids.isdisjoint(value)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and any(_is_id(item.get(name)) for name in (*COLUMNS["target"], "id")):
            return True
        if isinstance(item, str) and item in ids:
            return True
    return False


def _contains_containers(value: Any) -> bool:
    """Return whether a list or an object contains objects or lists, as hyperedges do."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(item, dict | list) and item for item in items)


def _list_names(names: Iterable[str]) -> str:
    shown = list(islice(names, _MAX_NAMED_KEYS))
    return ", ".join(map(short_repr, shown))


def _parse_node(record: Any, location: str) -> Node:
    if isinstance(record, str | int) and not isinstance(record, bool):
        return Node(str(record))
    if not isinstance(record, dict):
        given = f"{describe_value(record)}; as in {_EXAMPLE}"
        raise BadInput(f"{location}: a node is an object with an id, not {given}")
    properties = dict(record)
    id = next((properties.pop(name) for name in ("id", "key", "name") if _is_id(properties.get(name))), None)
    if id is None:
        raise BadInput(f"{location}: it has no id, which is a text or a number; as in {_EXAMPLE}")
    for name in ("labels", "type", "label"):
        if types := _type_names(properties.get(name)):
            del properties[name]
            break
    else:
        types = ()
    if "name" not in record and isinstance(properties.get("label"), str):
        properties["name"] = properties.pop("label")
    elif "name" in record:
        properties["name"] = record["name"]
    nested = properties.pop("properties", None)
    if nested is not None:
        properties = properties | (nested if isinstance(nested, dict) else {"properties": nested})
    return Node(str(id), types, properties)


def _parse_edge(record: Any, location: str) -> Edge:
    if not isinstance(record, dict):
        problem = f"{location}: a link is an object with a source and a target, not {describe_value(record)}"
        raise BadInput(f"{problem}; as in {_EXAMPLE}")
    attributes = dict(record)
    ends = []
    for end in ("source", "target"):
        name = next((name for name in COLUMNS[end] if _is_id(attributes.get(name))), None)
        if name is None:
            raise BadInput(f"{location}: it has no {end}, which is the id of a node; as in {_EXAMPLE}")
        ends.append(str(attributes.pop(name)))
    texts = {name: attributes.get(name) for name in (*TYPE_ATTRIBUTES, *COLUMNS["type"])}
    type_attribute = next((name for name, text in texts.items() if isinstance(text, str) and text), None)
    key = attributes.pop("key", "")
    nested = attributes.pop("properties", None)
    named = str(key) if isinstance(key, str) and key else UNTYPED
    edge_type = str(attributes.pop(type_attribute)) if type_attribute else named
    edge_key = "" if not isinstance(key, str) or key == edge_type else key.removeprefix(f"{edge_type}#")
    properties: Mapping[str, Json] = attributes | nested if isinstance(nested, dict) else attributes
    return Edge(ends[0], edge_type, ends[1], properties, edge_key)


def _ends_are_indices(links: Iterable[Mapping[str, Any]], ids: list[str]) -> bool:
    """Return whether the ends of links are numbers that count the nodes, and none of them an id."""
    ends = [link.get(name) for link in links for name in ("source", "target")]
    numbers = {e for e in ends if isinstance(e, int) and not isinstance(e, bool) and 0 <= e < len(ids)}
    if {str(end) for end in numbers} & set(ids):
        return False
    return all(isinstance(end, int) and end in numbers for end in ends)


def _replace_indices(edges: Iterable[Edge], id_by_index: Mapping[str, str]) -> Iterator[Edge]:
    for edge in edges:
        source, target = (id_by_index.get(end, end) for end in (edge.source, edge.target))
        yield Edge(source, edge.type, target, edge.properties, edge.key)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _type_names(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(str(name) for name in names if isinstance(name, str) and name)


_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_MAX_NAMED_COLUMNS = 8  # columns in an error
_HEADER_EXAMPLE = "source,type,target"


def read_edge_list(path: Path | str) -> PropertyGraph:
    """Read a graph from an edge list with columns source, target and optionally type.

    Similar column names are recognized (COLUMNS). Other columns are properties. Without a type an edge is
    "related_to". A cell that is a number is read as one, except ids and types. An empty file is an empty
    graph. Raises BadInput, naming file and line, if the file cannot be read.
    """
    path = Path(path)
    text = utf8_text(read_file_as("a table of edges", path), path)
    return PropertyGraph.of((), distinct_edges(_read_edges(text, path)), dangling="add")


def distinct_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield the edges, with a number as or after the key of each that repeats an earlier identity."""
    taken: set[tuple[str, str, str, str]] = set()
    for edge in edges:
        keys = (f"{edge.key}.{number}" if edge.key else str(number) for number in count(2))
        while edge.identity in taken:
            edge = replace(edge, key=next(keys))
        taken.add(edge.identity)
        yield edge


def _read_edges(text: str, path: Path) -> Iterator[Edge]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, path), strict=True)
    columns: list[str] = []
    positions: dict[str, int] = {}
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if not columns:
                columns = [cell.strip() for cell in row]
                positions = _column_positions(columns, f"{path}, line {rows.line_num}")
                continue
            yield _parse_row(row, columns, positions, f"{path}, line {rows.line_num}")
    except csv.Error as error:
        raise BadInput(f"{path}, line {rows.line_num}: not a row of a table: {error}") from None


def _delimiter(text: str, path: Path) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    head = next((line for line in text.splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=head.count)


def _column_positions(columns: list[str], location: str) -> dict[str, int]:
    """Return the positions of source, type and target in a row.

    Raises BadInput if a column name repeats, or if source or target is missing.
    """
    if duplicates := [name for name in columns if name and columns.count(name) > 1]:
        raise BadInput(f"{location}: two columns are called {short_repr(duplicates[0])}: rename one")
    position_by_name = {name.lower(): position for position, name in reversed([*enumerate(columns)])}
    known = {
        column: [name for name in names if name in position_by_name] for column, names in COLUMNS.items()
    }
    found = {column: position_by_name[names[0]] if names else -1 for column, names in known.items()}
    if found["source"] < 0 or found["target"] < 0:
        present = ", ".join(map(short_repr, columns[:_MAX_NAMED_COLUMNS]))
        raise BadInput(
            f"{location}: the first line names the columns, a source, a target and perhaps a type, as in {_HEADER_EXAMPLE}; this is {present}"
        )
    return found


def _parse_row(row: list[str], columns: list[str], positions: dict[str, int], location: str) -> Edge:
    if len(row) > len(columns) and any(cell.strip() for cell in row[len(columns) :]):
        problem = f"{location}: {len(row)} cells, and the head has {len(columns)}"
        raise BadInput(f"{problem}: put a cell that holds the delimiter in quotes")
    cells = [cell.strip() for cell in row] + [""] * (len(columns) - len(row))
    for end in ("source", "target"):
        if not cells[positions[end]]:
            problem = f"{location}: the row has no {end}"
            raise BadInput(f"{problem}: fill in the column {columns[positions[end]]}, or leave the row out")
    type = cells[positions["type"]] if positions["type"] >= 0 else ""
    named = [position for position, name in enumerate(columns) if name and position not in positions.values()]
    properties = {columns[position]: _parse_cell(cells[position]) for position in named if cells[position]}
    return Edge(cells[positions["source"]], type or UNTYPED, cells[positions["target"]], properties)


def _parse_cell(cell: str) -> Json:
    if not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)
