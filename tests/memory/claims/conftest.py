"""A memory of claims of each kind, the places where claims last, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from support.claim_places import ClaimPlace, InFile, InPostgres

from kgot_lab.memory.claims.claims import Claims, open_claims

number = count()


class Clock:
    """A clock that goes on by a second whenever it is read, and can be set."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.time += timedelta(seconds=1)
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> InFile:
    """A file that is not there yet."""
    (tmp_path / "memory").mkdir()
    return InFile(tmp_path / "memory" / "claims.db")


@pytest.fixture
def postgres(postgres_url: str) -> InPostgres:
    """A schema that is not there yet."""
    return InPostgres(postgres_url, f"claims {next(number)}")


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest) -> ClaimPlace:
    """Where claims last, in each engine; empty."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["in memory", "file", "postgres"])
def memory(request: pytest.FixtureRequest, clock: Clock) -> Iterator[Claims]:
    """An empty memory of each kind."""
    opened = (
        open_claims(now=clock)
        if request.param == "in memory"
        else request.getfixturevalue(request.param).opened(now=clock)
    )
    with opened as claims:
        yield claims
