"""What triples say of a property graph, whoever wrote them: the other half of the mapping in `rdf`.

Anything that is not spelled as `rdf` spells it is read as if it were. Several literals are a sorted list;
xsd:decimal and the integer types are numbers; language-tagged text, dates and other types are text; an RDF
list of literals is a list property. rdfs:label is the property "label"; a literal rdf:type is a label. A
described triple is there even if the plain one is not; facts described twice are one edge where their values
agree, and parallel edges where they do not; an IRI among an edge's properties is its name as text. A blank
node that is more than a description gets an id: its name, or its label and a number, the same whenever the
same triples are read. Runs inside the sandbox too: imports the standard library and its sisters only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

from kgot_lab.sandbox.cypher.mapping import free_id
from kgot_lab.sandbox.sparql.rdf import (
    DESCRIBING,
    KEY,
    LABELS,
    NAMESPACE,
    ORDER,
    RDF,
    RESOURCE,
    STATEMENT,
    TYPE,
    EdgeIdentity,
    Literal,
    RdfTriple,
    Term,
    edge_iri,
    iri_of,
    literal_of,
    name_of,
    predicate_name,
    sort_place,
    sorted_json,
    value_of,
)
from kgot_lab.sandbox.worker.values import RefusedValue

_FIRST, _REST, _NIL = f"{RDF}first", f"{RDF}rest", f"{RDF}nil"
_MOST_ROUNDS = 32  # how far around a blank node is looked at to tell it from others
_Values = dict[str, Any]


class Contents(NamedTuple):
    """What triples say: labels and properties of nodes by id, properties of edges by identity."""

    nodes: dict[str, tuple[list[str], _Values]]
    edges: dict[EdgeIdentity, _Values]


class _Element:
    """What is known of a node or an edge while triples are read."""

    def __init__(self) -> None:
        self.labels: dict[str, None] = {}
        self.literals: dict[str, list[Literal]] = {}
        self.ends: dict[str, list[Term]] = {}
        self.noted_labels: Any = None
        self.order: Any = None

    def take(self, predicate: str, object: Term) -> None:
        """Learn one triple that is no edge."""
        if predicate == TYPE and object != RESOURCE:
            self.labels[object.text if isinstance(object, Literal) else name_of(object)] = None
        elif predicate in DESCRIBING:
            self.ends.setdefault(predicate, []).append(object)
        elif isinstance(object, Literal) and predicate in (LABELS, ORDER):
            setattr(self, "noted_labels" if predicate == LABELS else "order", value_of(object))
        elif isinstance(object, Literal):
            self.literals.setdefault(predicate_name(predicate), []).append(object)

    def node(self) -> tuple[list[str], _Values]:
        """Its labels in their noted order, and its properties."""
        noted = self.noted_labels if isinstance(self.noted_labels, list) else []
        kept = [label for label in noted if isinstance(label, str) and label in self.labels]
        return kept + sorted(self.labels.keys() - set(kept)), self.properties()

    def properties(self) -> _Values:
        """Its properties by name, several literals as a list in their noted order."""
        order = self.order if isinstance(self.order, dict) else {}
        return {name: _joined(self.literals[name], order.get(name)) for name in sorted(self.literals)}


def _joined(literals: list[Literal], noted: Any) -> Any:
    different = {sorted_json(value): value for value in map(value_of, literals)}
    if len(different) == 1:
        return next(iter(different.values()))
    items = chain.from_iterable(
        value if isinstance(value, list) else [value] for value in sorted(different.values(), key=sort_place)
    )
    values = {sorted_json(item): item for item in items}
    first = (
        dict.fromkeys(text for text in map(sorted_json, noted) if text in values)
        if isinstance(noted, list)
        else {}
    )
    return [values[text] for text in first] + sorted(
        (values[text] for text in values if text not in first), key=sort_place
    )


def is_edge(predicate: str, object: Term) -> bool:
    """Whether a triple says that two nodes are connected, if its subject is a node."""
    return isinstance(object, str) and predicate != TYPE and predicate not in DESCRIBING


def contents_of(triples: Iterable[RdfTriple]) -> Contents:
    """The nodes and edges that triples without blank nodes say there are; raises Refused for a fact that is
    described in parts only.
    """
    by_subject: dict[str, list[tuple[str, Term]]] = {}
    for subject, predicate, object in triples:
        by_subject.setdefault(subject, []).append((predicate, object))
    nodes: dict[str, _Element] = {}
    groups: dict[tuple[str, str, str], list[tuple[str, str, _Values]]] = {}
    for subject, pairs in by_subject.items():
        if any(predicate in DESCRIBING for predicate, _ in pairs):
            ends, key, properties = _described(subject, pairs)
            groups.setdefault(ends, []).append((subject, key, properties))
            continue
        node = nodes.setdefault(name_of(subject), _Element())
        for predicate, object in pairs:
            if isinstance(object, str) and is_edge(predicate, object):
                groups.setdefault((name_of(subject), predicate_name(predicate), name_of(object)), [])
            else:
                node.take(predicate, object)
    for source, _, target in groups:
        nodes.setdefault(source, _Element())
        nodes.setdefault(target, _Element())
    edges = {
        (*ends, key): properties
        for ends, described in groups.items()
        for key, properties in _keyed(ends, described).items()
    }
    return Contents({id: node.node() for id, node in nodes.items()}, edges)


def _described(subject: str, pairs: Iterable[tuple[str, Term]]) -> tuple[tuple[str, str, str], str, _Values]:
    """The ends, key and properties of the edge that a resource describes."""
    edge, key = _Element(), ""
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
    given = [edge.ends.get(predicate, []) for predicate in DESCRIBING]
    source, type, target = (ends[0] if len(ends) == 1 else Literal("") for ends in given)
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


def _keyed(ends: tuple[str, str, str], described: list[tuple[str, str, _Values]]) -> dict[str, _Values]:
    """The properties of parallel edges by key: first those under their own IRI, then others, under a new key
    where they disagree.
    """
    edges: dict[str, _Values] = {} if described else {"": {}}
    others = []
    for subject, key, properties in described:
        if subject == edge_iri((*ends, key)):
            edges[key] = properties
        else:
            others.append((key, sorted_json(properties), properties))
    for key, _, properties in sorted(others, key=lambda other: other[:2]):
        keys = chain((key,), (f"{key}.{number}" if key else str(number) for number in count(2)))
        own = next(each for each in keys if each not in edges or _agree(edges[each], properties))
        edges[own] = {**edges.get(own, {}), **properties}
    return edges


def _agree(one: _Values, other: _Values) -> bool:
    return all(sorted_json(one[name]) == sorted_json(other[name]) for name in one.keys() & other.keys())


# --- lists and blank nodes
# --------------------------------------------------------------------------------------------


def with_names(
    triples: Iterable[RdfTriple], taken: Callable[[str], bool] = lambda name: False
) -> list[RdfTriple]:
    """The triples with lists of literals as properties and with ids for blank nodes, none of them among those
    taken elsewhere.
    """
    triples = _without_lists(list(triples))
    objects = {object for _, _, object in triples if isinstance(object, str)}
    descriptions = {subject for subject, predicate, _ in triples if predicate in DESCRIBING} - objects
    blanks = {
        term
        for triple in triples
        for term in (triple[0], triple[2])
        if isinstance(term, str) and term.startswith("_:")
    }
    if not blanks - descriptions:
        return triples
    names = _Taken(taken)
    names.update(
        name_of(term)
        for triple in triples
        for term in (triple[0], triple[2])
        if isinstance(term, str) and term not in blanks
    )
    about: dict[str, list[RdfTriple]] = {}
    for triple in triples:
        about.setdefault(triple[0], []).append(triple)
    colours, new = _colours(triples, blanks), {}
    for blank in sorted(blanks - descriptions, key=lambda blank: (colours[blank], blank)):
        node = _Element()
        for _, predicate, object in sorted(about.get(blank, ()), key=repr):
            if isinstance(object, Literal) or (predicate == TYPE and not object.startswith("_:")):
                node.take(predicate, object)
        name = free_id(*node.node(), names)
        names.add(name)
        new[blank] = iri_of(name)
    return [(new.get(s, s), p, new.get(o, o) if isinstance(o, str) else o) for s, p, o in triples]


class _Taken(set[str]):
    """Names that are taken, here or elsewhere."""

    def __init__(self, elsewhere: Callable[[str], bool]):
        super().__init__()
        self.elsewhere = elsewhere

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self.elsewhere(str(name))


def _colours(triples: Sequence[RdfTriple], blanks: Iterable[str]) -> dict[str, str]:
    """A text for each blank node that depends on what is said of it and around it, but not on its label."""
    colours, different = dict.fromkeys(blanks, ""), 1
    told = [triple for triple in triples if triple[0] in colours or triple[2] in colours]
    for _ in range(_MOST_ROUNDS):
        signs: dict[str, list[str]] = {blank: [] for blank in colours}
        for subject, predicate, object in told:
            for one, way, other in ((subject, ">", object), (object, "<", subject)):
                if isinstance(one, str) and one in signs:
                    signs[one].append(
                        repr((way, predicate, colours.get(other, other) if isinstance(other, str) else other))
                    )
        colours = {
            blank: hashlib.sha256(repr((colours[blank], sorted(signs[blank]))).encode()).hexdigest()
            for blank in colours
        }
        if len(set(colours.values())) == different:
            break
        different = len(set(colours.values()))
    return colours


def _without_lists(triples: list[RdfTriple]) -> list[RdfTriple]:
    """The triples with RDF lists of literals, and of nothing else, as literals of one list."""
    cells: dict[str, dict[str, Term]] = {}
    for subject, predicate, object in triples:
        if subject.startswith("_:"):
            cells.setdefault(subject, {})[predicate] = object
    cells = {blank: cell for blank, cell in cells.items() if cell.keys() == {_FIRST, _REST}}
    tails = {cell[_REST] for cell in cells.values()}
    lists: dict[str, Term] = {_NIL: literal_of([])}
    gone: set[str] = set()
    for head in [cell for cell in cells if cell not in tails]:
        passed, at = dict[str, Any](), head
        while at in cells and at not in passed:
            first, rest = cells[at][_FIRST], cells[at][_REST]
            if isinstance(first, str) or isinstance(rest, Literal):
                break
            passed[at], at = value_of(first), rest
        if at == _NIL:
            lists[head] = literal_of(list(passed.values()))
            gone.update(passed)
    kept = ((s, p, o) for s, p, o in triples if s not in gone)
    return [(s, p, lists.get(o, o) if isinstance(o, str) and p != _REST else o) for s, p, o in kept]
