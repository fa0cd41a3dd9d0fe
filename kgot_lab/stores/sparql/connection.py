"""Use the SPARQL 1.1 protocol over HTTP: queries, updates, errors, and namespaces (named graphs)."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded
from kgot_lab.errors import BadInput, QueryFailed, ServerLost, StoreUnavailable, needs_extra
from kgot_lab.io.http_client import describe_proxy, proxy_options
from kgot_lab.sandbox.sparql import rdf
from kgot_lab.sandbox.sparql.statements import format_engine_error
from kgot_lab.stores.protocol import GraphSize
from kgot_lab.stores.sparql.triples import convert_triple, import_oxigraph

if TYPE_CHECKING:
    import httpx

MAX_RESULT_BYTES = 1_000_000  # bytes of an answer to a statement that a model wrote
_INTERNAL_TIMEOUT = 600.0  # seconds for internal requests: reading and writing whole graphs
_ROWS_TYPE, _TRIPLES_TYPE = "application/sparql-results+json", "application/n-triples"


@dataclass(frozen=True)
class ServerAnswer:
    """The result of a query: a boolean, solutions of variables, or triples."""

    truth: bool | None = None
    variables: tuple[str, ...] = ()
    solutions: tuple[Mapping[str, rdf.Term], ...] = ()
    triples: tuple[rdf.RdfTriple, ...] | None = None


@dataclass(frozen=True)
class QueryLimits(CheckedRecord):
    """Limits of a request: time in seconds and size of the answer in bytes."""

    seconds: float = bounded(_INTERNAL_TIMEOUT, POSITIVE)
    size: float = bounded(math.inf, 1, math.inf)


@dataclass(frozen=True, repr=False)
class SparqlLink:
    """A server's query and update endpoints.

    The token is only in the header of its requests and is not shown.
    """

    query_url: str
    update_url: str
    client: httpx.Client
    token: str = ""

    @classmethod
    def connect(cls, query_url: str, update_url: str | None, token: str | None) -> SparqlLink:
        """Create a link to a server.

        Without `update_url` the update endpoint is guessed: /update beside /query or /sparql, and otherwise
        /statements below it, as in RDF4J. Raises BadInput if an endpoint is no URL, and NotInstalled if httpx
        is missing.
        """
        with needs_extra("stores", "httpx"):
            import httpx  # a dependency of openai
        update_url = update_url or _update_url(query_url)
        for url in (query_url, update_url):
            if not url.startswith(("http://", "https://")):
                raise BadInput(f"a SPARQL endpoint is a URL such as http://localhost:7878/query, not {url!r}")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        client = httpx.Client(headers=headers, **proxy_options(query_url))
        return cls(query_url, update_url, client, token or "")

    def query(self, text: str, *, graph: str = "", limits: QueryLimits | None = None) -> ServerAnswer:
        """Run a query, in only one named graph if `graph` is given.

        Raises QueryFailed if the server refuses the query or it exceeds the limits, ServerLost if the
        connection breaks, and StoreUnavailable if the server cannot be reached or its answer cannot be read.
        """
        limits = limits or QueryLimits()
        parameters = {"default-graph-uri": graph, "timeout": str(math.ceil(limits.seconds))} if graph else {}
        content_type, body = self._request(self.query_url, "query", text, parameters, limits)
        try:
            if content_type.startswith(_TRIPLES_TYPE):
                return _parse_triples(body)
            return _parse_rows(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError, SyntaxError, BadInput) as error:
            problem = f"{self} does not answer as a SPARQL endpoint does ({content_type})"
            raise StoreUnavailable(f"{problem}: {error}") from None

    def update(self, text: str) -> None:
        """Run an update.

        Raises QueryFailed, ServerLost or StoreUnavailable, after which it is unknown whether it took effect.
        """
        self._request(self.update_url, "update", text, {}, QueryLimits())

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def __repr__(self) -> str:
        return f"<Link to {self}>"

    def __str__(self) -> str:
        return self._without_secrets(self.query_url)

    def _request(
        self, url: str, operation: str, text: str, parameters: Mapping[str, str], limits: QueryLimits
    ) -> tuple[str, bytes]:
        """Send a request and return the type and body of the reply."""
        import httpx

        accepted = f"{_ROWS_TYPE}, {_TRIPLES_TYPE};q=0.9"
        headers = {"Content-Type": f"application/sparql-{operation}; charset=utf-8", "Accept": accepted}
        target = httpx.URL(url).copy_merge_params(parameters)
        try:
            request: dict[str, Any] = {"content": text.encode(), "headers": headers}
            with self.client.stream("POST", target, timeout=limits.seconds, **request) as reply:
                body = b"".join(_limit_chunks(limits, reply.iter_bytes()))
        except OverflowError:
            raise QueryFailed(text, f"the statement returned more than {limits.size:,} bytes") from None
        except (httpx.ReadTimeout, httpx.WriteTimeout, TimeoutError):
            raise QueryFailed(text, f"the statement took longer than {limits.seconds:g} seconds") from None
        # it was connected, so the statement was sent
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            raise ServerLost(text, self._without_secrets(str(error))) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            where = f"{self._without_secrets(url)} cannot be reached{describe_proxy(url)}"
            reason = self._without_secrets(str(error)) or type(error).__name__
            raise StoreUnavailable(f"{where} ({reason}): start the server or check its URL") from None
        if reply.is_success:
            return reply.headers.get("content-type", ""), body
        message = self._without_secrets(body.decode(errors="replace").strip()) or reply.reason_phrase
        if reply.status_code in (400, 500):
            raise QueryFailed(text, format_engine_error(message, text))
        raise StoreUnavailable(
            f"{self._without_secrets(url)} answers {reply.status_code}: {message[:500]}. {_ADVICE.get(reply.status_code, '')}".strip()
        )

    def _without_secrets(self, text: str) -> str:
        """Remove the token, and the user and password of a URL, from a text."""
        text = text.replace(self.token, "…") if self.token else text
        scheme, _, rest = text.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if rest and " " not in scheme else text


_ADVICE = {401: "Pass the right token.", 403: "Pass a token that may do this."}
_ADVICE |= dict.fromkeys((404, 405), "Check the URL.")


def _update_url(url: str) -> str:
    for ending in ("/query", "/sparql"):
        if url.endswith(ending):
            return url.removesuffix(ending) + "/update"
    return url.rstrip("/") + "/statements"


def _limit_chunks(limits: QueryLimits, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a body.

    Raises OverflowError beyond the limit of bytes and TimeoutError beyond that of time.
    """
    size, deadline = 0, time.monotonic() + limits.seconds
    for chunk in chunks:
        size += len(chunk)
        if size > limits.size:
            raise OverflowError
        if time.monotonic() > deadline:
            raise TimeoutError
        yield chunk


