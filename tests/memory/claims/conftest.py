"""A memory of claims, what is said in it, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.sqlite import SQLiteClaims


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
def memory(clock: Clock) -> Iterator[Claims]:
    with Claims(SQLiteClaims(), now=clock) as claims:
        yield claims
