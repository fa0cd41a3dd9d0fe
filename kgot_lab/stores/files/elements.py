"""The nodes and edges of a file as it has them, and what their fields mean, by evidence in the file."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache, partial
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
# names of the two ends, the sure ones first, with what they say of the relation, if anything
_PAIRS: dict[tuple[str, str], str] = {(source, target): " ".join(verb) for source, target, *verb in map(str.split, (
    "source target,subject object,from to,head tail,src dst,origin destination,origin dest,quelle ziel,von nach,"
    "origen destino,origem destino,source cible,origine destinazione,источник цель,откуда куда,kaynak hedef,从 到,源 目标,"
    "主语 宾语,caller callee calls,citing cited cites,follower followee follows,follower followed follows,"
    "sender receiver sends to,sender recipient sends to,absender empfanger sends to,buyer seller buys from,"
    "payer payee pays,lender borrower lends to,supplier customer supplies,employee manager reports to,person friend friend"
).split(","))}  # fmt: skip
_PAIRS |= {pair: "" for pair in sorted(product(COLUMNS["source"], COLUMNS["target"]), key=lambda pair: pair == ("start", "end"))
           if pair not in _PAIRS and pair[1] != "child"}  # fmt: skip
_PAIRS["parent", "child"] = "child"
# what the names of both ends may end with
_SUFFIXES = " id nodeid nodeelementid elementid node entityid entity key iri uri name ip user account ref"
_END_NAMES = {(a + end, b + end): verb for (a, b), verb in _PAIRS.items() for end in _SUFFIXES.split(" ")}
_BOUNDS = {"start", "end", "from", "to"}  # names of ends, and of what lasts
_DAY = r"(\d{4}[-/.]\d\d?([-/.]\d\d?)?|\d\d?[-/.]\d\d?[-/.]\d{4}|\d\d?/\d\d?/\d\d)"
_DATE = re.compile(rf"{_DAY}([T ].*)?|\d+(:\d\d)+([.,]\d+)?( ?[ap]m)?", re.I)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.I)  # as any program writes it
NOT_FINITE = frozenset("nan NaN NAN inf -inf +inf Inf -Inf INF -INF +INF Infinity -Infinity".split())
_NESTED = ("data", "attributes", "properties", "metadata")  # objects with fields of the record around them
_IDS = ("id", "key", "_id", "Id", "ID", "element_id", "elementId", "identity")  # what only identifies a node
_NAMES = ("name", "entity_name", "title", "label")  # what identifies one without an id, and stays a field
_TYPE_FIELDS = (
    "labels labelv type entitytype nodetype kind category class typ tipo tur тип 类型 类别 kategorie categoria label"
).split()
_RELATION_FIELDS = (
    "relation relationship relationtype relationshiptype reltype edgetype edgelabel predicate rel interaction "
    "sharedinteraction labele label type edge kind keywords verb action beziehung beziehungstyp beziehungsart relationstyp "
    "relacion tipoderelacion relazione relacao typederelation typedelien lien iliski iliskituru связь типсвязи отношение 关系 关系类型 谓语 "
    "関係 관계 typ art tipo tur тип 类型"
).split()
_ALIASES = (
    "aliases alias alsoknownas altlabel altlabels altname altnames alternatename alternatenames othernames synonym synonyms"
).split()
_NAME_IN_LANGUAGE = re.compile(r"(?:name|label|title)[_:. -]?\(?(?<![a-z])([a-z]{2})\)?", re.I)
_WAYS = {"", "directed", "undirected", "mutual", "arrow", "line", "curve"}  # how an edge is drawn
_REFERENCES = (
    "parent manager supervisor reportsto predecessor successor mother father spouse next previous".split()
)
# what controls a terminal or the reading direction
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MANY = 10  # nodes, most of which have no type of their own


class RawEdge(NamedTuple):
    """An edge of a file; `type` is None if only its fields may say it, or else the names of the fields of its ends."""

    source: str
    target: str
    type: str | None
    fields: Fields
    key: str = ""
    by: Ends = ("", "")


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

    def __post_init__(self) -> None:
        self._given: dict[str, object] = {}  # the first id with each text

    def add_node(self, record: object, location: str) -> str:
        """Add a node, which is an id or an object with one, and return its id. Raises BadInput if it is neither."""
        given, labels, fields = parse_node(record, location)
        id = self._id_text(given)
        if self.nodes.get(id, (labels, fields)) != (labels, fields):
            self._note("a node that is described twice is read as one, with the fields of both")
        return self.put_node(id, labels, fields)

    def _id_text(self, given: object) -> str:
        """Return the text of an id. One that another id has too, such as 1 and "1", is noted."""
        id = str(scalar_id(given))
        if self._given.setdefault(id, given) != given:
            self._note("an id that is a number here and a text there is read as one")
        return id

    def _note(self, note: str) -> None:
        self.notes += [note] if note not in self.notes else []

    def put_node(self, id: str, labels: Labels, fields: Fields) -> str:
        """Add a node by its parts and return its id.

        A node that is described twice has the fields of both. Other values of the second are counted as left out.
        """
        old_labels, old = self.nodes.setdefault(id, (labels, fields))
        if (old_labels, old) != (labels, fields):
            both = tuple(dict.fromkeys((*(old_labels or ()), *(labels or ())))) or old_labels
            others = sum(value != old[name] for name, value in fields.items() if name in old)
            self.left_out["value other than the first of a node that is described twice"] += others
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
            given = describe_value(record)
            raise BadInput(f"{location}: a link is an object with two ends, not {given}; as in {EXAMPLE}")
        outer, nested = _split(record, is_edge=True)
        ends = []
        names = names or find_ends(tuple(outer)) or _ENDS
        for name, end in zip(names, _ENDS, strict=True):
            value = outer.pop(name, None)
            if isinstance(value, dict):
                value, labels, fields = parse_node(value, location)
                self.ends.setdefault(str(scalar_id(value)), (labels, fields))
            if scalar_id(value) is None:
                raise BadInput(f"{location}: it has no {end}, which is the id of a node; as in {EXAMPLE}")
            ends.append(self._id_text(value))
        key, kind = outer.pop("key", None), None
        if outer.get("type") == "relationship" and isinstance(outer.get("label"), str):  # of APOC
            kind, id, _ = outer.pop("label"), outer.pop("id", None), outer.pop("type")
            key = id if key is None else key
        elif not isinstance(key, str):  # NetworkX numbers parallel edges
            key = None
        elif is_keyed and "attributes" not in record and not _has_relation((*outer, *nested)):
            kind, key = key, None
        key = "" if key is None else str(key)
        self.edges.append(RawEdge(ends[0], ends[1], kind, _merged(outer, nested), key, names))


def are_bounds(names: Iterable[str], pairs: Sequence[Ends], *, is_part: bool) -> bool:
    """Return whether two fields hold dates, times or ranges of numbers, by their names and values, and so no nodes."""
    lower = {name.lower() for name in names}
    if not pairs or lower - _BOUNDS:
        return False
    are_years = "start" in lower and all(re.fullmatch(r"(1\d|20)\d\d", end) for end in chain(*pairs))
    return are_years or all(map(_DATE.fullmatch, chain(*pairs))) or (not is_part and _are_ranges(pairs))


def bounds_error(location: str, names: Iterable[str], pair: Iterable[str]) -> BadInput:
    """Return the error for a file whose only ends of edges are `are_bounds`."""
    named, values = map(" and ".join, (names, pair))
    problem = f"{named} are times or ranges of numbers, as in {values}, and no nodes"
    how = "name the columns of the ends, or these: source='start', target='end'"
    return BadInput(f"{location}: {problem}; {how}")


def _are_ranges(pairs: Sequence[Ends]) -> bool:
    """Return whether pairs are numbers that begin and end ranges, each once, and not a path of numbered nodes."""
    if not all(map(NUMBER.fullmatch, chain(*pairs))):
        return False
    starts, stops = zip(*((float(one), float(other)) for one, other in pairs), strict=True)
    widths = {stop - start for start, stop in zip(starts, stops, strict=True)}
    return len({*starts}) == len({*stops}) == len(pairs) > 1 and min(widths) >= 0 and widths != {1}


@lru_cache(1 << 12)
def _relation_by_ends(source: str, target: str) -> str:
    """Return what the names of two ends say of a relation: its verb, or else the role of the target.

    It is "" where a target says no more than that, as in to, target_id, v, or person2.
    """
    if (verb := _END_NAMES.get((plain_name(source), plain_name(target)))) is not None:
        return verb
    first_word = re.split(r"[\W_]|(?<=[a-z])(?=[A-Z])", target)[0].lower()
    is_end = len(target) < 2 or target.isdecimal() or source[:-1] == target[:-1]
    return "" if is_end or first_word in COLUMNS["target"] else target


def _has_relation(names: Iterable[str]) -> bool:
    return any(plain_name(name) in _RELATION_FIELDS for name in names)


def parse_node(record: object, location: str) -> tuple[object, Labels, Fields]:
    """Return the id of a node as it is given, its labels if its form states them, and its fields.

    Raises BadInput if it has no id.
    """
    outer, nested = _split(record if isinstance(record, dict) else {"id": record}, is_edge=False)
    name = next((name for name in (*_IDS, *_NAMES) if scalar_id(outer.get(name))), None)
    if name is None:
        problem = f"{location}: a node without id, which is a text or a number"
        raise BadInput(f"{problem}: {short_repr(record)}; as in {EXAMPLE}")
    labels = None
    if outer.get("type") == "node" and "labels" in outer:  # of APOC
        stated, _ = outer.pop("labels") or (), outer.pop("type")
        labels = (stated,) if isinstance(stated, str) else tuple(map(str, stated))
    fields = {key: value for key, value in outer.items() if key != name or key in _NAMES}
    return outer[name], labels, _merged(fields, nested)


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
    known = find_ends(tuple(outer)) if is_edge else any(map(scalar_id, map(outer.get, (*_IDS, *_NAMES))))
    return (outer, nested) if known else ({**outer, **nested}, {})


def _merged(outer: Fields, nested: Fields) -> Fields:
    """Join the fields of a record and of objects in it; one of the same name gets an underscore."""
    return {f"{name}_" if name in nested else name: value for name, value in outer.items()} | nested


@lru_cache(1 << 12)
def find_ends(names: tuple[str, ...]) -> Ends | None:
    """Return which of the names of a record's fields are those of its source and its target, if both are."""
    plain = {plain_name(name): name for name in reversed(names)}
    pairs = ((one, other) for one, other in _END_NAMES if one in plain and other in plain)
    return next(((plain[one], plain[other]) for one, other in pairs), None)


