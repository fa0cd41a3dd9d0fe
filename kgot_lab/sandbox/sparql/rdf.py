"""The mapping between property graphs and RDF: in both directions, without loss, and in plain RDF 1.1.

Names. A node's id, a label, an edge's type and a property's name are IRIs of one namespace, `PREFIX :
<urn:kgot:>`. In them a space is _, and any character but letters, digits, - and . is percent-encoded: "Marie
Curie" is :Marie_Curie, "O'Hara" :O%27Hara, "born_in" :born%5Fin. A name that is an absolute IRI is used as it
is, unless this mapping uses that IRI.

Nodes. A label is an rdf:type, and a node without labels is an rdfs:Resource. A property is a literal: text,
xsd:integer, xsd:double, xsd:boolean, and for anything else rdf:JSON. A list of different texts, or a sorted
list of different scalars, is several literals. A node exists as long as a triple names it.

Edges. An edge is the plain triple. If it has properties or a key or a parallel of its type, it is also
described in the vocabulary of rdf:Statement (rdf:subject, rdf:predicate, rdf:object) by a resource that has
its properties. The resource's IRI is derived from the edge's identity, and its key is <urn:kgot-meta:key>.
Where RDF loses an order, it is recorded: <urn:kgot-meta:labels>, <urn:kgot-meta:order>.

Triples in other forms can be read, too: see `read_contents`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote_to_bytes

from kgot_lab.sandbox.worker.values import MAX_DIGITS, RefusedValue, unused_id

RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
NAMESPACE, META = "urn:kgot:", "urn:kgot-meta:"
EDGE_IRI = f"{META}edge:"
PREFIXES = {
    "": NAMESPACE,
    "edge": EDGE_IRI,
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
}

TYPE, RDFS_LABEL, RESOURCE, STATEMENT = f"{RDF}type", f"{RDFS}label", f"{RDFS}Resource", f"{RDF}Statement"
SUBJECT, PREDICATE, OBJECT = f"{RDF}subject", f"{RDF}predicate", f"{RDF}object"
DESCRIBING = (SUBJECT, PREDICATE, OBJECT)
KEY, LABELS, ORDER = f"{META}key", f"{META}labels", f"{META}order"
STRING = f"{XSD}string"
INTEGER = f"{XSD}integer"
DOUBLE = f"{XSD}double"
BOOLEAN = f"{XSD}boolean"
JSON = f"{RDF}JSON"
_MAPPING_IRIS = {TYPE, RDFS_LABEL, RESOURCE, STATEMENT, *DESCRIBING}

_LETTERS = "A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u2c00-\u2fef\u3001-\ud7ff"  # of SPARQL's names
_ENCODED = re.compile(rf"\A[-.]|\.\Z|[^{_LETTERS}.\-]")
_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd"
_CHAR = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@{_UCS}]|%[0-9A-Fa-f]{{2}})"
_HOST = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=@{_UCS}]|%[0-9A-Fa-f]{{2}})"
_IRI_PATTERN = re.compile(
    rf"[a-z][a-z0-9+.\-]+:(?://{_HOST}*(?::[0-9]*)?(?:/{_CHAR}*)*|(?!//)(?:{_CHAR}|/)+)(?:\?(?:{_CHAR}|[/?])*)?(?:\#(?:{_CHAR}|[/?])*)?"
)
_INTEGER_PATTERN = re.compile(r"[+-]?[0-9]+")
_NUMBER_PATTERN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGERS = {
    XSD + name
    for name in (
        "integer int long short byte unsignedInt unsignedLong unsignedShort unsignedByte "
        "nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger"
    ).split()
}


_DATATYPES = {*_INTEGERS, DOUBLE, f"{XSD}float", f"{XSD}decimal", BOOLEAN, JSON}  # whose values are no texts
_CACHE_SIZE = 1 << 16  # names whose encoding is cached


class Literal(NamedTuple):
    """A literal: its text and its datatype."""

    text: str
    datatype: str = STRING


Term = str | Literal  # an IRI, "_:" and the label of a blank node, or a literal
RdfTriple = tuple[str, str, Term]
Values = Mapping[str, Any]
EdgeIdentity = tuple[str, str, str, str]


# --- names ---


@lru_cache(_CACHE_SIZE)
def iri_of(name: str) -> str:
    """Return the IRI of a name."""
    own = name.startswith((NAMESPACE, META)) or name in _MAPPING_IRIS
    if ":" in name and _IRI_PATTERN.fullmatch(name) and not own:
        return name
    return NAMESPACE + _ENCODED.sub(_escape, name)


@lru_cache(_CACHE_SIZE)
def name_of(iri: str) -> str:
    """Return the name that an IRI encodes, or the IRI itself if it encodes none."""
    if not iri.startswith(NAMESPACE):
        return iri
    local = iri[len(NAMESPACE) :].replace("_", " ")
    try:
        return unquote_to_bytes(local).decode() if "%" in local else local
    except UnicodeDecodeError:
        return iri


def predicate_name(iri: str) -> str:
    """Return the edge type or property name that an IRI encodes."""
    return "label" if iri == RDFS_LABEL else name_of(iri)


def edge_iri(identity: EdgeIdentity) -> str:
    """Return the IRI of the resource that describes an edge."""
    return EDGE_IRI + hashlib.sha256(json.dumps(list(identity)).encode()).hexdigest()[:20]


def _escape(match: re.Match[str]) -> str:
    return "_" if match[0] == " " else "".join(f"%{byte:02X}" for byte in match[0].encode())


# --- values ---


def literal_of(value: Any) -> Literal:
    """Convert a value to a literal.

    Raises RefusedValue if it is not JSON.
    """
    if isinstance(value, str):
        return Literal(value)
    if isinstance(value, bool):
        return Literal("true" if value else "false", BOOLEAN)
    if isinstance(value, int):
        return Literal(str(value), INTEGER)
    if isinstance(value, float) and math.isfinite(value):
        return Literal(repr(value), DOUBLE)
    try:
        return Literal(sorted_json(value), JSON)
    except (TypeError, ValueError) as error:
        raise RefusedValue(f"{value!r} is not JSON: {error}") from None


def value_of(literal: Literal) -> Any:
    """Return the value of a literal, or its text if its datatype is unknown or does not fit."""
    text, datatype = literal
    if datatype == STRING:
        return text
    if datatype in _INTEGERS and len(text) <= MAX_DIGITS and _INTEGER_PATTERN.fullmatch(text):
        return int(text)
    if (
        datatype in (DOUBLE, f"{XSD}float", f"{XSD}decimal")
        and _NUMBER_PATTERN.fullmatch(text)
        and math.isfinite(number := float(text))
    ):
        return int(number) if datatype.endswith("decimal") and number == int(number) else number
    if datatype == BOOLEAN and text in ("true", "false", "1", "0"):
        return text in ("true", "1")
    if datatype == JSON:
        try:
            return json.loads(text, parse_constant=_refuse_number)
        except (ValueError, RecursionError):
            return text
    return text


def is_misfit(term: Term) -> bool:
    """Return whether a literal has a datatype with values of which its text is none, as 'abc' of xsd:integer."""
    return isinstance(term, Literal) and term.datatype in _DATATYPES and value_of(term) == term.text


def sorted_json(value: Any) -> str:
    """Serialize a value as canonical JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _refuse_number(constant: str) -> NoReturn:
    raise ValueError(constant)


