"""Graphs as GraphML, which most graph programs read: written and read by NetworkX, with the attributes of
`exchange.to_networkx`.

XML has no lists, maps or nulls, and forbids some characters: such a value is the text `json:` and its JSON,
as is a text that begins so.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import TYPE_ATTRIBUTES, UNTYPED
from kgot_lab.graph.snapshots import NamedGraph
from kgot_lab.io.files import read_regular, require_narrow, wide_encoding, write_whole
from kgot_lab.stores.files.graphml import GraphmlWalk, walk_graphml
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Json

if TYPE_CHECKING:
    import networkx as nx

_ENCODED = "json:"
# what XML 1.0 cannot hold, and \r, which it does not keep
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphml(graph: PropertyGraph, path: Path | str) -> None:
    """Write a graph as GraphML that `read_graphml` reads back without loss; raises BadInput for a name that
    XML cannot hold.
    """
    import networkx as nx

    made = graph.to_networkx()
    for name in _names(graph):
        if _NOT_XML.search(name):
            raise BadInput(
                f"XML cannot hold the name {name!r}; rename it, or write another form, such as .jsonl"
            )
    for attributes in _attributes(made):
        attributes.update({name: _encoded(value) for name, value in attributes.items()})
    written = BytesIO()
    nx.write_graphml(made, written, infer_numeric_types=False)
    write_whole(path, written.getvalue(), "the graph")


def read_graphml(path: Path | str) -> PropertyGraph:
    """The graph in a GraphML file, ours or another program's; raises BadInput, naming the file. What is read
    otherwise is warned of.
    """
    read = read_graphml_with_notes(path)
    if read.note:
        warnings.warn(f"{path}: {read.note}", stacklevel=2)
    return read.graph


def read_graphml_with_notes(path: Path | str) -> NamedGraph:
    """The graph in a GraphML file, and a note on what is read otherwise than it stands there; raises
    BadInput, naming the file.
    """
    import networkx as nx

    try:
        data = read_regular(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as GraphML: {error}") from None
    if wide_encoding(data).startswith("utf-32"):  # UTF-16 is told by every parser of XML
        require_narrow(data, path)
    try:
        walk = walk_graphml(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a key without a type is read as text
            read = nx.read_graphml(BytesIO(data), force_multigraph=True)
    except Exception as error:  # whatever a broken file makes a parser do
        raise BadInput(
            f"{path}: cannot be read as GraphML: {str(error)[:300] or type(error).__name__}"
        ) from None
    if read.number_of_edges() != walk.edges:  # ids such as 1 and 01, or a `key` that several have
        told = f"of {counted(walk.edges, 'edge')} only {read.number_of_edges():,} can be told apart by their ids or keys"
        raise BadInput(f"{path}: cannot be read as GraphML: {told}: give each an id of its own")
    _completed(read, walk)
    for attributes in _attributes(read):
        attributes.update({name: _decoded(value) for name, value in attributes.items()})
    return NamedGraph(PropertyGraph.from_networkx(read), "; ".join(walk.notes()))


def _completed(read: nx.Graph[Any], walk: GraphmlWalk) -> None:
    """Put in what the file says in other words: defaults, labels as Neo4j writes them, and that the id of an
    edge is no relation.
    """
    ours, theirs = walk.defaults("node"), walk.defaults("edge")
    for _, attributes in read.nodes(data=True):
        attributes.update(ours | attributes)
        if isinstance(labels := attributes.get("labels"), str) and labels.startswith(":"):
            attributes["labels"] = [label for label in labels.split(":") if label]
    for _, _, attributes in read.edges(data=True):
        attributes.update(theirs | attributes)
        if not any(isinstance(attributes.get(name), str) and attributes[name] for name in TYPE_ATTRIBUTES):
            attributes["relation"] = UNTYPED


def _names(graph: PropertyGraph) -> Iterator[str]:
    yield from graph.ids
    for properties in (*graph.node_properties, *graph.edge_properties):
        yield from properties
    for edge in graph.edges:
        yield f"{edge.type}{edge.key}"


def _attributes(graph: nx.Graph[Any]) -> Iterator[dict[str, Any]]:
    yield from (attributes for _, attributes in graph.nodes(data=True))
    yield from (attributes for _, _, attributes in graph.edges(data=True))


def _encoded(value: Json) -> Any:
    plain = isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63)
    text = isinstance(value, str) and not value.startswith(_ENCODED) and not _NOT_XML.search(value)
    return value if plain or text else _ENCODED + json.dumps(value)


def _decoded(value: Any) -> Json:
    if not isinstance(value, str) or not value.startswith(_ENCODED):
        return value
    try:
        return json.loads(value[len(_ENCODED) :])
    except ValueError:
        return value
