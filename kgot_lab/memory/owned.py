"""The claims of one user among those of several in the same tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from kgot_lab.memory import tables as sql
from kgot_lab.memory.tables import ClaimRow, ClaimStorage


class OwnedTables:
    """The tables of claims as one user sees them.

    The sources of a user begin with the name and "/", and the name is the author of each of the user's changes.
    Statements that select claims or changes are limited to these.
    """

    def __init__(self, storage: ClaimStorage, user: str) -> None:
        self._storage, self._user = storage, user

    def __repr__(self) -> str:
        return repr(self._storage)

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[ClaimRow]:
        """Run a statement, limited to what is the user's."""
        owned = sql.OWNED.get(statement)
        values = values or {}
        if owned is None:
            return self._storage.rows(statement, values)
        prefix = f"{self._user}/"
        limits = {"owner": self._user, "prefix": prefix, "length": len(prefix)}
        return self._storage.rows(owned, {**values, **limits})

    def insert(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run a statement that inserts, once for each of some values."""
        self._storage.insert(statement, rows)

    def reading(self) -> AbstractContextManager[object]:
        """Return a context in which all that is read is of one time."""
        return self._storage.reading()

    def changing(self) -> AbstractContextManager[object]:
        """Return the context of a change."""
        return self._storage.changing()

    def scrub(self) -> None:
        """Remove the bytes of deleted rows from every file."""
        self._storage.scrub()

    def close(self) -> None:
        """Close the tables."""
        self._storage.close()