def _value_literals(value: Any) -> list[Literal]:
    several = isinstance(value, list | tuple) and len(value) > 1
    if several and all(isinstance(item, str | int | float) for item in value):
        all_different = len({sorted_json(item) for item in value}) == len(value)
        if all_different and (all(isinstance(item, str) for item in value) or is_sorted(value)):
            return [literal_of(item) for item in value]
    return [literal_of(value)]


def is_sorted(values: Sequence[Any]) -> bool:
    """Return whether values are in sorted order."""
    return list(map(value_sort_key, values)) == sorted(map(value_sort_key, values))


def value_sort_key(value: Any) -> tuple[int, Any, str]:
    """Return the sort key of a value: booleans, numbers, texts, the rest."""
    kinds: tuple[type | tuple[type, ...], ...] = (bool, (int, float), str)
    rank = next((rank for rank, kind in enumerate(kinds) if isinstance(value, kind)), len(kinds))
    return rank, value if rank < len(kinds) else 0, sorted_json(value)


# --- from nodes and edges to triples ---


def node_triples(id: str, labels: Sequence[str], properties: Values) -> list[RdfTriple]:
    """Return the triples of a node without its edges.

    Raises RefusedValue for a value that is not JSON.
    """
    subject = iri_of(id)
    types = [iri_of(label) for label in dict.fromkeys(labels)] or [RESOURCE]
    result: list[RdfTriple] = [(subject, TYPE, type) for type in types]
    if list(labels) != sorted(set(labels)):
        result.append((subject, LABELS, literal_of(list(labels))))
    return [*result, *_property_triples(subject, properties)]


