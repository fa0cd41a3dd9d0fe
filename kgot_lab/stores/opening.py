"""Open a store by kind, address or file, list namespaces, and query one graph in several languages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from threading import RLock
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from kgot_lab.arguments import check_arguments, is_plain_text
from kgot_lab.errors import (
    BadInput,
    LabError,
    QueryFailed,
    UnknownName,
    require,
    require_known,
    require_seconds,
    short_repr,
)
from kgot_lab.graph.changes import inverse
from kgot_lab.io.entry_points import create, packaged
from kgot_lab.io.processes import Closing
from kgot_lab.stores.lookup import StoreWrapper
from kgot_lab.stores.protocol import GraphSize, PartialReader, PythonRunner, Store
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import STATEMENT_SECONDS, Diff, Edge, Rows

Location = str | Path
ENTRY_POINTS = "kgot_lab.stores"
_PARTS = "dialect write read graph apply close schema neighbours search".split()


@dataclass(frozen=True)
class _StoreKind:
    """The module and class of a kind of store, and its options for `at`: an address, and a file or folder."""

    module: str
    name: str
    address: str = ""
    file: str = ""

    def load(self) -> Callable[..., Store]:
        module = import_module(f"kgot_lab.stores.{self.module}")
        store_class: Callable[..., Store] = getattr(module, self.name)
        return store_class


_STORE_KINDS = {
    "in_memory": _StoreKind("embedded_store", "InMemory", file="path"),
    "cypher_embedded": _StoreKind("cypher.dialect", "CypherEmbedded", file="path"),
    "cypher_server": _StoreKind("cypher.server", "CypherServer", address="uri"),
    "sparql_embedded": _StoreKind("sparql.dialect", "SparqlEmbedded", file="path"),
    "sparql_server": _StoreKind("sparql.server", "SparqlServer", address="query_url"),
    "sqlite": _StoreKind("sqlite.store", "Sqlite", file="path"),
    "postgres": _StoreKind("postgres.store", "Postgres", address="url", file="path"),
}
_LANGUAGES = {"Python (NetworkX)": "in_memory", "Cypher": "cypher_embedded", "SPARQL": "sparql_embedded"}
_SCHEMES = {
    **dict.fromkeys(("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"), "cypher_server"),
    **dict.fromkeys(("http", "https"), "sparql_server"),
    **dict.fromkeys(("postgresql", "postgres"), "postgres"),
}
_SUFFIXES = dict.fromkeys((".sqlite", ".sqlite3", ".db"), "sqlite")
_SUFFIXES[".log"] = "in_memory"
# other names of a store
_ADDRESSES = ("bolt://HOST", "http://HOST/query", "postgresql://HOST/NAME", "FILE.sqlite", "FILE.log")
_LONGEST_LOCATION = 4_000  # characters


def open_store(where: Location = "in_memory", *, at: Location | None = None, **options: Any) -> Store:
    """Open a store by the name of its kind, by its address or by its file.

    An address begins with bolt://, neo4j:// or postgresql://, or is the http:// address of a SPARQL endpoint.
    A file is SQLite: with suffix .sqlite or .db of the store for SQL, with .log of the one in this process.
    `at` is the location of a store named by its kind: an address, or a file for the graph. A store of another
    package, with an entry point NAME in the group kgot_lab.stores, is opened by NAME or NAME:LOCATION. It is
    called with the location, if there is one, and the options. Raises UnknownName
    if there is no such kind, and BadInput if the location does not fit or the store has no such option (the
    message lists its options). Raises StoreUnavailable or NotInstalled if opening fails.
    """
    kind, location = resolve_location(where, at)
    if kind in STORES:
        return STORES[kind](**({} if location is None else {"at": location}), **options)
    arguments = () if location is None else (location,)
    store: Store = create(packaged(ENTRY_POINTS, STORES)[kind], _PARTS, *arguments, **options)
    return store


def resolve_location(where: Location, at: Location | None = None) -> tuple[str, Location | None]:
    """Resolve a name, an address or a file to the kind of a store and its location.

    Raises UnknownName if the kind is unknown, and BadInput if the location is given twice or incomplete.
    """
    require(where, (str, Path), "a store is named by its kind, its address or its file")
    if at is not None:
        require(at, (str, Path), "where a store lives is an address or a file")
    name = str(where)
    for location in (name, str(at or "")):
        if not is_plain_text(location) or len(location) > _LONGEST_LOCATION:
            raise BadInput(f"no store can lie at {short_repr(location)}: give an address or a file")
        if "://" in location and "…" in location:
            lost = "has lost its password or key, which no trace and no message keeps"
            raise BadInput(f"the address {location} {lost}: give the whole address")
    if name in STORES:
        by_name = _SUFFIXES.get(Path(str(at)).suffix.lower())
        if by_name is not None and (by_name == "sqlite") != (name == "sqlite"):
            raise BadInput(
                f"{at} is by its name a file of {by_name!r}, not of {name!r}: open_store({str(at)!r}) opens it"
            )
        return name, at
    own, separator, rest = name.partition(":")
    if (separator or not Path(name).suffix) and own in packaged(ENTRY_POINTS, STORES):
        if at is not None and rest:
            raise BadInput(f"{name} says itself where the store is: leave at={str(at)!r} out")
        return own, rest or at
    scheme, is_address, _ = name.partition("://")
    kind = _SCHEMES.get(scheme.lower()) if is_address else _SUFFIXES.get(Path(name).suffix.lower())
    if kind is None:
        raise UnknownName("store", name, [*STORES, *packaged(ENTRY_POINTS, STORES), *_ADDRESSES])
    if at is not None:
        raise BadInput(f"{name} says itself where the store is: leave at={str(at)!r} out")
    return kind, where


def open_fused(at: Location | None = None, **options: Any) -> Store:
    """Open a graph that is written in Python, with mirrors to query in Cypher and in SPARQL.

    The options `options` are passed to all three stores. Raises BadInput for `at` and for an unknown option.
    """
    if at is not None:
        raise BadInput("the store 'fused' lives in this process and nowhere else: leave `at` out")
    if unknown := sorted(set(options) - {"open", "path", "seconds", "unsafe"}):
        problem = f"the store 'fused' has no option {unknown[0]!r}"
        raise BadInput(f"{problem}; it knows open, seconds, unsafe")
    return open_for(*_LANGUAGES, **options)


@check_arguments
def open_for(language: str, *others: str, **options: Any) -> Store:
    """Open an empty store in this process for a language, with mirrors to query in others.

    The language is the one that a run's first event names. Raises UnknownName if there is no such language,
    and BadInput for a path together with mirrors.
    """
    for name in (language, *others):
        if name not in _LANGUAGES:
            advice = "A run in another language needs its own empty store, as in verify(run, store)"
            raise UnknownName("query language", name, _LANGUAGES, advice=advice)
    if others and options.get("path"):
        raise BadInput("a graph in several languages lives in this process alone: leave the path out")
    main, *mirrors = (_open_kind(_LANGUAGES[name], **options) for name in (language, *others))
    return Fused(main, *mirrors) if mirrors else main


def _open_kind(kind: str, at: Location | None = None, **options: Any) -> Store:
    store_kind = _STORE_KINDS[kind]
    if at is not None:
        location_option = _location_option(kind, store_kind, at)
        if both := [name for name in (store_kind.address, store_kind.file) if name in options]:
            raise BadInput(f"the store {kind!r} lives at one place: give `at` or {both[0]!r}, not both")
        options = location_option | options
    create = store_kind.load()
    parameters = signature(create).parameters
    if unknown := sorted(set(options) - set(parameters)):
        known = ", ".join(["at", *parameters])
        raise BadInput(f"the store {kind!r} has no option {unknown[0]!r}; it knows {known}")
    require_seconds(options.get("seconds", STATEMENT_SECONDS))
    address = parameters.get(store_kind.address)
    if address and address.default is address.empty and address.name not in options:
        problem = f"the store {kind!r} is a server's"
        raise BadInput(f"{problem}: say which with at=URL (--at URL on the command line)")
    return create(**options)


def _location_option(kind: str, store_kind: _StoreKind, at: Location) -> dict[str, Location]:
    """Return `at` under the name of the option that the store knows it by.

    Raises BadInput if the store has no such kind of location.
    """
    is_address = "://" in str(at)
    option = store_kind.address if is_address else store_kind.file
    if not option:
        example = "http://HOST/query" if "sparql" in kind else "bolt://HOST"
        expected = f"an address, such as {example}" if store_kind.address else "a file"
        raise BadInput(f"the store {kind!r} lives at {expected}, not at {str(at)!r}")
    if not str(at).strip():
        problem = f"the place of the store {kind!r} is empty"
        raise BadInput(f"{problem}: give its address or file, or leave `at` out")
    if is_address:
        _check_address(kind, str(at))
    return {option: str(at) if is_address else at}


def _check_address(kind: str, address: str) -> None:
    """Raise BadInput for an address of another store, without a host or with an invalid port, without its password."""
    if (scheme := address.partition("://")[0].lower()) in _SCHEMES and _SCHEMES[scheme] != kind:
        expected = f"an address of {scheme}:// is that of the store {_SCHEMES[scheme]!r}"
        raise BadInput(f"{expected}, not of {kind!r}")
    try:
        parts = urlsplit(address)
        has_host, _ = bool(parts.hostname or parts.scheme.startswith("postgres")), parts.port
    except ValueError as error:
        # the message may contain a part of a password
        reason = "its host is none, or its port no number" if "@" in address else error
        raise BadInput(f"the address of the store {kind!r} cannot be used: {reason}") from None
    if kind in SERVERS and (parts.username or parts.password):
        login = "KGOT_NEO4J_USER and KGOT_NEO4J_PASSWORD"
        variables = login if kind == "cypher_server" else "KGOT_SPARQL_TOKEN"
        problem = f"leave the user name and password out of the address of the store {kind!r}"
        raise BadInput(f"{problem}: they go into {variables}")
    if not has_host:
        problem = f"the address of the store {kind!r} names no host"
        raise BadInput(f"{problem}: write {parts.scheme}://HOST or {parts.scheme}://HOST:PORT")


STORES: dict[str, Callable[..., Store]] = {kind: partial(_open_kind, kind) for kind in _STORE_KINDS}
STORES["fused"] = open_fused


# --- for a run ---

# stores that a model can write to
RUN_STORES = ("in_memory", "cypher_embedded", "sparql_embedded", "cypher_server", "sparql_server", "fused")
_LOGIN_VARIABLES = {  # never on a command line
    "cypher_server": {name: f"KGOT_NEO4J_{name.upper()}" for name in ("user", "password", "database")},
    "sparql_server": {"token": "KGOT_SPARQL_TOKEN"},
}


@check_arguments
def empty_store(
    where: Location = "in_memory",
    at: Location | None = None,
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
    kind, location = resolve_location(where, at)
    if kind in STORES and kind not in RUN_STORES:
        raise UnknownName("store for a run", kind, RUN_STORES)
    if keep and wipe:
        raise BadInput("the graph of a store is kept or wiped: give one of both")
    if kind not in SERVERS:
        if namespace is not None:
            problem = f"only a server has namespaces ({', '.join(SERVERS)})"
            raise BadInput(f"{problem}: leave the namespace of the store {kind!r} out")
        store = open_store(kind, at=location, **({"unsafe": unsafe} if kind in STORES else {}))
        return _require_empty(store, f"{location or kind}", keep=keep, wipe=wipe)
    if namespace is None and (keep or wipe):
        problem = f"say which of the server's graphs to {'keep' if keep else 'wipe'}"
        raise BadInput(f"{problem}: namespace=NAME (--namespace NAME)")
    unused_name = f"run-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:6]}"
    new_name = unused_name if namespace is None else namespace
    options = {"namespace": new_name, "wipe": wipe, **_login_options(kind)}
    more = {"unsafe": unsafe} if kind == "sparql_server" else {}
    store = open_store(kind, at=location, **options, **more)
    location_text = f"the namespace {options['namespace']!r} of {location}"
    return _require_empty(store, location_text, keep=keep, wipe=wipe)


def _require_empty(store: Store, location: str, *, keep: bool, wipe: bool) -> Store:
    """Return a store if a run may begin with it.

    Otherwise closes it and raises BadInput.
    """
    try:
        if not keep and store.schema().nodes:
            graph = store.graph()
            if not wipe:
                raise BadInput(
                    f"{location} already holds a graph of {format_count(len(graph), 'node')}, and a run begins with an empty one: "
                    "name another place or "
                    "namespace (--namespace NAME), begin with what is there and no other graph (keep=True, --keep), or empty it first "
                    "(wipe=True, --wipe)"
                )
            store.apply(graph.diff(graph.of()))
    except BaseException:
        store.close()
        raise
    return store


@check_arguments
def reopen_store(
    where: Location, at: Location | None = None, *, unsafe: bool = False, namespace: str | None = None
) -> Store:
    """Open the store of a run to resume, with everything in it.

    `resume` checks whether the run made that content. On a server, without a namespace, a new one is used.
    Raises what `empty_store` raises.
    """
    keeps_content = namespace is not None or resolve_location(where, at)[0] not in SERVERS
    return empty_store(where, at, unsafe=unsafe, namespace=namespace, keep=keeps_content)


# --- namespaces of a server ---

SERVERS = ("cypher_server", "sparql_server")


@check_arguments
def namespaces(where: Location, at: Location | None = None) -> Mapping[str, GraphSize]:
    """Count the nodes and edges of each namespace of a server, by name, without opening any.

    Raises BadInput if the store is no server, and StoreUnavailable if it cannot be reached.
    """
    store_class, address, login = _server_class(where, at)
    sizes: Mapping[str, GraphSize] = store_class.namespaces(address, **login)
    return sizes


@check_arguments
def delete_namespace(where: Location, at: Location | None = None, *, namespace: str) -> None:
    """Delete one namespace of a server with everything in it.

    Raises BadInput if there is none or no store made it, and StoreUnavailable.
    """
    require_known("namespace", namespaces(where, at), namespace)
    store_class, address, login = _server_class(where, at)
    store_class.delete_namespace(address, namespace=namespace, **login)


def _server_class(where: Location, at: Location | None) -> tuple[Any, str, dict[str, str]]:
    kind, location = resolve_location(where, at)
    if kind not in SERVERS:
        raise BadInput(f"only a server has namespaces ({', '.join(SERVERS)}), not the store {kind!r}")
    if location is None:
        how = "say which with at=URL (--at URL on the command line)"
        raise BadInput(f"the store {kind!r} is a server's: {how}")
    _location_option(kind, _STORE_KINDS[kind], location)
    return _STORE_KINDS[kind].load(), str(location), _login_options(kind)


def environment_login(where: Location) -> dict[str, str]:
    """Return the login for the server at an address from the environment, or {} if it is no server's."""
    return _login_options(resolve_location(where)[0])


