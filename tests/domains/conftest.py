"""A world on each engine, empty, with a clock that goes on by a second whenever it is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from support.npc_places import at_postgres

from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.world import NpcWorld

ENGINES = ["sqlite", "postgres"]
number = count()


def ticking() -> Iterator[datetime]:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    while True:
        yield (time := time + timedelta(seconds=1))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" in metafunc.fixturenames:
        metafunc.parametrize("world", ENGINES, indirect=True)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NpcWorld]:
    clock = ticking()
    if request.param == "sqlite":
        opened = open_world(tmp_path / "town.db", now=lambda: next(clock))
    else:
        opened = at_postgres(
            request.getfixturevalue("postgres_url"), f"town {next(number)}", now=lambda: next(clock)
        )
    with opened as world:
        yield world


@pytest.fixture(scope="module")
def fields(postgres_url: str) -> Iterator[dict[str, NpcWorld]]:
    """A world on each engine in which many are planted, one after the other."""
    clock = datetime(2026, 1, 1, tzinfo=UTC)
    worlds = {
        "sqlite": open_world(now=lambda: clock),
        "postgres": at_postgres(postgres_url, f"field {next(number)}", now=lambda: clock),
    }
    yield worlds
    for world in worlds.values():
        world.close()