def edge_triples(source: str, type: str, target: str, edges: Mapping[str, Values]) -> list[RdfTriple]:
    """Return the triples of all edges of one type from one node to another.

    `edges` holds the properties of each by its key.
    """
    if not edges:
        return []
    ends = iri_of(source), iri_of(type), iri_of(target)
    triples: list[RdfTriple] = [ends]
    if list(edges) != [""] or edges[""]:
        for key, properties in edges.items():
            resource = edge_iri((source, type, target, key))
            triples.append((resource, TYPE, STATEMENT))
            triples += [(resource, predicate, end) for predicate, end in zip(DESCRIBING, ends, strict=True)]
            triples += [(resource, KEY, Literal(key))] if key else []
            triples += _property_triples(resource, properties)
    return triples


def _property_triples(subject: str, properties: Values) -> Iterator[RdfTriple]:
    order = {}
    for name, value in properties.items():
        literals, predicate = _value_literals(value), iri_of(name)
        yield from ((subject, predicate, literal) for literal in literals)
        if len(literals) > 1 and not is_sorted(value):
            order[name] = list(value)
    if order:
        yield subject, ORDER, literal_of(order)


# The other half of the mapping: the property graph that triples describe, no matter who wrote them.
#
# Triples in another form than that of this module are read as if they had it. Several literals are a sorted
# list. xsd:decimal and the integer types are numbers. Language-tagged text, dates and other types are text.
# An RDF list of literals is a list property. rdfs:label is the property "label". A literal rdf:type is a
# label. A described triple exists even if the plain one does not. Facts described twice are one edge if their
# values agree, and parallel edges if they do not. An IRI among an edge's properties is its name as text. A
# blank node that is more than a description gets an id: its name, or its label and a number, the same
# whenever the same triples are read.

_FIRST, _REST, _NIL = f"{RDF}first", f"{RDF}rest", f"{RDF}nil"
_MAX_ROUNDS = 32  # hops around a blank node that are used to distinguish it from others
_Values = dict[str, Any]


class Contents(NamedTuple):
    """The graph that triples describe.

    It has labels and properties of nodes by id, and properties of edges by identity.
    """

    nodes: dict[str, tuple[list[str], _Values]]
    edges: dict[EdgeIdentity, _Values]


class _ElementBuilder:
    """The data of a node or an edge collected so far while triples are read."""

    def __init__(self) -> None:
        self.labels: dict[str, None] = {}
        self.literals: dict[str, list[Literal]] = {}
        self.ends: dict[str, list[Term]] = {}
        self.noted_labels: Any = None
        self.order: Any = None

    def take(self, predicate: str, object: Term) -> None:
        """Add one triple that is no edge."""
        if predicate == TYPE and object != RESOURCE:
            self.labels[object.text if isinstance(object, Literal) else name_of(object)] = None
        elif predicate in DESCRIBING:
            self.ends.setdefault(predicate, []).append(object)
        elif isinstance(object, Literal) and predicate in (LABELS, ORDER):
            setattr(self, "noted_labels" if predicate == LABELS else "order", value_of(object))
        elif isinstance(object, Literal):
            self.literals.setdefault(predicate_name(predicate), []).append(object)

    def node(self) -> tuple[list[str], _Values]:
        """Return its labels in their recorded order, and its properties."""
        noted = self.noted_labels if isinstance(self.noted_labels, list) else []
        kept = [label for label in noted if isinstance(label, str) and label in self.labels]
        return kept + sorted(self.labels.keys() - set(kept)), self.properties()

    def properties(self) -> _Values:
        """Return its properties by name, with several literals as a list in their recorded order."""
        order = self.order if isinstance(self.order, dict) else {}
        return {name: _join_literals(self.literals[name], order.get(name)) for name in sorted(self.literals)}


