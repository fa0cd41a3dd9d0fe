"""Opening a world: by the name of a file, in memory, or by the address of a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from kgot_lab.domains.npc.file import SQLiteWorld
from kgot_lab.domains.npc.postgres import WORLD_NAMESPACE, PostgresWorld
from kgot_lab.domains.npc.storage import WorldStorage
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import BadInput, require
from kgot_lab.memory.claims.claim import probability
from kgot_lab.memory.claims.times import utc_now
from kgot_lab.stores.opening import resolved


def open_world(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    accept_from: float = 0.7,
    now: Callable[[], datetime] = utc_now,
) -> NpcWorld:
    """A world in an SQLite file, in memory (":memory:"), or in PostgreSQL by its address (postgresql://); `namespace` names its schema.

    It is made if there is none. Raises BadInput for a place that can be none or holds something else, and for a namespace of a file;
    StoreUnavailable, StoreDamaged and NotInstalled.
    """
    require(place, (str, Path), "a world is kept in a file or at an address")
    probability(accept_from, "accept_from")
    storage: WorldStorage
    if isinstance(place, str) and "://" in place:
        if place.partition("://")[0].lower() not in ("postgresql", "postgres"):
            raise BadInput("a world is kept in a file or at postgresql://HOST/NAME, and at no other address")
        resolved(place)
        storage = PostgresWorld(place, namespace=WORLD_NAMESPACE if namespace is None else namespace)
    elif namespace is not None:
        raise BadInput("only PostgreSQL has namespaces: leave that of a file out")
    elif not str(place).strip():
        raise BadInput("a world is kept in a file: give its name, such as town.db")
    else:
        storage = SQLiteWorld(place)
    return NpcWorld(storage, accept_from=accept_from, now=now)
