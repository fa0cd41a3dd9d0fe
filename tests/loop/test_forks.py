"""Forks on file: what they say they changed is what differs, and what they cost is counted, not believed."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace

import pytest
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes
from support.no_sandbox import no_sandbox
from support.saved_fork import save_fork
from support.saved_run import save_run

from kgot_lab.errors import BadInput, TraceError
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, Read, ToolReturned, Vote, Wrote
from kgot_lab.loop.replay.forks import (
    align_runs,
    changeable_part,
    changeable_text,
    comparable_texts,
    fork_to_file,
    recorded_fork,
)
from kgot_lab.loop.replay.replay import Resources, fork, same_event
from kgot_lab.loop.retrieve import WHOLE_GRAPH
from kgot_lab.loop.trace import Trace, graph_after, load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory
from kgot_lab.tools.search import search
from kgot_lab.types import Reply

FORKS = {"winter_storm_fork_volcano": "winter_storm", "hotpotqa_two_hops_fork_oregon": "hotpotqa_two_hops"}
TOOL = search(ADA, bm25(ADA), k=2)
PARIS = scripted(
    write={"statements": ['add("Ada Lovelace", "born in", "Paris")']},
    vote=votes(*"RRR"),
    parse={"answer": "Paris"},
)


class FromEvents:
    """A model that says what some events say it said."""

    name = "from events"

    def __init__(self, events):
        self.replies = defaultdict(deque)
        for event in events:
            if isinstance(event, Asked):
                self.replies[prompt_digest(event.prompt, "")].append(
                    Reply(event.reply, event.usage, event.model)
                )

    def __call__(self, prompt):
        return self.replies[prompt_digest(prompt, "")].popleft()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A whole run, on file."""
    llm = scripted(vote=votes(*"IIIRRR"), tools=call(), write=WRITE, parse={"answer": "London"})
    path = tmp_path_factory.mktemp("runs") / "run.jsonl"
    with InMemory() as store:
        save_run(think("Where was Ada Lovelace born?", llm, store, [TOOL], FEW), path, run="born")
    return load_run(path)


@pytest.fixture(scope="module")
def other(original):
    """The same run with another text from the tool, and a model for the rest."""
    with InMemory() as store:
        return fork(
            original.events,
            first(original, ToolReturned),
            "Ada Lovelace was born in Paris.",
            store,
            Resources([TOOL], PARIS),
        )


@pytest.fixture(params=sorted(FORKS))
def bundle(request):
    """A bundled fork and the trace it was made from."""
    return load_run(bundled_path(f"traces/{FORKS[request.param]}.jsonl")), load_run(
        bundled_path(f"traces/{request.param}.jsonl")
    )


def first(trace, kind):
    return next(number for number, event in enumerate(trace.events) if isinstance(event, kind))


# --- on file ---


def test_a_fork_comes_back_from_its_file_as_it_was(original, other, tmp_path):
    save_fork(other, tmp_path / "fork.jsonl", original, model="scripted")
    again = recorded_fork(original, load_run(tmp_path / "fork.jsonl"))
    assert all(same_event(was, now) for was, now in zip(other.events, again.events, strict=True))
    assert (again.first_difference, again.avoided, again.asked, again.stopped) == (
        other.first_difference,
        4,
        5,
        "",
    )
    assert again.answer == "Paris" and again.graph == other.graph


def test_the_head_of_the_file_says_what_was_changed_where(original, other, tmp_path):
    save_fork(other, tmp_path / "fork.jsonl", original, model="scripted")
    about = load_run(tmp_path / "fork.jsonl").about
    assert about["fork_of"] == "born"
    assert about["at"] == first(original, ToolReturned)
    assert about["model"] == "scripted"
    assert about["change"] == "Ada Lovelace was born in Paris."


def test_a_fork_that_stopped_is_kept_with_its_reason(original, tmp_path):
    at = first(original, Wrote)
    with InMemory() as store:
        stopped = fork(original.events, at, 'add("Ada Lovelace", "born in", "Paris")', store)
    save_fork(stopped, tmp_path / "fork.jsonl", original)
    again = recorded_fork(original, load_run(tmp_path / "fork.jsonl"))
    assert "no reply" in again.stopped and again.stopped == stopped.stopped and again.graph == stopped.graph
    assert (again.avoided, again.asked) == (stopped.avoided, stopped.asked) == (5, 0)


def test_a_change_to_nothing_is_a_change(original, tmp_path):
    vote = next(i for i, e in enumerate(original.events) if isinstance(e, Asked) and e.role == "vote")
    empty = fork(original.events, vote, "", InMemory(open=no_sandbox))
    save_fork(empty, tmp_path / "fork.jsonl", original)
    assert recorded_fork(original, load_run(tmp_path / "fork.jsonl")).events[vote].reply == ""


def test_what_changes_nothing_is_no_fork(original, tmp_path):
    at = first(original, Asked)
    with pytest.raises(BadInput, match="cannot be changed"):
        fork_to_file(original, at, original.events[at].reply, tmp_path / "fork.jsonl", live=Resources([]))
    assert not list(tmp_path.iterdir())