def _join_literals(literals: list[Literal], recorded_order: Any) -> Any:
    distinct = {sorted_json(value): value for value in map(value_of, literals)}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    parts = sorted(distinct.values(), key=value_sort_key)
    items = chain.from_iterable(part if isinstance(part, list) else [part] for part in parts)
    values = {sorted_json(item): item for item in items}
    recorded = map(sorted_json, recorded_order) if isinstance(recorded_order, list) else ()
    ordered = dict.fromkeys(text for text in recorded if text in values)
    return [values[text] for text in ordered] + sorted(
        (values[text] for text in values if text not in ordered), key=value_sort_key
    )


def is_edge(predicate: str, object: Term) -> bool:
    """Return whether a triple whose subject is a node connects two nodes."""
    return isinstance(object, str) and predicate != TYPE and predicate not in DESCRIBING


def read_contents(triples: Iterable[RdfTriple]) -> Contents:
    """Return the nodes and edges that triples without blank nodes describe.

    Raises RefusedValue for a fact that is described only in part.
    """
    by_subject: dict[str, list[tuple[str, Term]]] = {}
    for subject, predicate, object in triples:
        by_subject.setdefault(subject, []).append((predicate, object))
    nodes: dict[str, _ElementBuilder] = {}
    groups: dict[tuple[str, str, str], list[tuple[str, str, _Values]]] = {}
    for subject, pairs in by_subject.items():
        if any(predicate in DESCRIBING for predicate, _ in pairs):
            ends, key, properties = _described_edge(subject, pairs)
            groups.setdefault(ends, []).append((subject, key, properties))
            continue
        node = nodes.setdefault(name_of(subject), _ElementBuilder())
        for predicate, object in pairs:
            if isinstance(object, str) and is_edge(predicate, object):
                groups.setdefault((name_of(subject), predicate_name(predicate), name_of(object)), [])
            else:
                node.take(predicate, object)
    for source, _, target in groups:
        nodes.setdefault(source, _ElementBuilder())
        nodes.setdefault(target, _ElementBuilder())
    edges = {
        (*ends, key): properties
        for ends, described in groups.items()
        for key, properties in _edges_by_key(ends, described).items()
    }
    return Contents({id: node.node() for id, node in nodes.items()}, edges)


def _described_edge(
    subject: str, pairs: Iterable[tuple[str, Term]]
) -> tuple[tuple[str, str, str], str, _Values]:
    """Return the ends, key and properties of the edge that a resource describes."""
    edge, key = _ElementBuilder(), ""
    for predicate, object in pairs:
        if predicate == KEY:
            key = object.text if isinstance(object, Literal) else name_of(object)
        elif predicate == TYPE and object != STATEMENT:
            edge.take(iri_of("type"), object if isinstance(object, Literal) else Literal(name_of(object)))
        elif predicate != TYPE:
            edge.take(
                predicate,
                object
                if isinstance(object, Literal) or predicate in DESCRIBING
                else Literal(name_of(object)),
            )
    parts = [edge.ends.get(predicate, []) for predicate in DESCRIBING]
    source, type, target = (ends[0] if len(ends) == 1 else Literal("") for ends in parts)
    if (
        isinstance(source, Literal)
        or isinstance(type, Literal)
        or isinstance(target, Literal)
        or type == TYPE
    ):
        raise RefusedValue(
            "values of a fact belong to a fact between two things, described by one each of rdf:subject, rdf:predicate and rdf:object; "
            f"{name_of(subject) if subject.startswith(NAMESPACE) else 'one here'} does not describe such a fact"
        )
    return (name_of(source), predicate_name(type), name_of(target)), key, edge.properties()


def _edges_by_key(
    ends: tuple[str, str, str], described: list[tuple[str, str, _Values]]
) -> dict[str, _Values]:
    """Return the properties of parallel edges by key.

    Those under their own IRI come first. Others are merged in, under a new key if they disagree.
    """
    edges: dict[str, _Values] = {} if described else {"": {}}
    unkeyed = []
    for subject, key, properties in described:
        if subject == edge_iri((*ends, key)):
            edges[key] = properties
        else:
            unkeyed.append((key, sorted_json(properties), properties))
    for key, _, properties in sorted(unkeyed, key=lambda other: other[:2]):
        keys = chain((key,), (f"{key}.{number}" if key else str(number) for number in count(2)))
        free_key = next(k for k in keys if k not in edges or _agree(edges[k], properties))
        edges[free_key] = {**edges.get(free_key, {}), **properties}
    return edges


