"""The bundled recordings: whole, reproducible, and free of what should not be shared."""

from __future__ import annotations

import random
import re
from datetime import date

import pytest
from support.no_sandbox import no_sandbox
from support.waiting import AMPLE

from kgot_lab.documents.folder import read_documents
from kgot_lab.errors import BadInput, ReplayMiss
from kgot_lab.io.files import bundled_path
from kgot_lab.llm import connect
from kgot_lab.llm.local import Local
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Read, ToolReturned, Wrote
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.replay.replay import fork, replay, same_event, verify
from kgot_lab.loop.retrieve import WHOLE_GRAPH
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.stores import InMemory, open_for
from kgot_lab.tools.search import search
from kgot_lab.types import Diff

TRACES = sorted(bundled_path("traces").glob("*.jsonl"))
PATH = r"/(home|root|Users|tmp|work)/|[A-Z]:\\\\"
KEY = r"\b(sk-|hf_|ghp_|AKIA|AIza)[\w-]{12}|Bearer |api[_-]?key"
PRIVATE = re.compile(f"{PATH}|{KEY}", re.I)


@pytest.fixture(params=TRACES, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture(scope="module")
def stores():
    """A warm store for each language, or languages, that a run was made in."""
    opened = {}

    def store(events):
        spoken = (events[0].dialect, *events[0].readers)
        if spoken not in opened:
            opened[spoken] = open_for(*spoken, seconds=AMPLE)
        graph = opened[spoken].graph()
        opened[spoken].apply(Diff(removed_nodes=tuple(graph.nodes), removed_edges=tuple(graph.edges)))
        return opened[spoken]

    yield store
    for each in opened.values():
        each.close()


def test_there_are_traces():
    assert len(TRACES) >= 3


def test_a_trace_walks_again_to_the_letter_without_model_tools_or_sandbox(path):
    trace = load_run(path)
    walked = list(replay(trace, open_for(trace.events[0].dialect, *trace.events[0].readers, open=no_sandbox)))
    assert all(same_event(was, now) for was, now in zip(trace.events, walked, strict=True))
    assert trace.finished and isinstance(trace.events[-1], Answered)


def test_every_statement_on_a_trace_does_the_same_in_the_sandbox_today(path, stores):
    events = load_run(path).events
    assert verify(events, stores(events)) is None


def test_a_trace_says_which_model_which_engine_and_when(path):
    about = load_run(path).about
    asked = [event for event in load_run(path).events if isinstance(event, Asked)]
    if path.stem.startswith("simulated_"):
        assert about["model"].startswith("simulated:") and "no language model" in about["model"]
        assert all(event.model.startswith("simulated:") for event in asked)
    else:
        assert re.fullmatch(r"[0-9a-f]{64}", about["model_sha256"])
        assert re.search(r"\d+\.\d+", about["engine"])
        assert not any(event.model.startswith("simulated") for event in asked)
    assert about["model"] and about["licence"]
    assert date(2026, 1, 1) <= date.fromisoformat(about["recorded"]) <= date(2100, 1, 1)


def test_a_trace_holds_no_path_of_a_machine_and_nothing_like_a_key(path):
    assert PRIVATE.search(path.read_text(encoding="utf-8")) is None


def test_the_answer_of_a_trace_rests_on_facts_of_its_graph_and_documents_its_tools_returned(path):
    trace = load_run(path)
    final = trace.events[-1]
    facts = {f"{edge.source} --[{edge.type}]--> {edge.target}" for edge in graph_after(trace.events).edges}
    returned = {document.id for e in trace.events if isinstance(e, ToolReturned) for document in e.sources}
    assert set(final.evidence) <= facts and set(final.passages) <= returned
    assert final.forced or final.evidence


def storm_again(question=""):
    """The loop over the same texts, with the limits of the recorded run, and its replies in place of a model."""
    path = bundled_path("traces/winter_storm.jsonl")
    begun = load_run(path).events[0]
    tool = search(list(read_documents(bundled_path("winter-storm")).documents), k=3)
    with InMemory() as store:
        yield from think(
            question or begun.question,
            connect(f"recorded:{path}"),
            store,
            [tool],
            Limits.of_json(begun.limits),
        )


def test_the_replies_in_a_bundled_trace_answer_the_question_again_with_the_same_events_every_time(
    monkeypatch,
):
    monkeypatch.setattr(Local, "__call__", lambda *_: pytest.fail("a live model was asked"))
    *recorded, answer = load_run(bundled_path("traces/winter_storm.jsonl")).events
    for _ in range(2):
        *events, last = storm_again()
        assert all(same_event(was, now) for was, now in zip(recorded, events, strict=True))
        assert last.text == answer.text and set(last.evidence) <= set(
            answer.evidence
        )  # an older rule cited more


def test_another_question_misses_and_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(Local, "__call__", lambda *_: pytest.fail("a live model was asked"))
    with pytest.raises(
        ReplayMiss,
        match=r"winter_storm\.jsonl has no reply .*ask as it was, use a live model, or record it again",
    ):
        list(storm_again("Why is the sky blue?"))


CHANGES = ("", "lorem ipsum", '{"choice": "INSERT", "text": "x"}', "result = []")


def forkable(events):
    """Where a run can be forked."""
    return [n for n, event in enumerate(events) if isinstance(event, Asked | ToolReturned | Wrote | Read)]


def fork_stops_or_answers(events, at, change, stores):
    """A fork without a model stops with a reason or answers; a statement that does not run is refused at
    once.
    """
    event = events[at]
    try:
        other = fork(events, at, change, stores(events))
    except BadInput as error:
        whole = isinstance(event, Read) and event.statement == WHOLE_GRAPH
        assert ("reads the whole graph" if whole else "refused") in str(error)
        assert isinstance(event, Wrote | Read)
        return
    assert other.stopped or other.answer
    assert other.first_difference >= at and other.asked == 0
    assert all(same_event(was, now) for was, now in zip(events[:at], other.events[:at], strict=True))


def test_a_trace_forked_at_an_event_of_chance_stops_with_a_reason_or_answers(path, stores):
    events, chance = load_run(path).events, random.Random(path.stem)
    fork_stops_or_answers(events, chance.choice(forkable(events)), chance.choice(CHANGES), stores)


@pytest.mark.extended
@pytest.mark.parametrize("change", CHANGES)
def test_a_trace_forked_anywhere_without_a_model_stops_with_a_reason_or_answers(path, stores, change):
    events = load_run(path).events
    for at in forkable(events):
        fork_stops_or_answers(events, at, change, stores)
