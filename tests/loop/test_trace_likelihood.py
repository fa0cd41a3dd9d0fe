"""How likely a model held its replies, in events and on file: asked for, recorded, walked again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.loop_script import ADA, FEW, WRITE, call, of, scripted, votes
from support.saved_run import save_run

from kgot_lab.errors import ReplayMiss, TraceError
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.recorded import Recorded, Recorder, Scripted
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, from_json, to_json
from kgot_lab.loop.prompts import Answer
from kgot_lab.loop.replay.recording import Recording, ReplayLLM
from kgot_lab.loop.replay.replay import Resources, fork, resume, same_event, verify
from kgot_lab.loop.run_context import CallOptions, RunContext, ask_reply, ask_structured
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.tools.search import search
from kgot_lab.types import Message

QUESTION = "Where was Ada Lovelace born?"
TOOL = search(ADA, bm25(ADA), k=2)
MESSAGES = (Message("system", "Answer."), Message("user", QUESTION))
REPLIES = {"vote": votes(*"IIIRRR"), "tools": call(), "write": WRITE, "parse": {"answer": "London"}}


class Holding:
    """A model that holds each reply a little less likely than the one before; `always`, also where it is not
    asked.
    """

    def __init__(self, llm, *, always=False, most=1000):
        self.llm, self.name, self.always, self.most, self.replies = llm, llm.name, always, most, 0

    def __call__(self, prompt):
        self.replies += 1
        reply, room = self.llm(prompt), self.most * prompt.max_tokens
        likely = -self.replies / 3 if prompt.likelihood or self.always else None
        return replace(reply, text=reply.text[:room], cut=len(reply.text) > room, logprob=likely)


def a_loop(llm, store):
    return RunContext(llm, llm, store, {}, FEW, None, State())


def asked(steps):
    """The events of some asking, and what it gave."""
    events = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return events, end.value


def test_a_caller_gets_the_reply_with_how_likely_it_was_and_so_does_the_event(store):
    llm = Holding(Scripted(lambda prompt: "London"))
    (event,), reply = asked(
        ask_reply(a_loop(llm, store), "answer", MESSAGES, CallOptions("parse", likelihood=True))
    )
    assert (reply.text, reply.logprob) == ("London", -1 / 3)
    assert event.prompt.likelihood and event.logprob == -1 / 3 and event.as_reply.logprob == -1 / 3


def test_a_reply_that_was_cut_is_asked_for_again_with_the_likelihood_of_the_last(store):
    llm = Holding(Scripted(lambda prompt: "London " * 100), most=1)
    events, reply = asked(
        ask_reply(a_loop(llm, store), "answer", MESSAGES, CallOptions("parse", likelihood=True))
    )
    assert [event.cut for event in events] == [True, True, False] and not reply.cut
    assert reply.logprob == events[-1].logprob == -1.0


def test_a_text_or_a_value_is_asked_for_without_unless_it_is_wanted(store):
    llm = Holding(Scripted(lambda prompt: '{"answer": "London"}'))
    (plain,), reply = asked(ask_reply(a_loop(llm, store), "answer", MESSAGES, CallOptions("parse")))
    (wanted,), value = asked(ask_structured(a_loop(llm, store), "parse", MESSAGES, Answer, likelihood=True))
    assert (reply.text, plain.logprob, plain.prompt.likelihood) == ('{"answer": "London"}', None, False)
    assert value.answer == "London" and wanted.logprob == -2 / 3


def test_a_trace_says_how_likely_a_reply_was_only_where_it_was_told(store, tmp_path):
    run = a_loop(Holding(Scripted(lambda prompt: "London")), store)
    likely, _ = asked(
        record(
            ask_reply(run, "answer", MESSAGES, CallOptions("parse", likelihood=True)),
            tmp_path / "likely.jsonl",
        )
    )
    asked(record(ask_reply(run, "answer", MESSAGES, CallOptions("parse")), tmp_path / "plain.jsonl"))
    assert load_run(tmp_path / "likely.jsonl").events == tuple(likely)
    line = json.loads((tmp_path / "likely.jsonl").read_text().splitlines()[1])
    assert line["logprob"] == -1 / 3 and line["prompt"]["likelihood"] is True
    plain = (tmp_path / "plain.jsonl").read_text()
    assert "logprob" not in plain and "likelihood" not in plain, "as older versions wrote it"


def test_a_recorded_reply_is_given_back_as_likely_as_it_was_and_only_to_who_asks_so(store, tmp_path):
    llm = Holding(Scripted(lambda prompt: "London"))
    steps = ask_reply(a_loop(llm, store), "answer", MESSAGES, CallOptions("parse", likelihood=True))
    (event,), _ = asked(record(steps, tmp_path / "run.jsonl"))
    for again_from in (ReplayLLM(Recording.from_events([event]), llm.name), Recorded(tmp_path / "run.jsonl")):
        assert again_from(event.prompt).logprob == -1 / 3
    with pytest.raises(ReplayMiss):
        Recorded(tmp_path / "run.jsonl")(replace(event.prompt, likelihood=False))


def test_a_run_whose_replies_tell_it_is_verified_resumed_and_recorded_like_any_other(store, tmp_path):
    path = tmp_path / "run.jsonl"
    llm = Budgeted(
        Recorder(Holding(scripted(**REPLIES), always=True), tmp_path / "recording.jsonl"), Budget(calls=50)
    )
    events = list(record(think(QUESTION, llm, store, [TOOL], FEW), path))
    told = [event.logprob for event in of(Asked, events)]
    assert told == [-number / 3 for number in range(1, len(told) + 1)]
    assert [event.logprob for event in of(Asked, load_run(path).events)] == told
    store.write("G.clear()")
    assert verify(events, store) is None
    save_run(events[:8], tmp_path / "half.jsonl")
    store.write("G.clear()")
    recording = Recorded(tmp_path / "recording.jsonl")
    recording.rewind([(event.prompt, event.as_reply) for event in of(Asked, events[:8])])
    resumed = list(resume(tmp_path / "half.jsonl", store, Resources([TOOL], recording)))
    assert [event.logprob for event in of(Asked, resumed)] == told


def test_a_reply_put_there_by_hand_was_held_likely_by_no_model_and_one_that_was_kept_stays_whole(store):
    llm = Holding(scripted(**REPLIES), always=True)
    events = list(think(QUESTION, llm, store, [TOOL], FEW))
    at = next(number for number, event in enumerate(events) if isinstance(event, Asked))
    store.write("G.clear()")
    assert fork(events, at, events[at].reply, store).events[at].logprob == events[at].logprob
    store.write("G.clear()")
    changed = fork(events, at, json.dumps(votes("I", text="another reason")[0]), store)
    assert changed.events[at].logprob is None and changed.first_difference == at


def test_a_line_whose_logprob_is_none_is_damage(store):
    (event,), _ = asked(
        ask_reply(
            a_loop(Holding(Scripted(lambda prompt: "x"), always=True), store),
            "answer",
            MESSAGES,
            CallOptions("parse"),
        )
    )
    line = to_json(event)
    assert same_event(from_json(line), event)
    for odd in ("likely", 0.5, True, float("nan")):
        with pytest.raises(TraceError, match="a damaged Asked event"):
            from_json({**line, "logprob": odd})
