"""Opening tables: by the name of a file, in memory, or by the address of a PostgreSQL server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kgot_lab.errors import BadInput, require
from kgot_lab.memory.postgres_tables import PostgresTables
from kgot_lab.memory.sqlite_tables import SQLiteTables
from kgot_lab.memory.tables import Layout, TableStorage
from kgot_lab.stores.opening import resolved

_Opened = TypeVar("_Opened", bound=TableStorage)
# as libpq takes it: host=… dbname=…
_IN_PAIRS = re.compile(r"\s*(?:\w+\s*=\s*\S+\s+)*(?:host|hostaddr|dbname|user|password)\s*=")


def open_tables(
    layout: Layout, place: Path | str = ":memory:", *, namespace: str | None = None
) -> TableStorage:
    """Tables in an SQLite file, in memory (":memory:"), or in PostgreSQL by its address (postgresql://);
    `namespace` names its schema.

    Raises BadInput for a place that can be none or holds something else, StoreUnavailable, StoreDamaged and
    NotInstalled.
    """
    schema = "kgot_" + layout.name.replace(" ", "_") if namespace is None else namespace
    return opened_at(
        place,
        layout.name,
        in_file=lambda: SQLiteTables(layout, place),
        on_server=lambda url: PostgresTables(layout, url, namespace=schema),
        namespace=namespace,
    )


def opened_at(
    place: Path | str,
    what: str,
    *,
    in_file: Callable[[], _Opened],
    on_server: Callable[[str], _Opened],
    namespace: str | None = None,
    example: str = "memory.db",
) -> _Opened:
    """What `in_file` or `on_server` opens, by what a place is.

    Raises BadInput for a place that is neither, or a file with a namespace.
    """
    require(place, (str, Path), f"{what} are kept in a file or at an address")
    if isinstance(place, str) and "://" in place:
        if place.partition("://")[0].lower() not in ("postgresql", "postgres"):
            raise BadInput(f"{what} are kept in a file or at postgresql://HOST/NAME, and at no other address")
        resolved(place)
        return on_server(place)
    # else a file would be made whose name may be a password
    if isinstance(place, str) and _IN_PAIRS.match(place):
        raise BadInput(
            f"{what} are kept in a file or at postgresql://HOST/NAME: give the server as an address, not as name=value pairs"
        )
    if namespace is not None:
        raise BadInput("only PostgreSQL has namespaces: leave that of a file out")
    if not str(place).strip():
        raise BadInput(f"{what} are kept in a file: give its name, such as {example}")
    if (path := Path(place)).is_dir():
        raise BadInput(f"{path} is a folder: name a file in it, such as {path / example}")
    return in_file()
