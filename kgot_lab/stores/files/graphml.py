"""Read and write GraphML with NetworkX, with the attributes of `exchange.to_networkx`.

Most graph programs read it. XML has no lists, maps or nulls, and forbids some characters: such a value is
stored as the text `json:` and its JSON, and so is a text that begins with `json:`.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from xml.parsers import expat

from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import TYPE_ATTRIBUTES, UNTYPED
from kgot_lab.graph.snapshots import NamedGraph
from kgot_lab.io.files import (
    detect_wide_encoding,
    read_file_as,
    refuse_wide_encoding,
    write_atomically,
)
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

if TYPE_CHECKING:
    import networkx as nx

# A first pass through a GraphML file: what NetworkX would silently lose is refused with its line, or counted
# and reported.

_GRAPHML_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_NUMBERS = {"int": int, "integer": int, "long": int, "float": float, "double": float}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_TYPES = (*_NUMBERS, "boolean", "string")
_IGNORED_ELEMENTS = {"port": "port", "desc": "description", "locator": "locator"}


@dataclass
class _Key:
    """A kind of attribute, as a file declares it."""

    name: str
    type: str
    of: str
    default: str | None = None


@dataclass
class GraphmlScan:
    """The contents of a file: attribute keys, lines of its nodes, number of edges, and what was left out."""

    keys: dict[str, _Key] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    ends: set[str] = field(default_factory=set)
    edges: int = 0
    directed: bool = True
    left_out: Counter[str] = field(default_factory=Counter)

    def defaults(self, element_kind: str) -> dict[str, Json]:
        """Return the default attribute values of nodes or edges, by name."""
        keys = [k for k in self.keys.values() if k.of in (element_kind, "all") and k.default is not None]
        return {key.name: _parse_value(key.default or "", key.type) for key in keys}

    def notes(self) -> list[str]:
        """Describe what is read differently from the file."""
        created = len(self.ends - self.nodes.keys())
        left_out = ", ".join(format_count(times, what) for what, times in self.left_out.items())
        notes = {
            "its edges have no direction, and point here as they are listed": self.edges
            and not self.directed,
            f"{format_count(created, 'node')} made of what edges name, though it holds none of that id": created,
            f"left out: {left_out}": left_out,
        }
        return [note for note, applies in notes.items() if applies]


def scan_graphml(data: bytes) -> GraphmlScan:
    """Walk through the bytes of a file.

    Raises BadInput, with the line, for a node or an edge that cannot be distinguished from another, a second
    graph, or a value that is not of its type.
    """
    return _Scanner().scan(data)


class _Scanner:
    """The open elements of a file at a line, outermost first, each with its attributes."""

    def __init__(self) -> None:
        self.found = GraphmlScan()
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._on_start, self._on_end
        self._parser.CharacterDataHandler = self._on_text
        self._open: list[tuple[str, dict[str, str]]] = []
        self._said: list[str] = []
        self._graphs = 0
        self._edges: dict[tuple[str, ...], int] = {}
        # key, text, owner and line: a key may be declared after its use
        self._values: list[tuple[str, str, str, int]] = []

    def scan(self, data: bytes) -> GraphmlScan:
        self._parser.Parse(data, True)
        for key, text, owner, line in self._values:
            if key not in self.found.keys:
                problem = f"{owner} has a value of the key {short_repr(key)}"
                raise BadInput(f"line {line}: {problem}, which is not declared")
            type = self.found.keys[key].type
            try:
                _parse_value(text, type)
            except ValueError:
                problem = f"{owner} has {short_repr(text)} where the type is {type}"
                raise BadInput(f"line {line}: {problem}") from None
        return self.found

    def _refuse(self, message: str) -> NoReturn:
        raise BadInput(f"line {self._parser.CurrentLineNumber}: {message}")

    def _on_start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        tag = local if space in ("", _GRAPHML_NAMESPACE) else ""
        parent = self._open[-1] if self._open else ("", {})
        self._open.append((tag, attributes))
        self._said = []
        match tag:
            case "graph":
                self._on_graph(parent, attributes)
            case "node":
                self._on_node(attributes)
            case "edge":
                self._on_edge(attributes)
            case "key":
                self._on_key(attributes)
            case "data" if parent[0] == "graph":
                self.found.left_out["value of the graph itself"] += 1
            case _ if tag in _IGNORED_ELEMENTS and parent[0] in ("graph", "node", "edge"):
                self.found.left_out[_IGNORED_ELEMENTS[tag]] += 1

    def _on_graph(self, parent: tuple[str, dict[str, str]], attributes: dict[str, str]) -> None:
        if parent[0] == "graphml":
            self._graphs += 1
            self.found.directed = attributes.get("edgedefault") == "directed"
            if self._graphs > 1:
                self._refuse("a second graph begins, and a file holds one graph here: one file each")
        elif parent[1].get("yfiles.foldertype") != "group":
            self._refuse(
                f"a graph within the {parent[0] or 'file'} {short_repr(parent[1].get('id', ''))}: only one that is not nested is read"
            )

    def _on_node(self, attributes: dict[str, str]) -> None:
        id, line = attributes.get("id"), self._parser.CurrentLineNumber
        if id is None:
            self._refuse("a node without id")
        if first := self.found.nodes.get(id):
            self._refuse(f"a second node has the id {short_repr(id)}, as the one in line {first}")
        self.found.nodes[id] = line

    def _on_edge(self, attributes: dict[str, str]) -> None:
        source, target, id = (attributes.get(name) for name in ("source", "target", "id"))
        if source is None or target is None:
            self._refuse("an edge without source or target")
        if id is not None:
            ends = (source, target) if self.found.directed else sorted((source, target))
            if first := self._edges.get((*ends, id)):
                ends_text = f"from {short_repr(source)} to {short_repr(target)}"
                edge = f"a second edge {ends_text} has the id {short_repr(id)}"
                self._refuse(f"{edge}, as the one in line {first}")
            self._edges[*ends, id] = self._parser.CurrentLineNumber
        if ports := attributes.keys() & {"sourceport", "targetport"}:
            self.found.left_out["port of an edge"] += len(ports)
        self.found.ends |= {source, target}
        self.found.edges += 1

    def _on_key(self, attributes: dict[str, str]) -> None:
        id, name, type = (attributes.get(part, "") for part in ("id", "attr.name", "attr.type"))
        if "yfiles.type" in attributes:
            type = "yfiles"
        elif (type := type or "string") not in _TYPES:
            problem = f"the key {short_repr(id)} has the type {short_repr(type)}"
            self._refuse(f"{problem}, which is none of {', '.join(_TYPES)}")
        self.found.keys[id] = _Key(name, type, attributes.get("for", "all"))

    def _on_text(self, text: str) -> None:
        self._said.append(text)

    def _on_end(self, _: str) -> None:
        tag, attributes = self._open.pop()
        parent = self._open[-1] if self._open else ("", {})
        text, line = "".join(self._said), self._parser.CurrentLineNumber
        if tag == "default" and parent[0] == "key" and text:
            key = self.found.keys[parent[1].get("id", "")]
            key.default = text
            owner = f"the default of the key {short_repr(key.name)}"
            self._values.append((parent[1].get("id", ""), text, owner, line))
        if tag == "data" and parent[0] in ("node", "edge") and text.strip():
            kind, described = parent
            id = described.get("id")
            owner = _describe_edge(described) if id is None else f"the {kind} {short_repr(id)}"
            self._values.append((attributes.get("key", ""), text, owner, line))
        self._said = []


def _describe_edge(attributes: dict[str, str]) -> str:
    return f"the edge from {short_repr(attributes.get('source', ''))} to {short_repr(attributes.get('target', ''))}"


def _parse_value(text: str, type: str) -> Json:
    """Convert a text to its declared type.

    Raises ValueError if it has no such value.
    """
    if type == "boolean":
        if text.lower() not in _BOOLEANS:
            raise ValueError(text)
        return _BOOLEANS[text.lower()]
    return _NUMBERS[type](text) if type in _NUMBERS else text


_JSON_PREFIX = "json:"
# characters that XML 1.0 cannot represent, and \r, which it does not preserve
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_graphml(graph: PropertyGraph, path: Path | str) -> None:
    """Write a graph as GraphML that `read_graphml` reads back without loss.

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
    write_atomically(path, output.getvalue(), "the graph")


