"""Opening claims: by the name of a file, in memory, or by the address of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.memory.claims.claim import utc_now
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.postgres_tables import CLAIMS_NAMESPACE, PostgresClaims
from kgot_lab.memory.sqlite_tables import SQLiteClaims, opened_at
from kgot_lab.memory.tables import ClaimStorage


def open_claims(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    new: bool = True,
    accept_from: float = 0.7,
    now: Callable[[], datetime] = utc_now,
) -> Claims:
    """Claims in an SQLite file, in memory (":memory:"), or in PostgreSQL by its address (postgresql://);
    `namespace` names its schema.

    A file is made if there is none and it may be `new`. Raises BadInput for a place that can be none or holds
    something else, for a file that is not there, and for a namespace of a file; StoreUnavailable,
    StoreDamaged and NotInstalled.
    """

    def in_file() -> ClaimStorage:
        if not new and str(place) != ":memory:" and not Path(place).exists():
            raise BadInput(
                f"there is no memory at {place}: kgot-lab ask QUESTION --memory {place} begins one"
            )
        return SQLiteClaims(place)

    def on_server(url: str) -> ClaimStorage:
        return PostgresClaims(url, namespace=CLAIMS_NAMESPACE if namespace is None else namespace)

    storage = opened_at(place, "claims", in_file=in_file, on_server=on_server, namespace=namespace)
    try:
        return Claims(storage, accept_from=accept_from, now=now)
    except BaseException:
        storage.close()
        raise