def is_number(text: str) -> bool:
    """Return whether a text is a number as any program writes it, also one that JSON cannot hold, such as NaN."""
    return text in NOT_FINITE or bool(NUMBER.fullmatch(text))


def scalar_id(value: object) -> str | None:
    """Return an id as text, or None for what is no id."""
    is_id = isinstance(value, str | int | float) and not isinstance(value, bool) and value == value
    return id_text(value) if is_id and str(value).strip() else None


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
    if not found.edges and not found.is_ours:
        _read_references(found)
    notes = list(found.notes)
    known = found.nodes.keys() | found.ends.keys()
    made: dict[str, tuple[Labels, Fields]] = {}
    made |= {id: (None, {}) for edge in found.edges for id in edge[:2] if id not in known}
    if found.nodes and made:
        number = format_count(len(made), "node")
        notes.append(f"{number} made of what edges name, though it holds none of that id")
    nodes = {**found.nodes, **found.ends, **found.nodes, **made}
    rows = [row for _, row in nodes.values()]
    # what this package wrote is kept as it is
    for row in () if found.has_labels else chain(rows, (edge.fields for edge in found.edges)):
        _keep_json(row, found.left_out)
    fields, edge_fields = _text_fields(rows), _text_fields(edge.fields for edge in found.edges)
    known = {name for row in rows for name in row}
    names, types = _known_field("names", names, {"id", *known}), _known_field("types", types, known)
    known = {name for edge in found.edges for name in edge.fields}
    relation = _known_field("relations", relation, known)
    type_fields = (types,) if types else _type_fields(found, nodes, fields)
    name_fields = _ordered(NAME_PROPERTIES, fields.keys() - {*type_fields})
    copies = {name for name in name_fields if all(row.get(name, id) == id for id, (_, row) in nodes.items())}
    name_fields = [name for name in name_fields if name not in copies] or name_fields
    values = {name: {str(row[name]) for row in rows if row.get(name)} for name in name_fields}
    own = (name for name in name_fields if 2 * len(values[name]) > fields[name])
    spoken = [f"name@{code}" for code in reader_languages() if fields[f"name@{code}"]]
    first = spoken[:1] if reader_languages()[0] != "en" and all(map(is_opaque_id, nodes)) else []
    name_field = names or next(chain(first, own, name_fields, spoken), "")
    ways = {name for name in edge_fields.keys() - {relation} if plain_name(name) == "type"}
    seen = {name: {str(each.fields.get(name, "")).lower() for each in found.edges} for name in ways}
    ways = {name for name in ways if seen[name] <= _WAYS}
    order = [relation] if relation else _ordered(_RELATION_FIELDS, edge_fields.keys() - ways)
    used: Counter[str] = Counter()
    edges = [_typed_edge(edge, order, ways, used, relation) for edge in found.edges]
    former = _ordered(_RELATION_FIELDS, edge_fields.keys() - {*ways, relation}) if relation else []
    former += ["relation"] if relation and any(edge.type for edge in found.edges) else []
    notes += [f"the former relation is kept as the property {former[0]}"] if former else []
    ways_of = (str(edge.fields.get(name)).lower() for edge in found.edges for name in ways)
    undirected = found.undirected or sum(way == "undirected" for way in ways_of)
    if undirected:
        some = f"{undirected:,} of its edges" if undirected < len(edges) else "its edges"
        notes.append(f"{some} have no direction, and point here as they are listed")
    if not found.is_ours:
        notes += [] if nodes else ["it holds no node"]
        odd = [short_repr(id) for id in nodes if _CONTROL.search(id)]
        notes += [f"{format_count(len(odd), 'id')} with control characters, as {odd[0]}"] if odd else []
    typed = [_typed_node(id, *element, type_fields) for id, element in nodes.items()]
    if found.is_escaped:
        typed = [replace(node, properties=unescape_reserved(node.properties, NODE_FIELDS)) for node in typed]
        unescape = partial(unescape_reserved, reserved=EDGE_FIELDS, drop=False)
        edges = [replace(edge, properties=unescape(edge.properties)) for edge in edges]
    graph = PropertyGraph.of(typed, distinct_edges(edges))
    if left_out := (+found.left_out).items():  # as in 2 borders of a group
        counts = (format_count(n, what, f"{what} ".replace(" ", "s ", 1)[:-1]) for what, n in left_out)
        notes.append(f"left out: {', '.join(counts)}")
    if rename and names != "id":
        is_other = [name_field] != name_fields[:1] or bool(copies)
        given = names or (name_field if is_other and any(map(is_opaque_id, nodes)) else "")
        named = use_names_as_ids(graph, given, found.words)
        graph, notes = named.graph, [*filter(None, [named.note]), *notes]
    graph = replace(graph, undirected=undirected == len(edges) > 0)
    parts = [f"{found.form}: {format_count(len(graph), 'node')}, {format_count(len(edges), 'edge')}"]
    stated = any(labels for labels, _ in nodes.values())
    stated_by = "its form" if stated else " and ".join(type_fields)
    parts.append(f"types from {stated_by}" if stated_by else "no types")
    parts += [f"names from {name_field}"] if name_field else []
    parts += [f"relations from {', '.join(used) or 'no field'}"] if edges else []
    note = "; ".join(notes)
    return NamedGraph(graph, note, "" if found.is_ours and not note and nodes else "; ".join(parts + notes))


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


