"""A process is killed while it writes: what it was told was done is there, and nothing is half done. Where it
may be killed, step by step, is in tests/faults.
"""

from __future__ import annotations

import sys

import pytest

from benchmarks.stores.killed_writers import survival

has_sigkill = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
pytestmark = [pytest.mark.extended, has_sigkill]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_writer_loses_nothing_that_was_acknowledged(kind, tmp_path, request):
    for attempt in range(30):  # a kill between two writes is no kill during one, and chance decides
        where = {"path": str(tmp_path / f"graph {attempt}")}
        if kind == "postgres":
            where = {"url": request.getfixturevalue("postgres_url"), "namespace": f"killed {attempt}"}
        outcome = survival(kind, where, kills=3)
        assert outcome.sound and outcome.acknowledged, outcome
        if outcome.inside:
            return
    pytest.fail("no kill landed inside a write")
