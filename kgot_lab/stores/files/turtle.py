"""Graphs in Turtle files: any file can be read, and what was written is read back without loss."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import quote

from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.sandbox.inside.rdf import PREFIXES, Literal, Term, Triple
from kgot_lab.stores.sparql.triples import graph_of, triples_of

if TYPE_CHECKING:
    import pyoxigraph


def read_turtle(path: Path | str) -> PropertyGraph:
    """The graph in a Turtle file; raises BadInput, naming file and line, or NotInstalled."""
    path, ox = Path(path), oxigraph()
    try:
        text = path.read_bytes()
        quads = ox.parse(input=text, format=ox.RdfFormat.TURTLE, base_iri=f"file:///{quote(path.name)}")
        return graph_of([triple_of(quad) for quad in quads])
    except SyntaxError as error:
        place = f"{path}, line {error.lineno}" if error.lineno else str(path)
        raise BadInput(f"{place}: not Turtle: {error.msg}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read as Turtle: {error}") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def write_turtle(graph: PropertyGraph, path: Path | str) -> None:
    """Write a graph as Turtle; raises BadInput for what RDF cannot hold, or NotInstalled.

    The whole text is made before the file is opened, so a failure leaves no half-written file.
    """
    ox = oxigraph()
    node = ox.NamedNode
    triples = (
        ox.Triple(node(s), node(p), node(o) if isinstance(o, str) else ox.Literal(o.text, datatype=node(o.datatype)))
        for s, p, o in triples_of(graph.nodes, graph.edges)
    )
    Path(path).write_bytes(ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=PREFIXES))


def oxigraph() -> ModuleType:
    """The package that parses and writes RDF; raises NotInstalled."""
    try:
        import pyoxigraph
    except ImportError:
        raise NotInstalled("sparql", "pyoxigraph") from None
    return pyoxigraph


def triple_of(quad: pyoxigraph.Quad | pyoxigraph.Triple) -> Triple:
    """One of its triples as ours; raises BadInput for a triple about a triple."""
    return str(_term(quad.subject)), quad.predicate.value, _term(quad.object)


def _term(term: object) -> Term:
    import pyoxigraph

    if isinstance(term, pyoxigraph.NamedNode):
        return term.value
    if isinstance(term, pyoxigraph.BlankNode):
        return f"_:{term.value}"
    if isinstance(term, pyoxigraph.Literal):
        return Literal(term.value, term.datatype.value)
    raise BadInput(f"{term} is a triple in the place of a thing; describe it with rdf:subject, rdf:predicate and rdf:object")
