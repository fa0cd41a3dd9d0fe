"""The nodes and edges of a file as it has them, and what their fields mean, by evidence in the file."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache
from itertools import chain, count, product
from typing import Any, NamedTuple

from kgot_lab.errors import BadInput, describe_value, require_known, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import COLUMNS, EDGE_FIELDS, NODE_FIELDS, UNTYPED, id_text, unescape_reserved
from kgot_lab.graph.snapshots import (
    NAME_PROPERTIES,
    SOURCE_ID,
    NamedGraph,
    is_opaque_id,
    local_name,
    plain_name,
    use_names_as_ids,
)
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json, Node

Fields = dict[str, Json]
Labels = tuple[str, ...] | None
Ends = tuple[str, str]
EXAMPLE = '{"nodes": [{"id": "a", "type": "tool", "name": "A"}], "links": [{"source": "a", "type": "uses", "target": "b"}]}'
_ENDS = ("source", "target")
# columns of ends beside COLUMNS, and what a name of an end may end with: all columns of one file alike
_PAIRS = [pair.split() for pair in (
    "citing cited,person friend,follower followee,follower followed,sender receiver,sender recipient,origin destination,"
    "origin dest,employee manager,supplier customer"
).split(",")]  # fmt: skip
_END_SUFFIXES = ("", "id", "nodeid", "node", "entityid", "entity", "key", "iri", "uri", "name", "ip", "user")
_NEUTRAL_ENDS = {*COLUMNS["target"], "destination", "dest"} - {"callee", "child"}
_NESTED = ("data", "attributes", "properties", "metadata")  # objects with fields of the record around them
_IDS = ("id", "key", "_id", "Id", "ID")  # what only identifies a node
_NAMES = ("name", "entity_name", "title", "label")  # what identifies one without an id, and stays a field
_TYPE_FIELDS = "labels labelv type entitytype nodetype kind category class label".split()
_RELATION_FIELDS = (
    "relation relationship relationtype relationshiptype reltype edgetype edgelabel predicate rel interaction "
    "sharedinteraction labele label type edge kind keywords"
).split()
_ALIASES = (
    "aliases alias alsoknownas altlabel altlabels altname altnames alternatename alternatenames othernames synonym synonyms"
).split()
_NAME_IN_LANGUAGE = re.compile(r"(?:name|label|title)[_:. -]?\(?(?<![a-z])([a-z]{2})\)?", re.I)
_WAYS = {"", "directed", "undirected", "mutual", "arrow", "line", "curve"}  # how an edge is drawn
_MANY = 10  # nodes, most of which have no type of their own


class RawEdge(NamedTuple):
    """An edge of a file; `type` is None if only its fields may say it."""

    source: str
    target: str
    type: str | None
    fields: Fields
    key: str = ""


@dataclass
class Elements:
    """The nodes and edges of a file before their fields have a meaning.

    Nodes are labels (None if only their fields may say them) and fields, by id, and `ends` those that edges
    describe. In some forms a `label` is a name; if it `has_labels` it is a type. `is_ours` if the form says what everything is, so that no
    summary is due, and `is_escaped` if fields are named as by `to_networkx`.
    """

    form: str
    nodes: dict[str, tuple[Labels, Fields]] = field(default_factory=dict)
    ends: dict[str, tuple[Labels, Fields]] = field(default_factory=dict)
    edges: list[RawEdge] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    undirected: int = 0  # how many of the edges
    label_names: bool = False
    has_labels: bool = False
    is_ours: bool = False
    is_escaped: bool = False
    words: dict[str, str] = field(default_factory=dict)  # names of IRIs of relations and fields

    def add_node(self, record: object, location: str) -> str:
        """Add a node, which is an id or an object with one, and return its id. Raises BadInput if it is neither."""
        return self.put_node(*parse_node(record, location))

    def put_node(self, id: str, labels: Labels, fields: Fields) -> str:
        """Add a node by its parts and return its id.

        A node that is described twice has the fields of both. Other values of the second are counted as left out.
        """
        old_labels, old = self.nodes.setdefault(id, (labels, fields))
        if (old_labels, old) != (labels, fields):
            both = tuple(dict.fromkeys((*(old_labels or ()), *(labels or ())))) or old_labels
            others = sum(value != old[name] for name, value in fields.items() if name in old)
            self.left_out["other value of a node that is described twice"] += others
            self.nodes[id] = (both, fields | old)
        return id

    def merge(self, other: Elements) -> None:
        """Add the nodes and edges of another file."""
        for id, (labels, fields) in other.nodes.items():
            self.put_node(id, labels, fields)
        self.ends |= other.ends
        self.edges += other.edges
        self.left_out += other.left_out
        self.notes = list(dict.fromkeys((*self.notes, *other.notes)))
        self.undirected += other.undirected
        self.label_names |= other.label_names
        self.words |= other.words

    def add_edge(
        self, record: object, location: str, *, is_keyed: bool = True, names: Ends | None = None
    ) -> None:
        """Add an edge, which is an object with two ends, a pair of ids or a triple.

        `names` are the fields of its ends, unless they are known. Its key is its type if nothing else is, unless
        `is_keyed` is false, or else the field of its target if that says more than "target". Raises BadInput if it
        is no edge.
        """
        record = _as_object(record) if isinstance(record, list) else record
        if not isinstance(record, dict):
            raise BadInput(
                f"{location}: a link is an object with two ends, not {describe_value(record)}; as in {EXAMPLE}"
            )
        outer, nested = _split(record, is_edge=True)
        ends = []
        names = names or find_ends(tuple(outer)) or _ENDS
        for name, end in zip(names, _ENDS, strict=True):
            value = outer.pop(name, None)
            if isinstance(value, dict):
                value, labels, fields = parse_node(value, location)
                self.ends.setdefault(value, (labels, fields))
            if (id := scalar_id(value)) is None:
                raise BadInput(f"{location}: it has no {end}, which is the id of a node; as in {EXAMPLE}")
            ends.append(id)
        key, kind = outer.pop("key", None), None
        if outer.get("type") == "relationship" and isinstance(outer.get("label"), str):  # of APOC
            kind, id, _ = outer.pop("label"), outer.pop("id", None), outer.pop("type")
            key = id if key is None else key
        elif not isinstance(key, str):  # NetworkX numbers parallel edges
            key = None
        elif is_keyed and "attributes" not in record and not _has_relation((*outer, *nested)):
            kind, key = key, None
        if kind is None and not _is_neutral(*names) and not _has_relation((*outer, *nested)):
            kind, note = names[1], f"relations are named by the column {names[1]}"
            self.notes += [note] if note not in self.notes else []
        self.edges.append(
            RawEdge(ends[0], ends[1], kind, _merged(outer, nested), "" if key is None else str(key))
        )


def _is_neutral(source: str, target: str) -> bool:
    """Return whether the field of a target says no more than that, as in to, target_id, v, or person2."""
    is_end = any(plain_name(target).removesuffix(suffix) in _NEUTRAL_ENDS for suffix in _END_SUFFIXES)
    return is_end or len(target) < 2 or source[:-1] == target[:-1]


def _has_relation(names: Iterable[str]) -> bool:
    return any(plain_name(name) in _RELATION_FIELDS for name in names)


def parse_node(record: object, location: str) -> tuple[str, Labels, Fields]:
    """Return the id of a node, its labels if its form states them, and its fields.

    Raises BadInput if it has no id.
    """
    outer, nested = _split(record if isinstance(record, dict) else {"id": record}, is_edge=False)
    name = next((name for name in (*_IDS, *_NAMES) if scalar_id(outer.get(name))), None)
    if name is None:
        raise BadInput(
            f"{location}: a node without id, which is a text or a number: {short_repr(record)}; as in {EXAMPLE}"
        )
    id, labels = str(scalar_id(outer[name])), None
    if outer.get("type") == "node" and "labels" in outer:  # of APOC
        stated, _ = outer.pop("labels") or (), outer.pop("type")
        labels = (stated,) if isinstance(stated, str) else tuple(map(str, stated))
    return (
        id,
        labels,
        _merged({key: value for key, value in outer.items() if key != name or key in _NAMES}, nested),
    )


def is_edge(record: object) -> bool:
    """Return whether a record is an edge, by its two ends."""
    if isinstance(record, dict):
        return bool(find_ends(tuple(_split(record, is_edge=True)[0])))
    return isinstance(record, list) and len(record) in (2, 3) and bool(scalar_id(record[0]))


def _as_object(record: list[Any]) -> object:
    """Return a pair of ids, with a weight or fields if given, or a triple as an object, if it is one."""
    match record:
        case [source, target]:
            return {"source": source, "target": target}
        case [source, target, dict() as fields]:
            return {**fields, "source": source, "target": target}
        case [source, target, int() | float() as weight]:
            return {"source": source, "target": target, "weight": weight}
        case [source, str() as kind, target]:
            return {"source": source, "relation": kind, "target": target}
    return record


def _split(record: Mapping[str, Any], *, is_edge: bool) -> tuple[Fields, Fields]:
    """Return the fields of a record and those of objects in it, which are its own if it has no id or ends."""
    inner = {name: value for name, value in record.items() if name in _NESTED and isinstance(value, dict)}
    if not inner:
        return dict(record), {}
    outer = {name: value for name, value in record.items() if name not in inner}
    nested = {name: value for values in inner.values() for name, value in values.items()}
    known = (
        find_ends(tuple(outer)) if is_edge else any(scalar_id(outer.get(name)) for name in (*_IDS, *_NAMES))
    )
    return (outer, nested) if known else ({**outer, **nested}, {})


def _merged(outer: Fields, nested: Fields) -> Fields:
    """Join the fields of a record and of objects in it; one of the same name gets an underscore."""
    return {f"{name}_" if name in nested else name: value for name, value in outer.items()} | nested


@lru_cache(1 << 12)
def find_ends(names: tuple[str, ...]) -> Ends | None:
    """Return which of the names of a record's fields are those of its source and its target, if both are."""
    plain = {plain_name(name): name for name in reversed(names)}
    for suffix in _END_SUFFIXES:
        stems = {name.removesuffix(suffix): full for name, full in plain.items() if name.endswith(suffix)}
        for one, other in (*product(COLUMNS["source"], COLUMNS["target"]), *_PAIRS):
            if one in stems and other in stems:
                return stems[one], stems[other]
    return None


