"""Places for an investment graph and for accounts, in each engine, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.claim_places import InPostgres
from support.small_market import SetClock

from kgot_lab.domains.investment.accounts import Accounts, open_accounts
from kgot_lab.domains.investment.graph import InvestmentGraph, open_investment_graph

number = count()
Opened = Callable[..., Any]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def postgres(postgres_url: str) -> InPostgres:
    """A schema that is not there yet."""
    return InPostgres(postgres_url, f"invest {next(number)}")


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Where a graph lasts, in each engine; empty."""
    if request.param == "file":
        return {"place": tmp_path / "graph.db"}
    schema: InPostgres = request.getfixturevalue("postgres")
    return {"place": schema.url, "namespace": schema.namespace}


@pytest.fixture
def graph(place: dict[str, Any], clock: SetClock) -> Iterator[InvestmentGraph]:
    with open_investment_graph(**place, now=clock) as opened:
        yield opened


@pytest.fixture
def accounts(place: dict[str, Any], clock: SetClock, tmp_path: Path) -> Iterator[Accounts]:
    elsewhere = (
        {"namespace": f"{place['namespace']} accounts"}
        if "namespace" in place
        else {"place": tmp_path / "accounts.db"}
    )
    with open_accounts(**place | elsewhere, now=clock) as opened:
        yield opened
