"""Convert nodes and edges to triples, triples to text, and back.

`kgot_lab.sandbox.sparql.rdf` defines how a property graph is RDF.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING

from kgot_lab.errors import BadInput, needs_extra, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import validate_value
from kgot_lab.sandbox.sparql import rdf
from kgot_lab.sandbox.worker.values import RefusedValue
from kgot_lab.types import Edge, Node

if TYPE_CHECKING:
    import pyoxigraph

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_SPECIAL = re.compile(r'\\[uU]|[\\"\x00-\x1f\x7f\ufffe\uffff]')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def to_triples(nodes: Iterable[Node], edges: Iterable[Edge]) -> list[rdf.RdfTriple]:
    """Convert nodes and edges to triples.

    `edges` must include all parallels of each edge. Raises BadInput, naming the element, if RDF cannot
    represent it: half a surrogate pair, or a value that is not JSON.
    """
    groups: dict[tuple[str, str, str], dict[str, rdf.Values]] = {}
    triples: list[rdf.RdfTriple] = []
    for node in nodes:
        validate_value([node.id, *node.labels, node.properties], f"node {short_repr(node.id)}")
        triples += rdf.node_triples(node.id, node.labels, node.properties)
    for edge in edges:
        validate_value([*edge.identity, edge.properties], f"edge {short_repr(edge.identity)}")
        groups.setdefault((edge.source, edge.type, edge.target), {})[edge.key] = edge.properties
    return [*triples, *chain(*(rdf.edge_triples(*ends, keyed) for ends, keyed in groups.items()))]


def to_rdf(graph: PropertyGraph) -> pyoxigraph.Store:
    """Convert a graph to an RDF store in memory.

    Raises BadInput if RDF cannot represent it, and NotInstalled if pyoxigraph is missing.
    """
    ox = import_oxigraph()
    store: pyoxigraph.Store = ox.Store()
    store.bulk_extend(ox.Quad(*triple) for triple in oxigraph_triples(graph))
    return store


def oxigraph_triples(graph: PropertyGraph) -> Iterator[pyoxigraph.Triple]:
    """Yield the triples of a graph, with properties sorted by name. Raises what `to_rdf` raises."""
    ox = import_oxigraph()
    nodes = (replace(node, properties=dict(sorted(node.properties.items()))) for node in graph.nodes)
    edges = (replace(edge, properties=dict(sorted(edge.properties.items()))) for edge in graph.edges)
    for subject, predicate, object in to_triples(nodes, edges):
        literal = () if isinstance(object, str) else (object.text, ox.NamedNode(object.datatype))
        term = ox.Literal(literal[0], datatype=literal[1]) if literal else ox.NamedNode(object)
        yield ox.Triple(ox.NamedNode(subject), ox.NamedNode(predicate), term)


def graph_from_triples(triples: Iterable[rdf.RdfTriple]) -> PropertyGraph:
    """Build the graph that any triples describe.

    Raises BadInput if they describe none.
    """
    try:
        contents = rdf.read_contents(rdf.name_blank_nodes(triples))
    except RefusedValue as refusal:
        raise BadInput(str(refusal)) from None
    nodes = (Node(id, tuple(labels), properties) for id, (labels, properties) in contents.nodes.items())
    stored = contents.edges.items()
    edges = (Edge(source, type, target, values, key) for (source, type, target, key), values in stored)
    return PropertyGraph.of(nodes, edges)


def format_term(term: rdf.Term, *, abbreviate: bool = True) -> str:
    """Format a term for SPARQL and Turtle.

    Without `abbreviate` the term has no prefixes and no plain numbers, as N-Triples requires.
    """
    if isinstance(term, str):
        return (abbreviate and _prefixed_name(term)) or f"<{term}>"
    if abbreviate and term.datatype in (f"{rdf.XSD}integer", f"{rdf.XSD}boolean"):
        return term.text
    text = f'"{_SPECIAL.sub(_escape, term.text)}"'
    if term.datatype == rdf.STRING:
        return text
    return f"{text}^^{format_term(term.datatype, abbreviate=abbreviate)}"


def _prefixed_name(iri: str) -> str:
    """Return an IRI with its prefix, or "" if it has none.

    Local names that the mapping creates are always valid after a prefix.
    """
    for prefix, namespace in rdf.PREFIXES.items():
        local = iri.removeprefix(namespace)
        if iri.startswith(namespace) and (
            namespace in (rdf.NAMESPACE, rdf.EDGE_IRI) or _WORD.fullmatch(local)
        ):
            return f"{prefix}:{local}"
    return ""


def _escape(match: re.Match[str]) -> str:
    if len(match[0]) == 2:  # \u in a text: some servers resolve \uXXXX wherever they see it
        return f"\\\\\\u{ord(match[0][1]):04X}"
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"


def import_oxigraph() -> ModuleType:
    """Import the package that parses and writes RDF.

    Raises NotInstalled if it is missing.
    """
    with needs_extra("stores", "pyoxigraph"):
        import pyoxigraph
    return pyoxigraph


def convert_triple(quad: pyoxigraph.Quad | pyoxigraph.Triple) -> rdf.RdfTriple:
    """Convert a pyoxigraph quad or triple.

    Raises BadInput for a triple about a triple.
    """
    return str(_convert_term(quad.subject)), quad.predicate.value, _convert_term(quad.object)


def _convert_term(term: object) -> rdf.Term:
    import pyoxigraph

    if isinstance(term, pyoxigraph.NamedNode):
        return term.value
    if isinstance(term, pyoxigraph.BlankNode):
        return f"_:{term.value}"
    if isinstance(term, pyoxigraph.Literal):
        return rdf.Literal(term.value, term.datatype.value)
    problem = f"{term} is a triple in the place of a thing"
    raise BadInput(f"{problem}; describe it with rdf:subject, rdf:predicate and rdf:object")