def scalar_id(value: object) -> str | None:
    """Return an id as text, or None for what is no id."""
    is_id = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    return id_text(value) if is_id else None


def build_graph(
    found: Elements, *, names: str = "", types: str = "", relation: str = "", rename: bool = False
) -> NamedGraph:
    """Build the graph of the elements of a file.

    `names`, `types` and `relation` are the fields of names, types and relations, where the evidence misleads;
    with the names "id" no node is renamed. With `rename`, nodes go by their names if their ids are numbers or
    IRIs. Raises UnknownName if there is no such field.
    """
    if rename:
        _use_one_name_each(found)
    _use_ends_as_ids(found)
    notes = list(found.notes)
    made = {
        id: found.ends.get(id, (None, {})) for edge in found.edges for id in edge[:2] if id not in found.nodes
    }
    if found.nodes and (orphans := len(made.keys() - found.ends.keys())):
        notes.append(
            f"{format_count(orphans, 'node')} made of what edges name, though it holds none of that id"
        )
    nodes = {**found.nodes, **made}
    rows = chain((row for _, row in nodes.values()), (edge.fields for edge in found.edges))
    for row in () if found.has_labels else rows:  # what this package wrote is kept as it is
        _keep_json(row, found.left_out)
    fields = _text_fields(values for _, values in nodes.values())
    edge_fields = _text_fields(edge.fields for edge in found.edges)
    known = {name for _, row in nodes.values() for name in row}
    names, types = _known_field("names", names, {"id", *known}), _known_field("types", types, known)
    known = {name for edge in found.edges for name in edge.fields}
    relation = _known_field("relations", relation, known)
    type_fields = (types,) if types else _type_fields(found, nodes, fields, edge_fields)
    name_fields = _ordered(NAME_PROPERTIES, fields.keys() - {*type_fields})
    own = (
        name
        for name in name_fields
        if 2 * len({str(row[name]) for _, row in nodes.values() if row.get(name)}) > fields[name]
    )
    spoken = [f"name@{code}" for code in reader_languages() if fields[f"name@{code}"]]
    first = spoken[:1] if reader_languages()[0] != "en" and all(map(is_opaque_id, nodes)) else []
    name_field = names or next(chain(first, own, name_fields, spoken), "")
    ways = {name for name in edge_fields.keys() - {relation} if _is_direction(name, found.edges)}
    order = [relation] if relation else _ordered(_RELATION_FIELDS, edge_fields.keys() - ways)
    used: Counter[str] = Counter()
    edges = [_typed_edge(edge, order, ways, used, relation) for edge in found.edges]
    undirected = found.undirected or sum(
        str(edge.fields.get(name)).lower() == "undirected" for edge in found.edges for name in ways
    )
    if undirected:
        some = f"{undirected:,} of its edges" if undirected < len(edges) else "its edges"
        notes.append(f"{some} have no direction, and point here as they are listed")
    if not len(nodes) and not found.is_ours:
        notes.append("it holds no node")
    typed = [_typed_node(id, *element, type_fields) for id, element in nodes.items()]
    if found.is_escaped:
        typed = [replace(node, properties=unescape_reserved(node.properties, NODE_FIELDS)) for node in typed]
        edges = [replace(edge, properties=unescape_reserved(edge.properties, EDGE_FIELDS)) for edge in edges]
    graph = PropertyGraph.of(typed, distinct_edges(edges))
    if left_out := (+found.left_out).items():  # as in 2 borders of a group
        counts = (
            format_count(n, what, what.replace(" ", "s ", 1) if " " in what else "") for what, n in left_out
        )
        notes.append(f"left out: {', '.join(counts)}")
    if rename and names != "id":
        given = names or (name_field if [name_field] != name_fields[:1] else "")
        named = use_names_as_ids(graph, given, found.words)
        graph, notes = named.graph, [*filter(None, [named.note]), *notes]
    parts = [f"{found.form}: {format_count(len(graph), 'node')}, {format_count(len(edges), 'edge')}"]
    stated = any(labels for labels, _ in nodes.values())
    parts.append(
        f"types from {'its form' if stated else ' and '.join(type_fields)}"
        if stated or type_fields
        else "no types"
    )
    parts += [f"names from {name_field}"] if name_field else []
    parts += [f"relations from {', '.join(used) or 'no field'}"] if edges else []
    note = "; ".join(notes)
    return NamedGraph(graph, note, "" if found.is_ours and not note else "; ".join(parts + notes))


