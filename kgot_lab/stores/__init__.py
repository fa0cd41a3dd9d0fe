"""Graph stores: one query language and one location each, behind the same small protocols."""

from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.stores.lookup import holds_value
from kgot_lab.stores.opening import (
    STORES,
    delete_namespace,
    empty_store,
    namespaces,
    open_for,
    open_fused,
    open_store,
    reopen_store,
)
from kgot_lab.stores.protocol import Dialect, Schema, Store

__all__ = [
    "STORES",
    "Dialect",
    "InMemory",
    "Schema",
    "Store",
    "delete_namespace",
    "empty_store",
    "holds_value",
]
__all__ += ["namespaces", "open_for", "open_fused", "open_store", "reopen_store"]
