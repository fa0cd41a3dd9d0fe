"""A first walk through a GraphML file: what NetworkX would lose without a word is refused by line, or counted
so that it can be told.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from kgot_lab.errors import BadInput, shortly
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Json

_SPACE = "http://graphml.graphdrawing.org/xmlns"
_NUMBERS = {"int": int, "integer": int, "long": int, "float": float, "double": float}
_YES_OR_NO = {"true": True, "1": True, "false": False, "0": False}
_TYPES = (*_NUMBERS, "boolean", "string")
_LEFT_OUT = {"port": "port", "desc": "description", "locator": "locator"}


@dataclass
class _Key:
    """A kind of attribute, as a file declares it."""

    name: str
    type: str
    of: str
    default: str | None = None


@dataclass
class GraphmlWalk:
    """What a file holds: the keys of its attributes, its nodes by the line of each, how many edges, and what
    was left out of each kind.
    """

    keys: dict[str, _Key] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    ends: set[str] = field(default_factory=set)
    edges: int = 0
    directed: bool = True
    left_out: Counter[str] = field(default_factory=Counter)

    def defaults(self, of: str) -> dict[str, Json]:
        """The values that nodes or edges have which say nothing else, by name."""
        keys = [key for key in self.keys.values() if key.of in (of, "all") and key.default is not None]
        return {key.name: _value(key.default or "", key.type) for key in keys}

    def notes(self) -> list[str]:
        """What is read otherwise than it stands there, in words."""
        made = len(self.ends - self.nodes.keys())
        return [
            *(
                ["its edges have no direction, and point here as they are listed"]
                if self.edges and not self.directed
                else []
            ),
            *(
                [f"{counted(made, 'node')} made of what edges name, though it holds none of that id"]
                if made
                else []
            ),
            *(
                [f"left out: {', '.join(counted(times, what) for what, times in self.left_out.items())}"]
                if self.left_out
                else []
            ),
        ]


def walk_graphml(data: bytes) -> GraphmlWalk:
    """Walk through the bytes of a file.

    Raises BadInput with the line: for a node or an edge that cannot be told from another, a second graph, a
    value that is not of its type.
    """
    return _Walker().walked(data)


class _Walker:
    """The parts of a file that are open at a line, outermost first, each with its attributes."""

    def __init__(self) -> None:
        self.found = GraphmlWalk()
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._begins, self._ends
        self._parser.CharacterDataHandler = self._text
        self._open: list[tuple[str, dict[str, str]]] = []
        self._said: list[str] = []
        self._graphs = 0
        self._edges: dict[tuple[str, ...], int] = {}
        self._values: list[
            tuple[str, str, str, int]
        ] = []  # key, text, whose and line: a key may be declared behind them

    def walked(self, data: bytes) -> GraphmlWalk:
        self._parser.Parse(data, True)
        for key, text, whose, line in self._values:
            if key not in self.found.keys:
                raise BadInput(
                    f"line {line}: {whose} has a value of the key {shortly(key)}, which is not declared"
                )
            type = self.found.keys[key].type
            try:
                _value(text, type)
            except ValueError:
                raise BadInput(f"line {line}: {whose} has {shortly(text)} where the type is {type}") from None
        return self.found

    def _refuse(self, told: str) -> NoReturn:
        raise BadInput(f"line {self._parser.CurrentLineNumber}: {told}")

    def _begins(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        tag = local if space in ("", _SPACE) else ""
        above = self._open[-1] if self._open else ("", {})
        self._open.append((tag, attributes))
        self._said = []
        match tag:
            case "graph":
                self._graph(above, attributes)
            case "node":
                self._node(attributes)
            case "edge":
                self._edge(attributes)
            case "key":
                self._key(attributes)
            case "data" if above[0] == "graph":
                self.found.left_out["value of the graph itself"] += 1
            case _ if tag in _LEFT_OUT and above[0] in ("graph", "node", "edge"):
                self.found.left_out[_LEFT_OUT[tag]] += 1

    def _graph(self, above: tuple[str, dict[str, str]], attributes: dict[str, str]) -> None:
        if above[0] == "graphml":
            self._graphs += 1
            self.found.directed = attributes.get("edgedefault") == "directed"
            if self._graphs > 1:
                self._refuse(
                    "a second graph begins, and one file is one graph here: put each in a file of its own"
                )
        elif above[1].get("yfiles.foldertype") != "group":
            self._refuse(
                f"a graph within the {above[0] or 'file'} {shortly(above[1].get('id', ''))}: only one that is not nested is read"
            )

    def _node(self, attributes: dict[str, str]) -> None:
        id, line = attributes.get("id"), self._parser.CurrentLineNumber
        if id is None:
            self._refuse("a node without id")
        if first := self.found.nodes.get(id):
            self._refuse(f"a second node has the id {shortly(id)}, as the one in line {first}")
        self.found.nodes[id] = line

    def _edge(self, attributes: dict[str, str]) -> None:
        source, target, id = (attributes.get(name) for name in ("source", "target", "id"))
        if source is None or target is None:
            self._refuse("an edge without source or target")
        if id is not None:
            ends = (source, target) if self.found.directed else sorted((source, target))
            if first := self._edges.get((*ends, id)):
                both = f"from {shortly(source)} to {shortly(target)}"
                self._refuse(f"a second edge {both} has the id {shortly(id)}, as the one in line {first}")
            self._edges[*ends, id] = self._parser.CurrentLineNumber
        if ports := attributes.keys() & {"sourceport", "targetport"}:
            self.found.left_out["port of an edge"] += len(ports)
        self.found.ends |= {source, target}
        self.found.edges += 1

    def _key(self, attributes: dict[str, str]) -> None:
        id, name, type = (attributes.get(part, "") for part in ("id", "attr.name", "attr.type"))
        if "yfiles.type" in attributes:
            type = "yfiles"
        elif (type := type or "string") not in _TYPES:
            self._refuse(
                f"the key {shortly(id)} has the type {shortly(type)}, which is none of {', '.join(_TYPES)}"
            )
        self.found.keys[id] = _Key(name, type, attributes.get("for", "all"))

    def _text(self, text: str) -> None:
        self._said.append(text)

    def _ends(self, _: str) -> None:
        tag, attributes = self._open.pop()
        above = self._open[-1] if self._open else ("", {})
        text, line = "".join(self._said), self._parser.CurrentLineNumber
        if tag == "default" and above[0] == "key" and text:
            key = self.found.keys[above[1].get("id", "")]
            key.default = text
            self._values.append(
                (above[1].get("id", ""), text, f"the default of the key {shortly(key.name)}", line)
            )
        if tag == "data" and above[0] in ("node", "edge") and text.strip():
            whose = f"the {above[0]} {shortly(above[1]['id'])}" if "id" in above[1] else _between(above[1])
            self._values.append((attributes.get("key", ""), text, whose, line))
        self._said = []


def _between(attributes: dict[str, str]) -> str:
    return f"the edge from {shortly(attributes.get('source', ''))} to {shortly(attributes.get('target', ''))}"


def _value(text: str, type: str) -> Json:
    """A text as its type has it; raises ValueError."""
    if type == "boolean":
        if text.lower() not in _YES_OR_NO:
            raise ValueError(text)
        return _YES_OR_NO[text.lower()]
    return _NUMBERS[type](text) if type in _NUMBERS else text
