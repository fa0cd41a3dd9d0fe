"""Write GraphML, GEXF and GML with NetworkX, with the attributes of `exchange.to_networkx`.

Most graph programs read them. They have no lists, maps or nulls, and XML forbids some characters: such a value is
stored as the text `json:` and its JSON, and so is a text that begins with `json:`. In GEXF and GML the label
of a node is its id, and `type` its first label; a property with a name that such a file uses gets an underscore.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import escape_reserved
from kgot_lab.io.files import write_atomically
from kgot_lab.stores.files.markup import EDGE_KEY, JSON_PREFIX, OUR_GRAPHML, OURS, PROGRAM_FIELDS
from kgot_lab.types import Json

if TYPE_CHECKING:
    import networkx as nx

# characters that XML 1.0 cannot represent, and \r, which it does not preserve
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphml(graph: PropertyGraph, path: Path | str) -> None:
    """Write a graph as GraphML that `read_graph` reads back without loss.

    Raises BadInput for a name that XML cannot represent.
    """
    import networkx as nx

    converted = _with_keys(graph)
    for name in _all_names(graph):
        if _NOT_XML.search(name):
            problem = f"XML cannot hold the name {name!r}"
            raise BadInput(f"{problem}; rename it, or write another form, such as .jsonl")
    for attributes in _attribute_dicts(converted):
        attributes.update({name: _encode_value(value) for name, value in attributes.items()})
    output = BytesIO()
    nx.write_graphml(converted, output, infer_numeric_types=False)
    head, _, body = output.getvalue().partition(b"\n")
    # the id of an edge is its key, which other programs take for one of its own
    body = re.sub(rb'(<edge [^>]*?) id="[^"]*"', rb"\1", body)
    write_atomically(path, b"\n".join([head, OUR_GRAPHML, body]), "the graph")


def format_for_programs(graph: PropertyGraph, form: str) -> str:
    """Return the text of a graph as GEXF or GML."""
    import networkx as nx

    converted = graph.to_networkx() if form == "gexf" else _with_keys(graph)  # GEXF has the keys of NetworkX
    for attributes in _attribute_dicts(converted):
        values = escape_reserved(attributes, PROGRAM_FIELDS)
        attributes.clear()
        attributes.update({name: _encode_value(value, form) for name, value in values.items()})
    for _, attributes in converted.nodes(data=True):
        attributes.update({"type": attributes.pop("label")} if "label" in attributes else {})
    lines = nx.generate_gexf(converted) if form == "gexf" else nx.generate_gml(converted)
    return "\n".join([OURS[form], *lines])


def _with_keys(graph: PropertyGraph) -> nx.MultiDiGraph[str]:
    """Convert a graph to NetworkX, with the key of an edge as an attribute, since ids of edges are unique."""
    converted = graph.to_networkx()
    for _, _, key, attributes in converted.edges(keys=True, data=True):
        attributes |= {EDGE_KEY: key} if key != attributes["relation"] else {}
    return converted


def _all_names(graph: PropertyGraph) -> Iterator[str]:
    yield from graph.ids
    for properties in (*graph.node_properties, *graph.edge_properties):
        yield from properties
    for edge in graph.edges:
        yield f"{edge.type}{edge.key}"


def _attribute_dicts(graph: nx.Graph[Any]) -> Iterator[dict[str, Any]]:
    yield from (attributes for _, attributes in graph.nodes(data=True))
    yield from (attributes for _, _, attributes in graph.edges(data=True))


def _encode_value(value: Json, form: str = "") -> Any:
    """Return a value as a form can hold it: GML has no booleans and large numbers."""
    limit = 2**31 if form == "gml" else 2**63
    is_number = isinstance(value, float) or (isinstance(value, int) and -limit <= value < limit)
    is_plain_number = is_number and not (form == "gml" and isinstance(value, bool))
    is_text = isinstance(value, str)
    is_plain_text = is_text and not value.startswith(JSON_PREFIX) and not _NOT_XML.search(value)
    return value if is_plain_number or is_plain_text else JSON_PREFIX + json.dumps(value)
