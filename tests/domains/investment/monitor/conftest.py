"""MonitorPlaces for a monitor, in each engine, with a clock that tests set."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from support.claim_places import InPostgres
from support.small_market import SetClock
from support.small_news import LANTERN

from kgot_lab.domains.investment.accounts import open_accounts
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.monitor.journal import open_journal
from kgot_lab.domains.investment.monitor.monitor import MonitorPlaces, open_places

number = count()


@pytest.fixture
def clock() -> SetClock:
    return SetClock(LANTERN.published_at)


@pytest.fixture(params=["file", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path, clock: SetClock) -> Iterator[MonitorPlaces]:
    """A graph, accounts and a journal, empty."""
    if request.param == "file":
        with open_places(tmp_path / "places", now=clock) as opened:
            yield opened
        return
    schema = InPostgres(request.getfixturevalue("postgres_url"), f"monitor {next(number)}")
    with (
        open_investment_graph(schema.url, namespace=f"{schema.namespace} graph", now=clock) as graph,
        open_accounts(schema.url, namespace=f"{schema.namespace} accounts", now=clock) as accounts,
        open_journal(schema.url, namespace=f"{schema.namespace} journal", now=clock) as journal,
    ):
        yield MonitorPlaces(graph, accounts, journal)
