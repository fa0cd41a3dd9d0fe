"""Open a store by kind, address or file, list namespaces, and query one graph in several languages."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

from kgot_lab.errors import BadInput, LabError, QueryFailed, UnknownName, describe_value, require
from kgot_lab.graph.changes import inverse
from kgot_lab.stores.lookup import edges_between, holds_value
from kgot_lab.stores.protocol import Computer, Dialect, GraphSize, Scalar, Schema, Store
from kgot_lab.types import Diff, Edge, Node, Rows

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph

Where = str | Path


@dataclass(frozen=True)
class _Home:
    """The module and class of a kind of store, and its options for `at`: an address, and a file or folder."""

    module: str
    name: str
    address: str = ""
    file: str = ""

    def load(self) -> Callable[..., Store]:
        made: Callable[..., Store] = getattr(import_module(f"kgot_lab.stores.{self.module}"), self.name)
        return made


_HOMES = {
    "in_memory": _Home("embedded_store", "InMemory", file="path"),
    "cypher_embedded": _Home("cypher.dialect", "CypherEmbedded", file="path"),
    "cypher_server": _Home("cypher.server", "CypherServer", address="uri"),
    "sparql_embedded": _Home("sparql.dialect", "SparqlEmbedded", file="path"),
    "sparql_server": _Home("sparql.server", "SparqlServer", address="query_url"),
    "sqlite": _Home("sqlite.store", "Sqlite", file="path"),
    "postgres": _Home("postgres.store", "Postgres", address="url", file="path"),
}
_LANGUAGES = {"Python (NetworkX)": "in_memory", "Cypher": "cypher_embedded", "SPARQL": "sparql_embedded"}
_SCHEMES = {
    **dict.fromkeys(("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"), "cypher_server"),
    **dict.fromkeys(("http", "https"), "sparql_server"),
    **dict.fromkeys(("postgresql", "postgres"), "postgres"),
}
_SUFFIXES = {
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), "sqlite"),
    **dict.fromkeys((".log", ".jsonl"), "in_memory"),
}
# other names of a store
_ADDRESSES = ("bolt://HOST", "http://HOST/query", "postgresql://HOST/NAME", "FILE.sqlite", "FILE.log")
_TEXTS = ("uri", "query_url", "update_url", "url", "user", "password", "database", "namespace", "token")
_OPTIONS: Mapping[str, tuple[type, ...]] = {  # the values of options that are the same for all stores
    **dict.fromkeys(_TEXTS, (str,)),
    **dict.fromkeys(("wipe", "adopt", "unsafe"), (bool,)),
    "path": (str, Path),
    "seconds": (int, float),
}
_WORDS = {str: "a text", bool: "True or False", Path: "a path", int: "a number", float: "a number"}


def open_store(where: Where = "in_memory", *, at: Where | None = None, **options: Any) -> Store:
    """Open a store by the name of its kind, by its address or by its file.

    An address begins with bolt://, neo4j:// or postgresql://, or is the http:// address of a SPARQL endpoint.
    A file with suffix .sqlite or .db is SQLite, one with .log or .jsonl the log of a store in this process.
    `at` is the location of a store named by its kind: an address, or a file for the graph. Raises UnknownName
    if there is no such kind, and BadInput if the location does not fit or the store has no such option (the
    message lists its options). Raises StoreUnavailable or NotInstalled if opening fails.
    """
    kind, place = resolved(where, at)
    return STORES[kind](**({} if place is None else {"at": place}), **options)


def resolved(where: Where, at: Where | None = None) -> tuple[str, Where | None]:
    """Resolve a name, an address or a file to the kind of a store and its location.

    Raises UnknownName if the kind is unknown, and BadInput if the location is given twice or incomplete.
    """
    require(where, (str, Path), "a store is named by its kind, its address or its file")
    if at is not None:
        require(at, (str, Path), "where a store lives is an address or a file")
    name = str(where)
    for place in (name, str(at or "")):
        if "://" in place and "…" in place:
            raise BadInput(
                f"the address {place} has lost its password or key, which no trace and no message keeps: give the whole address"
            )
    if name in STORES:
        return name, at
    scheme, is_address, _ = name.partition("://")
    kind = _SCHEMES.get(scheme.lower()) if is_address else _SUFFIXES.get(Path(name).suffix.lower())
    if kind is None:
        raise UnknownName("store", name, [*STORES, *_ADDRESSES])
    if at is not None:
        raise BadInput(f"{name} says itself where the store is: leave at={str(at)!r} out")
    return kind, where


def open_fused(at: Where | None = None, **how: Any) -> Store:
    """Open a graph that is written in Python, with mirrors to query in Cypher and in SPARQL.

    The options `how` are passed to all three stores. Raises BadInput for `at` and for an unknown option.
    """
    if at is not None:
        raise BadInput("the store 'fused' lives in this process and nowhere else: leave `at` out")
    if unknown := sorted(set(how) - {"execute", "open", "path", "seconds", "unsafe"}):
        raise BadInput(
            f"the store 'fused' has no option {unknown[0]!r}; it knows execute, open, seconds, unsafe"
        )
    return open_for(*_LANGUAGES, **how)


def open_for(language: str, *others: str, **how: Any) -> Store:
    """Open an empty store in this process for a language, with mirrors to query in others.

    The language is the one that a run's first event names. Raises UnknownName if there is no such language,
    and BadInput for a path together with mirrors.
    """
    for name in (language, *others):
        if name not in _LANGUAGES:
            raise UnknownName("language", name, _LANGUAGES)
    if others and how.get("path"):
        raise BadInput(
            "a graph in several languages lives in this process and nowhere else: leave the path out"
        )
    main, *mirrors = (_open(_LANGUAGES[name], **how) for name in (language, *others))
    if not mirrors:
        return main

    return Fused(main, *mirrors)


def _open(kind: str, at: Where | None = None, **options: Any) -> Store:
    home = _HOMES[kind]
    if at is not None:
        placed = _placed(kind, home, at)
        if both := [name for name in (home.address, home.file) if name in options]:
            raise BadInput(f"the store {kind!r} lives at one place: give `at` or {both[0]!r}, not both")
        options = placed | options
    make = home.load()
    parameters = signature(make).parameters
    if unknown := sorted(set(options) - set(parameters)):
        known = ", ".join(["at", *(name for name in parameters if name not in (home.address, home.file))])
        raise BadInput(f"the store {kind!r} has no option {unknown[0]!r}; it knows {known}")
    for name, value in options.items():
        _check_option(kind, name, value, optional=parameters[name].default is None)
    if (
        home.address
        and parameters[home.address].default is parameters[home.address].empty
        and home.address not in options
    ):
        raise BadInput(
            f"the store {kind!r} is a server's: say which with at=URL (--at URL on the command line)"
        )
    return make(**options)


def _placed(kind: str, home: _Home, at: Where) -> dict[str, Where]:
    """Return `at` under the name of the option that the store knows it by.

    Raises BadInput if the store has no such kind of location.
    """
    is_address = "://" in str(at)
    option = home.address if is_address else home.file
    if not option:
        wanted = (
            "an address, such as " + ("http://HOST/query" if "sparql" in kind else "bolt://HOST")
            if home.address
            else "a file"
        )
        raise BadInput(f"the store {kind!r} lives at {wanted}, not at {str(at)!r}")
    if not str(at).strip():
        raise BadInput(
            f"the place of the store {kind!r} is empty: give its address or file, or leave `at` out"
        )
    if is_address:
        _check_address(kind, str(at))
    return {option: str(at) if is_address else at}


def _check_address(kind: str, address: str) -> None:
    """Raise BadInput for an address without a host or with an invalid port, without showing a password."""
    try:
        parts = urlsplit(address)
        whole, _ = bool(parts.hostname or parts.scheme.startswith("postgres")), parts.port
    except ValueError as error:
        # the message may contain a part of a password
        why = "its host is none, or its port no number" if "@" in address else error
        raise BadInput(f"the address of the store {kind!r} cannot be used: {why}") from None
    if kind in SERVERS and (parts.username or parts.password):
        named = "KGOT_NEO4J_USER and KGOT_NEO4J_PASSWORD" if kind == "cypher_server" else "KGOT_SPARQL_TOKEN"
        raise BadInput(
            f"leave the user name and password out of the address of the store {kind!r}: they go into {named}"
        )
    if not whole:
        raise BadInput(
            f"the address of the store {kind!r} names no host: write {parts.scheme}://HOST or {parts.scheme}://HOST:PORT"
        )


def _check_option(kind: str, name: str, value: object, *, optional: bool) -> None:
    kinds = _OPTIONS.get(name)
    if kinds is None or (optional and value is None):
        return
    wanted = " or ".join(dict.fromkeys(_WORDS[kind] for kind in kinds))
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise BadInput(f"the option {name!r} of the store {kind!r} is {wanted}, not {describe_value(value)}")
    if isinstance(value, int | float) and bool not in kinds and not (math.isfinite(value) and value > 0):
        raise BadInput(f"the option {name!r} of the store {kind!r} is a number above 0, not {value}")


STORES: dict[str, Callable[..., Store]] = {
    **{kind: partial(_open, kind) for kind in _HOMES},
    "fused": open_fused,
}


# --- for a run ---

# stores that a model can write to
RUN_STORES = ("in_memory", "cypher_embedded", "sparql_embedded", "cypher_server", "sparql_server", "fused")
_LOGINS = {  # never on a command line
    "cypher_server": {
        "user": "KGOT_NEO4J_USER",
        "password": "KGOT_NEO4J_PASSWORD",
        "database": "KGOT_NEO4J_DATABASE",
    },
    "sparql_server": {"token": "KGOT_SPARQL_TOKEN"},
}


def empty_store(
    where: Where = "in_memory",
    at: Where | None = None,
    *,
    unsafe: bool = False,
    namespace: str | None = None,
    keep: bool = False,
    wipe: bool = False,
) -> Store:
    """Open a store for a run, which begins with an empty graph.

    On a server a run has its own namespace: a new one, or the one that is named. The store's `namespace` says
    which. `keep` begins with the graph that exists, and `wipe` empties it first. Nothing else on the server
    is changed. The login of Neo4j comes from the environment: KGOT_NEO4J_USER, KGOT_NEO4J_PASSWORD,
    KGOT_NEO4J_DATABASE. Raises UnknownName if the store is not one for runs, BadInput if it is not empty or
    the options do not fit, and what opening it raises.
    """
    kind, place = resolved(where, at)
    if kind not in RUN_STORES:
        raise UnknownName("store for a run", kind, RUN_STORES)
    if keep and wipe:
        raise BadInput("the graph of a store is kept or wiped: give one of both")
    if kind not in SERVERS:
        if namespace is not None:
            raise BadInput(
                f"only a server has namespaces ({', '.join(SERVERS)}): leave the namespace of the store {kind!r} out"
            )
        return _begun(open_store(kind, at=place, unsafe=unsafe), f"{place or kind}", keep=keep, wipe=wipe)
    if namespace is None and (keep or wipe):
        raise BadInput(
            f"say which of the server's graphs to {'keep' if keep else 'wipe'}: namespace=NAME (--namespace NAME)"
        )
    told = {"namespace": fresh_namespace() if namespace is None else namespace, "wipe": wipe, **_login(kind)}
    store = open_store(kind, at=place, **told, **({"unsafe": unsafe} if kind == "sparql_server" else {}))
    return _begun(store, f"the namespace {told['namespace']!r} of {place}", keep=keep, wipe=wipe)


def _begun(store: Store, place: str, *, keep: bool, wipe: bool) -> Store:
    """Return a store if a run may begin with it.

    Otherwise closes it and raises BadInput.
    """
    try:
        if not keep and store.schema().nodes:
            graph = store.graph()
            if not wipe:
                raise BadInput(
                    f"{place} already holds a graph of {len(graph)} nodes, and a run begins with an empty one: name another place or "
                    "namespace (--namespace NAME), begin with what is there and no other graph (keep=True, --keep), or empty it first "
                    "(wipe=True, --wipe)"
                )
            store.apply(graph.diff(graph.of()))
    except BaseException:
        store.close()
        raise
    return store


def reopen_store(
    where: Where, at: Where | None = None, *, unsafe: bool = False, namespace: str | None = None
) -> Store:
    """Open the store of a run to resume, with everything in it.

    `resume` checks whether the run made that content. On a server, without a namespace, a new one is used.
    Raises what `empty_store` raises.
    """
    there = namespace is not None or resolved(where, at)[0] not in SERVERS
    return empty_store(where, at, unsafe=unsafe, namespace=namespace, keep=there)


# --- namespaces of a server ---

SERVERS = ("cypher_server", "sparql_server")


def fresh_namespace() -> str:
    """Return an unused name for a namespace: date, time and a random part."""
    return f"run-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:6]}"


def namespaces(where: Where, at: Where | None = None) -> Mapping[str, GraphSize]:
    """Count the nodes and edges of each namespace of a server, by name, without opening any.

    Raises BadInput if the store is no server, and StoreUnavailable if it cannot be reached.
    """
    make, place = _server(where, at)
    found: Mapping[str, GraphSize] = make.namespaces(place, **_login(resolved(where, at)[0]))
    return found


def delete_namespace(where: Where, at: Where | None = None, *, namespace: str) -> None:
    """Delete one namespace of a server with everything in it.

    Raises BadInput if there is none or no store made it, and StoreUnavailable.
    """
    if namespace not in (there := namespaces(where, at)):
        raise UnknownName("namespace", namespace, there)
    make, place = _server(where, at)
    make.delete_namespace(place, namespace=namespace, **_login(resolved(where, at)[0]))


def _server(where: Where, at: Where | None) -> tuple[Any, str]:
    kind, place = resolved(where, at)
    if kind not in SERVERS:
        raise BadInput(f"only a server has namespaces ({', '.join(SERVERS)}), not the store {kind!r}")
    if place is None:
        raise BadInput(
            f"the store {kind!r} is a server's: say which with at=URL (--at URL on the command line)"
        )
    _placed(kind, _HOMES[kind], place)
    return _HOMES[kind].load(), str(place)


def login_of(where: Where) -> dict[str, str]:
    """Return the login for the server at an address from the environment, or {} if it is no server's."""
    return _login(resolved(where)[0])


