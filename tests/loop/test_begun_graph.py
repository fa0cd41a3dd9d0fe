"""A graph that outlives a question: a run may begin with one, and resume, fork, verify and show know of it."""

from __future__ import annotations

import pytest
from support.loop_script import ADA, FEW, call, kinds, of, scripted, votes

from kgot_lab.errors import BadInput, TraceError
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, Forced, Started, Wrote
from kgot_lab.loop.limits import LOCAL
from kgot_lab.loop.replay.replay import Resources, fork, replay, resume, same_event, states, verify
from kgot_lab.loop.trace import graph_after, load_run, record, snapshot_path
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.types import Edge, Node, Reply

QUESTION = "Where was Ada Lovelace born?"
KNOWN = PropertyGraph.of(
    [Node("Ada Lovelace"), Node("London", ("City",))],
    [Edge("Ada Lovelace", "born in", "London", {"year": 1815})],
)
TOOL = search(ADA, bm25(ADA), k=2)
LANGUAGES = ("in_memory", "cypher_embedded", "sparql_embedded")


def holding(graph, kind="in_memory"):
    """An open store that holds a graph."""
    store = open_store(kind)
    store.apply(store.graph().diff(graph))
    return store


def model(**more):
    told = {"vote": votes(*"RRR"), "parse": {"answer": "London"}, "forced": {"statement": "result = facts()"}}
    return scripted(**(told | more))


def asked_of_graph(path, given=(), **more):
    with holding(KNOWN) as store:
        return list(record(think(QUESTION, model(**more), store, list(given), FEW), path))


def test_a_graph_answers_without_documents_or_tools(tmp_path):
    events = asked_of_graph(tmp_path / "run.jsonl")
    assert (events[-1].text, events[-1].forced) == ("London", False)
    assert events[-1].evidence == ("Ada Lovelace --[born in]--> London",)
    assert of(Forced, events)[0].what == "read"


def test_a_graph_that_holds_the_answer_is_read_at_the_first_vote(tmp_path):
    events = asked_of_graph(tmp_path / "run.jsonl", [TOOL])
    assert "Chose" not in kinds(events) and events[-1].evidence == ("Ada Lovelace --[born in]--> London",)


@pytest.mark.parametrize("kind", LANGUAGES)
def test_a_run_names_its_graph_and_everything_folds_from_it(kind):
    look = {"answer": "London", "choice": "RETRIEVE", "about": ["Ada Lovelace"], "missing": ""}
    with holding(KNOWN, kind) as store:
        events = list(think(QUESTION, model(look=look), store, [TOOL], LOCAL))
        begun = of(Started, events)[0]
        assert begun.graph == begun.start.digest and graph_after(events) == store.graph() == begun.start
    assert [state.start for _, state in states(events)][-1] == begun.start


def test_the_graph_stands_beside_the_trace_and_comes_back_with_it(tmp_path):
    path = tmp_path / "run.jsonl"
    events = asked_of_graph(path)
    run = load_run(path)
    assert snapshot_path(path).name == "run.start.jsonl" and run.events[0].start == KNOWN
    assert graph_after(run.events) == KNOWN and verify(run) is None
    assert all(same_event(was, now) for was, now in zip(events, replay(run), strict=True))


def test_a_trace_without_its_graph_or_with_another_says_so(tmp_path):
    path = tmp_path / "run.jsonl"
    asked_of_graph(path)
    text = snapshot_path(path).read_text()
    snapshot_path(path).write_text(text.replace("1815", "1816"))
    with pytest.raises(TraceError, match="is not the graph that the run"):
        load_run(path)
    snapshot_path(path).unlink()
    with pytest.raises(TraceError, match=r"began with a graph, and .*run\.start\.jsonl does not hold it"):
        load_run(path)


@pytest.mark.parametrize("kept", [1, 2, 4, 6])
@pytest.mark.parametrize("begins", ["empty", "holding"])
def test_a_run_on_a_graph_resumes_in_an_empty_store_and_in_one_that_holds_it(tmp_path, kept, begins):
    path, whole = tmp_path / "run.jsonl", tmp_path / "whole.jsonl"
    told = {
        "vote": votes(*"IIIRRR"),
        "tools": call(),
        "write": {"statements": ["add('Ada Lovelace', 'wrote', 'notes')"]},
    }
    events = asked_of_graph(whole, [TOOL], **told)
    path.write_text("".join(whole.read_text().splitlines(keepends=True)[: kept + 1]))
    snapshot_path(path).write_text(snapshot_path(whole).read_text())
    left = len(of(Asked, events)) - len(of(Asked, events[:kept]))
    llm = _FromEvents(events[kept:])
    with holding(KNOWN) if begins == "holding" else open_store("in_memory") as store:
        resumed = list(resume(path, store, Resources([TOOL], llm)))
        assert store.graph() == graph_after(resumed) and len(store.graph().edges) == 2
    assert all(same_event(was, now) for was, now in zip(events, resumed, strict=True)) and llm.asked == left
    assert verify(load_run(path)) is None


class _FromEvents:
    """A model that gives the replies of some events in their order."""

    name = "scripted"

    def __init__(self, events):
        self.replies, self.asked = [event for event in events if isinstance(event, Asked)], 0

    def __call__(self, prompt):
        event = self.replies[self.asked]
        assert event.prompt == prompt
        self.asked += 1
        return Reply(event.reply, event.usage)


def test_a_store_that_holds_another_graph_is_not_walked_into(tmp_path):
    path = tmp_path / "run.jsonl"
    asked_of_graph(path)
    with (
        holding(PropertyGraph.of([Node("Babbage")])) as other,
        pytest.raises(BadInput, match="empty, or hold just the graph"),
    ):
        resume(path, other, Resources())


def test_a_fork_begins_with_the_same_graph(tmp_path):
    path = tmp_path / "run.jsonl"
    told = {
        "vote": votes(*"IIIRRR"),
        "tools": call(),
        "write": {"statements": ["add('Ada Lovelace', 'wrote', 'notes')"]},
    }
    events = asked_of_graph(path, [TOOL], **told)
    at = next(number for number, event in enumerate(events) if isinstance(event, Wrote))
    other = fork(load_run(path), at, "add('Ada Lovelace', 'lived in', 'Marylebone')")
    assert {edge.type for edge in other.graph.edges} == {"born in", "lived in"}


def test_a_second_question_on_the_same_store_builds_on_the_first():
    with open_store("in_memory") as store:
        told = {
            "vote": votes(*"IIIRRR"),
            "tools": call(),
            "write": {"statements": ["add('Ada Lovelace', 'born in', 'London')"]},
        }
        first = list(think(QUESTION, model(**told), store, [TOOL], FEW))
        second = list(
            think("Who was born in London?", model(parse={"answer": "Ada Lovelace"}), store, [], FEW)
        )
    assert second[0].graph == graph_after(first).digest
    assert second[-1].evidence == ("Ada Lovelace --[born in]--> London",)
    assert verify(second) is None


def test_equal_graphs_have_one_digest_whatever_their_order_and_another_has_another():
    turned = PropertyGraph.of(reversed(list(KNOWN.nodes)), KNOWN.edges)
    assert turned.digest == KNOWN.digest != PropertyGraph.of(KNOWN.nodes).digest
