"""Keeps graphs: one language and one home each, all behind the same small protocols."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.stores.in_memory import InMemory
from kgot_lab.stores.protocol import Dialect, Schema, Store

_HOMES = {  # module and class of each kind
    "in_memory": ("in_memory", "InMemory"),
    "cypher_embedded": ("cypher.embedded", "CypherEmbedded"),
    "cypher_server": ("cypher.server", "CypherServer"),
    "sparql_embedded": ("sparql.embedded", "SparqlEmbedded"),
    "sparql_server": ("sparql.server", "SparqlServer"),
    "sqlite": ("sqlite.store", "Sqlite"),
    "postgres": ("postgres.store", "Postgres"),
}
_LANGUAGES = {"Python (NetworkX)": "in_memory", "Cypher": "cypher_embedded", "SPARQL": "sparql_embedded"}


def _opener(kind: str) -> Callable[..., Store]:
    def opened(**where: Any) -> Store:
        module, name = _HOMES[kind]
        store: Store = getattr(import_module(f"kgot_lab.stores.{module}"), name)(**where)
        return store

    return opened


def open_fused(**how: Any) -> Store:
    """A graph written to in Python, with mirrors that are asked in Cypher and in SPARQL; `how` is told to all three."""
    return open_for(*_LANGUAGES, **how)


STORES: dict[str, Callable[..., Store]] = {**{kind: _opener(kind) for kind in _HOMES}, "fused": open_fused}


def open_store(kind: str = "in_memory", **where: Any) -> Store:
    """A store by name; `where` says where it lives, each kind in its own words. Raises UnknownName."""
    if kind not in STORES:
        raise UnknownName("store", kind, STORES)
    return STORES[kind](**where)


def open_for(language: str, *others: str, **how: Any) -> Store:
    """An empty store in this process for a language, as a run's first event names it, with mirrors to be asked in others.

    Raises UnknownName.
    """
    for name in (language, *others):
        if name not in _LANGUAGES:
            raise UnknownName("language", name, _LANGUAGES)
    if others and how.get("path"):
        raise BadInput("a graph in several languages lives in this process and nowhere else: leave the path out")
    main, *mirrors = (open_store(_LANGUAGES[name], **how) for name in (language, *others))
    if not mirrors:
        return main
    from kgot_lab.stores.fused import Fused

    return Fused(main, *mirrors)


__all__ = ["STORES", "Dialect", "InMemory", "Schema", "Store", "open_for", "open_fused", "open_store"]
