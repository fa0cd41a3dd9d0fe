"""A graph on a server with the SPARQL 1.1 protocol: RDF4J, Oxigraph and others."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from kgot_lab.errors import BadInput, QueryFailed, ServerLost, StoreUnavailable
from kgot_lab.graph.validation import validate_diff
from kgot_lab.io.processes import OPENED_BEFORE_FORK
from kgot_lab.sandbox.sparql.rdf import DOUBLE, EdgeIdentity, Literal, RdfTriple, literal_of, value_of
from kgot_lab.sandbox.sparql.statements import add_prefixes, has_word, rows_of_triples, solution_rows
from kgot_lab.sandbox.worker.values import RefusedValue
from kgot_lab.stores.embedded_store import EmbeddedStore
from kgot_lab.stores.protocol import GraphSize, StatementExecutor
from kgot_lab.stores.sparql import connection
from kgot_lab.stores.sparql.dialect import SPARQL, refuse_unless_sparql
from kgot_lab.stores.sparql.triples import format_term, graph_from_triples, to_triples
from kgot_lab.stores.statements import LostStatements
from kgot_lab.types import STATEMENT_SECONDS, Diff, Edge, Rows

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph

_Result = TypeVar("_Result")
_MAX_TRIES = 20  # restarts of a write because another writer was faster
_MAX_PAUSE = 0.2  # seconds: the longest random pause before a restart
# writes that a version names: a writer finds its own among them unless more have followed
_VERSION_LENGTH = 32


class _WriteConflict(Exception):
    """The graph on the server changed after a write was prepared for it."""


class _UnconfirmedWrite(StoreUnavailable):
    """A change was sent, and the server did not confirm it."""


class SparqlServer(EmbeddedStore):
    """A store whose graph is one named graph of a SPARQL server.

    No other graph of the server is read or changed. `namespace` names the graph. `wipe` empties it first. An
    existing graph that was not made by such a store is refused. `seconds` limits each statement.

    Reads go to the query endpoint. Writes run in a sandbox on a copy of the graph, and their changes are sent
    in one request, which does nothing if the graph has changed since. The write then starts again. A server
    that runs two updates at the same moment on the same old graph, as Oxigraph 0.5 sometimes does, performs
    both: everything that they added and removed, and if both changed one value, a list of both. Other reads
    use the copy, after one request has shown that it is current. `graph` always reads the server's. Raises
    BadInput, NotInstalled, and StoreUnavailable while the server is away. When it is back, the store
    continues.
    """

    dialect = SPARQL
    language = "sparql"

    def __init__(
        self,
        query_url: str,
        update_url: str | None = None,
        *,
        namespace: str = "kgot",
        seconds: float = STATEMENT_SECONDS,
        token: str | None = None,
        open: Callable[[], StatementExecutor] | None = None,
        wipe: bool = False,
        unsafe: bool = False,
    ):
        if not namespace.strip():
            raise BadInput("a namespace needs a name")
        super().__init__(open=open, seconds=seconds, unsafe=unsafe)
        self.namespace, self.seconds = namespace, seconds
        self._graph = connection.graph_iri(namespace)
        self._link = connection.SparqlLink.connect(query_url, update_url, token)
        self._location = str(self._link)
        self._lost_statements = LostStatements()
        self._version = tuple[str, ...]()  # of the server's graph, as loaded in the copy
        self._size, self._exact = 0, True  # how many triples that is; whether it is spelled as ours
        try:
            self._claim_graph(wipe)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<SparqlServer {self._location}, graph {self.namespace!r}: {self._contents()}>"

    # --- statements and diffs ---

    def write(self, statement: str) -> Diff:
        """Run a statement in the sandbox and apply its changes on the server.

        Raises QueryFailed, changing nothing, if the statement is refused or fails.
        """
        refuse_unless_sparql("write", statement)
        return self._retry_on_conflict(partial(super().write, statement))

    def apply(self, diff: Diff) -> None:
        """Apply a diff to the server's graph.

        Raises BadInput if it does not fit or RDF cannot represent it.
        """
        diff = validate_diff(diff)
        self._retry_on_conflict(partial(super().apply, diff))

    def read(self, statement: str) -> Rows:
        """Run a query and return its rows.

        Raises QueryFailed if the query is not allowed, or with the server's message if the server refuses it,
        and ServerLost if the connection breaks.
        """
        tokens = refuse_unless_sparql("read", statement)
        try:
            with self._lost_statements.guard(statement):
                limits = connection.QueryLimits(self.seconds, connection.MAX_RESULT_BYTES)
                answer = self._server.query(add_prefixes(tokens), graph=self._graph, limits=limits)
            if answer.triples is not None:
                return tuple(rows_of_triples(answer.triples))
            if answer.truth is not None:
                return (answer.truth,)
            in_order = has_word(tokens, "ORDER")
            return tuple(solution_rows(answer.variables, answer.solutions, in_order=in_order))
        except RefusedValue as refusal:
            raise QueryFailed(statement, str(refusal)) from None
        except ServerLost:
            raise
        except QueryFailed as error:
            raise QueryFailed(statement, error.reason) from None

    def graph(self) -> PropertyGraph:
        """Read the whole graph from the server."""
        self._load_copy()
        return super().graph()

    def close(self) -> None:
        """Close the sandbox and the connections.

        A later call raises StoreUnavailable.
        """
        super().close()
        if self._closed_reason != OPENED_BEFORE_FORK:
            self._link.close()

    def after_fork(self) -> None:
        """Mark the store as closed in a forked child, since the connections are the parent's."""
        super().after_fork()
        self._closed_reason = self._closed_reason or OPENED_BEFORE_FORK

    # --- namespaces of a server ---

    @classmethod
    def namespaces(
        cls, query_url: str, update_url: str | None = None, *, token: str | None = None
    ) -> Mapping[str, GraphSize]:
        """Count the nodes and edges of each namespace of a server, by name.

        Raises StoreUnavailable if the server does not answer.
        """
        with closing(connection.SparqlLink.connect(query_url, update_url, token)) as link:
            return connection.sparql_namespaces(link)

    @classmethod
    def delete_namespace(
        cls, query_url: str, namespace: str, update_url: str | None = None, *, token: str | None = None
    ) -> None:
        """Delete a namespace of a server.

        Raises BadInput if no store made it, and StoreUnavailable.
        """
        with closing(connection.SparqlLink.connect(query_url, update_url, token)) as link:
            connection.delete_sparql_namespace(link, namespace)

    # --- the server's graph and the copy ---

    @property
    def _server(self) -> connection.SparqlLink:
        self._require_open()
        return self._link

    def _claim_graph(self, wipe: bool) -> None:
        """Check that the graph belongs to this kind of store."""
        problem = f"{self._location} already holds a graph {self.namespace!r}"
        is_filled = f"ASK {{ GRAPH <{self._graph}> {{ ?s ?p ?o }} }}"
        if not self._server_version() and self._asked(is_filled).truth:
            problem = f"{problem}, which no store like this made"
            raise BadInput(f"{problem}; choose another namespace")
        if wipe:
            old_version = self._version_pattern("?old")
            self._run_update(f"DROP SILENT GRAPH <{self._graph}> ;\nDELETE WHERE {{ {old_version} }}")
        self._load_copy()
        self._require_confined()
        if not self._exact:
            self._rewrite_graph()

    def _require_confined(self) -> None:
        """Check that a query only reads the graph it is sent for.

        A server that ignores this would return the triples of other graphs.
        """
        mark = f"ASK {{ <{self._graph}> <{connection.VERSION_IRI}> ?version }}"
        if (
            not self._server.query(mark, graph=connection.VERSIONS_GRAPH).truth
            or self._server.query(mark, graph=self._graph).truth
        ):
            problem = f"{self._location} does not keep a query to the graph named in default-graph-uri"
            raise StoreUnavailable(f"{problem}: use another server")

    def _server_version(self) -> tuple[str, ...]:
        """Return the version of the server's graph: the names of its last writes, in sorted order.

        Empty if no store of this kind made the graph. There is more than one if a server ran two writes at
        the same moment on the same graph. Both were made.
        """
        solutions = self._asked(f"SELECT ?version WHERE {{ {self._version_pattern('?version')} }}").solutions
        found = (solution["version"] for solution in solutions)
        return tuple(sorted(term.text for term in found if isinstance(term, Literal)))

    def _version_pattern(self, version: str) -> str:
        return (
            f"GRAPH <{connection.VERSIONS_GRAPH}> {{ <{self._graph}> <{connection.VERSION_IRI}> {version} }}"
        )

    def _version_patterns(self, versions: Iterable[str]) -> str:
        return " ".join(self._version_pattern(_format_string(version)) for version in versions)

    def _refresh(self) -> None:
        """Update the copy if it is not current."""
        with self._lock:
            if not self._version or self._server_version() != self._version:
                self._load_copy()

    def _load_copy(self) -> None:
        """Load the server's graph into the copy."""
        if not self._server_version():
            new = self._version_pattern(_format_string(uuid4().hex))
            any_version = self._version_pattern("?any")
            self._run_update(f"INSERT {{ {new} }} WHERE {{ FILTER NOT EXISTS {{ {any_version} }} }}")
        # read before the graph: the next write detects any change in between
        version = self._server_version()
        query = f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{self._graph}> {{ ?s ?p ?o }} }}"
        triples = self._asked(query).triples or ()
        graph = graph_from_triples(sorted(triples, key=repr))
        diff = super().graph().diff(graph)
        super()._store_diff(diff)
        self._update_sandbox(diff)
        self._version, self._size = version, len(triples)
        self._exact = set(map(_normalize_double, triples)) == set(to_triples(graph.nodes, graph.edges))

    def _retry_on_conflict(self, action: Callable[[], _Result]) -> _Result:
        """Call `action` and return its result, repeating it if another writer changed the graph meanwhile.

        Raises StoreUnavailable if that happens every time.
        """
        for attempt in range(_MAX_TRIES):
            if attempt:
                time.sleep(random.uniform(0, min(_MAX_PAUSE, 0.01 * 2**attempt)))
            with self._lock:
                self._refresh()
                try:
                    if not self._exact:
                        self._rewrite_graph()
                    return action()
                except _WriteConflict:
                    self._version = ()
        problem = f"others change the graph {self.namespace!r} of {self._location} all the time"
        raise StoreUnavailable(f"{problem}; try again later")

    def _store_diff(self, diff: Diff) -> None:
        """Apply a diff on the server, then to the copy."""
        self._current_state.check(diff)
        if not diff:
            return
        old, new = self._touched_triples(diff)
        removed = [triple for triple in old if triple not in new]
        self._send_changes(removed, [triple for triple in new if triple not in old])
        super()._store_diff(diff)

    def _touched_triples(self, diff: Diff) -> tuple[dict[RdfTriple, None], dict[RdfTriple, None]]:
        """Return the triples that a diff touches, before and after it, parallel edges included.

        Raises BadInput if RDF cannot represent a value.
        """
        edges: dict[EdgeIdentity, Edge] = {}
        for edge in (*diff.added_edges, *diff.removed_edges, *(before for before, _ in diff.changed_edges)):
            ends = (edge.source, edge.target)
            incident = min((self._current_state.incident.get(end, {}) for end in ends), key=len)
            parallel = (identity for identity in incident if identity[:3] == edge.identity[:3])
            edges.update((identity, self._current_state.edges[identity]) for identity in parallel)
        old = to_triples((*diff.removed_nodes, *(before for before, _ in diff.changed_nodes)), edges.values())
        removed = {edge.identity for edge in diff.removed_edges}
        added = {edge.identity: edge for edge in diff.written_edges}
        remaining = {identity: edge for identity, edge in edges.items() if identity not in removed} | added
        return dict.fromkeys(old), dict.fromkeys(to_triples(diff.written_nodes, remaining.values()))

    def _rewrite_graph(self) -> None:
        """Rewrite the server's whole graph in the form of this store."""
        everything = to_triples(self._current_state.nodes.values(), self._current_state.edges.values())
        whole_graph = f"GRAPH <{self._graph}> {{ ?s ?p ?o }}"
        clear = f"DELETE {{ {whole_graph} }} WHERE {{ {self._unchanged_pattern()} {whole_graph} }} ;\n"
        self._size = 0
        self._send_changes((), everything, first=clear)
        self._exact = True

    def _unchanged_pattern(self) -> str:
        """Return the pattern that matches once if the server's graph is still that of the local copy."""
        marks = self._version_patterns(self._version)
        alone = f"{{ SELECT (COUNT(*) AS ?marks) WHERE {{ {self._version_pattern('?mark')} }} }} FILTER(?marks = {len(self._version)})"
        size = f"{{ SELECT (COUNT(*) AS ?size) WHERE {{ GRAPH <{self._graph}> {{ ?a ?b ?c }} }} }} FILTER(?size = {self._size})"
        return f"{marks} {alone} {size}"

    def _send_changes(
        self, removed: Sequence[RdfTriple], added: Sequence[RdfTriple], *, first: str = ""
    ) -> None:
        """Change the server's graph by exactly these triples.

        Raises _WriteConflict, having changed nothing, if the graph is not as expected. Raises StoreUnavailable if
        the change did not take effect, or if the server went away so that this is unknown.
        """
        write_name = uuid4().hex
        columns = zip_longest(*map(str.split, self._version), fillvalue="")
        earlier = (name for names in columns for name in names if name)
        new = (" ".join((write_name, *islice(earlier, _VERSION_LENGTH - 1))),)
        parts = (
            f"{word} {{ {self._version_patterns(versions)} GRAPH <{self._graph}> {{\n{_format_triples(triples)}}} }}"
            for word, versions, triples in (("DELETE", self._version, removed), ("INSERT", new, added))
        )
        text = f"{first}{' '.join(parts)} WHERE {{ {self._unchanged_pattern()} }}"
        self._version = ()  # unknown until the server shows this write's name
        failure: _UnconfirmedWrite | None = None
        try:
            self._run_update(text)
        except _UnconfirmedWrite as error:  # its reply may have been lost, or be late: the mark says whether the change was made all the same
            failure = error
        try:
            version = self._server_version()
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"{self._location} went away while it was keeping a change ({error}): the change may be there or not; "
                "look at the graph before you make it again"
            ) from None
        if write_name not in " ".join(version).split():
            raise failure or _WriteConflict
        # otherwise another write followed at once: the change was made, and the copy is out of date
        if version == new:
            self._version, self._size = new, self._size + len(added) - len(removed)

    def _asked(self, query: str) -> connection.ServerAnswer:
        try:
            return self._server.query(query)
        except QueryFailed as error:
            raise StoreUnavailable(f"{self._location} does not answer: {error.reason}") from None

    def _run_update(self, update: str) -> None:
        try:
            self._server.update(update)
        except QueryFailed as error:
            raise _UnconfirmedWrite(f"{self._location} has not taken a change: {error.reason}") from None


def _format_string(text: str) -> str:
    return format_term(Literal(text))


def _format_triples(triples: Iterable[RdfTriple]) -> str:
    lines = (" ".join(format_term(term, abbreviate=False) for term in triple) for triple in triples)
    return "".join(f"{line} .\n" for line in lines)


def _normalize_double(triple: RdfTriple) -> RdfTriple:
    """Return a triple with a double in this package's notation, since servers may write it differently."""
    subject, predicate, object = triple
    value = value_of(object) if isinstance(object, Literal) and object.datatype == DOUBLE else None
    return (subject, predicate, literal_of(value)) if isinstance(value, float) else triple
