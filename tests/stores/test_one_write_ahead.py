"""A run that was killed between a write and its line on the trace: its store is one write ahead, and the run
resumes in it.
"""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest
from support.loop_script import ADA, FEW, call, of, scripted, votes
from support.store_kinds import KINDS, SQL, opened

import kgot_lab
from kgot_lab.errors import BadInput
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, Wrote
from kgot_lab.loop.replay.replay import Resources, resume, verify
from kgot_lab.loop.trace import graph_after, load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.types import Diff, Edge, Node

pytestmark = pytest.mark.extended

QUESTION = "Where was Ada born?"
TOOL = search(ADA, bm25(ADA), k=2)
LIMITS = FEW.but(steps=3)
VOTES = votes("I", "I", "I", "I", "I", "I")


class Kill(BaseException):
    """The process ends here."""


class KilledAfter:
    """A store whose process is killed when it has made so many writes, before anybody hears of the last."""

    def __init__(self, store, writes):
        self._store, self._left = store, writes

    def __getattr__(self, name):
        return getattr(self._store, name)

    def write(self, statement):
        diff = self._store.write(statement)
        self._left -= 1
        if not self._left:
            raise Kill
        return diff


@pytest.fixture(params=[kind for kind in KINDS if kind.statements is not SQL], ids=str)
def kind(request):
    """Every store that a model can write to."""
    return request.param


class Counting:
    """A store that keeps the statements which are written to it."""

    def __init__(self, store):
        self._store, self.written = store, []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def write(self, statement):
        self.written.append(statement)
        return self._store.write(statement)


def model(said, asked=0, **more):
    """A model that votes twice to insert, writes two statements each time, and reads; `asked` votes were
    cast before.
    """
    seven = said.add.replace("Ada", "Eve").replace("1815", "1816")
    reads = [{"choice": "RETRIEVE", "text": said.where}] * 3
    written = [{"statements": [said.add, said.know]}, {"statements": [seven, said.change]}]
    told = {"vote": (VOTES + reads)[asked:], "tools": [call(), call("Charles")]}
    told |= {"parse": {"answer": "London"}, "merge": {"reason": "more"}}
    return scripted(**{**told, "write": written, **more})


def killed(home, said, path, writes):
    """A run that was killed after so many writes and before the line of the last: the trace is one write
    behind its store.
    """
    with opened(home) as store, pytest.raises(Kill):
        for _ in record(think(QUESTION, model(said), KilledAfter(store, writes), [TOOL], LIMITS), path):
            pass
    events = load_run(path).events
    assert len(of(Wrote, events)) == writes - 1
    return events


def left_over(said, events):
    """The model for what is left of a run."""
    asked = [event.role for event in of(Asked, events)]
    statements = [said.add.replace("Ada", "Eve").replace("1815", "1816"), said.change]
    more = {"write": {"statements": statements}} if asked.count("write") else {}
    calls = [call(), call("Charles")][asked.count("tools") :] or [call("nothing more")]
    return model(said, asked.count("vote"), tools=calls, **more)


@pytest.mark.parametrize("writes", [1, 2, 3, 4])
def test_a_run_killed_after_a_write_and_before_its_line_does_not_write_again(home, kind, tmp_path, writes):
    said, path = kind.statements, tmp_path / "run.jsonl"
    before = killed(home, said, path, writes)
    with opened(home) as store:
        counting = Counting(store)
        ahead = store.graph()
        events = list(resume(path, counting, Resources([TOOL], left_over(said, before))))
        assert store.graph() == graph_after(events)
    written = [event.statement for event in of(Wrote, events)]
    assert events[: len(before)] == list(before) and len(written) == 4 and events[-1].text == "London"
    # the one that was ahead is on the trace and was not run again
    assert counting.written == written[writes:]
    last = written[writes - 1]
    cut = next(i for i, e in enumerate(events) if isinstance(e, Wrote) and e.statement == last)
    assert graph_after(events[: cut + 1]) == ahead
    assert verify(load_run(path)) is None


def test_a_run_killed_while_its_graph_is_made_again_resumes_too(home, kind, tmp_path):
    said, path = kind.statements, tmp_path / "run.jsonl"
    before = killed(home, said, path, 4)
    with opened(home) as store:
        store.apply(store.graph().diff(graph_after(before[: before.index(of(Wrote, before)[1])])))
        events = list(resume(path, store, Resources([TOOL], left_over(said, before))))
        assert store.graph() == graph_after(events) and len(of(Wrote, events)) == 4


