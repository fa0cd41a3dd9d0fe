"""What a kind of tables is made of, and the interface of the engines that run their statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

TEXT_BY_BYTES = 'TEXT COLLATE "C"'  # of PostgreSQL: ids and names in byte order, as in SQLite


@dataclass(frozen=True)
class Layout:
    """The tables of one kind of storage: common statements, and then those of SQLite and PostgreSQL."""

    name: str  # what it holds: "claims"
    application: int  # application id of a file of this kind
    tables: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    sqlite: tuple[str, ...] = ()
    postgres: tuple[str, ...] = ()
    version: int = 1
    # from the version before: common, and then those of each engine; () if there is no way from there
    upgrade: tuple[str, ...] = ()
    sqlite_upgrade: tuple[str, ...] = ()
    postgres_upgrade: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """The beginning of the comment on a schema of this kind, before the number of its version."""
        return f"{self.name} of kgot_lab, version "


TableRow = tuple[Any, ...]


class TableStorage(Protocol):
    """The tables of a layout, which run internal statements.

    Raises StoreUnavailable, and StoreDamaged.
    """

    # [] where it changes something
    def rows(self, statement: str, values: Mapping[str, Any] = ...) -> list[TableRow]: ...
    def insert(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None: ...  # once for each
    def reading(self) -> AbstractContextManager[object]: ...  # all that is read within is of one time
    # alone, all or nothing, on the disk when it ends; may be within itself
    def changing(self) -> AbstractContextManager[object]: ...
    def close(self) -> None: ...
