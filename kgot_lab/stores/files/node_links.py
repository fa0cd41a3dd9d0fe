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
from kgot_lab.io.files import read_regular, utf8_text
from kgot_lab.types import Edge, Json, Node

_LISTS = ("links", "edges")
_SHOWN = '{"nodes": [{"id": "a", "type": "tool", "name": "A"}], "links": [{"source": "a", "type": "uses", "target": "b"}]}'
_HOW = (
    f"edges are objects with a source and a target in one list links or edges, as in {_SHOWN}: move them "
    "there, or remove what is no edge"
)
_MORE_ENDS = {"source": ("sources", "parent"), "target": ("targets", "child")}
_NOT_LETTERS = re.compile(r"[^a-z0-9]")
_MOST_NAMED = 8  # keys in an error


def read_json_graph(path: Path | str) -> PropertyGraph:
    """Read a graph from a JSON file: a snapshot, one record a line, or one object with nodes and links.

    A record is a node or a relationship. Raises BadInput, naming the file and the position in it, if the file
    is neither.
    """
    path = Path(path)
    try:
        text = utf8_text(read_regular(path), path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as a graph: {error}") from None
    whole = _whole(text, path)
    return read_snapshot(path) if whole is None else node_link_graph(whole, str(path))


def node_link_graph(whole: Mapping[str, Any], what: str) -> PropertyGraph:
    """Build a graph from an object with "nodes" and "links" or "edges".

    A node is an object with an id, or an id. Its types are `labels`, or else `type`, or else `label`. Beside
    a `type`, `label` is its name. An edge has a source and a target, and optionally a type, under these or
    similar names (COLUMNS). A node that only edges name is created. If all ends are numbers and none is an
    id, they count the nodes from 0, as in D3. `what` names the object in an error. Raises BadInput with the
    position, and naming the key if edges are found elsewhere.
    """
    for name in ("nodes", *_LISTS):
        if not isinstance(whole.get(name, []), list):
            found = describe_value(whole[name])
            raise BadInput(f"{what}: nodes and links are lists, and {name} is {found}; as in {_SHOWN}")
    if all(whole.get(name) for name in _LISTS):
        raise BadInput(f"{what}: it has edges in both links and edges: put all into one of them")
    listed: Any = next((whole[name] for name in _LISTS if whole.get(name)), [])
    nodes = [_node(told, f"{what}, node {number}") for number, told in enumerate(whole["nodes"], start=1)]
    edges = [_edge(told, f"{what}, link {number}") for number, told in enumerate(listed, start=1)]
    ids = [node.id for node in nodes]
    _refuse_unread_edges(whole, nodes, what, has_edges=bool(edges))
    by_place = bool(edges) and _count_nodes(listed, ids)
    ends = dict(zip(map(str, range(len(ids))), ids, strict=True)) if by_place else {}
    return PropertyGraph.of(nodes, distinct_edges(_joined(edges, ends)), dangling="add")


def _whole(text: str, path: Path) -> Mapping[str, Any] | None:
    """Return a text that is one object with nodes, parsed.

    None for a snapshot, and for a text that is neither, for which the snapshot reader has the better error.
    Raises BadInput for other JSON.
    """
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _begins_with_nodes(text):
            raise BadInput(f"{path}: not JSON: {error}") from None
        return None
    if isinstance(whole, dict) and "nodes" in whole:
        return whole
    if isinstance(whole, dict) and whole.get("type") in ("node", "relationship"):
        return None
    there = f"an object with {_listed(whole)}" if isinstance(whole, dict) and whole else describe_value(whole)
    raise BadInput(
        f"{path}: a graph in JSON is one object with nodes and links, as in {_SHOWN}, or nodes and "
        f"relationships, {RECORD_EXAMPLE}; this is {there}"
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
    whole: Mapping[str, Any], nodes: Sequence[Node], what: str, *, has_edges: bool
) -> None:
    """Raise BadInput if a key that is not read contains edges.

    If there are edges that are read, a list of something else is allowed.
    """
    ids = {node.id for node in nodes}
    unread = {name: value for name, value in whole.items() if name not in ("nodes", *_LISTS)}
    found = [
        name
        for name, value in unread.items()
        if (isinstance(value, list) and value and not has_edges)
        or _holds_edges(value, ids)
        or ("edge" in name.lower() and _lists_nodes(value))
    ]
    if found:
        raise BadInput(f"{what}: {_listed(found)} would not be read; {_HOW}")
    if not has_edges:
        for number, node in enumerate(nodes, start=1):
            if names := [
                name for name, value in node.properties.items() if _holds_ends(value, ids - {node.id})
            ]:
                raise BadInput(f"{what}, node {number}: {_listed(names)} would be no edges; {_HOW}")


def _holds_edges(value: Any, ids: set[str]) -> bool:
    """Return whether a value contains edges.

    Edges are objects with two ends, lists that begin with two ends or a triple, or nodes with the list of
    their neighbours.
    """
    if isinstance(value, dict):
        return _has_ends(value) or any(
            _holds_edges(each, ids) or (name in ids and _holds_ends(each, ids))
            for name, each in value.items()
        )
    if not isinstance(value, list):
        return False
    if len(value) in (2, 3) and all(isinstance(each, str) and each in ids for each in (value[0], value[-1])):
        return True
    return any(
        _holds_edges(each, ids) or (isinstance(each, list) and _holds_ends(each, ids)) for each in value
    )


def _has_ends(record: Mapping[str, Any]) -> bool:
    names = {_NOT_LETTERS.sub("", name.lower()).removesuffix("node").removesuffix("id") for name in record}
    return all(names & {*COLUMNS[end], *_MORE_ENDS[end]} for end in ("source", "target"))


def _holds_ends(value: Any, ids: set[str]) -> bool:
    """Return whether a value lists nodes, by id or as objects with an id, or is an object keyed by id."""
    if isinstance(value, dict):
        return not ids.isdisjoint(value)
    return isinstance(value, list) and any(
        any(_is_id(each.get(name)) for name in (*COLUMNS["target"], "id"))
        if isinstance(each, dict)
        else isinstance(each, str) and each in ids
        for each in value
    )


def _lists_nodes(value: Any) -> bool:
    """Return whether a list or an object contains objects or lists, as hyperedges do."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(each, dict | list) and each for each in inner)


def _listed(names: Iterable[str]) -> str:
    first = list(islice(names, _MOST_NAMED))
    return ", ".join(map(short_repr, first))


def _node(told: Any, where: str) -> Node:
    if isinstance(told, str | int) and not isinstance(told, bool):
        return Node(str(told))
    if not isinstance(told, dict):
        raise BadInput(f"{where}: a node is an object with an id, not {describe_value(told)}; as in {_SHOWN}")
    about = dict(told)
    id = next((about.pop(name) for name in ("id", "key", "name") if _is_id(about.get(name))), None)
    if id is None:
        raise BadInput(f"{where}: it has no id, which is a text or a number; as in {_SHOWN}")
    for name in ("labels", "type", "label"):
        if types := _types(about.get(name)):
            del about[name]
            break
    else:
        types = ()
    if "name" not in told and isinstance(about.get("label"), str):
        about["name"] = about.pop("label")
    elif "name" in told:
        about["name"] = told["name"]
    inner = about.pop("properties", None)
    return Node(
        str(id),
        types,
        about | inner
        if isinstance(inner, dict)
        else about
        if inner is None
        else about | {"properties": inner},
    )


def _edge(told: Any, where: str) -> Edge:
    if not isinstance(told, dict):
        raise BadInput(
            f"{where}: a link is an object with a source and a target, not {describe_value(told)}; as in {_SHOWN}"
        )
    about = dict(told)
    ends = []
    for end in ("source", "target"):
        name = next((name for name in COLUMNS[end] if _is_id(about.get(name))), None)
        if name is None:
            raise BadInput(f"{where}: it has no {end}, which is the id of a node; as in {_SHOWN}")
        ends.append(str(about.pop(name)))
    type = next(
        (
            name
            for name in (*TYPE_ATTRIBUTES, *COLUMNS["type"])
            if isinstance(about.get(name), str) and about[name]
        ),
        None,
    )
    key = about.pop("key", "")
    inner = about.pop("properties", None)
    called = str(about.pop(type)) if type else str(key) if isinstance(key, str) and key else UNTYPED
    own = "" if not isinstance(key, str) or key == called else key.removeprefix(f"{called}#")
    properties: Mapping[str, Json] = about | inner if isinstance(inner, dict) else about
    return Edge(ends[0], called, ends[1], properties, own)


def _count_nodes(listed: Iterable[Mapping[str, Any]], ids: list[str]) -> bool:
    """Return whether the ends of links are numbers that count the nodes, and none of them an id."""
    ends = [each.get(name) for each in listed for name in ("source", "target")]
    numbers = {
        end for end in ends if isinstance(end, int) and not isinstance(end, bool) and 0 <= end < len(ids)
    }
    return all(isinstance(end, int) and end in numbers for end in ends) and not {
        str(end) for end in numbers
    } & set(ids)


def _joined(edges: Iterable[Edge], ends: Mapping[str, str]) -> Iterator[Edge]:
    for each in edges:
        yield Edge(
            ends.get(each.source, each.source),
            each.type,
            ends.get(each.target, each.target),
            each.properties,
            each.key,
        )


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and value != ""


def _types(value: object) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(str(each) for each in listed if isinstance(each, str) and each)


_DELIMITERS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")
_MOST_TOLD = 8  # columns in an error
_HEAD = "source,type,target"


def read_edge_list(path: Path | str) -> PropertyGraph:
    """Read a graph from an edge list with columns source, target and optionally type.

    Similar column names are recognized (COLUMNS). Other columns are properties. Without a type an edge is
    "related_to". A cell that is a number is read as one, except ids and types. An empty file is an empty
    graph. Raises BadInput, naming file and line, if the file cannot be read.
    """
    path = Path(path)
    try:
        text = utf8_text(read_regular(path), path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as a table of edges: {error}") from None
    return PropertyGraph.of((), distinct_edges(_edges(text, path)), dangling="add")


def distinct_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield the edges, with a number as or after the key of each that repeats an earlier identity."""
    taken: set[tuple[str, str, str, str]] = set()
    for edge in edges:
        keys = (f"{edge.key}.{number}" if edge.key else str(number) for number in count(2))
        while edge.identity in taken:
            edge = replace(edge, key=next(keys))
        taken.add(edge.identity)
        yield edge


def _edges(text: str, path: Path) -> Iterator[Edge]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text, path), strict=True)
    columns: list[str] = []
    places: dict[str, int] = {}
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if not columns:
                columns = [cell.strip() for cell in row]
                places = _places(columns, f"{path}, line {rows.line_num}")
                continue
            yield _row_as_edge(row, columns, places, f"{path}, line {rows.line_num}")
    except csv.Error as error:
        raise BadInput(f"{path}, line {rows.line_num}: not a row of a table: {error}") from None


