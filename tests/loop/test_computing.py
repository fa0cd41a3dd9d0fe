"""Arithmetic of the loop: who runs Python, how long it may take, and that a run without any is walked again
without any.
"""

from __future__ import annotations

import json

import pytest
from support.loop_script import ADA, FEW, WRITE, call, of, scripted, votes
from support.saved_run import save_run

from kgot_lab.errors import ReplayMiss
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, Computed, Repaired, Started, from_json
from kgot_lab.loop.replay.replay import Resources, fork, replay, resume, same_event, verify
from kgot_lab.loop.trace import load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory, open_store
from kgot_lab.tools.search import search

QUESTION = "How old was Ada Lovelace?"
TOOL = search(ADA, bm25(ADA), k=2)
ALWAYS = FEW.but(arithmetic="always")


class WithoutPython:
    """A store that runs statements and no plain Python."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, name):
        if name == "compute":
            raise AttributeError(name)
        return getattr(self.store, name)


def model(code="print(1852 - 1815)", **more):
    told = {"vote": votes(*"IIIRRR"), "tools": call(), "write": WRITE, "parse": {"answer": "37"}}
    return scripted(
        **{
            **told,
            "arithmetic?": {"needed": True},
            "arithmetic": {"code": code},
            "compute again": {"code": code},
            **more,
        }
    )


def asked_of(store, llm=None, limits=ALWAYS, **how):
    return list(think(QUESTION, llm or model(), store, [TOOL], limits, **how))


@pytest.fixture
def without(store):
    """The events of a run in a store without Python."""
    return asked_of(WithoutPython(store))


def test_a_run_says_whether_it_had_python_and_asks_for_arithmetic_only_then(without, store):
    assert not without[0].computes and not of(Computed, without)
    assert "arithmetic?" not in [event.role for event in of(Asked, without)]
    store.write("G.clear()")
    events = asked_of(store)
    assert events[0].computes and [computed.output for computed in of(Computed, events)] == ["37"]


def test_a_run_without_python_verifies_replays_and_forks_in_a_store_with_it(without, tmp_path):
    save_run(without, tmp_path / "run.jsonl")
    kept = load_run(tmp_path / "run.jsonl")
    assert verify(kept) is None
    assert all(same_event(was, now) for was, now in zip(without, replay(kept), strict=True))
    at = next(i for i, event in enumerate(without) if isinstance(event, Asked) and event.role == "parse")
    other = fork(kept, at, json.dumps({"answer": "36"}))
    assert other.answer == "36" and other.asked == 0 and other.avoided == len(of(Asked, list(without))) - 1


@pytest.mark.parametrize("kept", [3, 9, 14])
def test_a_run_without_python_resumes_without_it_in_a_store_that_has_it(without, tmp_path, kept):
    path = tmp_path / "run.jsonl"
    save_run(without[:kept], path)
    samples = sum(event.role == "vote" for event in of(Asked, list(without[:kept])))
    llm = model(vote=votes(*"IIIRRR")[samples:])
    with InMemory() as other:
        events = list(resume(path, other, Resources([TOOL], llm)))
    assert all(same_event(was, now) for was, now in zip(without, events, strict=True))


def test_a_run_with_python_is_walked_again_in_a_store_without_it_by_what_is_recorded_or_given(store):
    events = asked_of(store)
    with open_store("in_memory") as other:
        assert all(
            same_event(was, now)
            for was, now in zip(events, replay(events, WithoutPython(other)), strict=True)
        )
    with open_store("in_memory") as other:
        difference = verify(events, WithoutPython(other))
        assert "nothing here runs any" in difference.reason and isinstance(difference.recorded, Computed)
    with open_store("in_memory") as other:
        assert verify(events, WithoutPython(other), store.compute) is None


def test_new_arithmetic_of_a_fork_needs_something_that_runs_it(store):
    events = asked_of(store)
    at = next(i for i, event in enumerate(events) if isinstance(event, Asked) and event.role == "arithmetic")
    change = json.dumps({"code": "print(6 * 7)"})
    with open_store("in_memory") as other:
        assert (
            "nothing here runs any: take another store"
            in fork(events, at, change, WithoutPython(other)).stopped
        )
    with open_store("in_memory") as other:
        forked = fork(events, at, change, WithoutPython(other), Resources(compute=lambda code: "forty-two"))
    assert [computed.output for computed in of(Computed, forked.events)] == ["forty-two"]


def test_a_resume_that_lacks_python_says_so_and_goes_on_when_it_is_given(store, tmp_path):
    path, asked = tmp_path / "run.jsonl", "arithmetic"
    walk = record(think(QUESTION, model(), store, [TOOL], ALWAYS), path)
    next(event for event in walk if isinstance(event, Asked) and event.role == asked)
    walk.close()
    with open_store("in_memory") as other, pytest.raises(ReplayMiss, match=r"give Resources\(compute=…\)"):
        list(resume(path, WithoutPython(other), Resources([TOOL], model())))
    with open_store("in_memory") as other:
        events = list(resume(path, WithoutPython(other), Resources([TOOL], model(), compute=store.compute)))
    assert [computed.output for computed in of(Computed, events)] == ["37"] and events[-1].text == "37"


@pytest.mark.parametrize(
    "kind",
    [
        "in_memory",
        "sparql_embedded",
        pytest.param("cypher_embedded", marks=pytest.mark.extended),
        pytest.param("fused", marks=pytest.mark.extended),
    ],
)
def test_arithmetic_takes_as_long_as_the_limits_say_in_every_store(kind):
    code = "import time\ntime.sleep(0.8)\nprint(37)"
    about = {
        "cypher_embedded": "MATCH (n) RETURN n.id",
        "sparql_embedded": "SELECT ?s WHERE { ?s ?p ?o }",
    }.get(kind, "result = facts()")
    told = {
        "forced": {"statement": about},
        "read in": {"statement": ""},
        "mend": {"statement": ""},
        "reread": {"statement": ""},
    }
    with open_store(kind) as other:
        other.apply(other.graph().diff(PropertyGraph.from_triples([("Ada Lovelace", "born in", "London")])))
        short = list(
            think(QUESTION, model(code, **told), other, [], ALWAYS.but(python_seconds=0.3, repairs=0))
        )
        long = list(think(QUESTION, model(code, **told), other, [], ALWAYS.but(python_seconds=20)))
    assert [c.output for c in of(Computed, short)] == ["the statement took longer than 0.3 seconds"]
    assert [(computed.output, computed.failed) for computed in of(Computed, long)] == [("37", False)]


@pytest.mark.extended
def test_what_took_too_long_once_is_not_asked_of_the_clock_again():
    with open_store("in_memory", seconds=0.3) as hurried:
        late = {role: {"statement": "while True: pass"} for role in ("write", "mend", "forced", "reread")} | {
            "guess": {"answer": "?"}
        }
        events = list(
            think(
                QUESTION, model("while True: pass", **late), hurried, [TOOL], ALWAYS.but(python_seconds=0.3)
            )
        )
    told = {e.error for e in of(Repaired, events)} | {computed.output for computed in of(Computed, events)}
    assert of(Repaired, events) and told == {"the statement took longer than 0.3 seconds"}
    assert verify(events) is None


def test_what_a_person_gives_to_run_python_is_used_as_it_is(store):
    events = asked_of(store, compute=lambda code: "by hand")
    assert [computed.output for computed in of(Computed, events)] == ["by hand"]


def test_a_trace_of_an_older_version_counts_as_one_with_python():
    assert from_json({"event": "Started", "question": "?"}) == Started(question="?", computes=True)