def _read_references(found: Elements) -> None:
    """Add an edge for each value of a field such as manager_id that is the id of a node, and count other values.

    A field of any name refers to nodes if all its values are ids of others that are no numbers.
    """
    names = {name for _, row in found.nodes.values() for name in row}
    for name in sorted(names):
        ends = [(id, end) for id, (_, row) in found.nodes.items() if (end := scalar_id(row.get(name)))]
        known = [(id, end) for id, end in ends if end in found.nodes]
        has_words = not any(NUMBER.fullmatch(end) for _, end in ends)
        are_others = known == ends and not any(id == end for id, end in ends)
        if known and (2 * len(known) >= len(ends) if is_reference(name) else are_others and has_words):
            kind = re.sub(r"_?id$", "", name, flags=re.I)
            pairs = ends if has_words else known
            found.edges += [RawEdge(id, end, kind, {}) for id, end in pairs]
            found.left_out[f"value of {name} that names no node"] += len(ends) - len(pairs)
            found.notes.append(f"edges from the field {name}, which names nodes")
        elif known and are_others and plain_name(name).endswith("id") and name != SOURCE_ID:
            found.notes.append(f"{name} holds ids of nodes: source= and target= make edges of it")


def is_reference(name: str) -> bool:
    """Return whether a field is called as one that names another node of its kind, such as manager_id."""
    return plain_name(name).removesuffix("id") in _REFERENCES


