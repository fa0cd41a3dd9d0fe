"""Graphs in JSON: objects with nodes and edges, lists and lines of records, as other programs name them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from kgot_lab.arguments import parse_json
from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph.snapshots import plain_name
from kgot_lab.stores.files.elements import EXAMPLE, Elements, are_bounds, bounds_error, find_ends, is_edge
from kgot_lab.stores.files.tabular import Options, read_rows
from kgot_lab.stores.files.triples import read_query_results, read_wikidata

_NODE_LISTS = ("nodes", "vertices", "entities")
_EDGE_LISTS = tuple("links edges relationships relations rels triples triplets arcs connections".split())
_FLAT = ("elements", "objects")  # lists of nodes and edges, of Cytoscape, Kumu and STIX
_ADJACENCY = ("adjacency", "adj")
_NODE_ROLES, _EDGE_ROLES = ("node", "entity"), ("relationship", "relation", "edge")
_ROLES = (*_NODE_ROLES, *_EDGE_ROLES)
_SETTINGS = ("directed", "multigraph", "options", "type")
_EXPECTED = (
    'a graph in JSON is nodes and relationships one a line, as in {"type": "node", "id": "a", "labels": ["tool"]} and '
    f'{{"type": "relationship", "label": "uses", "start": {{"id": "a"}}, "end": {{"id": "b"}}}}, or one object with nodes and links, {EXAMPLE}'
)
_ADVICE = f"edges are objects with a source and a target in one list links or edges, as in {EXAMPLE}"
_MAX_SHOWN = 100  # characters of a record in an error
_SNAPSHOT_KEYS = frozenset("type id labels properties label key start end".split())


def read_json(text: str, source: str, options: Options) -> Elements:
    """Read the elements of a graph in JSON, one value or one a line.

    Raises BadInput, with the position, for what is no graph or has edges that would not be read.
    """
    found = Elements("JSON")
    try:
        value = parse_json(text) if text.strip() else []
    except ValueError as error:
        if "Extra data" not in str(error):
            raise BadInput(f"{source}: not JSON: {error}") from None
        value = [_parse_line(line, f"{source}, line {n}") for n, line in enumerate(text.split("\n"), start=1)]
    if isinstance(value, dict) and isinstance(value.get("head"), dict) and "results" in value:
        return read_query_results(text, source)
    rows = value["entities"] if isinstance(value, dict) and "entities" in value else value
    rows = [value] if isinstance(value, dict) and {"id", "labels", "claims"} <= value.keys() else rows
    rows = list(rows.values() if isinstance(rows, dict) else rows if isinstance(rows, list) else ())
    names = dict.fromkeys(chain(*rows)) if rows and all(isinstance(row, dict) for row in rows) else {}
    if {"id", "labels", "claims"} <= names.keys():
        return read_wikidata(rows)
    if names and (options.ends[0] or any(f"{name}Label" in names for name in names)):
        cells = [[*names], *([row.get(name, "") for name in names] for row in rows)]
        rows = [(f"{source}, record {n}", row) for n, row in enumerate(cells)]
        return read_rows(rows, found, options._replace(is_typed=True))
    if isinstance(value, list) and value and all(isinstance(each, dict) and "data" in each for each in value):
        value = {"elements": value}  # of Cytoscape
    if objects := list(_graph_objects(value, found, source)):
        found.notes += [f"its {len(objects)} graphs are read as one"] if len(objects) > 1 else []
        known = set[str]()
        for part in objects:
            at = len(found.edges)
            _read_object({**value, **part} if isinstance(value, dict) else part, part, found, source)
            new = [edge for edge in found.edges[at:] if str(edge) not in known]
            found.left_out["edge that an earlier graph has too"] += len(found.edges) - at - len(new)
            found.edges[at:] = new
            known.update(map(str, new))
    else:
        records = value if isinstance(value, list) else [value]
        for number, record in enumerate(records, start=1):
            if record is not None:
                _add_record(record, found, f"{source}, line {number}")
        records = [record for record in records if record is not None]
        kinds = {record.get("type") if isinstance(record, dict) else "" for record in records}
        found.is_ours = kinds <= {"node", "relationship"} and bool(records or not text.strip())
        if found.is_ours and all(record.keys() <= _SNAPSHOT_KEYS for record in records):
            return found  # a list in its properties is one
    if turned := [edge for edge in found.edges if "from" in _arrows(edge)]:
        found.edges = [edge for edge in found.edges if _arrows(edge) != {"from"}]
        found.edges += [edge._replace(source=edge.target, target=edge.source) for edge in turned]
        found.notes.append(f"turned as arrows say, or two edges where both ends have one: {len(turned):,}")
    pairs = [] if found.nodes or found.ends else [edge[:2] for edge in found.edges]
    if are_bounds(chain(*(edge.by for edge in found.edges)), pairs, is_part=options.is_part):
        raise bounds_error(source, found.edges[0].by, pairs[0])
    for id, (_, fields) in found.nodes.items() if not found.edges else ():
        for name, each in fields.items():
            if _names_nodes(each, found.nodes.keys() - {id}):
                problem = f"{source}: {short_repr(name)} of the node {short_repr(id)} would be no edges"
                raise BadInput(f"{problem}; {_ADVICE}")
    return found


def _arrows(edge: Any) -> set[str]:
    """Return the ends at which an edge of vis.js has arrows, as a text or an object says; a loop has no ends."""
    arrows = edge.fields.get("arrows") if edge.by == ("from", "to") and edge.source != edge.target else ""
    if isinstance(arrows, dict):
        arrows = [end for end, at in arrows.items() if (at.get("enabled", 1) if isinstance(at, dict) else at)]
    return {"from", "to"} & {*re.findall("[a-z]+", str(arrows))}


def _parse_line(line: str, location: str) -> Any:
    try:
        return parse_json(line) if line.strip() else None
    except (ValueError, RecursionError) as error:
        is_deep = isinstance(error, RecursionError)
        problem = "its values are nested too deeply" if is_deep else f"not JSON: {error}"
        raise BadInput(f"{location}: {problem}") from None


def _graph_objects(value: Any, found: Elements, source: str) -> Iterator[Mapping[str, Any]]:
    """Yield the outermost objects that have a list of nodes or edges, and count what is beside them.

    Raises BadInput if edges are beside them.
    """
    if isinstance(value, list):
        for item in value:
            yield from _graph_objects(item, found, source) if isinstance(item, dict) else ()
    elif isinstance(value, dict):
        flat = [each for each in _FLAT if isinstance(value.get(each), list)]
        lists = [] if _keys(value, *_NODE_LISTS) else flat
        if lists:
            nodes, edges = ([each for each in value[lists[0]] if is_edge(each) == of] for of in (False, True))
            yield {"nodes": nodes, "arcs": edges} | {name: value[name] for name in _keys(value, *_EDGE_LISTS)}
        elif _keys(value, *_NODE_LISTS, *_EDGE_LISTS, *_ADJACENCY) and value.get("type") not in _ROLES:
            yield value
        else:
            inner = {name: list(_graph_objects(each, found, source)) for name, each in value.items()}
            yield from chain(*inner.values())
            if any(inner.values()):
                others = {name: each for name, each in value.items() if not inner[name]}
                _leave_out(others, set(), found, source)


def _leave_out(values: Mapping[str, Any], ids: set[str], found: Elements, source: str) -> None:
    """Count values that are left out. Raises BadInput if one holds edges."""
    for name, value in values.items():
        if name not in _SETTINGS and value not in ({}, [], None, ""):
            if _holds_edges(value, ids):
                raise BadInput(f"{source}: {short_repr(name)} would not be read; {_ADVICE}")
            found.left_out[f"value of {short_repr(name)}"] += 1


def _keys(data: Mapping[str, Any], *names: str) -> list[str]:
    return [name for name in data if plain_name(name) in names and isinstance(data[name], list | dict)]


def _add_record(record: Any, found: Elements, location: str) -> None:
    """Add a record that is a node or an edge, as it says or as it has two ends."""
    role = str(record.get("type")) if isinstance(record, dict) else ""
    known = role in _ROLES
    if not known and isinstance(record, dict) and (inner := list(_of_apoc(record))):  # a row of a query
        for each in inner:
            _add_record(each, found, location)
        others = {name: each for name, each in record.items() if not any(_of_apoc(each))}
        return _leave_out(others, set(), found, location)
    if not known and not is_edge(record):
        raise BadInput(f"{location}: {_EXPECTED}; this is {json.dumps(record)[:_MAX_SHOWN]}")
    if role == "node":
        record = {"labels": None, **record}
    elif known and role != "relationship":
        record = {name: value for name, value in record.items() if name != "type"}
    (found.add_edge if role not in _NODE_ROLES else found.add_node)(record, location)


def _of_apoc(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the outermost nodes and relationships of APOC in a value."""
    if isinstance(value, dict) and value.get("type") in ("node", "relationship") and "id" in value:
        yield value
    elif isinstance(value, dict | list):
        yield from chain(*map(_of_apoc, value.values() if isinstance(value, dict) else value))


