"""Write GraphML with NetworkX, with the attributes of `exchange.to_networkx`.

Most graph programs read it. XML has no lists, maps or nulls, and forbids some characters: such a value is
stored as the text `json:` and its JSON, and so is a text that begins with `json:`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import write_atomically
from kgot_lab.stores.files.markup import JSON_PREFIX, OUR_GRAPHML
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

    converted = graph.to_networkx()
    for name in _all_names(graph):
        if _NOT_XML.search(name):
            problem = f"XML cannot hold the name {name!r}"
            raise BadInput(f"{problem}; rename it, or write another form, such as .jsonl")
    for attributes in _attribute_dicts(converted):
        attributes.update({name: _encode_value(value) for name, value in attributes.items()})
    output = BytesIO()
    nx.write_graphml(converted, output, infer_numeric_types=False)
    head, _, body = output.getvalue().partition(b"\n")
    write_atomically(path, b"\n".join([head, OUR_GRAPHML, body]), "the graph")


def _all_names(graph: PropertyGraph) -> Iterator[str]:
    yield from graph.ids
    for properties in (*graph.node_properties, *graph.edge_properties):
        yield from properties
    for edge in graph.edges:
        yield f"{edge.type}{edge.key}"


def _attribute_dicts(graph: nx.Graph[Any]) -> Iterator[dict[str, Any]]:
    yield from (attributes for _, attributes in graph.nodes(data=True))
    yield from (attributes for _, _, attributes in graph.edges(data=True))


def _encode_value(value: Json) -> Any:
    is_plain_number = isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63)
    is_plain_text = (
        isinstance(value, str) and not value.startswith(JSON_PREFIX) and not _NOT_XML.search(value)
    )
    try:
        return value if is_plain_number or is_plain_text else JSON_PREFIX + json.dumps(value)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{short_repr(value)} is not JSON, so GraphML cannot hold it: {error}") from None
