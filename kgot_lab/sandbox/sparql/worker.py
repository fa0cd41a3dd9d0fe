"""The worker program for SPARQL: Oxigraph in memory, and a fork of its process for each statement.

The changes of a write are the difference between the triples before and after it. A write that only adds runs
on an empty graph instead, which shows its triples without reading all others. Runs inside the sandbox:
imports the standard library, pyoxigraph and modules of the sandbox only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from kgot_lab.sandbox.sparql.rdf import (
    DESCRIBING,
    EDGE_IRI,
    OBJECT,
    PREDICATE,
    PREFIXES,
    SUBJECT,
    Contents,
    Literal,
    RdfTriple,
    Term,
    edge_triples,
    iri_of,
    is_edge,
    is_misfit,
    name_blank_nodes,
    name_of,
    node_triples,
    predicate_name,
    read_contents,
    sorted_json,
)
from kgot_lab.sandbox.sparql.statements import (
    check_statement,
    format_engine_error,
    has_word,
    only_adds,
    respell_names,
    rows_of_triples,
    solution_rows,
)
from kgot_lab.sandbox.worker.fork_server import serve
from kgot_lab.sandbox.worker.values import ElementChange, RefusedValue

if TYPE_CHECKING:
    import pyoxigraph as ox

# From added and removed triples to the nodes and edges that a statement changed.
#
# Only what the triples touch is inspected: the touched nodes, and the touched groups of edges (those of one
# type from one node to another).

Group = tuple[str, str, str]  # source, type and target, as names


class Triples(Protocol):
    """A set of triples in the form of the mapping that can be queried."""

    def about(self, subject: str) -> Iterator[RdfTriple]: ...
    def naming(self, object: str) -> Iterator[RdfTriple]: ...
    def subjects(self, predicate: str, object: str) -> Iterator[str]: ...
    def has(self, triple: RdfTriple) -> bool: ...


def is_node_triple(triple: RdfTriple) -> bool:
    """Return whether a triple about a node belongs to the node and is not an edge."""
    return not is_edge(triple[1], triple[2])


def edge_group_triples(triples: Triples, group: Group) -> list[RdfTriple]:
    """Return the triples of all edges of one type from one node to another."""
    resources = _describing_resources(triples, group)
    return [*filter(triples.has, [_plain_triple(group)]), *chain.from_iterable(map(triples.about, resources))]


def _plain_triple(group: Group) -> RdfTriple:
    return iri_of(group[0]), iri_of(group[1]), iri_of(group[2])


def _describing_resources(triples: Triples, group: Group) -> list[str]:
    """Return the resources that describe edges.

    Both ends are searched alternately, so that a hub at one of them does not matter.
    """
    source, type, target = map(iri_of, group)
    from_source, from_target = triples.subjects(SUBJECT, source), triples.subjects(OBJECT, target)
    candidates, others = list[str](), list[str]()
    for one in from_source:
        candidates.append(one)
        other = next(from_target, "")
        if not other:
            candidates = others
            break
        others.append(other)
    required = (SUBJECT, source), (PREDICATE, type), (OBJECT, target)
    return [one for one in candidates if all(triples.has((one, p, end)) for p, end in required)]


class TripleChange:
    """A graph before a change, with the added and removed triples.

    The graph itself is not changed.
    """

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
            for ends in (_described_edge(before.about(resource)), _described_edge(self.after(resource))):
                if ends is not None:
                    self.groups.setdefault(ends, [])
        self.known = {group: _describing_resources(before, group) for group in self.groups}

    def _touch(self, subject: str, predicate: str, object: str | Literal) -> None:
        if subject.startswith(EDGE_IRI) or subject in self.described:
            self.resources[subject] = None
            iris = [object] if predicate in (SUBJECT, OBJECT) and isinstance(object, str) else []
        elif isinstance(object, str) and is_edge(predicate, object):
            iris = [subject, object]
            added = self.groups.setdefault((name_of(subject), predicate_name(predicate), name_of(object)), [])
            triple = (subject, predicate, object)
            added += [triple] if triple not in self.removed else []
        else:
            iris = [subject]
        for iri in iris:
            self.spellings.setdefault(name_of(iri), {iri_of(name_of(iri)): None})[iri] = None

    def after(self, subject: str) -> list[RdfTriple]:
        """Return the triples about a subject after the change."""
        kept = (triple for triple in self.before.about(subject) if triple not in self.removed)
        return [*kept, *self.added.get(subject, ())]

    def claims(self) -> dict[str, list[ElementChange]]:
        """Return the touched nodes and edges that differ, as claims.

        Raises RefusedValue if the graph cannot represent the new triples.
        """
        if misfit := next(filter(is_misfit, (triple[2] for triple in chain(*self.added.values()))), None):
            problem = f"{misfit[0]!r} is no value of <{misfit[1]}>"
            raise RefusedValue(f"{problem}: leave the datatype out, or correct the value")
        before, after = read_contents(self._touched_before()), read_contents(self._touched_after())
        spellings = self.spellings
        nodes = [change for name in spellings for change in self._node_changes(name, before, after)]
        removed_edges = [list(identity) for identity in before.edges if identity not in after.edges]
        old = before.edges
        new_edges = [[*id, values] for id, values in after.edges.items() if _differs(old.get(id), values)]
        for _, type, *_ in new_edges:
            _require_name("a relation", str(type))
        return {"nodes": nodes, "edges": [*removed_edges, *new_edges]}

    def _node_changes(self, name: str, before: Contents, after: Contents) -> Iterator[ElementChange]:
        current = after.nodes.get(name) or (([], {}) if self._is_connected(name) else None)
        if current is None:
            yield from [[name]] if name in before.nodes else []
        elif _differs(before.nodes.get(name), current):
            _require_name("a node", name)
            for label in current[0]:
                _require_name("a label", label)
            yield [name, *current]

    def _touched_before(self) -> Iterator[RdfTriple]:
        """Yield the triples of the touched nodes and edges before the change."""
        for name in self.spellings:
            yield from filter(is_node_triple, self.before.about(iri_of(name)))
        for group, resources in self.known.items():
            yield from filter(self.before.has, [_plain_triple(group)])
            yield from chain.from_iterable(map(self.before.about, resources))

    def _touched_after(self) -> Iterator[RdfTriple]:
        """Yield the triples of the touched nodes and edges after the change.

        A described fact is removed if it or a part of its description is.
        """
        for iris in self.spellings.values():
            yield from filter(is_node_triple, chain.from_iterable(map(self.after, iris)))
        for group, added in self.groups.items():
            yield from added
            yield from (p for p in [_plain_triple(group)] if p not in self.removed and self.before.has(p))
        for resource in dict.fromkeys(chain(*self.known.values(), self.resources)):
            triples = self.after(resource)
            ends = _described_edge(triples)
            is_removed = ends is None or (_plain_triple(ends) in self.removed and not self.groups[ends])
            if resource in self.described or not is_removed:
                yield from triples

    def _is_connected(self, name: str) -> bool:
        """Return whether an edge that existed before and still does names a node."""
        iri = iri_of(name)
        naming = (triple for triple in self.before.naming(iri) if not triple[0].startswith(EDGE_IRI))
        edges_left = chain(self.before.about(iri), naming)
        return any(is_edge(triple[1], triple[2]) and triple not in self.removed for triple in edges_left)


def _described_edge(triples: Iterable[RdfTriple]) -> Group | None:
    """Return the ends of the edge that triples describe, or None if they do not describe one."""
    parts = {p: object for _, p, object in triples if p in DESCRIBING and isinstance(object, str)}
    is_complete = len(parts) == len(DESCRIBING)
    if not is_complete:
        return None
    return name_of(parts[SUBJECT]), predicate_name(parts[PREDICATE]), name_of(parts[OBJECT])


def _differs(one: Any, other: Any) -> bool:
    return one is None or sorted_json(one) != sorted_json(other)


def _require_name(what: str, name: str) -> None:
    if not name.strip():
        raise RefusedValue(f"the name of {what} must not be blank")


class SparqlGraph:
    """The graph for statements in SPARQL."""

    def __init__(self) -> None:
        import pyoxigraph

        self.ox = pyoxigraph
        self.store = pyoxigraph.Store()

    # --- loading ---

    def clear(self) -> None:
        """Remove everything."""
        self.store = self.ox.Store()

    def put(self, nodes: Iterable[ElementChange], edges: Iterable[ElementChange]) -> None:
        """Apply claims to the graph."""
        groups: dict[Group, dict[str, list[Any]]] = {}
        for source, type, target, key, *properties in edges:
            groups.setdefault((source, type, target), {})[key] = properties
        if len(self.store):
            self._replace(nodes, groups)
            return
        whole = [change for change in nodes if len(change) == 3]
        triples = [triple for change in whole for triple in node_triples(*change)]
        for group, changed in groups.items():
            triples += edge_triples(*group, _existing_properties(changed))
        self.store.extend(map(self._quad, triples))

    def _replace(self, nodes: Iterable[ElementChange], groups: dict[Group, dict[str, list[Any]]]) -> None:
        removed, added = dict[RdfTriple, None](), dict[RdfTriple, None]()
        for node_change in nodes:
            removed.update(dict.fromkeys(filter(is_node_triple, self.about(iri_of(node_change[0])))))
            added.update(dict.fromkeys(node_triples(*node_change) if len(node_change) == 3 else ()))
        for group, changed in groups.items():
            current = edge_group_triples(self, group)
            edges = {identity[3]: [values] for identity, values in read_contents(current).edges.items()}
            removed.update(dict.fromkeys(current))
            added.update(dict.fromkeys(edge_triples(*group, _existing_properties(edges | changed))))
        for triple in removed.keys() - added.keys():
            self.store.remove(self._quad(triple))
        self.store.extend(self._quad(triple) for triple in added if triple not in removed)

    # --- queries ---

    def about(self, subject: str) -> Iterator[RdfTriple]:
        """Return the triples with a subject.

        A blank node has none, because those of every statement get names.
        """
        if subject.startswith("_:"):
            return iter(())
        return map(self._triple, self.store.quads_for_pattern(self.ox.NamedNode(subject), None, None))

    def naming(self, object: str) -> Iterator[RdfTriple]:
        """Return the triples with an object."""
        return map(self._triple, self.store.quads_for_pattern(None, None, self.ox.NamedNode(object)))

    def subjects(self, predicate: str, object: str) -> Iterator[str]:
        """Return the subjects of the triples with a predicate and an object."""
        pattern = self.ox.NamedNode(predicate), self.ox.NamedNode(object)
        return (self._triple(quad)[0] for quad in self.store.quads_for_pattern(None, *pattern))

    def has(self, triple: RdfTriple) -> bool:
        """Return whether a triple is in the graph."""
        return self._quad(triple) in self.store

    # --- statements ---

    def answer(self, do: str, text: str) -> dict[str, Any]:
        """Run a write or a read in a fork of this process.

        Returns nodes and edges, or rows, or an error.
        """
        try:
            found = check_statement(do, text) if do in ("read", "write") else []
        except RefusedValue as refusal:
            return {"error": str(refusal)}
        statement = respell_names(found)
        try:
            if do == "write":
                return self._write(statement, adds=only_adds(found))
            if do == "read":
                return {"rows": self._rows(statement, in_order=has_word(found, "ORDER"))}
            return {"error": "this sandbox speaks SPARQL and computes nothing else"}
        except RefusedValue as refusal:
            return {"error": str(refusal)}
        except MemoryError:
            return {"error": "the statement needs more memory than it may have"}
        except (SyntaxError, ValueError, OSError) as error:
            return {"error": format_engine_error(str(error), statement)}

    def _rows(self, statement: str, *, in_order: bool) -> list[Any]:
        result = self.store.query(statement, prefixes=PREFIXES)
        if isinstance(result, self.ox.QueryBoolean):
            return [bool(result)]
        if isinstance(result, self.ox.QueryTriples):
            return rows_of_triples(self._triple(triple) for triple in result)
        names = [variable.value for variable in result.variables]
        solutions = (
            {name: self._term(term) for name in names if (term := solution[name]) is not None}
            for solution in result
        )
        return solution_rows(names, solutions, in_order=in_order)

    def _write(self, statement: str, *, adds: bool) -> dict[str, Any]:
        if adds:
            empty_store = self.ox.Store()
            empty_store.update(statement, prefixes=PREFIXES)
            added: list[ox.Quad] = [quad for quad in empty_store if quad not in self.store]
            removed: list[ox.Quad] = []
        else:
            added, removed = self._run_update(statement)
        # the engine lists the newest first
        added_triples = name_blank_nodes(map(self._triple, reversed(added)), self._is_taken)
        return dict(TripleChange(self, added_triples, map(self._triple, removed)).claims())

    def _run_update(self, statement: str) -> tuple[list[ox.Quad], list[ox.Quad]]:
        """Return what an update adds and removes, and restore the graph."""
        before = self._dump_lines()
        self.store.update(statement, prefixes=PREFIXES)
        after = self._dump_lines()
        unchanged = set(before).intersection(after)
        added, removed = self._parse_quads(after, unchanged), self._parse_quads(before, unchanged)
        for quad in added:
            self.store.remove(quad)
        self.store.extend(removed)
        return added, removed

    def _dump_lines(self) -> list[bytes]:
        dump = self.store.dump(format=self.ox.RdfFormat.N_TRIPLES, from_graph=self.ox.DefaultGraph())
        return (dump or b"").split(b"\n")

    def _parse_quads(self, lines: list[bytes], excluded: set[bytes]) -> list[ox.Quad]:
        text = b"\n".join(line for line in lines if line not in excluded)
        return list(self.ox.parse(input=text, format=self.ox.RdfFormat.N_TRIPLES))

    def _is_taken(self, name: str) -> bool:
        iri = iri_of(name)
        return any(True for _ in self.about(iri)) or any(True for _ in self.naming(iri))

    # --- terms ---

    def _triple(self, triple: ox.Triple | ox.Quad) -> RdfTriple:
        subject, object = self._term(triple.subject), self._term(triple.object)
        if isinstance(subject, Literal):
            raise RefusedValue(f"{subject.text!r} cannot be said something of")
        return subject, triple.predicate.value, object

    def _term(self, term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
        if isinstance(term, self.ox.NamedNode):
            return term.value
        if isinstance(term, self.ox.BlankNode):
            return f"_:{term.value}"
        if isinstance(term, self.ox.Literal):
            return Literal(term.value, term.datatype.value)
        raise RefusedValue(f"{term} is a triple in the place of a thing, which is not understood here")

    def _quad(self, triple: RdfTriple) -> ox.Quad:
        subject, predicate, object = triple
        node = self.ox.NamedNode
        return self.ox.Quad(node(subject), node(predicate), self._object_node(object))

    def _object_node(self, term: Term) -> ox.NamedNode | ox.Literal:
        if isinstance(term, str):
            return self.ox.NamedNode(term)
        return self.ox.Literal(term.text, datatype=self.ox.NamedNode(term.datatype))


def _existing_properties(edges: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the properties of the existing edges, by key."""
    return {key: properties[0] for key, properties in edges.items() if properties}


def main() -> None:
    """Serve statements in SPARQL."""
    serve(SparqlGraph())