def _read_object(whole: Mapping[str, Any], data: Mapping[str, Any], found: Elements, source: str) -> None:
    """Read an object with lists of nodes and edges. `whole` has the fields of those around it too."""
    kinds = (_NODE_LISTS, _EDGE_LISTS, _ADJACENCY)
    node_lists, edge_lists, adjacency = (_keys(data, *names) for names in kinds)
    ids = list[str]()
    for id, record in (pair for name in node_lists for pair in _listed(data[name])):
        if id is not None:
            record = {"id": id, **(record if isinstance(record, dict) else {"name": record})}
        ids.append(found.add_node(record, f"{source}, node {len(ids) + 1}"))
    links = [value for name in edge_lists for _, value in _listed(data[name])]
    neighbours = [link for name in adjacency for link in _adjacent(data[name], ids, source)]
    links += _once(neighbours) if whole.get("directed") is False else neighbours
    ends = [link.get(name) for link in links if isinstance(link, dict) for name in ("source", "target")]
    are_places = all(type(end) is int and -1 < end < len(ids) for end in ends)
    if ends and are_places and set(map(str, ends)).isdisjoint(ids):  # of D3
        links = [link | {name: ids[link[name]] for name in ("source", "target")} for link in links]
    for number, link in enumerate(links, start=1):
        found.add_edge(link, f"{source}, link {number}", is_keyed="multigraph" in whole)
    options = data.get("options")  # of graphology; nodes by id are of the JSON Graph Format
    found.label_names |= isinstance(data.get("nodes"), dict) or options is not None
    kind = options.get("type") if isinstance(options, dict) else ""
    plain = whole.get("directed") is False or kind == "undirected"
    for own in (link if isinstance(link, dict) else {} for link in links):
        found.undirected += own.get("directed", not own.get("undirected", plain)) is False
    others = {name: each for name, each in data.items() if name not in {*node_lists, *edge_lists, *adjacency}}
    for name, each in others.items():
        if each and ("edge" in name.lower() or (isinstance(each, list) and not links)):
            raise BadInput(f"{source}: {short_repr(name)} would not be read; {_ADVICE}")
    _leave_out(others, set(ids), found, source)


