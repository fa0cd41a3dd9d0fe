"""The two triple stores, which do the same."""

from __future__ import annotations

import pytest

from kgot_lab.memory.sqlite import SQLiteTripleStore
from kgot_lab.memory.triples import InMemoryTripleStore


@pytest.fixture(params=["in memory", "sqlite"])
def store(request, tmp_path):
    """An empty store of either kind."""
    if request.param == "in memory":
        yield InMemoryTripleStore()
    else:
        with SQLiteTripleStore(tmp_path / "knowledge.db") as made:
            yield made
