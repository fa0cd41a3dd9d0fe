"""Hostile statements: what each one gets, and that the next statement meets the right graph."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.every import every
from support.hostile import SECRET
from support.hostile_code import CODE_ATTACKS
from support.sandbox_attacks import ATTACKED_BY_CODE, host_of_code, what_code_got

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox import open_sandbox
from kgot_lab.stores import InMemory, Schema
from kgot_lab.types import Edge, Node

PROJECT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
pytestmark = [pytest.mark.extended, linux]
EDGES = (Edge("Ada", "born in", "London"), Edge("London", "part of", "England"))


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple]:
    with host_of_code(PROJECT) as (places, connected):
        sandbox = open_sandbox(memory_mb=192)
        with InMemory(open=lambda: sandbox) as store:
            store.write(ATTACKED_BY_CODE)
            yield store, sandbox, places, connected


@every("attack", CODE_ATTACKS, ids=lambda attack: f"{attack.kind}: {attack.name}")
def test_an_attack_gets_what_it_should_and_the_next_statement_is_right(scene, attack):
    store, sandbox, places, connected = scene
    if attack.kind == "system calls" and platform.machine() != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    got = what_code_got(store, sandbox, attack, places)
    assert re.search(attack.gets, got, re.S), got
    assert SECRET not in got
    assert not connected
    sandbox.seconds = 120.0
    assert_whole(store, sandbox)


def assert_whole(store, sandbox):
    """The truth is what it was, the worker agrees, and its words still mean what they should."""
    assert store.schema() == Schema({"Person": 1}, {"born in": 1, "part of": 1}, 3, 2)
    assert (store.neighbours("London"), store.search("Ada England London")[0].id) == (EDGES, "Ada")
    seen = store.read(
        "result = [sorted(map(repr, G.nodes(data=True))), sorted(map(repr, G.edges(keys=True, data=True)))]"
    )
    assert seen == (
        ["('Ada', {'label': 'Person'})", "('England', {})", "('London', {})"],
        [
            "('Ada', 'London', 'born in', {'relation': 'born in'})",
            "('London', 'England', 'part of', {'relation': 'part of'})",
        ],
    )
    diff = sandbox.write("add('Bob', 'knows', 'Ada'); G.remove_edge('Ada', 'London')")
    assert diff.added_nodes == (Node("Bob"),) and diff.removed_edges == (EDGES[0],)
    assert diff.added_edges == (Edge("Bob", "knows", "Ada"),)


def test_the_host_could_have_been_read_without_a_sandbox(scene):
    """The attacks fail because of the sandbox and not because they aim at nothing."""
    _, _, places, _ = scene
    assert Path(places["SECRET_FILE"]).read_text() == SECRET
    with open_sandbox("unsafe", unsafe=True) as bare:
        assert bare.read(f"result = open({places['SECRET_FILE']!r}).read()") == (SECRET,)


def test_a_sandbox_that_is_attacked_all_the_time_stays_one_process(scene):
    store, sandbox, _, _ = scene
    before = sandbox._worker.process.pid
    for code in ("import os; os._exit(1)", "1/0", "import ctypes; ctypes.string_at(0)"):
        with pytest.raises(QueryFailed):
            store.read(code)
    assert sandbox._worker.process.pid == before