def _keep_json(fields: Fields, left_out: Counter[str]) -> None:
    """Write dates as texts, and remove and count the values that JSON cannot hold."""
    for name, value in list(fields.items()):
        try:
            fields[name] = value.isoformat() if isinstance(value, date) else value
            json.dumps(None if type(value) in (str, int, bool) else fields[name], allow_nan=False)
        except (TypeError, ValueError):
            left_out["value outside JSON"] += 1
            del fields[name]


def _text_fields(rows: Iterable[Fields]) -> Counter[str]:
    """Count the rows in which each field is a text or a list."""
    values = ((name, value) for row in rows for name, value in row.items())
    return Counter(name for name, value in values if isinstance(value, str | list) and value)


def _ordered(known: list[str], names: Iterable[str]) -> list[str]:
    """Return the names that are known, in that order; a name that ends with _ is escaped, and so is none."""
    plain = ((plain_name(name), name) for name in names if not name.endswith("_"))
    found = sorted((known.index(p), not n.startswith("_"), n) for p, n in plain if p in known)
    return [name for _, _, name in found]


def _type_fields(
    found: Elements, nodes: Mapping[str, tuple[Labels, Fields]], fields: Counter[str]
) -> tuple[str, ...]:
    """Return the fields that hold the types of nodes, the first that a node has.

    A `label` is a name, not a type, if each node has one of its own, or most have where they are many or their ids
    are numbers, unless they are few and have another name.
    """
    if found.has_labels:
        return ("labels", "label")
    names = [] if any(labels is not None for labels, _ in nodes.values()) else _ordered(_TYPE_FIELDS, fields)
    others = tuple(name for name in names if plain_name(name) != "label")
    rows = [row for _, row in nodes.values()]
    several = [row for row in rows if "labels" in row]
    if others == ("labels",) and all(row.get("label") in (None, *row["labels"]) for row in several):
        return ("labels", "label")  # as to_networkx writes them
    if others or not names:
        return others[:1] + tuple(name for name in others[1:] if name == "type")
    values = Counter(str(row[names[0]]) for row in rows if row.get(names[0]))
    is_many = values.total() >= _MANY
    is_most = 2 * len(values) > values.total() and (is_many or all(map(is_opaque_id, nodes)))
    is_own = is_most or len(values) == values.total()
    is_named = any(str(row.get("name", id)) not in (id, row.get(names[0])) for id, (_, row) in nodes.items())
    # as to_networkx writes edges
    is_ours = all(edge.key.partition("#")[0] == edge.fields.get("relation", "\n") for edge in found.edges)
    is_name = found.label_names or (is_own and (is_many or not is_named) and not (is_ours and found.edges))
    return () if is_name else (names[0],)


