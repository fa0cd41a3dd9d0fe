"""Runs on file: saved, killed, resumed, replayed, verified, forked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.each_kind import each_kind
from support.every import every
from support.loop_script import ADA, FEW, WRITE, call, of, scripted, votes
from support.no_sandbox import no_sandbox
from support.saved_run import save_run
from support.waiting import until

from kgot_lab.errors import BadInput, TraceError
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.query.graph_loading import read_graph
from kgot_lab.llm import connect
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import (
    EVENTS,
    Answered,
    Asked,
    Forced,
    Read,
    Refused,
    ToolReturned,
    Voted,
    Wrote,
    from_json,
    to_json,
)
from kgot_lab.loop.replay.replay import Resources, fork, resume, same_event, states, verify
from kgot_lab.loop.trace import Trace, append_events, graph_after, load_run, model_metadata, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory
from kgot_lab.tools.search import search
from kgot_lab.viz.html import html
from kgot_lab.viz.stepping.stepper import stepper

QUESTION = "Where was Ada Lovelace born?"
TOOL = search(ADA, bm25(ADA), k=2)


def model(**changed):
    replies = {"vote": votes(*"IIIRRR"), "tools": call(), "write": WRITE, "parse": {"answer": "London"}}
    return scripted(**{**replies, **changed})


@pytest.fixture
def empty():
    """A store whose sandbox must not be opened."""
    return InMemory(open=no_sandbox)


@pytest.fixture(scope="module")
def events():
    """A whole run with a repair and a refusal in it."""
    llm = model(
        write={"statements": ["add(", *WRITE["statements"]]},
        mend=[{"statement": f"add({n}"} for n in range(4)],
    )
    with InMemory() as store:
        return tuple(think(QUESTION, llm, store, [TOOL], FEW))


def test_a_run_comes_back_from_its_file(events, tmp_path):
    save_run(events, tmp_path / "run.jsonl", run="r1")
    trace = load_run(tmp_path / "run.jsonl")
    assert trace.run == "r1" and trace.finished and trace.question == QUESTION
    assert all(same_event(was, now) for was, now in zip(events, trace.events, strict=True))


def test_every_kind_of_event_survives_the_file():
    every = each_kind("something")
    assert {type(event) for event in every} == set(EVENTS.values())
    for event in every:
        assert same_event(from_json(json.loads(json.dumps(to_json(event), default=dict))), event)


def test_each_event_is_on_disk_before_the_next_one_is_made(tmp_path):
    path = tmp_path / "run.jsonl"
    with InMemory() as store:
        for number, _ in enumerate(record(think(QUESTION, model(), store, [TOOL], FEW), path), start=1):
            assert len(path.read_text().splitlines()) == number + 1


def test_the_head_names_the_engine_and_the_file_of_a_local_model(events, tmp_path):
    class OnFile:
        name, engine, sha256 = "local:a", "xllamacpp 2026.10", "ab" * 32

    list(record(events, tmp_path / "run.jsonl", metadata=model_metadata(OnFile())))
    assert load_run(tmp_path / "run.jsonl").about == {
        "engine": "xllamacpp 2026.10",
        "model_sha256": "ab" * 32,
    }
    assert model_metadata(scripted()) == {} == model_metadata(Budgeted(scripted(), Budget())), (
        "a model that is no file here says nothing of the kind"
    )


def test_a_trace_that_exists_is_not_written_over(events, tmp_path):
    save_run(events, tmp_path / "run.jsonl")
    with pytest.raises(TraceError, match="exists already"):
        save_run(events, tmp_path / "run.jsonl")


def test_a_replay_needs_no_model_and_no_sandbox(events):
    *_, (_, state) = states(events)
    assert state.answer.text == "London" and len(graph_after(events).edges) == 1
    assert len(graph_after(events, step=0).edges) == 0


def test_verify_names_the_first_event_that_was_tampered_with(events):
    for kind, change in (
        (
            Wrote,
            lambda event: replace(event, diff=replace(event.diff, added_nodes=event.diff.added_nodes[:1])),
        ),
        (Read, lambda event: replace(event, rows=("Paris",))),
        (Voted, lambda event: replace(event, inserts=4)),
        (Refused, lambda event: replace(event, reason="because")),
        (Answered, lambda event: replace(event, text="Paris")),
    ):
        number = next(number for number, event in enumerate(events) if isinstance(event, kind))
        forged = (*events[:number], change(events[number]), *events[number + 1 :])
        with InMemory() as store:
            difference = verify(forged, store)
        assert difference is not None and difference.number == number and kind.__name__ in str(difference)


@pytest.mark.parametrize("kept", [1, 3, 6, 9, 12, -1])
def test_a_run_that_was_stopped_is_verified_as_far_as_it_went(events, kept):
    with InMemory() as store:
        assert verify(events[:kept], store) is None


def test_an_event_after_the_answer_is_a_difference(events):
    with InMemory() as store:
        assert verify([*events, events[-1]], store).number == len(events)


@pytest.mark.extended
def test_a_killed_process_leaves_a_trace_that_resumes(tmp_path):
    path = tmp_path / "run.jsonl"
    program = f"""