def _parse_triples(body: bytes) -> ServerAnswer:
    ox = import_oxigraph()
    quads = ox.parse(input=body, format=ox.RdfFormat.N_TRIPLES)
    return ServerAnswer(triples=tuple(map(convert_triple, quads)))


def _parse_rows(reply: dict[str, Any]) -> ServerAnswer:
    if "boolean" in reply:
        return ServerAnswer(truth=bool(reply["boolean"]))
    bindings = reply["results"]["bindings"]
    solutions = ({name: _parse_term(term) for name, term in binding.items()} for binding in bindings)
    return ServerAnswer(variables=tuple(reply["head"]["vars"]), solutions=tuple(solutions))


def _parse_term(term: Mapping[str, str]) -> rdf.Term:
    if term["type"] == "uri":
        return term["value"]
    if term["type"] == "bnode":
        return f"_:{term['value']}"
    if term["type"] not in ("literal", "typed-literal"):
        raise ValueError(f"a term of type {term['type']}")
    return rdf.Literal(term["value"], term["datatype"]) if "datatype" in term else rdf.Literal(term["value"])


# The namespaces of a SPARQL server, each a named graph with a mark: their names, sizes and deletion.

# the graph that lists the graphs of this package, and its triples for each
VERSIONS_GRAPH, VERSION_IRI = (f"{rdf.META}versions", f"{rdf.META}version")
_OWN_VERSIONS = f"GRAPH <{VERSIONS_GRAPH}> {{ ?graph <{VERSION_IRI}> ?version }}"
_OWN_GRAPHS = f"{{ SELECT DISTINCT ?graph {{ {_OWN_VERSIONS} }} }}"
_NO_EDGE = ", ".join(f"<{each}>" for each in (rdf.TYPE, *rdf.DESCRIBING))
_NODE = f"?s a ?k FILTER(?k != <{rdf.STATEMENT}>)"
_NODES = (
    f"SELECT ?graph (COUNT(DISTINCT ?s) AS ?n) {{ {_OWN_GRAPHS} GRAPH ?graph {{ {_NODE} }} }} GROUP BY ?graph"
)
_EDGE = f"?s ?p ?o FILTER(isIRI(?o) && ?p NOT IN ({_NO_EDGE}))"
_PLAIN = f"SELECT ?graph (COUNT(*) AS ?n) {{ {_OWN_GRAPHS} GRAPH ?graph {{ {_EDGE} }} }} GROUP BY ?graph"
_DESCRIBED = f"SELECT ?graph (COUNT(*) AS ?n) {{ {_OWN_GRAPHS} GRAPH ?graph {{ ?r a <{rdf.STATEMENT}> }} }} GROUP BY ?graph"
_ENDS = " . ".join(f"?r <{predicate}> ?{name}" for predicate, name in zip(rdf.DESCRIBING, "spo", strict=True))
_SHARED = f"SELECT ?graph (COUNT(*) AS ?n) {{ SELECT DISTINCT ?graph ?s ?p ?o {{ {_OWN_GRAPHS} GRAPH ?graph {{ {_ENDS} }} }} }} GROUP BY ?graph"


