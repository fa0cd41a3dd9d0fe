"""Open tables by the name of a file, in memory, or by the address of a PostgreSQL server."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar, Self, TypeVar

from kgot_lab.errors import BadInput
from kgot_lab.io.processes import Closing
from kgot_lab.io.times import utc_now
from kgot_lab.stores.opening import resolve_location
from kgot_lab.stores.tables.layout import Layout, TableStorage
from kgot_lab.stores.tables.postgres import PostgresTables
from kgot_lab.stores.tables.sqlite import SQLiteTables

_OpenedTables = TypeVar("_OpenedTables", bound=TableStorage)
# as libpq takes it: host=… dbname=…
_LIBPQ_PAIRS = re.compile(r"\s*(?:\w+\s*=\s*\S+\s+)*(?:host|hostaddr|dbname|user|password)\s*=")


def open_tables(
    layout: Layout, place: Path | str = ":memory:", *, namespace: str | None = None
) -> TableStorage:
    """Open tables in an SQLite file, in memory (":memory:"), or in PostgreSQL by address (postgresql://).

    `namespace` names the schema in PostgreSQL. Raises BadInput if the place is invalid or contains something
    else. Raises StoreUnavailable, StoreDamaged or NotInstalled if opening fails.
    """
    schema = "kgot_" + layout.name.replace(" ", "_")
    in_file, on_server = partial(SQLiteTables, layout), partial(PostgresTables, layout, namespace=schema)
    return open_at(place, layout.name, in_file, on_server, namespace=namespace)


class TableBacked(Closing):
    """An object stored in its own tables, which are closed with it and at the end of a `with` block.

    `now` is its clock.
    """

    layout: ClassVar[Layout]

    def __init__(self, storage: TableStorage, *, now: Callable[[], datetime] | None = None) -> None:
        self.storage, self.now = storage, now or utc_now

    @classmethod
    def open(
        cls,
        place: Path | str = ":memory:",
        *,
        namespace: str | None = None,
        **options: Callable[[], datetime],
    ) -> Self:
        """Open the tables in an SQLite file, in memory (":memory:"), or in PostgreSQL by address, as `open_tables`."""
        return cls(open_tables(cls.layout, place, namespace=namespace), **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self.storage!r}>"

    def close(self) -> None:
        """Close the tables."""
        self.storage.close()


def open_at(
    place: Path | str,
    noun: str,
    in_file: Callable[[Path | str], _OpenedTables],
    on_server: Callable[..., _OpenedTables],
    *,
    namespace: str | None = None,
    example: str = "memory.db",
) -> _OpenedTables:
    """Call `in_file` with the place, or `on_server` with it and the namespace if there is one.

    Raises BadInput if the place is neither a file nor an address, and for a file with a namespace.
    """
    if isinstance(place, str) and "://" in place:
        if place.partition("://")[0].lower() not in ("postgresql", "postgres"):
            raise BadInput(f"{noun} are kept in a file or at postgresql://HOST/NAME, and at no other address")
        resolve_location(place)
        return on_server(place) if namespace is None else on_server(place, namespace=namespace)
    # otherwise a file would be created whose name may be a password
    if isinstance(place, str) and _LIBPQ_PAIRS.match(place):
        remedy = "give the server as an address, not as name=value pairs"
        raise BadInput(f"{noun} are kept in a file or at postgresql://HOST/NAME: {remedy}")
    if namespace is not None:
        raise BadInput("only PostgreSQL has namespaces: leave that of a file out")
    if not str(place).strip():
        raise BadInput(f"{noun} are kept in a file: give its name, such as {example}")
    if (path := Path(place)).is_dir():
        raise BadInput(f"{path} is a folder: name a file in it, such as {path / example}")
    return in_file(place)