import sys, threading
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from loop.test_trace import *
inner = model()
class Slow:
    name = inner.name
    def __call__(self, prompt):
        if open({str(path)!r}).read().count("\\n") >= 5:
            threading.Event().wait()  # until it is killed
        return inner(prompt)
for _ in record(think(QUESTION, Slow(), InMemory(), [TOOL], FEW), {str(path)!r}):
    pass
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    until(
        lambda: process.poll() is not None or (path.exists() and path.read_text().count("\n") >= 5),
        "some events are kept",
    )
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = load_run(path)
    assert not before.finished and len(before.events) >= 3
    left = len(of(Asked, list(before.events)))
    llm = model(vote=votes(*"IIIRRR")[min(left, 3) :])
    with InMemory() as store:
        events = list(resume(path, store, Resources([TOOL], llm)))
    assert events[-1].text == "London" and load_run(path).finished


def test_a_run_that_no_longer_does_what_was_recorded_is_not_resumed(events, tmp_path):
    voted = next(number for number, event in enumerate(events) if isinstance(event, Voted))
    save_run(
        (*events[:voted], replace(events[voted], inserts=5), *events[voted + 1 : -1]), tmp_path / "run.jsonl"
    )
    with InMemory() as store, pytest.raises(TraceError, match=f"event {voted}"):
        list(resume(tmp_path / "run.jsonl", store, Resources([TOOL], model())))


def test_a_fork_with_a_changed_tool_text_asks_only_what_changed(events):
    at = next(number for number, event in enumerate(events) if isinstance(event, ToolReturned))
    llm = scripted(
        write={"statements": ['add("Ada Lovelace", "born in", "Paris")']},
        vote=votes(*"RRR"),
        parse={"answer": "Paris"},
    )
    with InMemory() as store:
        other = fork(events, at, "Ada Lovelace was born in Paris.", store, Resources([TOOL], llm))
    assert other.answer == "Paris" and other.first_difference == at and not other.stopped
    assert other.avoided == 4 and other.asked == len(of(Asked, list(other.events))) - 4 == 5
    assert [edge.target for edge in other.graph.edges] == ["Paris"]


def test_a_fork_without_a_model_runs_to_the_first_missing_reply_and_keeps_the_graph(events):
    at = next(number for number, event in enumerate(events) if isinstance(event, Wrote))
    with InMemory() as store:
        other = fork(events, at, 'add("Ada Lovelace", "born in", "Paris")', store)
    assert "no reply" in other.stopped and "no live model" in other.stopped and other.answer == ""
    assert [edge.target for edge in other.graph.edges] == ["Paris"]
    assert other.events[at].statement == 'add("Ada Lovelace", "born in", "Paris")'
    assert "stopped" in repr(other)