def _agree(one: _Values, other: _Values) -> bool:
    return all(sorted_json(one[name]) == sorted_json(other[name]) for name in one.keys() & other.keys())


# --- lists and blank nodes ---


def name_blank_nodes(
    triples: Iterable[RdfTriple], taken: Callable[[str], bool] = lambda name: False
) -> list[RdfTriple]:
    """Replace RDF lists of literals by properties and blank nodes by ids.

    None of the ids is among those taken elsewhere.
    """
    triples = _replace_rdf_lists(list(triples))
    objects = {object for _, _, object in triples if isinstance(object, str)}
    descriptions = {subject for subject, predicate, _ in triples if predicate in DESCRIBING} - objects
    ends = [end for triple in triples for end in (triple[0], triple[2])]
    blanks = {end for end in ends if isinstance(end, str) and end.startswith("_:")}
    if not blanks - descriptions:
        return triples
    terms = (term for term in ends if isinstance(term, str))
    names = {name_of(term) for term in terms if term not in blanks}
    about: dict[str, list[RdfTriple]] = {}
    for triple in triples:
        about.setdefault(triple[0], []).append(triple)
    signatures, names_by_blank = _blank_node_signatures(triples, blanks), {}
    numbers: dict[str, int] = {}
    for blank in sorted(blanks - descriptions, key=lambda blank: (signatures[blank], blank)):
        node = _ElementBuilder()
        for _, predicate, object in sorted(about.get(blank, ()), key=repr):
            if isinstance(object, Literal) or (predicate == TYPE and not object.startswith("_:")):
                node.take(predicate, object)
        labels, values = node.node()
        local = {re.split("[#/]", name)[-1]: value for name, value in values.items()}
        labels = [re.split("[#/]", label)[-1] or label for label in labels]
        name = unused_id(labels, local, lambda name: name in names or taken(name), numbers)
        names.add(name)
        names_by_blank[blank] = iri_of(name)
    return [
        (names_by_blank.get(s, s), p, names_by_blank.get(o, o) if isinstance(o, str) else o)
        for s, p, o in triples
    ]


def _blank_node_signatures(triples: Sequence[RdfTriple], blanks: Iterable[str]) -> dict[str, str]:
    """Return a text for each blank node that depends on the triples around it but not on its label."""
    signatures, distinct_count = dict.fromkeys(blanks, ""), 1
    relevant = [triple for triple in triples if triple[0] in signatures or triple[2] in signatures]
    for _ in range(_MAX_ROUNDS):
        surroundings: dict[str, list[str]] = {blank: [] for blank in signatures}
        for subject, predicate, object in relevant:
            for end, direction, other in ((subject, ">", object), (object, "<", subject)):
                if isinstance(end, str) and end in surroundings:
                    signature = signatures.get(other, other) if isinstance(other, str) else other
                    surroundings[end].append(repr((direction, predicate, signature)))
        described = {blank: repr((signatures[blank], sorted(surroundings[blank]))) for blank in signatures}
        signatures = {blank: hashlib.sha256(text.encode()).hexdigest() for blank, text in described.items()}
        if len(set(signatures.values())) == distinct_count:
            break
        distinct_count = len(set(signatures.values()))
    return signatures


def _replace_rdf_lists(triples: list[RdfTriple]) -> list[RdfTriple]:
    """Replace RDF lists that contain only literals by list literals."""
    cells: dict[str, dict[str, Term]] = {}
    for subject, predicate, object in triples:
        if subject.startswith("_:"):
            cells.setdefault(subject, {})[predicate] = object
    cells = {blank: cell for blank, cell in cells.items() if cell.keys() == {_FIRST, _REST}}
    tails = {cell[_REST] for cell in cells.values()}
    lists: dict[str, Term] = {_NIL: literal_of([])}
    removed: set[str] = set()
    for head in [cell for cell in cells if cell not in tails]:
        items, at = dict[str, Any](), head
        while at in cells and at not in items:
            first, rest = cells[at][_FIRST], cells[at][_REST]
            if isinstance(first, str) or isinstance(rest, Literal):
                break
            items[at], at = value_of(first), rest
        if at == _NIL:
            lists[head] = literal_of(list(items.values()))
            removed.update(items)
    remaining = ((s, p, o) for s, p, o in triples if s not in removed)
    return [(s, p, lists.get(o, o) if isinstance(o, str) and p != _REST else o) for s, p, o in remaining]
