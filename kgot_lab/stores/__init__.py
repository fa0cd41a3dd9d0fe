"""Keeps graphs: one language and one home each, all behind the same small protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgot_lab.errors import UnknownName
from kgot_lab.stores.in_memory import InMemory
from kgot_lab.stores.protocol import Dialect, Schema, Store

STORES: dict[str, Callable[..., Store]] = {"in_memory": InMemory}


def open_store(kind: str = "in_memory", **where: Any) -> Store:
    """A store by name; `where` says where it lives, each kind in its own words. Raises UnknownName."""
    if kind not in STORES:
        raise UnknownName("store", kind, STORES)
    return STORES[kind](**where)


__all__ = ["STORES", "Dialect", "InMemory", "Schema", "Store", "open_store"]
