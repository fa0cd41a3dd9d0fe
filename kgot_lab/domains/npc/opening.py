"""Opening a world: by the name of a file, in memory, or by the address of a server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from kgot_lab.domains.npc.opening import WORLD_NAMESPACE, PostgresWorld, SQLiteWorld
from kgot_lab.domains.npc.statements import WorldStorage
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.memory.claims.claim import probability, utc_now
from kgot_lab.memory.sqlite_tables import opened_at


def open_world(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    accept_from: float = 0.7,
    now: Callable[[], datetime] = utc_now,
) -> NpcWorld:
    """A world in an SQLite file, in memory (":memory:"), or on a PostgreSQL server by its address.

    `namespace` names its schema in PostgreSQL. It is made if there is none. Raises BadInput for a place that
    can be none or holds something else, and for a namespace of a file; StoreUnavailable, StoreDamaged and
    NotInstalled.
    """
    probability(accept_from, "accept_from")

    def in_file() -> WorldStorage:
        return SQLiteWorld(place)

    def on_server(url: str) -> WorldStorage:
        return PostgresWorld(url, namespace=WORLD_NAMESPACE if namespace is None else namespace)

    storage = opened_at(
        place,
        "worlds",
        in_file=in_file,
        on_server=on_server,
        namespace=namespace,
        example="town.db",
    )
    return NpcWorld(storage, accept_from=accept_from, now=now)
