"""The short form of the fire over statements: some dozen cases of each kind, embedded against served."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faults import statements

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")
CASES = {0: 12, 1: 20, 2: 12, 3: 12}


@pytest.fixture(scope="module")
def stores(bolt_server, oxigraph_server):
    with statements.opened(servers=False) as here:
        there = statements.served(bolt_server, oxigraph_server, "fire, the short form")
        yield {**here, **there}
        for store in there.values():
            store.close()


@pytest.mark.parametrize("number", CASES, ids=["cypher", "sparql", "facts", "facts that go"])
def test_random_statements_are_taken_alike_or_refused_alike(stores, number):
    check, strategy = statements.checks(stores)[number]
    done, fault = statements.searched(check, strategy, 1, CASES[number])
    assert fault is None, f"{fault.name}: {fault.shown}"
    assert done >= CASES[number]


def test_a_server_keeps_no_thread_for_a_question_it_has_answered(oxigraph_server):
    for _ in range(100):
        assert oxigraph_server.ask("ASK {}")
    assert len(list(Path(f"/proc/{oxigraph_server.process.pid}/task").iterdir())) < 50
