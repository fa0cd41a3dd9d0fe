"""Opening claims: by the name of a file, in memory, or by the address of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from kgot_lab.errors import BadInput, require
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.times import utc_now
from kgot_lab.memory.tables.postgres import CLAIMS_NAMESPACE, PostgresClaims
from kgot_lab.memory.tables.sqlite import SQLiteClaims
from kgot_lab.memory.tables.storage import ClaimStorage
from kgot_lab.stores.opening import resolved


def open_claims(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    new: bool = True,
    accept_from: float = 0.7,
    now: Callable[[], datetime] = utc_now,
) -> Claims:
    """Claims in an SQLite file, in memory (":memory:"), or in PostgreSQL by its address (postgresql://); `namespace` names its schema.

    A file is made if there is none and it may be `new`. Raises BadInput for a place that can be none or holds something else, for a file
    that is not there, and for a namespace of a file; StoreUnavailable, StoreDamaged and NotInstalled.
    """
    require(place, (str, Path), "claims are kept in a file or at an address")
    storage: ClaimStorage
    if isinstance(place, str) and "://" in place:
        if place.partition("://")[0].lower() not in ("postgresql", "postgres"):
            raise BadInput("claims are kept in a file or at postgresql://HOST/NAME, and at no other address")
        resolved(place)
        storage = PostgresClaims(place, namespace=CLAIMS_NAMESPACE if namespace is None else namespace)
    elif namespace is not None:
        raise BadInput("only PostgreSQL has namespaces: leave that of a file out")
    else:
        if str(place) != ":memory:":
            _require_file(place, new)
        storage = SQLiteClaims(place)
    try:
        return Claims(storage, accept_from=accept_from, now=now)
    except BaseException:
        storage.close()
        raise


def _require_file(place: Path | str, new: bool) -> None:
    path = Path(place)
    if not str(place).strip():
        raise BadInput("claims are kept in a file: give its name, such as memory.db")
    if path.is_dir():
        raise BadInput(f"{path} is a folder: name a file in it, such as {path / 'memory.db'}")
    if not new and not path.exists():
        raise BadInput(f"there is no memory at {path}: kgot-lab ask QUESTION --memory {path} begins one")
