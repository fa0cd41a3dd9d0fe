"""The triple store in memory."""

from __future__ import annotations

import weakref
from threading import RLock

from kgot_lab.io.sqlite.file import SQLiteFile
from kgot_lab.memory.sqlite import SQLiteTripleStore
from kgot_lab.memory.triples import TripleStore
from kgot_lab.text.cleaning import format_count

__all__ = ["InMemoryTripleStore", "TripleStore"]


class InMemoryTripleStore(SQLiteTripleStore):
    """A triple store without a file, for experiments, which several threads may use.

    A forked child has a copy of it.
    """

    def __init__(self) -> None:
        SQLiteFile.__init__(self, None)
        weakref.finalize(self, self._connection.close)

    def after_fork(self) -> None:
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<InMemoryTripleStore: {format_count(self.count(), 'triple')}>"
