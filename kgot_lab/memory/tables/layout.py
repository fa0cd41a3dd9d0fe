"""What a file or a schema of tables holds: its name, its mark, its version, and the statements that make it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kgot_lab.memory.tables import (
    CLAIM_INDEXES,
    CLAIM_TABLES,
    FIRST_LEARNT,
    KEY_TABLE,
    POSTGRES_INDEXES,
    SQLITE_INDEXES,
    fact_keys,
)


@dataclass(frozen=True)
class LaterTable:
    """A table that the versions before had not, and how it is filled from what such a one holds: from each
    row that `read` finds.
    """

    name: str
    sqlite: str
    postgres: str
    read: str
    rows: Callable[..., Iterable[tuple[Any, ...]]]
    columns: int

    def insert(self, mark: str) -> str:
        """The statement that adds a row, with the mark that an engine has for a value."""
        return f"INSERT INTO {self.name} VALUES ({', '.join([mark] * self.columns)})"

    def rows_of(self, read: Iterable[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
        """What stands in it, by the rows that `read` found."""
        return (made for row in read for made in self.rows(*row))


@dataclass(frozen=True)
class Layout:
    """The tables of one kind of place; statements in what SQLite and PostgreSQL have in common, and then
    those of their own.
    """

    name: str  # what it holds: "claims"
    application: int  # how a file of this kind is told from any other
    tables: tuple[str, ...]
    indexes: tuple[str, ...] = ()
    sqlite: tuple[str, ...] = ()
    postgres: tuple[str, ...] = ()
    later: tuple[LaterTable, ...] = ()  # a version each, in their order
    repeatable: bool = False  # run again, its statements change nothing: so they are where a place says that it is of version 0

    @property
    def version(self) -> int:
        """The number of this version: what is older gets what it lacks when it is opened."""
        return 1 + len(self.later)

    @property
    def mark(self) -> str:
        """What stands on a schema of this kind, before the number of its version."""
        return f"{self.name} of kgot_lab, version "


def _keys_of(id: str, subject: str, relation: str, object: str, learnt: int) -> Iterable[tuple[Any, ...]]:
    return [(key, learnt, id) for key in fact_keys(subject, relation, object)]


# in SQLite the index is the table
FACT_KEYS = LaterTable("fact_keys", f"{KEY_TABLE} WITHOUT ROWID", KEY_TABLE, FIRST_LEARNT, _keys_of, 3)
CLAIMS_LAYOUT = Layout(
    "claims", 0x6B676C63, CLAIM_TABLES, CLAIM_INDEXES, SQLITE_INDEXES, POSTGRES_INDEXES, (FACT_KEYS,)
)  # "kglc"
