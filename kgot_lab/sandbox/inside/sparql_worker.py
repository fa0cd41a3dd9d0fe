"""SPARQL inside the sandbox: Oxigraph holds the graph in memory, and each statement runs in a fork of the
process that holds it.

What a write changed is the difference between the triples before and after it. A write that only adds is run
on an empty graph instead, which shows what it says without a look at all the triples there are. Runs inside
the sandbox: imports the standard library, pyoxigraph and its sisters only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kgot_lab.sandbox.sparql.rdf import (
    PREFIXES,
    Literal,
    RdfTriple,
    Term,
    contents_of,
    edge_triples,
    iri_of,
    node_triples,
    with_names,
)
from kgot_lab.sandbox.sparql.statements import (
    checked_statement,
    explained,
    has_word,
    only_adds,
    respelled,
    rows_of_triples,
    solution_rows,
)
from kgot_lab.sandbox.sparql.worker import Group, TripleChange, group_triples, of_node
from kgot_lab.sandbox.worker.fork_server import serve
from kgot_lab.sandbox.worker.values import Account, RefusedValue

if TYPE_CHECKING:
    import pyoxigraph as ox


class SparqlGraph:
    """The graph as statements in SPARQL meet it."""

    def __init__(self) -> None:
        import pyoxigraph

        self.ox = pyoxigraph
        self.store = pyoxigraph.Store()

    # --- what the parent says of the graph ---

    def clear(self) -> None:
        """Start anew."""
        self.store = self.ox.Store()

    def put(self, nodes: Iterable[Account], edges: Iterable[Account]) -> None:
        """Make the graph agree with some claims."""
        groups: dict[Group, dict[str, list[Any]]] = {}
        for source, type, target, key, *properties in edges:
            groups.setdefault((source, type, target), {})[key] = properties
        if len(self.store):
            self._replace(nodes, groups)
            return
        said = [triple for claim in nodes if len(claim) == 3 for triple in node_triples(*claim)]
        for group, changed in groups.items():
            said += edge_triples(*group, _there(changed))
        self.store.extend(map(self._quad, said))

    def _replace(self, nodes: Iterable[Account], groups: dict[Group, dict[str, list[Any]]]) -> None:
        old, new = dict[RdfTriple, None](), dict[RdfTriple, None]()
        for claim in nodes:
            old.update(dict.fromkeys(filter(of_node, self.about(iri_of(claim[0])))))
            new.update(dict.fromkeys(node_triples(*claim) if len(claim) == 3 else ()))
        for group, changed in groups.items():
            told = group_triples(self, group)
            edges = {identity[3]: [properties] for identity, properties in contents_of(told).edges.items()}
            old.update(dict.fromkeys(told))
            new.update(dict.fromkeys(edge_triples(*group, _there(edges | changed))))
        for triple in old.keys() - new.keys():
            self.store.remove(self._quad(triple))
        self.store.extend(self._quad(triple) for triple in new if triple not in old)

    # --- what is known of a thing ---

    def about(self, subject: str) -> Iterator[RdfTriple]:
        """The triples with a subject; a blank node has none, because every statement's get a name."""
        if subject.startswith("_:"):
            return iter(())
        return map(self._triple, self.store.quads_for_pattern(self.ox.NamedNode(subject), None, None))

    def naming(self, object: str) -> Iterator[RdfTriple]:
        """The triples with an object."""
        return map(self._triple, self.store.quads_for_pattern(None, None, self.ox.NamedNode(object)))

    def subjects(self, predicate: str, object: str) -> Iterator[str]:
        """What has a predicate with an object."""
        pattern = self.ox.NamedNode(predicate), self.ox.NamedNode(object)
        return (self._triple(quad)[0] for quad in self.store.quads_for_pattern(None, *pattern))

    def has(self, triple: RdfTriple) -> bool:
        """Whether a triple is there."""
        return self._quad(triple) in self.store

    # --- statements ---

    def answer(self, do: str, text: str) -> dict[str, Any]:
        """Run a write or a read in a fork of this process; returns nodes and edges, or rows, or else an
        error.
        """
        try:
            found = checked_statement(do, text) if do in ("read", "write") else []
        except RefusedValue as refusal:
            return {"error": str(refusal)}
        statement = respelled(found)
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
            return {"error": explained(str(error), statement)}

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
            apart = self.ox.Store()
            apart.update(statement, prefixes=PREFIXES)
            added: list[ox.Quad] = [quad for quad in apart if quad not in self.store]
            removed: list[ox.Quad] = []
        else:
            added, removed = self._run(statement)
        # the engine lists the newest first
        told = with_names(map(self._triple, reversed(added)), self._taken)
        return dict(TripleChange(self, told, map(self._triple, removed)).claims())

    def _run(self, statement: str) -> tuple[list[ox.Quad], list[ox.Quad]]:
        """What an update adds and removes; the graph is as before then."""
        before = self._lines()
        self.store.update(statement, prefixes=PREFIXES)
        after = self._lines()
        kept = set(before).intersection(after)
        added, removed = self._quads(after, kept), self._quads(before, kept)
        for quad in added:
            self.store.remove(quad)
        self.store.extend(removed)
        return added, removed

    def _lines(self) -> list[bytes]:
        dump = self.store.dump(format=self.ox.RdfFormat.N_TRIPLES, from_graph=self.ox.DefaultGraph())
        return (dump or b"").split(b"\n")

    def _quads(self, lines: list[bytes], kept: set[bytes]) -> list[ox.Quad]:
        text = b"\n".join(line for line in lines if line not in kept)
        return list(self.ox.parse(input=text, format=self.ox.RdfFormat.N_TRIPLES))

    def _taken(self, name: str) -> bool:
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
        return self.ox.Quad(self.ox.NamedNode(subject), self.ox.NamedNode(predicate), self._node(object))

    def _node(self, term: Term) -> ox.NamedNode | ox.Literal:
        if isinstance(term, str):
            return self.ox.NamedNode(term)
        return self.ox.Literal(term.text, datatype=self.ox.NamedNode(term.datatype))


def _there(edges: dict[str, list[Any]]) -> dict[str, Any]:
    """The properties of the edges that are there, by key."""
    return {key: properties[0] for key, properties in edges.items() if properties}


def main() -> None:
    """Serve statements in SPARQL."""
    serve(SparqlGraph())
