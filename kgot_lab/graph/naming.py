"""Names for the nodes of graphs that other programs wrote, whose ids are numbers or IRIs that no question
mentions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count
from urllib.parse import unquote

from kgot_lab.graph.property_graph import PropertyGraph
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Json, Node

SOURCE_ID = "source_id"  # the property that keeps the id a node had
# what most vocabularies call a name, rdfs:label and foaf:name among them
_NAMES = ("name", "label", "title", "prefLabel")
# 17, n17 in GraphML of Neo4j, 4:5e0c…:17 as Neo4j's element ids
_NUMBER = re.compile(r"n?\d+|\d+:[\w-]+:\d+")
_IRI = re.compile(r"((https?|file|ftp)://|urn:)\S+", re.I)


@dataclass(frozen=True)
class NamedGraph:
    """A graph whose nodes go by their names, and a sentence on what was renamed; "" where nothing was."""

    graph: PropertyGraph
    note: str = ""


def with_names_as_ids(graph: PropertyGraph) -> NamedGraph:
    """The graph in which nodes with a number or an IRI for an id have their name for one; the old id is their
    property `source_id`.

    A name that several nodes have is told apart by the old id; a node without a name keeps its number, or
    goes by the local name of its IRI. Relations, labels and properties that are IRIs go by their local names
    where those mean one IRI only.
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
            f"{named:,} of {counted(nodes, 'node')} by their names, not by numbers or IRIs (kept as {SOURCE_ID})"
        ]
        if named
        else []
    )
    parts += [f"{counted(types, 'relation')} by the last part of the IRI"] if types else []
    return f"the graph of another program: {'; '.join(parts or ['labels and properties by the last part of their IRIs'])}"


def _new_ids(graph: PropertyGraph) -> dict[str, str]:
    """The id that each node gets whose own is a number or an IRI, where there is a better one."""
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
    """The name among properties, whatever vocabulary they are of; "" where there is none."""
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
    """The local name of each IRI where no other word goes by it."""
    words = set(iris)
    local = {word: _local(word) for word in words if _is_iri(word)}
    several = Counter(local.values())
    return {iri: name for iri, name in local.items() if name and several[name] == 1 and name not in words}


def _is_iri(text: str) -> bool:
    return bool(_IRI.fullmatch(text))


def _local(iri: str) -> str:
    """What stands behind the last #, / or : of an IRI; "" where that is nothing, and for what is no IRI."""
    return unquote(re.split("[#/:]", iri.rstrip("#/"))[-1]) if _is_iri(iri) else ""
