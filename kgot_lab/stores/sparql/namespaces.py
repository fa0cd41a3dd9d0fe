"""The namespaces of a SPARQL server, each a named graph with a mark: what they are called, how much each
holds, and how one goes.
"""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.sandbox.sparql.rdf import DESCRIBING, META, NAMESPACE, STATEMENT, TYPE, Literal, iri_of, name_of
from kgot_lab.stores.protocol import GraphSize
from kgot_lab.stores.sparql.connection import SparqlLink

# the graph that says which graphs are ours, and what it says of each
VERSIONS_GRAPH, VERSION_IRI = (f"{META}versions", f"{META}version")
_OURS = f"{{ SELECT DISTINCT ?graph {{ GRAPH <{VERSIONS_GRAPH}> {{ ?graph <{VERSION_IRI}> ?version }} }} }}"
_NO_EDGE = ", ".join(f"<{each}>" for each in (TYPE, *DESCRIBING))
_NODES = f"SELECT ?graph (COUNT(DISTINCT ?s) AS ?n) {{ {_OURS} GRAPH ?graph {{ ?s a ?k FILTER(?k != <{STATEMENT}>) }} }} GROUP BY ?graph"
_EDGE = f"?s ?p ?o FILTER(isIRI(?o) && ?p NOT IN ({_NO_EDGE}))"
_PLAIN = f"SELECT ?graph (COUNT(*) AS ?n) {{ {_OURS} GRAPH ?graph {{ {_EDGE} }} }} GROUP BY ?graph"
_DESCRIBED = (
    f"SELECT ?graph (COUNT(*) AS ?n) {{ {_OURS} GRAPH ?graph {{ ?r a <{STATEMENT}> }} }} GROUP BY ?graph"
)
_ENDS = " . ".join(f"?r <{predicate}> ?{name}" for predicate, name in zip(DESCRIBING, "spo", strict=True))
_TWICE = f"SELECT ?graph (COUNT(*) AS ?n) {{ SELECT DISTINCT ?graph ?s ?p ?o {{ {_OURS} GRAPH ?graph {{ {_ENDS} }} }} }} GROUP BY ?graph"


def graph_iri(namespace: str) -> str:
    """The IRI of a namespace's graph."""
    name = iri_of(namespace)
    return f"{META}graph:{name.removeprefix(NAMESPACE)}" if name.startswith(NAMESPACE) else name


def sparql_namespaces(link: SparqlLink) -> Mapping[str, GraphSize]:
    """How many nodes and edges each namespace of a server holds, by name; raises StoreUnavailable."""
    try:
        graphs = [str(each["graph"]) for each in link.query(f"SELECT ?graph {{ {_OURS} }}").solutions]
        nodes, plain, described, twice = (
            _counts(link, query) for query in (_NODES, _PLAIN, _DESCRIBED, _TWICE)
        )
    except QueryFailed as error:
        raise StoreUnavailable(f"{link} does not answer: {error.reason}") from None
    sizes = {
        each: GraphSize(nodes.get(each, 0), plain.get(each, 0) + described.get(each, 0) - twice.get(each, 0))
        for each in graphs
    }
    return {_namespace(graph): sizes[graph] for graph in sorted(graphs)}


def delete_sparql_namespace(link: SparqlLink, namespace: str) -> None:
    """Delete a namespace's graph and its mark; raises BadInput where no store made it, and StoreUnavailable."""
    graph = graph_iri(namespace)
    mark = f"GRAPH <{VERSIONS_GRAPH}> {{ <{graph}> <{VERSION_IRI}> ?version }}"
    try:
        if (
            not link.query(f"ASK {{ {mark} }}").truth
            and link.query(f"ASK {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}").truth
        ):
            raise BadInput(f"{link} holds a graph {namespace!r} that no store made; nothing was deleted")
        link.update(f"DROP SILENT GRAPH <{graph}> ;\nDELETE WHERE {{ {mark} }}")
    except QueryFailed as error:
        raise StoreUnavailable(f"{link} did not take a change: {error.reason}") from None


def _counts(link: SparqlLink, query: str) -> dict[str, int]:
    found = ((each.get("graph"), each.get("n")) for each in link.query(query).solutions)
    return {
        str(graph): int(count.text)
        for graph, count in found
        if graph is not None and isinstance(count, Literal)
    }


def _namespace(graph: str) -> str:
    local = graph.removeprefix(f"{META}graph:")
    return name_of(f"{NAMESPACE}{local}") if local != graph else graph