def graph_iri(namespace: str) -> str:
    """Return the IRI of a namespace's graph."""
    name = rdf.iri_of(namespace)
    return f"{rdf.META}graph:{name.removeprefix(rdf.NAMESPACE)}" if name.startswith(rdf.NAMESPACE) else name


def sparql_namespaces(link: SparqlLink) -> Mapping[str, GraphSize]:
    """Count the nodes and edges of each namespace of a server, by name.

    Raises StoreUnavailable if the server does not answer.
    """
    try:
        query = f"SELECT ?graph {{ {_OWN_GRAPHS} }}"
        graphs = [str(s["graph"]) for s in link.query(query).solutions]
        queries = (_NODES, _PLAIN, _DESCRIBED, _SHARED)
        nodes, plain, described, shared = (_graph_counts(link, query) for query in queries)
    except QueryFailed as error:
        raise StoreUnavailable(f"{link} does not answer: {error.reason}") from None
    sizes = {}
    for graph in sorted(graphs):
        edges = plain.get(graph, 0) + described.get(graph, 0) - shared.get(graph, 0)
        sizes[_namespace_name(graph)] = GraphSize(nodes.get(graph, 0), edges)
    return sizes


def delete_sparql_namespace(link: SparqlLink, namespace: str) -> None:
    """Delete a namespace's graph and its mark.

    Raises BadInput if no store made it, and StoreUnavailable.
    """
    graph = graph_iri(namespace)
    mark = f"GRAPH <{VERSIONS_GRAPH}> {{ <{graph}> <{VERSION_IRI}> ?version }}"
    try:
        is_filled = f"ASK {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}"
        if not link.query(f"ASK {{ {mark} }}").truth and link.query(is_filled).truth:
            raise BadInput(f"{link} holds a graph {namespace!r} that no store made; nothing was deleted")
        link.update(f"DROP SILENT GRAPH <{graph}> ;\nDELETE WHERE {{ {mark} }}")
    except QueryFailed as error:
        raise StoreUnavailable(f"{link} did not take a change: {error.reason}") from None


def _graph_counts(link: SparqlLink, query: str) -> dict[str, int]:
    found = ((solution.get("graph"), solution.get("n")) for solution in link.query(query).solutions)
    counted = ((graph, count) for graph, count in found if graph is not None)
    return {str(graph): int(count.text) for graph, count in counted if isinstance(count, rdf.Literal)}


def _namespace_name(graph: str) -> str:
    local = graph.removeprefix(f"{rdf.META}graph:")
    return rdf.name_of(f"{rdf.NAMESPACE}{local}") if local != graph else graph