def test_a_fork_of_another_run_is_refused(original, other, tmp_path):
    save_fork(other, tmp_path / "fork.jsonl", original)
    with pytest.raises(TraceError, match="a fork of 'born'"):
        recorded_fork(replace(original, run="another"), load_run(tmp_path / "fork.jsonl"))
    with pytest.raises(TraceError, match="a fork of 'nothing'"):
        recorded_fork(original, original)


def test_a_file_that_changes_more_than_it_says_is_refused(original, other):
    about = {"fork_of": "born", "at": other.first_difference, "change": "Ada Lovelace was born in Paris."}
    assert recorded_fork(original, Trace("f", "", other.events, about)).asked == 5
    early = (other.events[0], replace(other.events[1], reply="said otherwise"), *other.events[2:])
    for events, said_about in (
        (early, about),
        (other.events, about | {"at": 1}),
        (other.events, about | {"change": "Ada Lovelace was born in Rome."}),
        (original.events, about),
    ):
        with pytest.raises(TraceError, match="first differs"):
            recorded_fork(original, Trace("f", "", events, said_about))


def test_a_fork_that_gives_a_recorded_question_another_reply_is_refused(original):
    samples = [i for i, e in enumerate(original.events) if isinstance(e, Asked) and e.role == "vote"]
    changed = fork(
        original.events, samples[0], '{"choice": "INSERT", "text": "x"}', InMemory(open=no_sandbox)
    )
    events = list(changed.events)
    events[samples[1]] = replace(events[samples[1]], reply="made up")
    about = {"fork_of": "born", "at": samples[0], "change": events[samples[0]].reply}
    with pytest.raises(TraceError, match="recorded otherwise"):
        recorded_fork(original, Trace("f", "", tuple(events), about))


def test_numbers_in_the_head_are_not_believed(original, other):
    about = {
        "fork_of": "born",
        "at": other.first_difference,
        "change": changeable_text(other.events, other.first_difference),
    }
    again = recorded_fork(
        original, Trace("f", "", other.events, {**about, "avoided": 99, "asked": 0, "stopped": "no"})
    )
    assert (again.avoided, again.asked, again.stopped) == (4, 5, "")


# --- what comes with the package ---


def test_a_bundled_fork_is_made_again_to_the_letter_from_its_own_replies(bundle):
    original, recorded = bundle
    shown = recorded_fork(original, recorded)
    live = Resources([], FromEvents(recorded.events[shown.first_difference :]))
    with InMemory() as store:
        again = fork(original.events, recorded.about["at"], recorded.about["change"], store, live)
    *before, was_answered = recorded.events
    *events, answered = again.events
    assert all(same_event(was, now) for was, now in zip(before, events, strict=True))
    # evidence was cited by another rule when the fork was recorded
    assert (was_answered.text, was_answered.forced) == (answered.text, answered.forced)
    assert set(answered.passages) <= set(was_answered.passages) and len(answered.evidence) <= 3
    assert (again.avoided, again.asked, again.first_difference) == (
        shown.avoided,
        shown.asked,
        shown.first_difference,
    )
    assert again.graph == shown.graph == graph_after(recorded.events)


def test_a_bundled_fork_says_that_its_change_was_written_by_hand(bundle):
    assert "written by hand" in bundle[1].about["written"] and bundle[1].finished


def test_one_changed_reply_leads_to_the_state_that_was_asked_for():
    original = load_run(bundled_path("traces/hotpotqa_two_hops.jsonl"))
    other = recorded_fork(original, load_run(bundled_path("traces/hotpotqa_two_hops_fork_oregon.jsonl")))
    assert (original.events[-1].text, other.answer) == ("Portland", "Oregon")
    assert (other.avoided, other.asked) == (14, 4)  # and one reply was written by hand


# --- what can be changed, and what stands beside what ---


def test_replies_results_and_statements_can_be_changed_and_nothing_else(original):
    parts = {type(event): changeable_part(event) for event in original.events}
    assert parts[Asked] == "reply"
    assert parts[ToolReturned] == "text"
    assert parts[Wrote] == parts[Read] == "statement"
    assert parts[Vote] == ""
    inside = replace(original.events[first(original, Asked)], role="inside search")
    assert changeable_part(inside) == changeable_part(Read(statement=WHOLE_GRAPH, rows=())) == ""


def test_a_run_beside_itself_has_every_event_in_line(original):
    assert align_runs(original.events, original.events) == [(i, i) for i in range(len(original.events))]


def test_every_event_of_two_runs_has_one_place_and_keeps_its_order(bundle):
    original, recorded = bundle
    pairs = align_runs(original.events, recorded.events)
    assert [one for one, _ in pairs if one is not None] == list(range(len(original.events)))
    assert [two for _, two in pairs if two is not None] == list(range(len(recorded.events)))
    keys, other_keys = comparable_texts(original.events), comparable_texts(recorded.events)
    alike = [
        one for one, two in pairs if one is not None and two is not None and keys[one] == other_keys[two]
    ]
    assert set(range(recorded.about["at"])) <= set(alike)


def test_the_changed_event_stands_beside_what_it_was_and_a_left_out_one_alone(original, other):
    pairs = align_runs(original.events, other.events)
    assert (other.first_difference, other.first_difference) in pairs
    cut = align_runs(original.events, (*original.events[:3], *original.events[4:]))
    assert (3, None) in cut and (4, 3) in cut and align_runs(original.events, ())[0] == (0, None)