def _known_field(what: str, name: str, known: Collection[str]) -> str:
    """Return a field by its name, or by the last part of its IRI. Raises UnknownName if there is none."""
    iris = [each for each in known if local_name(each) == name != ""]
    found = iris[0] if len(iris) == 1 and name not in known else name
    require_known(f"field of {what}", known, *filter(None, [found]))
    return found


def reader_languages() -> list[str]:
    """Return the codes of the languages that the reader of a file knows by the environment, the first first."""
    return [*filter(str.isalpha, (os.environ.get(name, "")[:2].lower() for name in ("LC_ALL", "LANG"))), "en"]


def _use_one_name_each(found: Elements) -> None:
    """Rename fields such as name_de or name:de to name@de, and synonyms to aliases, a list."""
    rows = [row for _, row in (*found.nodes.values(), *found.ends.values())]
    fields = _text_fields(rows)
    new = {name: "aliases" for name in fields if plain_name(name) in _ALIASES}
    matches = {name: match[1] for name in fields if (match := _NAME_IN_LANGUAGE.fullmatch(name))}
    new |= {name: f"name@{code.lower()}" for name, code in matches.items()}
    counts = Counter([*new.values(), *(fields.keys() - new.keys())])
    new = {name: to for name, to in new.items() if counts[to] == 1}
    found.notes += [f"{to} from {name}" for name, to in new.items() if name != to]
    for row in rows if new else ():
        values = {new.get(name, name): value for name, value in row.items()}
        if isinstance(several := values.get("aliases"), str):
            values["aliases"] = [each.strip() for each in re.split("[;|]", several)]
        row.clear()
        row.update(values)


