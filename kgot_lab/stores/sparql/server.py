"""A graph on a server with the SPARQL 1.1 protocol: RDF4J, Oxigraph and others."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from kgot_lab.errors import BadInput, QueryFailed, ServerLost, StoreUnavailable
from kgot_lab.graph.validation import fit_diff
from kgot_lab.io.processes import ELSEWHERE
from kgot_lab.sandbox import open_sandbox
from kgot_lab.sandbox.sparql.rdf import DOUBLE, EdgeIdentity, Literal, RdfTriple, literal_of, value_of
from kgot_lab.sandbox.sparql.statements import add_prefixes, has_word, rows_of_triples, solution_rows
from kgot_lab.sandbox.worker.values import RefusedValue
from kgot_lab.stores.embedded_store import EmbeddedStore
from kgot_lab.stores.lookup import edges_among, path_between
from kgot_lab.stores.protocol import Execute, GraphSize, Scalar, Schema
from kgot_lab.stores.sparql.connection import (
    MAX_RESULT,
    VERSION_IRI,
    VERSIONS_GRAPH,
    QueryLimits,
    ServerAnswer,
    SparqlLink,
    delete_sparql_namespace,
    graph_iri,
    sparql_namespaces,
)
from kgot_lab.stores.sparql.dialect import SPARQL, refuse_unless_sparql
from kgot_lab.stores.sparql.triples import graph_of, spelled, triples_of
from kgot_lab.stores.statements import LostStatements, require_words
from kgot_lab.types import STATEMENT_SECONDS, Diff, Edge, Node, Rows

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph

_Result = TypeVar("_Result")
_TRIES = 20  # restarts of a write because another writer was faster
_PAUSE = 0.2  # seconds: the longest random pause before a restart
_REMEMBERED = 32  # writes that a version names: whoever was followed by fewer before looking still finds that the own one was done


class _Overtaken(Exception):
    """The graph on the server changed after a write was prepared for it."""


class _NotTaken(StoreUnavailable):
    """A change was sent, and the server did not confirm it."""


class SparqlServer(EmbeddedStore):
    """A store whose graph is one named graph of a SPARQL server.

    No other graph of the server is read or changed. `namespace` names the graph. `wipe` empties it first. An
    existing graph that was not made by such a store is refused, unless `adopt` allows the store to take it
    over and rewrite it as `kgot_lab.sandbox.sparql.rdf` defines. `seconds` limits each statement.

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

    # the options of `open_store`, each by its keyword
    def __init__(
        self,
        query_url: str,
        update_url: str | None = None,
        *,
        namespace: str = "kgot",
        seconds: float = STATEMENT_SECONDS,
        token: str | None = None,
        execute: Execute | None = None,
        open: Callable[[], Execute] | None = None,
        adopt: bool = False,
        wipe: bool = False,
        unsafe: bool = False,
    ):
        if not namespace.strip():
            raise BadInput("a namespace needs a name")
        super().__init__(execute, open=open, unsafe=unsafe)
        self.namespace, self.seconds = namespace, seconds
        self._graph = graph_iri(namespace)
        self._link = SparqlLink.to(query_url, update_url, token)
        self._place = str(self._link)
        self._lost = LostStatements()
        self._version = tuple[str, ...]()  # of the server's graph, as loaded in the copy
        self._size, self._exact = 0, True  # how many triples that is; whether it is spelled as ours
        try:
            self._claim(adopt=adopt, wipe=wipe)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        held = "closed" if self._over else f"{len(self._truth.nodes)} nodes, {len(self._truth.edges)} edges"
        return f"<SparqlServer {self._place}, graph {self.namespace!r}: {held}>"

    # --- statements and diffs ---

    def write(self, statement: str) -> Diff:
        """Run a statement in the sandbox and apply its changes on the server.

        Raises QueryFailed, changing nothing, if the statement is refused or fails.
        """
        refuse_unless_sparql("write", statement)
        return self._until_settled(partial(super().write, statement))

    def apply(self, diff: Diff) -> None:
        """Apply a diff to the server's graph.

        Raises BadInput if it does not fit or RDF cannot represent it.
        """
        diff = fit_diff(diff)
        self._until_settled(partial(super().apply, diff))

    def read(self, statement: str) -> Rows:
        """Run a query and return its rows.

        Raises QueryFailed if the query is not allowed, or with the server's message if the server refuses it,
        and ServerLost if the connection breaks.
        """
        found = refuse_unless_sparql("read", statement)
        try:
            with self._lost.minded(statement):
                answer = self._server.query(
                    add_prefixes(found), graph=self._graph, limits=QueryLimits(self.seconds, MAX_RESULT)
                )
            if answer.triples is not None:
                return tuple(rows_of_triples(answer.triples))
            if answer.truth is not None:
                return (answer.truth,)
            return tuple(solution_rows(answer.variables, answer.solutions, in_order=has_word(found, "ORDER")))
        except RefusedValue as refusal:
            raise QueryFailed(statement, str(refusal)) from None
        except ServerLost:
            raise
        except QueryFailed as error:
            raise QueryFailed(statement, error.reason) from None

    def graph(self) -> PropertyGraph:
        """Read the whole graph from the server."""
        self._load()
        return super().graph()

    def close(self) -> None:
        """Close the sandbox and the connections.

        A later call raises StoreUnavailable.
        """
        super().close()
        if self._over != ELSEWHERE:
            self._link.close()

    def forked(self) -> None:
        """Mark the store as closed in a forked child, since the connections are the parent's."""
        super().forked()
        self._over = self._over or ELSEWHERE

    # --- queries, on the copy ---

    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type, by name."""
        self._refresh()
        return super().schema()

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges.

        Empty if there is no such node.
        """
        self._refresh()
        return super().neighbours(id)

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query in their name or properties, best first."""
        require_words(words)
        self._refresh()
        return super().search(words, limit)

    def within(self, id: str, hops: int) -> dict[str, int]:
        """Return the nodes within some hops, ignoring direction, each with its distance.

        Empty if there is no such node.
        """
        self._refresh()
        return super().within(id, hops)

    def path(self, source: str, target: str, most: int = 6) -> tuple[Edge, ...]:
        """Return a shortest undirected path of at most `most` edges, or () if there is none."""
        self._refresh()
        return path_between(source, target, most, super().neighbours)

    def holds(self, value: Scalar) -> bool:
        """Return whether the graph contains a text or a number exactly.

        For what counts as equal see `lookup.holds_value`.
        """
        self._refresh()
        return super().holds(value)

    def edges_between(self, ids: Collection[str]) -> tuple[Edge, ...]:
        """Return the edges whose two ends are both among the given nodes."""
        self._refresh()
        return edges_among(ids, super().neighbours)

    # --- namespaces of a server ---

    @classmethod
    def namespaces(
        cls, query_url: str, update_url: str | None = None, *, token: str | None = None
    ) -> Mapping[str, GraphSize]:
        """Count the nodes and edges of each namespace of a server, by name.

        Raises StoreUnavailable if the server does not answer.
        """
        with closing(SparqlLink.to(query_url, update_url, token)) as link:
            return sparql_namespaces(link)

    @classmethod
    def delete_namespace(
        cls, query_url: str, namespace: str, update_url: str | None = None, *, token: str | None = None
    ) -> None:
        """Delete a namespace of a server.

        Raises BadInput if no store made it, and StoreUnavailable.
        """
        with closing(SparqlLink.to(query_url, update_url, token)) as link:
            delete_sparql_namespace(link, namespace)

    # --- the server's graph and the copy ---

    @property
    def _server(self) -> SparqlLink:
        self._require_open()
        return self._link

    def _sandbox(self) -> Execute:
        return open_sandbox(language=self.language, seconds=self.seconds, unsafe=self._unsafe)

    def _claim(self, *, adopt: bool, wipe: bool) -> None:
        """Check that the graph belongs to this kind of store, or take it over."""
        here = f"{self._place} already holds a graph {self.namespace!r}"
        if (
            not self._marked()
            and not adopt
            and self._asked(f"ASK {{ GRAPH <{self._graph}> {{ ?s ?p ?o }} }}").truth
        ):
            raise BadInput(
                f"{here}, which no store like this made; choose another namespace, or take it over with adopt=True"
            )
        if wipe:
            self._run_update(f"DROP SILENT GRAPH <{self._graph}> ;\nDELETE WHERE {{ {self._mark('?old')} }}")
        self._load()
        self._require_confined()
        if not self._exact:
            self._respell()

    def _require_confined(self) -> None:
        """Check that a query only reads the graph it is sent for.

        A server that ignores this would return the triples of other graphs.
        """
        mark = f"ASK {{ <{self._graph}> <{VERSION_IRI}> ?version }}"
        if (
            not self._server.query(mark, graph=VERSIONS_GRAPH).truth
            or self._server.query(mark, graph=self._graph).truth
        ):
            raise StoreUnavailable(
                f"{self._place} does not keep a query to the graph named in default-graph-uri: use another server"
            )

    def _marked(self) -> tuple[str, ...]:
        """Return the version of the server's graph: the names of its last writes, in sorted order.

        Empty if no store of this kind made the graph. There is more than one if a server ran two writes at
        the same moment on the same graph. Both were made.
        """
        solutions = self._asked(f"SELECT ?version WHERE {{ {self._mark('?version')} }}").solutions
        return tuple(
            sorted(term.text for solution in solutions if isinstance(term := solution["version"], Literal))
        )

    def _mark(self, version: str) -> str:
        return f"GRAPH <{VERSIONS_GRAPH}> {{ <{self._graph}> <{VERSION_IRI}> {version} }}"

    def _refresh(self) -> None:
        """Update the copy if it is not current."""
        with self._alone:
            if not self._version or self._marked() != self._version:
                self._load()

    def _load(self) -> None:
        """Load the server's graph into the copy."""
        if not self._marked():
            self._run_update(
                f"INSERT {{ {self._mark(_new())} }} WHERE {{ FILTER NOT EXISTS {{ {self._mark('?any')} }} }}"
            )
        version = self._marked()  # read before the graph: the next write detects any change in between
        triples = (
            self._asked(f"CONSTRUCT {{ ?s ?p ?o }} WHERE {{ GRAPH <{self._graph}> {{ ?s ?p ?o }} }}").triples
            or ()
        )
        graph = graph_of(sorted(triples, key=repr))
        diff = super().graph().diff(graph)
        super()._keep(diff)
        self._tell(diff)
        self._version, self._size = version, len(triples)
        self._exact = set(map(_plain, triples)) == set(triples_of(graph.nodes, graph.edges))

    def _until_settled(self, act: Callable[[], _Result]) -> _Result:
        """Call `act` and return its result, repeating it if another writer changed the graph meanwhile.

        Raises StoreUnavailable if that happens every time.
        """
        for tried in range(_TRIES):
            if tried:
                time.sleep(random.uniform(0, min(_PAUSE, 0.01 * 2**tried)))
            with self._alone:
                self._refresh()
                try:
                    if not self._exact:
                        self._respell()
                    return act()
                except _Overtaken:
                    self._version = ()
        raise StoreUnavailable(
            f"others change the graph {self.namespace!r} of {self._place} all the time; try again later"
        )

    def _keep(self, diff: Diff) -> None:
        """Apply a diff on the server, then to the copy."""
        self._truth.check(diff)
        if not diff:
            return
        old, new = self._triples(diff)
        self._send(
            [triple for triple in old if triple not in new], [triple for triple in new if triple not in old]
        )
        super()._keep(diff)

    def _triples(self, diff: Diff) -> tuple[dict[RdfTriple, None], dict[RdfTriple, None]]:
        """Return the triples that a diff touches, before and after it, parallel edges included.

        Raises BadInput if RDF cannot represent a value.
        """
        edges: dict[EdgeIdentity, Edge] = {}
        for edge in (*diff.added_edges, *diff.removed_edges, *(before for before, _ in diff.changed_edges)):
            near = min((self._truth.incident.get(end, {}) for end in (edge.source, edge.target)), key=len)
            edges.update(
                {
                    identity: self._truth.edges[identity]
                    for identity in near
                    if identity[:3] == edge.identity[:3]
                }
            )
        old = triples_of((*diff.removed_nodes, *(before for before, _ in diff.changed_nodes)), edges.values())
        gone = {edge.identity for edge in diff.removed_edges}
        came = {
            edge.identity: edge for edge in (*diff.added_edges, *(after for _, after in diff.changed_edges))
        }
        left = {identity: edge for identity, edge in edges.items() if identity not in gone} | came
        new = triples_of((*diff.added_nodes, *(after for _, after in diff.changed_nodes)), left.values())
        return dict.fromkeys(old), dict.fromkeys(new)

    def _respell(self) -> None:
        """Rewrite the server's whole graph in the form of this store."""
        everything = triples_of(self._truth.nodes.values(), self._truth.edges.values())
        clear = f"DELETE {{ GRAPH <{self._graph}> {{ ?s ?p ?o }} }} WHERE {{ {self._unchanged()} GRAPH <{self._graph}> {{ ?s ?p ?o }} }} ;\n"
        self._size = 0
        self._send((), everything, first=clear)
        self._exact = True

    def _unchanged(self) -> str:
        """Return the pattern that matches once if the server's graph is still that of the local copy."""
        marks = " ".join(self._mark(_quoted(version)) for version in self._version)
        alone = f"{{ SELECT (COUNT(*) AS ?marks) WHERE {{ {self._mark('?mark')} }} }} FILTER(?marks = {len(self._version)})"
        size = f"{{ SELECT (COUNT(*) AS ?size) WHERE {{ GRAPH <{self._graph}> {{ ?a ?b ?c }} }} }} FILTER(?size = {self._size})"
        return f"{marks} {alone} {size}"

    def _send(self, removed: Sequence[RdfTriple], added: Sequence[RdfTriple], *, first: str = "") -> None:
        """Change the server's graph by exactly these triples.

        Raises _Overtaken, having changed nothing, if the graph is not as expected. Raises StoreUnavailable if
        the change did not take effect, or if the server went away so that this is unknown.
        """
        own = uuid4().hex
        before = (
            name
            for names in zip_longest(*map(str.split, self._version), fillvalue="")
            for name in names
            if name
        )
        new = (" ".join((own, *islice(before, _REMEMBERED - 1))),)
        parts = (
            f"{word} {{ {' '.join(self._mark(_quoted(version)) for version in versions)} GRAPH <{self._graph}> {{\n{_lines(triples)}}} }}"
            for word, versions, triples in (("DELETE", self._version, removed), ("INSERT", new, added))
        )
        text = f"{first}{' '.join(parts)} WHERE {{ {self._unchanged()} }}"
        self._version = ()  # unknown until the server shows this write's name
        failed: _NotTaken | None = None
        try:
            self._run_update(text)
        except _NotTaken as error:  # its reply may have been lost, or be late: the mark says whether the change was made all the same
            failed = error
        try:
            marked = self._marked()
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"{self._place} went away while it was keeping a change ({error}): the change may be there or not; "
                "look at the graph before you make it again"
            ) from None
        if own not in " ".join(marked).split():
            raise failed or _Overtaken
        # else somebody followed at once: the change was made, and the copy is not current any more
        if marked == new:
            self._version, self._size = new, self._size + len(added) - len(removed)

    def _asked(self, query: str) -> ServerAnswer:
        try:
            return self._server.query(query)
        except QueryFailed as error:
            raise StoreUnavailable(f"{self._place} does not answer: {error.reason}") from None

    def _run_update(self, update: str) -> None:
        try:
            self._server.update(update)
        except QueryFailed as error:
            raise _NotTaken(f"{self._place} has not taken a change: {error.reason}") from None


def _new() -> str:
    return _quoted(uuid4().hex)


def _quoted(text: str) -> str:
    return spelled(Literal(text))


def _lines(triples: Iterable[RdfTriple]) -> str:
    return "".join(" ".join(spelled(term, short=False) for term in triple) + " .\n" for triple in triples)


def _plain(triple: RdfTriple) -> RdfTriple:
    """Return a triple with a double in this package's notation, since servers may write it differently."""
    subject, predicate, object = triple
    if (
        isinstance(object, Literal)
        and object.datatype == DOUBLE
        and isinstance(value := value_of(object), float)
    ):
        return subject, predicate, literal_of(value)
    return triple