def _login_options(kind: str) -> dict[str, str]:
    variables = _LOGIN_VARIABLES.get(kind, {}).items()
    return {name: os.environ[key] for name, key in variables if key in os.environ}


# One graph in several languages: written in one, mirrored to the others.


class Fused(StoreWrapper, Closing):
    """A store and its mirrors in other languages.

    The loop writes to the first, and reads from all of them (`readers`). A write that a mirror cannot
    represent is undone everywhere and refused.
    """

    def __init__(self, main: Store, *mirrors: Store):
        self.store, self.readers = main, mirrors
        self._lock = RLock()  # a write is applied to all stores before the next

    def __repr__(self) -> str:
        return f"<Fused: {', '.join(map(repr, (self.store, *self.readers)))}>"

    def write(self, statement: str) -> Diff:
        """Run a statement in the first store and apply its diff to the mirrors.

        Raises QueryFailed, changing nothing, if the statement fails or a mirror refuses the diff.
        """
        with self._lock:
            diff = self.store.write(statement)
            try:
                self._apply_to_mirrors(diff)
            except LabError as error:
                self.store.apply(inverse(diff))
                if isinstance(error, BadInput):
                    raise QueryFailed(statement, str(error)) from None
                raise
            return diff

    def read(self, statement: str) -> Rows:
        """Run a read statement in the first store and return its rows.

        Raises QueryFailed if the statement is refused or fails.
        """
        return self.store.read(statement)

    def read_without(self, statement: str, edges: Sequence[Edge]) -> Rows:
        """Run a read statement in the first store as if some edges were missing, and return its rows.

        Raises QueryFailed if the statement is refused or fails.
        """
        assert isinstance(self.store, PartialReader)
        return self.store.read_without(statement, edges)

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Run plain Python in the first store that can and return what it prints.

        Raises QueryFailed if the code fails or no store can run it.
        """
        for store in (self.store, *self.readers):
            if isinstance(store, PythonRunner):
                return store.compute(code, seconds=seconds)
        raise QueryFailed(code, "none of these stores runs plain Python")

    def apply(self, diff: Diff) -> None:
        """Apply a diff to every store.

        Raises BadInput, changing nothing, if it does not fit.
        """
        with self._lock:
            self.store.apply(diff)
            try:
                self._apply_to_mirrors(diff)
            except LabError:
                self.store.apply(inverse(diff))
                raise

    def close(self) -> None:
        """Close every store."""
        for store in (self.store, *self.readers):
            store.close()

    def _apply_to_mirrors(self, diff: Diff) -> None:
        for number, mirror in enumerate(self.readers):
            try:
                mirror.apply(diff)
            except LabError:
                for earlier in self.readers[:number]:
                    earlier.apply(inverse(diff))
                raise