MORE = {
    "another node": Diff(added_nodes=(Node("Byron"),)),
    "another edge": Diff(added_edges=(Edge("Ada", "met", "London"),)),
    "another value": Diff(
        changed_edges=(
            (
                Edge("Ada", "born in", "London", {"year": 1815}),
                Edge("Ada", "born in", "London", {"year": 1816}),
            ),
        )
    ),
}


@pytest.mark.parametrize("writes", [1, 2])
def test_a_store_that_holds_anything_else_is_refused_and_stays_as_it_is(home, kind, tmp_path, writes):
    said, path = kind.statements, tmp_path / "run.jsonl"
    before = killed(home, said, path, writes)
    with opened(home) as store:
        ahead = store.graph()
        for name, more in MORE.items():
            store.apply(more)
            there = store.graph()
            reason = r"the store holds another graph, of \d nodes; to go on with this run it must be empty"
            with pytest.raises(BadInput, match=reason):
                resume(path, store, Resources([TOOL], left_over(said, before)))
            assert store.graph() == there and load_run(path).events == before, name
            store.apply(store.graph().diff(ahead))


def test_a_store_two_writes_ahead_is_refused(home, kind, tmp_path):
    said, path = kind.statements, tmp_path / "run.jsonl"
    killed(home, said, path, 3)
    *lines, _ = path.read_text().splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if json.loads(line).get("event") == "Wrote")
    path.write_text("".join(lines[:last]))
    with opened(home) as store:
        there = store.graph()
        with pytest.raises(BadInput, match="at most one write more than its trace"):
            resume(path, store, Resources([TOOL], model(said)))
        assert store.graph() == there


def test_a_graph_that_came_before_the_run_could_write_anything_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    with open_store("in_memory") as store:
        walk = record(think(QUESTION, model(KINDS[0].statements), store, [TOOL], LIMITS), path)
        next(walk), next(walk)
        walk.close()
        store.apply(Diff(added_nodes=(Node("Ada"),)))
        with pytest.raises(BadInput, match="the store holds another graph, of 1 node"):
            resume(path, store, Resources([TOOL], model(KINDS[0].statements, 1)))


def test_a_statement_that_has_another_outcome_each_time_is_refused(tmp_path):
    said, path = KINDS[0].statements, tmp_path / "run.jsonl"
    chance = {"statements": ["import os\nadd('Ada', 'knows', os.urandom(8).hex())"]}
    with open_store("in_memory") as store:
        with pytest.raises(Kill):
            killed = KilledAfter(store, 1)
            for _ in record(think(QUESTION, model(said, write=chance), killed, [TOOL], LIMITS), path):
                pass
        with pytest.raises(BadInput, match="the store holds another graph"):
            resume(path, store, Resources([TOOL], model(said)))


@pytest.mark.parametrize("given", ["open", "by its place"])
def test_the_same_call_of_ask_goes_on_in_a_store_one_write_ahead(tmp_path, given):
    said, path, place = KINDS[0].statements, tmp_path / "run.jsonl", tmp_path / "graph.log"
    with open_store("in_memory", at=place) as store, pytest.raises(Kill):
        kgot_lab.ask(QUESTION, TOOL, model(said), preset=LIMITS, store=KilledAfter(store, 2), trace=path)
    before = load_run(path).events
    where = open_store("in_memory", at=place) if given == "open" else place
    with where if given == "open" else nullcontext():
        run = kgot_lab.ask(QUESTION, TOOL, left_over(said, before), preset=LIMITS, store=where, trace=path)
    assert run.answer == "London" and len(of(Wrote, run.events)) == 4
    with open_store("in_memory", at=place) as store:
        assert store.graph() == graph_after(run.events)


def test_ask_refuses_a_place_that_holds_another_graph_and_leaves_it(tmp_path):
    said, path, place = KINDS[0].statements, tmp_path / "run.jsonl", tmp_path / "graph.log"
    killed(lambda: open_store("in_memory", at=tmp_path / "first.log"), said, path, 2)
    with open_store("in_memory", at=place) as store:
        store.apply(Diff(added_nodes=(Node("somebody's"),)))
    with pytest.raises(BadInput, match="the store holds another graph, of 1 node"):
        kgot_lab.ask(QUESTION, TOOL, model(said), preset=LIMITS, store=place, trace=path)
    with open_store("in_memory", at=place) as store:
        assert store.graph().ids == ("somebody's",)