def _delimiter(text: str, path: Path) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    head = next((line for line in text.splitlines() if line.strip()), "")
    return max(_DELIMITERS, key=head.count)


def _places(columns: list[str], where: str) -> dict[str, int]:
    """Return the positions of source, type and target in a row.

    Raises BadInput if a column name repeats, or if source or target is missing.
    """
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise BadInput(f"{where}: two columns are called {short_repr(twice[0])}: rename one")
    called = {name.lower(): place for place, name in reversed([*enumerate(columns)])}
    found = {
        ours: next((called[name] for name in names if name in called), -1) for ours, names in COLUMNS.items()
    }
    if found["source"] < 0 or found["target"] < 0:
        there = ", ".join(map(short_repr, columns[:_MOST_TOLD]))
        raise BadInput(
            f"{where}: the first line names the columns, a source, a target and perhaps a type, as in {_HEAD}; this is {there}"
        )
    return found


def _row_as_edge(row: list[str], columns: list[str], places: dict[str, int], where: str) -> Edge:
    if len(row) > len(columns) and any(cell.strip() for cell in row[len(columns) :]):
        raise BadInput(
            f"{where}: {len(row)} cells, and the head has {len(columns)}: put a cell that holds the delimiter in quotes"
        )
    cells = [cell.strip() for cell in row] + [""] * (len(columns) - len(row))
    for end in ("source", "target"):
        if not cells[places[end]]:
            raise BadInput(
                f"{where}: the row has no {end}: fill in the column {columns[places[end]]}, or leave the row out"
            )
    type = cells[places["type"]] if places["type"] >= 0 else ""
    properties = {
        name: _value(cells[place])
        for place, name in enumerate(columns)
        if name and cells[place] and place not in places.values()
    }
    return Edge(cells[places["source"]], type or UNTYPED, cells[places["target"]], properties)


def _value(cell: str) -> Json:
    if not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)
