"""Graphs in XML (GraphML, GEXF), GML and Pajek's lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any
from xml.etree import ElementTree

from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph.exchange import unescape_reserved
from kgot_lab.stores.files.elements import NUMBER, Elements, Fields, RawEdge, is_number
from kgot_lab.types import Json

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_PARSERS: dict[str, Callable[[str], Json]] = {
    **dict.fromkeys(("int", "integer", "long", "short"), int),
    **dict.fromkeys(("float", "double", "real"), float),
    **dict.fromkeys(("string", "anyuri", "liststring", "date", "datetime", ""), lambda it: decode_text(it)),
    "boolean": lambda text: _BOOLEANS[text.strip().lower()],
}
_STRUCTURE = set("id source target directed for pid label sourceport targetport yfiles.foldertype".split())
_HREF = "{http://www.w3.org/1999/xlink}href"  # of a node of XGMML that is described elsewhere
_PORTS = {"sourceport", "targetport"}
_TIMES = {"start", "end", "startopen", "endopen", "timestamp"}
OUR_GRAPHML = b"<!-- written by kgot_lab -->"  # below the first line
OURS = {"gexf": OUR_GRAPHML.decode(), "gml": 'Creator "kgot_lab"'}
PROGRAM_FIELDS = frozenset("id type pid start end viz parents slices spells source target key for".split())
# parameters of Pajek that say how something is drawn; longer names than these are attributes
_MAX_VERTICES = 10_000_000
_PAJEK_DRAWING = ("x_fact", "y_fact", "s_size", "size", "phi", "fos", "font", "lphi", "lps")
EDGE_KEY = "networkx_key"  # of an edge, as NetworkX calls it in GEXF
JSON_PREFIX = "json:"  # of a text that is JSON, in files of this package


def read_xml(data: bytes, source: str) -> Elements:
    """Read the elements of a graph in GraphML, GEXF or XGMML. What has no place in a graph is counted.

    Raises BadInput for other XML, several graphs, hyperedges, and nodes or edges without ids.
    """
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise BadInput(f"{source}: cannot be read as GraphML or GEXF: {error}") from None
    graphs = [root] if _tag(root) == "graph" else [part for part in root if _tag(part) == "graph"]
    if _tag(root) not in ("graphml", "gexf", "graph") or len(graphs) != 1:
        has = f"{len(graphs)} graphs in <{_tag(root)}>, and one is read: one file each"
        raise BadInput(f"{source}: cannot be read as GraphML or GEXF: it has {has}")
    found = _XmlReader(source, root, graphs[0]).found
    found.has_labels = found.is_ours = is_ours = OUR_GRAPHML in data[:200]
    return _unwrap_labels(found) if is_ours and found.form == "GEXF" else found


def _unwrap_labels(found: Elements) -> Elements:
    """Rename the fields of a file of this package in which a label is an id, to those of `to_networkx`."""

    def read(fields: Fields) -> Fields:
        values = {name: decode_text(each) for name, each in fields.items()}
        return unescape_reserved(values, PROGRAM_FIELDS, drop=False)

    for id, (_, fields) in found.nodes.items():
        known = {"label" if name == "type" else name: fields[name] for name in fields if name != "label"}
        found.nodes[id] = (None, read(known))
    for n, edge in enumerate(found.edges):
        key = str(edge.fields.pop(EDGE_KEY, edge.key))
        found.edges[n] = edge._replace(key=key, fields=read(edge.fields))
    found.has_labels = found.is_escaped = found.is_ours = True
    return found


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()


class _XmlReader:
    """The elements of a graph in XML, and the name and type of each attribute that its head declares, by id."""

    def __init__(self, source: str, root: ElementTree.Element, graph: ElementTree.Element):
        form = {"gexf": "GEXF", "graph": "XGMML"}.get(_tag(root), "GraphML")
        ours = form == "GraphML"
        self.found = Elements(form, label_names=not ours, is_escaped=ours)
        self._source, self._has_labels = source, not ours
        self._declared: dict[tuple[str, str], tuple[str, str]] = {}
        self._defaults: dict[str, Fields] = {"node": {}, "edge": {}}
        for part in root.iter():
            if _tag(part) == "key":
                kind = "yfiles" if part.get("yfiles.type") else part.get("attr.type", "string")
                self._declare(part, part.get("for", "all"), part.get("attr.name"), kind)
            for each in part if _tag(part) == "attributes" else ():
                self._declare(each, part.get("class", ""), each.get("title"), each.get("type", "string"))
        way = [graph.get(name) for name in ("defaultedgetype", "edgedefault", "directed")]
        self._default_way = next((each for each in way if each in ("directed", "mutual", "1")), "undirected")
        self._read(graph)

    def _declare(self, element: ElementTree.Element, owner: str, name: str | None, kind: str) -> None:
        id = element.get("id", "")
        for each in self._defaults if owner == "all" else {owner} & self._defaults.keys():
            self._declared[each, id] = id if name is None else name, kind.lower()
            for part in element:
                if _tag(part) == "default" and part.text:
                    self._add_value(self._defaults[each], each, id, part.text)

    def _read(self, graph: ElementTree.Element) -> None:
        for element in graph:
            match _tag(element):
                case "node" | "edge" if element.get(_HREF):
                    self.found.left_out["member of a group mentioned again"] += 1
                case "node":
                    if (id := element.get("id")) is None:
                        raise BadInput(f"{self._source}: node {len(self.found.nodes) + 1}: a node without id")
                    self.found.put_node(id, None, self._fields(element, "node"))
                case "edge":
                    self._read_edge(element)
                case "nodes" | "edges":
                    self._read(element)
                case "hyperedge":
                    raise BadInput(f"{self._source}: it has hyperedges, which no edge with two ends can hold")
                case "attributes" | "key":
                    pass
                case tag:
                    what = "value of the graph" if tag in ("data", "att") else tag.removesuffix("s")
                    self.found.left_out[what] += 1

    def _read_edge(self, element: ElementTree.Element) -> None:
        source, target = element.get("source"), element.get("target")
        if source is None or target is None:
            number = len(self.found.edges) + 1
            raise BadInput(f"{self._source}: edge {number}: an edge without source or target")
        if ports := len(_PORTS & set(element.keys())):
            self.found.left_out["port of an edge"] += ports
        fields = self._fields(element, "edge")
        way = element.get("directed", element.get("type", self._default_way))
        self.found.undirected += way in ("false", "0", "undirected") or (
            way not in ("true", "1", "directed", "mutual") and self._default_way == "undirected"
        )
        key = str(fields.pop(EDGE_KEY, element.get("id", "")))
        self.found.edges.append(RawEdge(source, target, None, fields, key))
        if way == "mutual" and source != target:
            self.found.edges.append(RawEdge(target, source, None, dict(fields), key))
            self.found.notes = ["each edge in both directions is read as two"]

    def _fields(self, element: ElementTree.Element, owner: str) -> Fields:
        """Return the fields of a node or an edge, and read the graph within it."""
        known = _STRUCTURE - ({"label"} if self._has_labels or owner == "edge" else set())
        own = {name.rpartition("}")[2]: value for name, value in element.items()}
        fields = self._defaults[owner] | {name: value for name, value in own.items() if name not in known}
        if self._has_labels and is_number(str(fields.get("weight"))):  # GEXF declares no type of it
            fields["weight"] = _number(fields["weight"])
        given = set[str]()
        for part in element:
            match _tag(part):
                case "data":
                    name, kind = self._declared.get((owner, part.get("key", "")), ("", "undeclared"))
                    if name in given and kind != "yfiles":
                        self.found.left_out[f"value beside the first of {short_repr(name)}"] += 1
                        continue
                    given |= {name} - {""}
                    self._add_value(fields, owner, part.get("key", ""), part.text or "", part)
                case "attvalues":
                    self._add_values(fields, owner, part)
                case "att":
                    self._add_att(fields, owner, part)
                case "graph" | "nodes" | "edges":
                    self.found.left_out["border of a group"] += 1
                    self._read(part)
                case tag:
                    self.found.left_out[tag.removesuffix("s")] += 1
        return fields

    def _add_values(self, fields: Fields, owner: str, parts: ElementTree.Element) -> None:
        """Add the values of attributes of GEXF to fields, as a list where there are several over time."""
        found: dict[str, list[Json]] = {}
        for each in parts:
            values: Fields = {}
            self._add_value(values, owner, each.get("for", each.get("id", "")), each.get("value", ""))
            for name, value in values.items():
                found.setdefault(name, []).append(value)
            self.found.left_out["time of a value"] += not _TIMES.isdisjoint(each.keys())
        fields.update({name: values[0] if len(values) == 1 else values for name, values in found.items()})

    def _add_att(self, fields: Fields, owner: str, att: ElementTree.Element) -> None:
        """Add an attribute of XGMML, which says its name and type, to fields, and read the graph within it."""
        values: Fields = {}
        for part in (parts := att.findall("{*}att") or [att]):
            if (text := part.get("value")) is not None:
                self._declared[owner, ""] = str(len(values)), part.get("type", "string").lower()
                self._add_value(values, owner, "", text)
        if values:
            fields[att.get("name", "")] = values["0"] if parts == [att] else list(values.values())
        for part in att.findall("{*}graph"):
            self.found.left_out["border of a group"] += 1
            self._read(part)

    def _add_value(
        self, fields: Fields, owner: str, id: str, text: str, part: ElementTree.Element | None = None
    ) -> None:
        """Add a value to fields, or count it as left out if it is not of a declared attribute and its type."""
        name, kind = self._declared.get((owner, id), ("", "undeclared"))
        drawn = list(part.iter()) if part is not None else []
        if kind == "yfiles" or len(drawn) > 1:
            labels = (each.text for each in drawn if _tag(each) in ("nodelabel", "edgelabel") and each.text)
            if label := next(filter(None, map(str.strip, labels)), ""):
                fields.setdefault("label", label)
            self.found.left_out["drawing"] += 1
        elif text.strip() or kind == "string":
            try:
                fields[name] = _PARSERS[kind](text)
            except (KeyError, ValueError):
                problem = f"that is no {kind}" if kind in _PARSERS else f"of the type {kind}"
                self.found.left_out[f"value {problem}"] += 1


def _number(text: str) -> float:
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


def decode_text(text: Json) -> Json:
    """Return a value, or that of a text that is JSON as this package writes it."""
    is_json = isinstance(text, str) and text.startswith(JSON_PREFIX)
    try:
        return json.loads(text.removeprefix(JSON_PREFIX)) if is_json else text
    except ValueError:
        return text


def read_gml(text: str, source: str) -> Elements:
    """Read the elements of a graph in GML. Raises BadInput if NetworkX cannot read it."""
    import networkx as nx

    found, is_ours = Elements("GML", label_names=True), text.startswith(OURS["gml"])
    # NetworkX takes the exponent of 1e-05 for a field
    parts = text.split('"')
    parts[::2] = [re.sub(r"(?<=\s)([-+]?\d+)(?=[eE][-+]?\d+(\s|$))", r"\1.0", part) for part in parts[::2]]
    text = '"'.join(parts)
    start = r'\A((?:[^"]|"[^"]*")*?\bgraph\s*\[)'
    text = re.sub(start, r"\1 multigraph 1 ", text)
    parse: Callable[[str], Any] = partial(nx.parse_gml, label=None)
    try:
        graph = parse(text) if re.search(r"\bdirected\s+[^0\s]", text) else None
        if not (is_directed := graph is not None and graph.is_directed()):  # or else ends are exchanged
            graph = parse(re.sub(start, r"\1 directed 1 ", text))
    except (nx.NetworkXError, ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{source}: cannot be read as GML: {error}") from None
    ids = {id: str(fields["label"] if is_ours else id) for id, fields in graph.nodes(data=True)}
    for id, fields in graph.nodes(data=True):
        found.put_node(ids[id], None, fields)
    found.edges = [RawEdge(ids[a], ids[b], None, fields) for a, b, fields in graph.edges(data=True)]
    found.undirected = 0 if is_directed else len(found.edges)
    return _unwrap_labels(found) if is_ours else found


def read_pajek(text: str, source: str) -> Elements:
    """Read the elements of a graph in Pajek's lists of vertices, arcs and edges.

    Raises BadInput, with the line, for a matrix and for lines that cannot be split.
    """
    found, section, relation = Elements("Pajek", label_names=True), "", None
    vertices = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if line.count('"') % 2:
            raise BadInput(f"{source}, line {number}: a quotation mark is not closed")
        parts = [] if line.lstrip().startswith("%") else re.findall(r'"[^"]*"|\S+', line)
        words = [part[1:-1] if part[0] == '"' else part for part in parts]
        if words and words[0].startswith("*"):
            section, relation = words[0].lower(), words[2] if words[2:] else None
            if section == "*vertices":
                if not "".join(words[1:2]).isdecimal():
                    problem = "*Vertices is followed by their number, as in *Vertices 12"
                    raise BadInput(f"{source}, line {number}: {problem}, not {short_repr(words[1:])}")
                vertices = int(words[1])
                if vertices > _MAX_VERTICES:
                    problem = f"{source}, line {number}: {words[1]} vertices are more than can be read"
                    raise BadInput(f"{problem} ({_MAX_VERTICES:,}): correct the number")
            if section == "*matrix":
                raise BadInput(f"{source}, line {number}: a matrix is not read: list its edges under *Arcs")
        elif words and section == "*vertices":
            fields = {"label": words[1]} if words[1:] else {}
            rest = [word for at, word in enumerate(words[2:]) if at > 2 or not NUMBER.fullmatch(word)]
            found.put_node(words[0], None, fields | _pajek_fields(rest, found, "drawing of a vertex"))
        elif words and section.rstrip("list") in ("*arc", "*edge") and words[1:]:
            is_list = section.endswith("list")
            is_weighted = not is_list and is_number("".join(words[2:3]))
            fields = {"weight": _number(words[2])} if is_weighted else {}
            rest = [] if is_list else words[2 + is_weighted :]
            fields |= _pajek_fields(rest, found, "value of an edge beside its weight")
            ends = words[1:] if is_list else words[1:2]
            found.edges += [RawEdge(words[0], end, relation, fields) for end in ends]
            found.undirected += len(ends) * section.startswith("*edge")
        elif words:
            found.left_out[f"line of {section or 'no section'}"] += 1
    for number in range(1, vertices + 1):
        found.nodes.setdefault(str(number), (None, {}))
    return found


def _pajek_fields(words: list[str], found: Elements, drawn: str) -> Fields:
    """Return the attributes of a vertex or an edge, and count what says how it is drawn."""
    first = len(words) % 2
    fields: Fields = {
        "label" if name == "l" else name: value
        for name, value in zip(words[first::2], words[first + 1 :: 2], strict=True)
        if name == "l" or (len(name) > 2 and name not in _PAJEK_DRAWING)
    }
    found.left_out[drawn] += 2 * len(fields) < len(words)
    return fields