def _use_ends_as_ids(found: Elements) -> None:
    """Replace the ids of nodes by a name field if no end of an edge is an id, but most are values of that field."""
    ends = {end for edge in found.edges for end in edge[:2]}
    rows = {id: row for id, (_, row) in found.nodes.items()} if ends.isdisjoint(found.nodes) else {}
    for name in _ordered(NAME_PROPERTIES, _text_fields(rows.values())):
        new = {id: str(row.get(name) or id) for id, row in rows.items()}
        if 2 * len(ends.intersection(new.values())) > len(ends) and len({*new.values()}) == len(new):
            found.nodes = {new[id]: (found.nodes[id][0], {SOURCE_ID: id} | row) for id, row in rows.items()}
            found.notes.append(f"its edges name nodes by {name}")
            return


def _keep_json(fields: Fields, left_out: Counter[str]) -> None:
    """Write dates as texts, and remove and count the values that JSON cannot hold."""
    for name, value in [
        (name, value) for name, value in fields.items() if type(value) not in (str, int, bool)
    ]:
        try:
            fields[name] = value.isoformat() if isinstance(value, date) else value
            json.dumps(fields[name], allow_nan=False)
        except (TypeError, ValueError):
            left_out["value outside JSON"] += 1
            del fields[name]


def _text_fields(rows: Iterable[Fields]) -> Counter[str]:
    """Count the rows in which each field is a text or a list."""
    return Counter(
        name for row in rows for name, value in row.items() if isinstance(value, str | list) and value
    )


