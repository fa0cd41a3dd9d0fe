"""Keeps graphs: one language and one home each, all behind the same small protocols."""

from kgot_lab.stores.in_memory import InMemory
from kgot_lab.stores.opening import STORES, empty_store, open_for, open_fused, open_store
from kgot_lab.stores.protocol import Dialect, Schema, Store

__all__ = ["STORES", "Dialect", "InMemory", "Schema", "Store", "empty_store", "open_for", "open_fused", "open_store"]