def test_a_fork_of_a_reply_takes_exactly_that_one_of_several_equal_prompts(events):
    samples = [i for i, event in enumerate(events) if isinstance(event, Asked) and event.role == "vote"]
    with InMemory() as store:
        other = fork(events, samples[1], json.dumps({"choice": "INSERT", "text": "something else"}), store)
    assert other.first_difference == samples[1]
    assert other.events[samples[0]].reply == events[samples[0]].reply
    assert other.events[samples[1]].reply != events[samples[1]].reply


def test_a_fork_that_changes_nothing_answers_all_from_memory(events, empty):
    at = next(number for number, event in enumerate(events) if isinstance(event, Asked))
    same_again = fork(events, at, events[at].reply, empty)
    assert same_again.asked == 0 and same_again.answer == "London" and len(same_again.events) == len(events)


def test_what_cannot_be_forked_is_said(events, empty):
    with pytest.raises(BadInput, match="events 0 to"):
        fork(events, 999, "", empty)
    with pytest.raises(BadInput, match="what can be changed"):
        fork(events, 0, "another question", empty)
    at = next(number for number, event in enumerate(events) if isinstance(event, Wrote))
    with InMemory() as store, pytest.raises(BadInput, match="SyntaxError"):
        fork(events, at, "add(", store)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "not a trace"),
        ("hello\nworld\n", "line 1"),
        ('{"trace":1}\n{"event":"Dreamt"}\n', "event 1"),
        ('{"trace":1}\n{"event":"Wrote","statement":"x","diff":3}\n', "damaged Wrote"),
        ('{"trace":1}\nnot json\n{"event":"Forced","what":"read"}\n', "line 2"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_the_place(tmp_path, text, match):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(TraceError, match=match):
        load_run(tmp_path / "x.jsonl")


def test_a_missing_trace_is_refused(tmp_path):
    with pytest.raises(TraceError, match="cannot read"):
        load_run(tmp_path / "nowhere.jsonl")


def test_a_trace_prints_question_answer_steps_cost_model_and_date():
    made = load_run(bundled_path("traces/winter_storm.jsonl"))
    assert made.answer.startswith("La Nina contributed")
    assert repr(made).splitlines() == [
        f"<trace winter_storm: {len(made.events)} events, answered>",
        "  question  Why did the US have a winter storm in late January 2026?",
        f"  answer    {made.answer} ({made.outcome})",
        "  1 step; 11 model calls, 2,716 + 356 tokens, 73 s, $0.0000",
        f"  local:qwen2.5-coder-1.5b-instruct-q4_k_m, {made.created}",
    ]
    stopped = replace(made, events=made.events[:3])
    assert stopped.answer == "" and "not finished" in repr(stopped) and "answer  " not in repr(stopped)
    assert Trace("r", "", ()).answer == "" and repr(Trace("r", "", ())).startswith("<trace r: 0 events")


@every("cut", ["within a line", "between lines", "of its last line", "after its first event"])
def test_a_trace_that_does_not_end_says_so_wherever_it_is_shown(tmp_path, cut):
    whole = bundled_path("traces/hotpotqa_demo.jsonl").read_text(encoding="utf-8")
    lines, path = whole.splitlines(keepends=True), tmp_path / "cut.jsonl"
    path.write_text(
        {
            "within a line": whole[:5_000],
            "between lines": "".join(lines[:9]),
            "of its last line": "".join(lines[:-1]),
        }.get(cut, "".join(lines[:2]))
    )
    run, notes = load_run(path), list[str]()
    read_graph(path, say=notes.append)
    shown = stepper(run)
    texts = (run.unfinished, *notes, shown.picture.alt, shown.live.data["origin"], html(run).text)
    assert all("stopped before its answer, or its trace was cut short" in text for text in texts) and notes
    assert "not finished: stopped, or cut short" in repr(run)


@every("held", ["", "\n\n", '{"trace":'])
def test_what_holds_no_beginning_is_no_trace_and_a_beginning_alone_is_no_run(tmp_path, held):
    path = tmp_path / "cut.jsonl"
    path.write_text(held)
    with pytest.raises(TraceError, match="is not a trace"):
        load_run(path)
    assert "after 0 events" in Trace("r", "", ()).unfinished


OLD = """{"trace":1,"run":"old","created":"2026-11-21T10:00:00+00:00","version":"0.1.0"}
{"event":"Started","step":0,"question":"Where?","preset":"local","limits":{},"planning":"m","execution":"m"}
{"event":"Asked","step":0,"role":"vote","model":"m","prompt":{"messages":[{"role":"user","text":"Where?"}]},"reply":"R","usage":{}}
{"event":"Ballot","step":0,"number":1,"choice":"RETRIEVE","text":"facts()"}
{"event":"Wrote","step":0,"statement":"add()","diff":{"added_nodes":[{"id":"Ada","labels":["Person"],"properties":{}}],"removed_nodes":[],\
"changed_nodes":[],"added_edges":[],"removed_edges":[],"changed_edges":[]}}
{"event":"Read","step":0,"statement":"facts()","rows":["Ada"]}
{"event":"Answered","step":0,"text":"London","forced":false}
"""


def test_a_trace_from_before_some_fields_were_there_is_read(tmp_path):
    (tmp_path / "old.jsonl").write_text(OLD)
    old = load_run(tmp_path / "old.jsonl")
    assert (old.run, old.about, old.question, old.answer, old.finished) == (
        "old",
        {},
        "Where?",
        "London",
        True,
    )
    assert old.events[0].readers == ()
    assert old.events[-1].evidence == ()
    assert graph_after(old.events).ids == ("Ada",)
    assert connect(f"recorded:{tmp_path / 'old.jsonl'}")(old.events[1].prompt).text == "R"


def test_a_trace_that_an_editor_saved_with_a_mark_is_read_all_the_same(tmp_path):
    whole = bundled_path("traces/hotpotqa_demo.jsonl")
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes("\ufeff".encode() + whole.read_bytes())
    assert load_run(marked) == load_run(whole)


# --- damage ---


def test_a_line_that_was_changed_moved_or_taken_out_is_noticed_and_named(tmp_path):
    save_run([Forced(step=step, what="read") for step in range(5)], tmp_path / "run.jsonl")
    lines = (tmp_path / "run.jsonl").read_text().splitlines(keepends=True)
    for changed, number in (
        ([*lines[:3], lines[3].replace('"step":2', '"step":7'), *lines[4:]], 4),
        (lines[:2] + lines[3:], 3),
        ([*lines[:2], lines[3], lines[2], *lines[4:]], 3),
        ([*lines[:2], re.sub(r',"check":"\w+"', "", lines[2]), *lines[3:]], 3),
    ):
        (tmp_path / "changed.jsonl").write_text("".join(changed))
        with pytest.raises(TraceError, match=f"line {number}, is not as it was written"):
            load_run(tmp_path / "changed.jsonl")


def test_a_trace_of_an_older_version_is_read_and_gone_on_with_and_checked_from_there(tmp_path):
    path = tmp_path / "old.jsonl"
    save_run([Forced(step=0, what="read")], path)
    path.write_text(re.sub(r',"check":"\w+"', "", path.read_text()))
    for _ in append_events([Forced(step=1, what="read"), Forced(step=2, what="read")], path):
        pass
    assert [event.step for event in load_run(path).events] == [0, 1, 2]
    path.write_text(path.read_text().replace('"step":0', '"step":5'))
    with pytest.raises(TraceError, match="line 3, is not as it was written"):
        load_run(path)