def _ordered(known: list[str], names: Iterable[str]) -> list[str]:
    """Return the names that are known, in that order; a name that ends with _ is escaped, and so is none."""
    plain = ((plain_name(name), name) for name in names if not name.endswith("_"))
    return [
        name
        for _, _, name in sorted((known.index(p), not n.startswith("_"), n) for p, n in plain if p in known)
    ]


def _type_fields(
    found: Elements,
    nodes: Mapping[str, tuple[Labels, Fields]],
    fields: Counter[str],
    of_edges: Collection[str],
) -> tuple[str, ...]:
    """Return the fields that hold the types of nodes, the first that a node has.

    A `label` is a name, not a type, if most nodes have one of their own, and their ids are numbers or they are
    many.
    """
    if found.has_labels:
        return ("labels", "label")
    names = [] if any(labels is not None for labels, _ in nodes.values()) else _ordered(_TYPE_FIELDS, fields)
    others, rows = (
        tuple(name for name in names if plain_name(name) != "label"),
        [row for _, row in nodes.values()],
    )
    if others == ("labels",) and all(
        row.get("label") in (None, *row.get("labels", rows)) for row in rows if "labels" in row
    ):
        return ("labels", "label")  # as to_networkx writes them
    if others or not names:
        return others[:1] + tuple(name for name in others[1:] if name == "type")
    values = Counter(str(row[names[0]]) for row in rows if row.get(names[0]))
    is_own = 2 * len(values) > values.total() > 1 and "relation" not in of_edges
    is_name = found.label_names or (is_own and (values.total() >= _MANY or all(map(is_opaque_id, nodes))))
    return () if is_name else (names[0],)


def _is_direction(name: str, edges: list[RawEdge]) -> bool:
    return plain_name(name) == "type" and {str(edge.fields.get(name, "")).lower() for edge in edges} <= _WAYS


def _typed_node(id: str, labels: Labels, fields: Fields, type_fields: tuple[str, ...]) -> Node:
    used = next((name for name in type_fields if fields.get(name) not in (None, "", [])), "")
    dropped = {used, "label"} if used == "labels" and "label" in type_fields else {used} if used else ()
    properties = {name: value for name, value in fields.items() if name not in dropped}
    if labels is None and "name" not in fields:
        properties = {
            "name" if name in ("label", "Label") else name: value for name, value in properties.items()
        }
    if used:
        value = fields[used]
        parts = value.split(":") if isinstance(value, str) and value.startswith(":") else value  # of Neo4j
        labels = tuple(filter(None, map(str, parts if isinstance(parts, list) else [parts])))
    return Node(id, labels or (), properties)


def _typed_edge(edge: RawEdge, order: list[str], ways: set[str], used: Counter[str], relation: str) -> Edge:
    if edge.type is not None and not (relation and relation in edge.fields):
        used["its form"] += 1
        return Edge(edge.source, edge.type, edge.target, edge.fields, edge.key)
    kind_types = str | int if relation else str
    texts = {name: str(edge.fields[name]) for name in order if isinstance(edge.fields.get(name), kind_types)}
    name = next((name for name, text in texts.items() if text.strip()), "")
    used.update([name] if name else [])
    kind = texts[name] if name else UNTYPED
    fields = {each: value for each, value in edge.fields.items() if each != name and each not in ways}
    return Edge(
        edge.source, kind, edge.target, fields, "" if edge.key == kind else edge.key.removeprefix(f"{kind}#")
    )


def distinct_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield the edges, with a number as or after the key of each that repeats an earlier identity."""
    taken: set[tuple[str, str, str, str]] = set()
    numbers: dict[tuple[str, str, str, str], Iterator[int]] = {}
    for edge in edges:
        first = edge.identity
        while edge.identity in taken:
            number = next(numbers.setdefault(first, count(2)))
            edge = replace(edge, key=f"{first[3]}.{number}" if first[3] else str(number))
        taken.add(edge.identity)
        yield edge