def read_graphml(path: Path | str) -> PropertyGraph:
    """Read a graph from a GraphML file, ours or another program's.

    Warns of what is read differently from the file. Raises BadInput, naming the file, if it cannot be read.
    """
    result = read_graphml_with_notes(path)
    if result.note:
        warnings.warn(f"{path}: {result.note}", stacklevel=2)
    return result.graph


def read_graphml_with_notes(path: Path | str) -> NamedGraph:
    """Read a graph from a GraphML file, with a note on what is read differently from the file.

    Raises BadInput, naming the file, if it cannot be read.
    """
    import networkx as nx

    data = read_file_as("GraphML", path)
    if detect_wide_encoding(data).startswith("utf-32"):  # every XML parser recognizes UTF-16
        refuse_wide_encoding(data, path)
    try:
        scan = scan_graphml(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a key without a type is read as text
            graph = nx.read_graphml(BytesIO(data), force_multigraph=True)
    except Exception as error:  # a broken file can make a parser raise anything
        reason = str(error)[:300] or type(error).__name__
        raise BadInput(f"{path}: cannot be read as GraphML: {reason}") from None
    if graph.number_of_edges() != scan.edges:  # ids such as 1 and 01, or a `key` that several edges have
        problem = f"of {format_count(scan.edges, 'edge')} only {graph.number_of_edges():,} can be told apart by their ids or keys"
        raise BadInput(f"{path}: cannot be read as GraphML: {problem}: give each an id of its own")
    _complete_attributes(graph, scan)
    for attributes in _attribute_dicts(graph):
        attributes.update({name: _decode_value(value) for name, value in attributes.items()})
    return NamedGraph(PropertyGraph.from_networkx(graph), "; ".join(scan.notes()))


def _complete_attributes(graph: nx.Graph[Any], scan: GraphmlScan) -> None:
    """Add what the file says in other ways: default values and labels as Neo4j writes them.

    The id of an edge is not taken as its relation.
    """
    node_defaults, edge_defaults = scan.defaults("node"), scan.defaults("edge")
    for _, attributes in graph.nodes(data=True):
        attributes.update(node_defaults | attributes)
        if isinstance(labels := attributes.get("labels"), str) and labels.startswith(":"):
            attributes["labels"] = [label for label in labels.split(":") if label]
    for _, _, attributes in graph.edges(data=True):
        attributes.update(edge_defaults | attributes)
        if not any(isinstance(attributes.get(name), str) and attributes[name] for name in TYPE_ATTRIBUTES):
            attributes["relation"] = UNTYPED


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
        isinstance(value, str) and not value.startswith(_JSON_PREFIX) and not _NOT_XML.search(value)
    )
    return value if is_plain_number or is_plain_text else _JSON_PREFIX + json.dumps(value)


def _decode_value(value: Any) -> Json:
    if not isinstance(value, str) or not value.startswith(_JSON_PREFIX):
        return value
    try:
        return json.loads(value[len(_JSON_PREFIX) :])
    except ValueError:
        return value