def _typed_node(id: str, labels: Labels, fields: Fields, type_fields: tuple[str, ...]) -> Node:
    used = next((name for name in type_fields if fields.get(name) not in (None, "", [])), "")
    dropped = {used, "label"} if used == "labels" and "label" in type_fields else {used} if used else ()
    new = {"label": "name", "Label": "name"} if labels is None and "name" not in fields else {}
    properties = {new.get(name, name): value for name, value in fields.items() if name not in dropped}
    if used:
        value = fields[used]
        parts = value.split(":") if isinstance(value, str) and value.startswith(":") else value  # of Neo4j
        labels = tuple(map(str, parts if isinstance(parts, list) else [parts]))
    return Node(id, tuple(filter(str.strip, labels or ())), properties)


def _typed_edge(edge: RawEdge, order: list[str], ways: set[str], used: Counter[str], relation: str) -> Edge:
    kind_types = str | int if relation else str
    texts = {name: str(edge.fields[name]) for name in order if isinstance(edge.fields.get(name), kind_types)}
    name = next((name for name, text in texts.items() if text.strip()), "")
    if edge.type is not None and not (relation and name):
        used["its form"] += 1
        return Edge(edge.source, edge.type, edge.target, edge.fields, edge.key)
    said = "" if _has_relation(edge.fields) else _relation_by_ends(*edge.by)
    kind = texts[name] if name else said or UNTYPED
    used.update([name or f"{' and '.join(edge.by)} ({kind})"] if name or said else [])
    fields = {each: value for each, value in edge.fields.items() if each != name and each not in ways}
    fields = fields if edge.type is None else {"relation": edge.type, **fields}
    key = "" if edge.key == kind else edge.key.removeprefix(f"{kind}#")
    return Edge(edge.source, kind, edge.target, fields, key)


def distinct_edges(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Yield the edges, with a number as or after the key of each that repeats an earlier identity."""
    taken: set[tuple[str, str, str, str]] = set()
    numbers: dict[tuple[str, str, str, str], Iterator[int]] = {}
    for edge in edges:
        first = identity = edge.identity
        while identity in taken:
            number = next(numbers.setdefault(first, count(2)))
            edge = replace(edge, key=f"{first[3]}.{number}" if first[3] else str(number))
            identity = edge.identity
        taken.add(identity)
        yield edge
