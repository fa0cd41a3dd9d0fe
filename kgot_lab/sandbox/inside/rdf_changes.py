"""From triples that came and went to the nodes and edges that a statement changed.

Only what the triples touch is looked at: the touched nodes, and the touched groups of edges, those of one
type from one node to another. Runs inside the sandbox too: imports the standard library and its sisters only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol

from kgot_lab.sandbox.sparql.rdf import (
    DESCRIBING,
    EDGE_IRI,
    OBJECT,
    PREDICATE,
    SUBJECT,
    Contents,
    Literal,
    RdfTriple,
    contents_of,
    iri_of,
    is_edge,
    name_of,
    predicate_name,
    sorted_json,
)
from kgot_lab.sandbox.worker.values import Account, RefusedValue

Group = tuple[str, str, str]  # source, type and target, as names


class Triples(Protocol):
    """Triples that are spelled as the mapping spells them, and can be looked up."""

    def about(self, subject: str) -> Iterator[RdfTriple]: ...
    def naming(self, object: str) -> Iterator[RdfTriple]: ...
    def subjects(self, predicate: str, object: str) -> Iterator[str]: ...
    def has(self, triple: RdfTriple) -> bool: ...


def of_node(triple: RdfTriple) -> bool:
    """Whether a triple about a node is part of the node, and not an edge."""
    return not is_edge(triple[1], triple[2])


def group_triples(triples: Triples, group: Group) -> list[RdfTriple]:
    """The triples of all edges of one type from one node to another."""
    return [
        *filter(triples.has, [_plain(group)]),
        *chain.from_iterable(map(triples.about, _descriptions(triples, group))),
    ]


def _plain(group: Group) -> RdfTriple:
    return iri_of(group[0]), iri_of(group[1]), iri_of(group[2])


def _descriptions(triples: Triples, group: Group) -> list[str]:
    """The resources that describe edges; both ends are asked in turns, so that a hub at one of them does not
    matter.
    """
    source, type, target = map(iri_of, group)
    from_source, from_target = triples.subjects(SUBJECT, source), triples.subjects(OBJECT, target)
    found, others = list[str](), list[str]()
    for one in from_source:
        found.append(one)
        other = next(from_target, "")
        if not other:
            found = others
            break
        others.append(other)
    wanted = (SUBJECT, source), (PREDICATE, type), (OBJECT, target)
    return [one for one in found if all(triples.has((one, predicate, end)) for predicate, end in wanted)]


class TripleChange:
    """A graph before, what was added to it and what removed from it; the graph itself stays as it was."""

    def __init__(self, before: Triples, added: Sequence[RdfTriple], removed: Iterable[RdfTriple]):
        self.before, self.removed = before, dict.fromkeys(removed)
        self.added: dict[str, list[RdfTriple]] = {}
        self.spellings: dict[str, dict[str, None]] = {}  # each touched node's IRIs, by its name
        self.groups: dict[Group, list[RdfTriple]] = {}  # the plain triples that were added
        self.resources: dict[str, None] = {}
        self.described = {subject for subject, predicate, _ in added if predicate in DESCRIBING}
        for triple in added:
            self.added.setdefault(triple[0], []).append(triple)
        for triple in chain(added, self.removed):
            self._touch(*triple)
        for resource in self.resources:
            for ends in (_ends(before.about(resource)), _ends(self.after(resource))):
                if ends is not None:
                    self.groups.setdefault(ends, [])
        self.known = {group: _descriptions(before, group) for group in self.groups}

    def _touch(self, subject: str, predicate: str, object: str | Literal) -> None:
        if subject.startswith(EDGE_IRI) or subject in self.described:
            self.resources[subject] = None
            named = [object] if predicate in (SUBJECT, OBJECT) and isinstance(object, str) else []
        elif isinstance(object, str) and is_edge(predicate, object):
            named = [subject, object]
            plain = self.groups.setdefault((name_of(subject), predicate_name(predicate), name_of(object)), [])
            plain += (
                [(subject, predicate, object)] if (subject, predicate, object) not in self.removed else []
            )
        else:
            named = [subject]
        for iri in named:
            self.spellings.setdefault(name_of(iri), {iri_of(name_of(iri)): None})[iri] = None

    def after(self, subject: str) -> list[RdfTriple]:
        """What is said of a thing in the end."""
        return [
            *(triple for triple in self.before.about(subject) if triple not in self.removed),
            *self.added.get(subject, ()),
        ]

    def claims(self) -> dict[str, list[Account]]:
        """The touched nodes and edges that differ, in the form of `claims`; raises Refused where the graph
        cannot hold what was said.
        """
        before, after = contents_of(self._part_before()), contents_of(self._part_after())
        nodes = [claim for name in self.spellings for claim in self._node(name, before, after)]
        gone = [list(identity) for identity in before.edges if identity not in after.edges]
        came = [
            [*identity, values]
            for identity, values in after.edges.items()
            if _differ(before.edges.get(identity), values)
        ]
        for _, type, *_ in came:
            _require_name("a relation", str(type))
        return {"nodes": nodes, "edges": [*gone, *came]}

    def _node(self, name: str, before: Contents, after: Contents) -> Iterator[Account]:
        now = after.nodes.get(name) or (([], {}) if self._connected(name) else None)
        if now is None:
            yield from [[name]] if name in before.nodes else []
        elif _differ(before.nodes.get(name), now):
            _require_name("a node", name)
            for label in now[0]:
                _require_name("a label", label)
            yield [name, *now]

    def _part_before(self) -> Iterator[RdfTriple]:
        """What was said of the touched nodes and edges."""
        for name in self.spellings:
            yield from filter(of_node, self.before.about(iri_of(name)))
        for group, resources in self.known.items():
            yield from filter(self.before.has, [_plain(group)])
            yield from chain.from_iterable(map(self.before.about, resources))

    def _part_after(self) -> Iterator[RdfTriple]:
        """What is said of them in the end; a described fact goes when it or a part of its description is
        removed.
        """
        for iris in self.spellings.values():
            yield from filter(of_node, chain.from_iterable(map(self.after, iris)))
        for group, added in self.groups.items():
            yield from added
            yield from (
                plain for plain in [_plain(group)] if plain not in self.removed and self.before.has(plain)
            )
        for resource in dict.fromkeys(chain(*self.known.values(), self.resources)):
            triples = self.after(resource)
            ends = _ends(triples)
            goes = ends is None or (_plain(ends) in self.removed and not self.groups[ends])
            if resource in self.described or not goes:
                yield from triples

    def _connected(self, name: str) -> bool:
        """Whether an edge that was there before, and still is, names a node."""
        iri = iri_of(name)
        there = chain(
            self.before.about(iri),
            (triple for triple in self.before.naming(iri) if not triple[0].startswith(EDGE_IRI)),
        )
        return any(is_edge(triple[1], triple[2]) and triple not in self.removed for triple in there)


def _ends(triples: Iterable[RdfTriple]) -> Group | None:
    """The ends of the edge that some triples describe; None if they do not describe one."""
    found = {
        predicate: object
        for _, predicate, object in triples
        if predicate in DESCRIBING and isinstance(object, str)
    }
    whole = len(found) == len(DESCRIBING)
    return (
        (name_of(found[SUBJECT]), predicate_name(found[PREDICATE]), name_of(found[OBJECT])) if whole else None
    )


def _differ(one: Any, other: Any) -> bool:
    return one is None or sorted_json(one) != sorted_json(other)


def _require_name(what: str, name: str) -> None:
    if not name.strip():
        raise RefusedValue(f"the name of {what} must not be blank")
