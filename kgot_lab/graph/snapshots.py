"""Graph snapshots of the Knowledge Graph of Thoughts project.

They are JSON lines in the format of Neo4j's APOC or of NetworkX. The id of an APOC relationship becomes the
key of the edge. An edge whose key is not a valid id is written with a new id and a field "key", so that
reading returns the same graph.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, count
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from kgot_lab.errors import require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import folded_name
from kgot_lab.types import Edge, Json, Node

Variant = Literal["apoc", "networkx"]
Record = dict[str, Json]


def write_snapshot(graph: PropertyGraph, path: Path | str, variant: Variant = "apoc") -> None:
    """Write a graph as a snapshot that `kgot_lab.stores.files.read_graph` reads back without loss.

    Raises BadInput for a value that is not JSON and for a file that cannot be written. An existing snapshot
    is then unchanged.
    """
    require_known("snapshot variant", ("apoc", "networkx"), variant)
    # a lone surrogate becomes its JSON escape
    write_atomically(path, _format_snapshot(graph, is_apoc=variant == "apoc"), "the snapshot")


# --- writing ---


def _format_snapshot(graph: PropertyGraph, *, is_apoc: bool) -> str:
    def properties_field(properties: Mapping[str, Json]) -> Record:
        return {"properties": dict(properties)} if properties or not is_apoc else {}

    def labels(node: Node) -> Json:
        return list(node.labels) if is_apoc or len(node.labels) > 1 else next(iter(node.labels), None)

    records: dict[str, Record] = {
        node.id: {"type": "node", "id": node.id, "labels": labels(node), **properties_field(node.properties)}
        for node in graph.nodes
    }
    lines = [_format_record(record, is_apoc) for record in records.values()]
    for record in records.values() if is_apoc else ():
        del record["type"]  # which the ends of relationships are without
    for edge, id in _with_relationship_ids(graph.edges) if is_apoc else ((edge, "") for edge in graph.edges):
        head = {"type": "relationship", **({"id": id} if is_apoc else {}), "label": edge.type}
        key = {} if id == edge.key else {"key": edge.key}
        ends = {"start": records[edge.source], "end": records[edge.target]}
        lines.append(_format_record({**head, **key, **properties_field(edge.properties), **ends}, is_apoc))
    return "\n".join(lines) if is_apoc else "".join(f"{line}\n" for line in lines)


def _with_relationship_ids(edges: Iterable[Edge]) -> Iterator[tuple[Edge, str]]:
    """Yield each edge with its relationship id.

    The id is its key, if that is a decimal number not yet used, else the next number that is no key.
    """
    keys = {edge.key for edge in edges}
    unused_ids = (id for id in map(str, count()) if id not in keys)
    taken: set[str] = set()
    for edge in edges:
        is_decimal = edge.key.isascii() and edge.key.isdigit()
        id = edge.key if is_decimal and edge.key not in taken else next(unused_ids)
        taken.add(id)
        yield edge, id


def _format_record(record: Record, is_apoc: bool) -> str:
    separators = (",", ":") if is_apoc else (", ", ": ")
    return json.dumps(record, ensure_ascii=False, separators=separators)


# Names for nodes of other programs' graphs, whose ids are numbers or IRIs that no question mentions.

SOURCE_ID = "source_id"  # the property with a node's old id
# common properties for names, such as rdfs:label and foaf:name
NAME_PROPERTIES = (
    "name label title preflabel fullname sharedname entityname entityid displayname caption bezeichnung nombre nom nome "
    "isim имя название 名称 名字 姓名 名前 이름 id"  # the last of LangChain, beside ids of Neo4j
).split()
# 17, n17 in GraphML of Neo4j and yEd (n0::n1), GO:0008150, Q42, 4:5e0c…:17 as Neo4j's element ids, a UUID, a quoted text
_NUMERIC_ID = re.compile(
    r'n?-?\d+(::n\d+)*|[A-Za-z]\w*:\d+|[QP]\d+|\d+\.\d+|\d+:[\w-]+:\d+|[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|".*"',
    re.I | re.S,
)
_IRI = re.compile(r"((https?|file|ftp)://|urn:)\S+", re.I)


@dataclass(frozen=True)
class NamedGraph:
    """A graph from a file, a note on what differs from the file, and a summary of how it was read.

    Either is "" if there is nothing to report. The summary includes the note.
    """

    graph: PropertyGraph
    note: str = ""
    summary: str = ""


@lru_cache(1 << 12)
def plain_name(name: str) -> str:
    """Return the name of a field without capitals, accents, spaces and signs."""
    return re.sub(r"[\W_]", "", folded_name(name))


def is_opaque_id(id: str) -> bool:
    """Return whether an id is a number, an IRI or the like, which no question mentions."""
    return bool(_NUMERIC_ID.fullmatch(id)) or is_iri(id)


def use_names_as_ids(
    graph: PropertyGraph, names: str = "", words: Mapping[str, str] | None = None
) -> NamedGraph:
    """Replace ids that are numbers or IRIs by the names of the nodes, or any by their property `names`.

    The old id becomes the property `source_id`. A name that several nodes share is made unique by the old id.
    A node without a name keeps its number, or gets the local name of its IRI. Relations, labels and
    properties that are IRIs are replaced by their `words`, or else by their local names, where these are
    unambiguous.
    """
    ids = _new_ids(graph, names)
    types = _local_names(graph.type_names, words)
    labels = _local_names({label for labels in graph.node_labels for label in labels})
    properties = (*graph.node_properties, *graph.edge_properties)
    property_names = _local_names({word for named in properties for word in named}, words)
    if not (ids or types or labels or property_names):
        return NamedGraph(graph)

    old_id = SOURCE_ID if not any(SOURCE_ID in each for each in properties) else f"file_{SOURCE_ID}"

    def rename(properties: Mapping[str, Json]) -> dict[str, Json]:
        return {property_names.get(word, word): value for word, value in properties.items()}

    nodes, edges = list[Node](), list[Edge]()
    for node in graph.nodes:
        new_labels = tuple(labels.get(label, label) for label in node.labels)
        own: Record = {old_id: node.id} if node.id in ids else {}
        nodes.append(Node(ids.get(node.id, node.id), new_labels, own | rename(node.properties)))
    for edge in graph.edges:
        source, target = (ids.get(end, end) for end in (edge.source, edge.target))
        edges.append(Edge(source, types.get(edge.type, edge.type), target, rename(edge.properties), edge.key))
    return NamedGraph(PropertyGraph.of(nodes, edges), _rename_note(len(ids), len(graph), len(types), old_id))


def _rename_note(renamed: int, nodes: int, types: int, old_id: str) -> str:
    problem = f"by their names, not by numbers or IRIs (kept as {old_id})"
    parts = [f"{renamed:,} of {format_count(nodes, 'node')} {problem}"] if renamed else []
    parts += [f"{format_count(types, 'relation')} by the last part of the IRI"] if types else []
    return f"the graph of another program: {'; '.join(parts or ['labels and properties by the last part of their IRIs'])}"


def _new_ids(graph: PropertyGraph, names_from: str) -> dict[str, str]:
    """Return the new id of each node whose id is a number or an IRI, if there is a better one."""
    names: dict[str, str] = {}
    for node in graph.nodes:
        named = str(node.properties.get(names_from, "")).strip()
        if named or is_opaque_id(node.id):
            name = named or _find_name(node.properties) or local_name(node.id)
            if name and name != node.id:
                names[node.id] = name
    name_counts = Counter(names.values())
    taken = {id for id in graph.ids if id not in names}
    new: dict[str, str] = {}
    for id, name in names.items():
        first = [name] if name_counts[name] == 1 else []
        numbered = (f"{name} ({id}){'′' * primes}" for primes in count())
        choices = chain(first, (f"{name} ({local_name(id) or id})",), numbered)
        new[id] = next(c for c in choices if c not in taken and (c == name or c not in name_counts))
        taken.add(new[id])
    return new


def _find_name(properties: Mapping[str, Json]) -> str:
    """Return the name among properties of any vocabulary, or "" if there is none."""
    pairs = reversed(list(properties.items()))
    by_local_name = {plain_name(local_name(word) or word): value for word, value in pairs}
    for word in NAME_PROPERTIES:
        value = by_local_name.get(word)
        first = value[0] if isinstance(value, list | tuple) and value else value
        if isinstance(first, str) and first.strip():
            return " ".join(first.split())
    return ""


def _local_names(iris: Iterable[str], names: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the name or else the local name of each IRI, if no other word has that name."""
    words, names = set(iris), names or {}
    shared = Counter(names.get(word, "") for word in words)
    local = {
        word: names[word] if shared[names.get(word, "")] == 1 and word in names else local_name(word)
        for word in words
        if is_iri(word) or word in names
    }
    name_counts = Counter(local.values())
    return {iri: name for iri, name in local.items() if name and name_counts[name] == 1 and name not in words}


def is_iri(text: str) -> bool:
    return bool(_IRI.fullmatch(text))


def local_name(iri: str) -> str:
    """Return the part of an IRI after its last #, / or :, or "" if there is none or it is not an IRI."""
    return unquote(re.split("[#/:]", iri.rstrip("#/"))[-1]) if is_iri(iri) else ""
