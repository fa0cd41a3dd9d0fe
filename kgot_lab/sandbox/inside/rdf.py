"""The one mapping between property graphs and RDF: both ways, without loss, and in plain RDF 1.1.

Names. A node's id, a label, an edge's type and a property's name are IRIs of one namespace, `PREFIX :
<urn:kgot:>`. In them a space is _, and any sign but letters, digits, - and . is percent-encoded: "Marie
Curie" is :Marie_Curie, "O'Hara" :O%27Hara, "born_in" :born%5Fin. A name that is an absolute IRI stands for
itself, unless this mapping uses that IRI.

Nodes. A label is an rdf:type; a node without labels is an rdfs:Resource. A property is a literal: text,
xsd:integer, xsd:double, xsd:boolean, and for anything else rdf:JSON. A list of different texts, or a sorted
list of different scalars, is several literals. A node is there as long as a triple names it.

Edges. An edge is the plain triple. If it has properties or a key or a parallel of its type, it is also
described in the words of rdf:Statement (rdf:subject, rdf:predicate, rdf:object) by a resource that carries
its properties; the resource's IRI is made of the edge's identity, and its key is <urn:kgot-meta:key>. Where
RDF loses an order, it is noted: <urn:kgot-meta:labels>, <urn:kgot-meta:order>.

What is not spelled so can be read, too: see `rdf_reading`.
Runs inside the sandbox too: imports the standard library and its sisters only.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote_to_bytes

from kgot_lab.sandbox.worker.values import RefusedValue

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
STRING, INTEGER, DOUBLE, BOOLEAN, JSON = (
    f"{XSD}string",
    f"{XSD}integer",
    f"{XSD}double",
    f"{XSD}boolean",
    f"{RDF}JSON",
)
_OURS = {TYPE, RDFS_LABEL, RESOURCE, STATEMENT, *DESCRIBING}

_LETTERS = "A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u2c00-\u2fef\u3001-\ud7ff"  # of SPARQL's names
_ENCODED = re.compile(rf"\A[-.]|\.\Z|[^{_LETTERS}.\-]")
_UCS = "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd"
_CHAR = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@{_UCS}]|%[0-9A-Fa-f]{{2}})"
_HOST = rf"(?:[A-Za-z0-9\-._~!$&'()*+,;=@{_UCS}]|%[0-9A-Fa-f]{{2}})"
_IRI = re.compile(
    rf"[a-z][a-z0-9+.\-]+:(?://{_HOST}*(?::[0-9]*)?(?:/{_CHAR}*)*|(?!//)(?:{_CHAR}|/)+)(?:\?(?:{_CHAR}|[/?])*)?(?:\#(?:{_CHAR}|[/?])*)?"
)
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGERS = {
    XSD + name
    for name in (
        "integer int long short byte unsignedInt unsignedLong unsignedShort unsignedByte "
        "nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger"
    ).split()
}


_KEPT = 1 << 16  # names whose spelling is remembered


class Literal(NamedTuple):
    """A literal: its text and its datatype."""

    text: str
    datatype: str = STRING


Term = str | Literal  # an IRI, "_:" and the label of a blank node, or a literal
RdfTriple = tuple[str, str, Term]
Values = Mapping[str, Any]
EdgeIdentity = tuple[str, str, str, str]


# --- names
# ------------------------------------------------------------------------------------------------------------


@lru_cache(_KEPT)
def iri_of(name: str) -> str:
    """The IRI of a name."""
    if ":" in name and _IRI.fullmatch(name) and not name.startswith((NAMESPACE, META)) and name not in _OURS:
        return name
    return NAMESPACE + _ENCODED.sub(_escape, name)


@lru_cache(_KEPT)
def name_of(iri: str) -> str:
    """The name behind an IRI; one that no name is written as stands for itself."""
    if not iri.startswith(NAMESPACE):
        return iri
    local = iri[len(NAMESPACE) :].replace("_", " ")
    try:
        return unquote_to_bytes(local).decode() if "%" in local else local
    except UnicodeDecodeError:
        return iri


def predicate_name(iri: str) -> str:
    """The edge's type or property's name behind an IRI."""
    return "label" if iri == RDFS_LABEL else name_of(iri)


def edge_iri(identity: EdgeIdentity) -> str:
    """The IRI of the resource that describes an edge."""
    return EDGE_IRI + hashlib.sha256(json.dumps(list(identity)).encode()).hexdigest()[:20]


def _escape(match: re.Match[str]) -> str:
    return "_" if match[0] == " " else "".join(f"%{byte:02X}" for byte in match[0].encode())


# --- values
# -----------------------------------------------------------------------------------------------------------


def literal_of(value: Any) -> Literal:
    """The literal of a value; raises Refused for what is not JSON."""
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
    """The value of a literal; its text if its datatype is unknown or does not fit."""
    text, datatype = literal
    if datatype == STRING:
        return text
    if datatype in _INTEGERS and _WHOLE.fullmatch(text):
        return int(text)
    if (
        datatype in (DOUBLE, f"{XSD}float", f"{XSD}decimal")
        and _NUMBER.fullmatch(text)
        and math.isfinite(number := float(text))
    ):
        return int(number) if datatype.endswith("decimal") and number == int(number) else number
    if datatype == BOOLEAN and text in ("true", "false", "1", "0"):
        return text in ("true", "1")
    if datatype == JSON:
        try:
            return json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError):
            return text
    return text


def sorted_json(value: Any) -> str:
    """The one JSON text of a value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _no_number(constant: str) -> NoReturn:
    raise ValueError(constant)


def _literals(value: Any) -> list[Literal]:
    if (
        isinstance(value, list | tuple)
        and len(value) > 1
        and all(isinstance(item, str | int | float) for item in value)
    ):
        different = len({sorted_json(item) for item in value}) == len(value)
        if different and (all(isinstance(item, str) for item in value) or ordered_values(value)):
            return [literal_of(item) for item in value]
    return [literal_of(value)]


def ordered_values(values: Sequence[Any]) -> bool:
    """Whether some values stand as they would in a sorted list."""
    return list(map(sort_place, values)) == sorted(map(sort_place, values))


def sort_place(value: Any) -> tuple[int, Any, str]:
    """Where a value stands in a sorted list: truth values, numbers, texts, the rest."""
    kinds: tuple[type | tuple[type, ...], ...] = (bool, (int, float), str)
    rank = next((rank for rank, kind in enumerate(kinds) if isinstance(value, kind)), len(kinds))
    return rank, value if rank < len(kinds) else 0, sorted_json(value)


# --- from nodes and edges to triples
# ----------------------------------------------------------------------------------


def node_triples(id: str, labels: Sequence[str], properties: Values) -> list[RdfTriple]:
    """The triples of a node without its edges; raises Refused for a value that is not JSON."""
    subject = iri_of(id)
    triples: list[RdfTriple] = [(subject, TYPE, iri_of(label)) for label in dict.fromkeys(labels)] or [
        (subject, TYPE, RESOURCE)
    ]
    if list(labels) != sorted(set(labels)):
        triples.append((subject, LABELS, literal_of(list(labels))))
    return [*triples, *_property_triples(subject, properties)]


def edge_triples(source: str, type: str, target: str, edges: Mapping[str, Values]) -> list[RdfTriple]:
    """The triples of all edges of one type from one node to another: the properties of each by its key."""
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
        literals, predicate = _literals(value), iri_of(name)
        yield from ((subject, predicate, literal) for literal in literals)
        if len(literals) > 1 and not ordered_values(value):
            order[name] = list(value)
    if order:
        yield subject, ORDER, literal_of(order)