def _listed(value: Any) -> Iterator[tuple[str | None, Any]]:
    """Yield the records of a list, or of an object with their ids."""
    yield from value.items() if isinstance(value, dict) else ((None, item) for item in value)


def _adjacent(value: Any, ids: Sequence[str], source: str) -> Iterator[Mapping[str, Any]]:
    """Yield the edges of a list of neighbours for each node in order, or of an object by ids of nodes."""
    if isinstance(value, list) and len(value) != len(ids):
        raise BadInput(f"{source}: it has {len(value)} lists of neighbours for {len(ids)} nodes")
    for start, neighbours in value.items() if isinstance(value, dict) else zip(ids, value, strict=True):
        for id, item in _listed(neighbours):
            fields = item if isinstance(item, dict) else {"id": item} if id is None else {"weight": item}
            end = fields.get("id") if id is None else id
            others = {name: each for name, each in fields.items() if name != "id"}
            yield {**others, "source": start, "target": end}


def _once(links: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the edges without direction that both of their ends list, once."""
    waiting: Counter[tuple[str, str]] = Counter()
    for link in links:
        start, end = str(link["source"]), str(link["target"])
        is_second = start != end and waiting[end, start] > 0
        waiting[(end, start) if is_second else (start, end)] += -1 if is_second else 1
        if not is_second:
            yield link


def _holds_edges(value: Any, ids: set[str]) -> bool:
    """Return whether a value contains objects with two ends, or lists that begin and end with an id."""
    if isinstance(value, dict):
        return bool(find_ends(tuple(value))) or any(_holds_edges(each, ids) for each in value.values())
    if not isinstance(value, list):
        return False
    ends = (value[0], value[-1]) if len(value) in (2, 3) else (None,)
    are_ids = all(isinstance(each, str) and each in ids for each in ends)
    return are_ids or any(_holds_edges(each, ids) for each in value)


def _names_nodes(value: Any, ids: Collection[str]) -> bool:
    """Return whether a value is a list that names nodes, by their ids or as objects."""
    named = [each for each in value if isinstance(each, dict | str)] if isinstance(value, list) else []
    return any(isinstance(each, dict) or each in ids for each in named)