def _login(kind: str) -> dict[str, str]:
    return {name: os.environ[key] for name, key in _LOGINS.get(kind, {}).items() if key in os.environ}


# One graph in several languages: written in one, mirrored to the others.


class Fused:
    """A store and its mirrors in other languages.

    The loop writes to the first, and reads from all of them (`readers`). A write that a mirror cannot
    represent is undone everywhere and refused.
    """

    def __init__(self, main: Store, *mirrors: Store):
        self._main, self.readers = main, mirrors
        self._alone = RLock()  # a write is applied to all stores before the next

    def __repr__(self) -> str:
        return f"<Fused: {', '.join(map(repr, (self._main, *self.readers)))}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def dialect(self) -> Dialect:
        """The language that writes."""
        return self._main.dialect

    def write(self, statement: str) -> Diff:
        """Run a statement in the first store and apply its diff to the mirrors.

        Raises QueryFailed, changing nothing, if the statement fails or a mirror refuses the diff.
        """
        with self._alone:
            diff = self._main.write(statement)
            try:
                self._mirror(diff)
            except LabError as error:
                self._main.apply(inverse(diff))
                if isinstance(error, BadInput):
                    raise QueryFailed(statement, str(error)) from None
                raise
            return diff

    def read(self, statement: str) -> Rows:
        """Run a read statement in the first store and return its rows.

        Raises QueryFailed if the statement is refused or fails.
        """
        return self._main.read(statement)

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Run plain Python in the first store that can and return what it prints.

        Raises QueryFailed if the code fails or no store can run it.
        """
        for store in (self._main, *self.readers):
            if isinstance(store, Computer):
                return store.compute(code, seconds=seconds)
        raise QueryFailed(code, "none of these stores runs plain Python")

    def graph(self) -> PropertyGraph:
        """Return the whole graph in its current state."""
        return self._main.graph()

    def apply(self, diff: Diff) -> None:
        """Apply a diff to every store.

        Raises BadInput, changing nothing, if it does not fit.
        """
        with self._alone:
            self._main.apply(diff)
            try:
                self._mirror(diff)
            except LabError:
                self._main.apply(inverse(diff))
                raise

    def close(self) -> None:
        """Close every store."""
        for store in (self._main, *self.readers):
            store.close()

    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type."""
        return self._main.schema()

    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges."""
        return self._main.neighbours(id)

    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query, best first."""
        return self._main.search(words, limit)

    def holds(self, value: Scalar) -> bool:
        """Return whether the graph contains a text or a number exactly.

        For what counts as equal see `lookup.holds_value`.
        """
        return holds_value(self._main, value)

    def edges_between(self, ids: Collection[str]) -> tuple[Edge, ...]:
        """Return the edges whose two ends are both among the given nodes."""
        return edges_between(self._main, ids)

    def _mirror(self, diff: Diff) -> None:
        for number, mirror in enumerate(self.readers):
            try:
                mirror.apply(diff)
            except LabError:
                for earlier in self.readers[:number]:
                    earlier.apply(inverse(diff))
                raise
