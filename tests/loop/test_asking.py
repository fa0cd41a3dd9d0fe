"""How models and tools are asked: room for long replies, what failures cost, who answered, and calls that are
made again.
"""

from __future__ import annotations

import json

import pytest
from support.every import every
from support.loop_script import ADA, FEW, WRITE, call, kinds, of, role_of, scripted, votes
from support.saved_fork import save_fork

from kgot_lab.errors import BadInput, BadReply, LLMError, ToolFailed, TraceError, UnknownName
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, Chose, Read, Refused, ToolReturned, Wrote
from kgot_lab.loop.limits import LOCAL, REFERENCE, Limits
from kgot_lab.loop.replay.replay import Resources, fork, replay, resume, same_event, verify
from kgot_lab.loop.retrieve import is_statement
from kgot_lab.loop.trace import Trace, load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Reply, Usage

QUESTION = "Where was Ada Lovelace born?"
TOOL = search(ADA, bm25(ADA), k=2)
ONCE = votes(*"IIIRRR")
NOTHING = {
    "vote": votes("I"),
    "forced": {"statement": "result = []"},
    "reread": {"statement": "result = []"},
    "guess": {"answer": "?"},
}
TOLD = {"vote": ONCE, "tools": call(), "write": WRITE, "parse": {"answer": "London"}}


class Ending:
    """A model that ends at max_tokens, counting a token as four letters."""

    name = "ending"

    def __init__(self, llm):
        self.llm = llm

    def __call__(self, prompt):
        reply, most = self.llm(prompt), 4 * prompt.max_tokens
        return Reply(reply.text[:most], reply.usage, cut=len(reply.text) > most)


def run(store, llm, limits=FEW, tools=(TOOL,)):
    events = list(think(QUESTION, llm, store, list(tools), limits))
    store.write("G.clear()")
    assert verify(events, store) is None
    return events


# --- replies that are cut short ---


def test_a_long_list_as_an_answer_is_asked_for_again_with_more_room(store):
    names = ", ".join(f"name {number}" for number in range(300))
    events = run(store, Ending(scripted(**{**TOLD, "parse": {"answer": names}})))
    asked = [(e.role, e.prompt.max_tokens, e.cut) for e in of(Asked, events) if e.role.startswith("parse")]
    assert events[-1].text == names
    assert asked == [("parse", 200, True), ("parse, longer", 400, True), ("parse, longer", 800, False)]


def test_a_long_program_is_called(store):
    ran = []
    code = "\n".join(f"total_{number} = {number} * {number}" for number in range(60))
    tool = TextTool(
        "python",
        "runs code",
        {"code": "code"},
        lambda code: ran.append(code) or Result("Ada Lovelace was born in London."),
    )
    calls = {"calls": [{"tool": "python", "arguments": {"code": code}}]}
    run(store, Ending(scripted(**{**TOLD, "tools": calls})), tools=[tool])
    assert ran[0] == code


@pytest.mark.extended
def test_of_a_hundred_and_twenty_facts_all_are_kept(store):
    facts = [
        f'add("thing {number}", "is part of the long list of", "the collection of things", number={number})'
        for number in range(120)
    ]
    events = run(store, Ending(scripted(**{**TOLD, "write": {"statements": facts}})))
    assert sum(len(wrote.diff.added_edges) for wrote in of(Wrote, events)) == 120 and not of(Refused, events)


def test_facts_that_no_room_is_enough_for_are_asked_for_in_halves(store):
    def write(prompt):
        said = prompt.messages[1].text.split("<<<")[1].split(">>>")[0].partition("\n")[2]
        facts = [
            f'add({text!r}, "is said with", "{"many words " * 60}")'
            for text in said.strip().splitlines()
            for text in text.split(". ")
        ]
        return {"statements": facts}

    events = run(
        store, Ending(scripted(**{**TOLD, "write": write})), FEW.but(reply_tokens={"write": 200}, longer=1)
    )
    assert len(of(Wrote, events)) >= 2 and not of(Refused, events)


def test_a_reply_that_never_ends_says_what_to_raise(store):
    llm = Ending(
        scripted(
            **{
                **TOLD,
                "forced": {"statement": "x" * 9000},
                "guess": {"answer": "x" * 9000},
                "vote": votes("I"),
            }
        )
    )
    with pytest.raises(
        BadReply, match=r"did not end within 400 tokens: raise limits.reply_tokens\['guess'\]"
    ):
        run(store, llm, FEW.but(longer=1, forced_reads=1, rereads=0))


@every(
    ("changes", "match"),
    [
        ({"reply_tokens": {"votes": 3}}, "unknown role in limits.reply_tokens"),
        ({"reply_tokens": {"vote": 0}}, "reply_tokens"),
        ({"temperatures": {"vote": 3}}, "between 0 and 2"),
        ({"temperatures": 0.5}, "'temperatures' is a dictionary"),
        ({"tool_attempts": 0}, "tool_attempts"),
        ({"tool_wait": -1}, "tool_wait"),
        ({"longer": -1}, "longer"),
    ],
)
def test_limits_by_role_are_checked(changes, match):
    with pytest.raises((BadInput, UnknownName), match=match):
        REFERENCE.but(**changes)


def test_lengths_and_temperatures_are_set_by_what_is_asked_for(store):
    limits = FEW.but(reply_tokens={"vote": 77}, temperatures={"vote": 0.1, "parse": 0.9})
    events = run(store, scripted(**TOLD), limits)
    asked = {event.role: (event.prompt.max_tokens, event.prompt.temperature) for event in of(Asked, events)}
    assert asked["vote"] == (77, 0.1) and asked["parse"] == (200, 0.9) and asked["write"] == (1500, 0.0)


def test_limits_that_older_runs_do_not_name_are_told_only_where_they_were_set():
    assert "reply_tokens" not in LOCAL.as_json()
    assert Limits.of_json(REFERENCE.but(longer=1).as_json()).models.longer == 1


# --- who answered, and what a failed call cost ---


def test_after_a_resume_with_another_model_each_reply_names_who_gave_it(store, tmp_path):
    path = tmp_path / "run.jsonl"
    walk = record(think(QUESTION, scripted("first", **TOLD), store, [TOOL], FEW), path)
    for event in walk:
        if isinstance(event, ToolReturned):
            break
    walk.close()
    store.write("G.clear()")
    second = scripted("second", **{**TOLD, "vote": votes("R")})
    with pytest.warns(UserWarning, match="goes on with second; it was begun with first"):
        list(resume(path, store, Resources([TOOL], second)))
    events = load_run(path).events
    told = [event.model for event in of(Asked, events)]
    assert told == ["first"] * 4 + ["second"] * (len(told) - 4) and len(told) > 6
    store.write("G.clear()")
    assert verify(events, store) is None
    assert all(same_event(was, now) for was, now in zip(events, replay(Trace("r", "", events)), strict=True))


def test_what_a_call_that_failed_has_cost_stands_in_the_trace_and_the_run_resumes(store, tmp_path):
    path, failing = tmp_path / "run.jsonl", scripted(**TOLD)

    def failed(prompt):
        if role_of(prompt) == "write":
            error = LLMError("the reply is empty")
            error.spent = Usage(100, 7)
            raise error
        return failing(prompt).text

    with pytest.raises(LLMError, match="the reply is empty"):
        list(record(think(QUESTION, Scripted(failed), store, [TOOL], FEW), path))
    lost = load_run(path).events[-1]
    assert lost.role.is_failed and lost.role == "write, failed" and lost.usage.completion_tokens == 7
    store.write("G.clear()")
    events = list(resume(path, store, Resources([TOOL], scripted(**{**TOLD, "vote": votes("R")}))))
    assert events[-1].text == "London" and lost in events
    store.write("G.clear()")
    assert verify(events, store) is None


# --- tools that fail ---


class Failing:
    """A tool that fails a few times in one way, and then finds something."""

    name, description, finds = "search", "searches", "query"
    arguments = TOOL.arguments

    def __init__(self, *errors):
        self.errors, self.calls = list(errors), 0

    def __call__(self, /, **arguments):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return TOOL(**arguments)


@pytest.mark.parametrize(
    "error", [ToolFailed("429", again=True), TimeoutError("slow"), ConnectionResetError("gone")]
)
def test_a_failure_that_may_pass_is_tried_again(store, error):
    tool = Failing(error, error)
    events = run(store, scripted(**TOLD), FEW.but(tool_wait=0), [tool])
    returned = [(event.failed, event.again) for event in of(ToolReturned, events)]
    assert tool.calls == 3
    assert returned == [(True, True), (True, True), (False, False)]
    assert events[-1].text == "London"


@pytest.mark.parametrize("error", [ToolFailed("no such page"), ValueError("a mistake in the tool")])
def test_a_failure_that_will_not_pass_is_not_tried_again_and_does_not_end_the_run(store, error):
    tool = Failing(error)
    events = run(store, scripted(**{**TOLD, **NOTHING}), FEW.but(tool_wait=0), [tool])
    first = of(ToolReturned, events)[0]
    assert first.failed and not first.again and str(error) in first.text


def test_a_tool_that_stays_away_is_called_as_often_as_the_limits_say_and_may_be_asked_again_later(store):
    tool = Failing(*[ToolFailed("busy", again=True)] * 2)
    told = {**TOLD, "vote": votes(*"IIIIIIRRR")}
    events = run(store, scripted(**told), FEW.but(tool_attempts=2, tool_wait=0, steps=3), [tool])
    assert [len(chose.calls) for chose in of(Chose, events)] == [
        1,
        1,
    ] and tool.calls == 3  # the same call, and the second time it answers


@pytest.mark.parametrize("result", [None, Result(None), object()])
def test_a_tool_that_returns_no_result_is_named(store, result):
    tool = TextTool("odd", "odd", {"query": "words"}, lambda query: result)
    events = run(store, scripted(**{**TOLD, **NOTHING, "tools": call(tool="odd")}), FEW, [tool])
    assert "odd is broken: a tool returns a text, or a Result" in of(ToolReturned, events)[0].text


# --- direct reading ---

DIRECT = FEW.but(reading="whole graph")


def test_a_direct_answer_from_an_empty_graph_calls_a_tool(store):
    answers = [{"choice": "RETRIEVE", "text": "London"}] * 10
    events = run(store, scripted(**{**TOLD, "vote": answers}), DIRECT)
    assert "Chose" in kinds(events) and events[-1].text == "London" and not events[-1].forced


def test_a_statement_where_an_answer_should_be_is_read(store):
    samples = [*votes(*"III"), *[{"choice": "RETRIEVE", "text": "result = facts('Ada Lovelace')"}] * 3]
    events = run(store, scripted(**{**TOLD, "vote": samples}), DIRECT)
    (read,) = of(Read, events)
    assert read.statement == "result = facts('Ada Lovelace')"
    assert events[-1].evidence == ("Ada Lovelace --[born in]--> London",)


def test_a_forced_direct_answer_is_asked_for_as_often_as_the_limits_say(store):
    guesses = [{"answer": "London"}, {"answer": "Paris"}, {"answer": "London"}]
    llm = scripted(**{**TOLD, "vote": votes("I"), "guess": guesses, "choose": {"number": 1}})
    events = run(store, llm, DIRECT.but(steps=1, forced_reads=3))
    assert len([e for e in of(Asked, events) if e.role == "forced answer"]) == 3
    assert events[-1].text == "London"


# --- one writer, and forks of forks ---


def test_two_cannot_write_one_trace(store, tmp_path):
    path = tmp_path / "run.jsonl"
    walk = record(think(QUESTION, scripted(**TOLD), store, [TOOL], FEW), path)
    next(walk)
    with InMemory() as other, pytest.raises(TraceError, match="is being written by another run or resume"):
        resume(path, other, Resources([TOOL], scripted(**TOLD)))
    whole = list(walk)
    assert len(load_run(path).events) == len(whole) + 1


def test_a_fork_of_a_fork_keeps_the_first_change_and_verifies(store, tmp_path):
    events = run(store, scripted(**TOLD))
    original = Trace("original", "", tuple(events))
    wrote = next(number for number, event in enumerate(events) if isinstance(event, Wrote))
    live = Resources([TOOL], scripted(**{**TOLD, "vote": votes("R"), "parse": {"answer": "Paris"}}))
    first = fork(original, wrote, events[wrote].statement.replace("London", "Paris"), live=live)
    save_fork(first, tmp_path / "first.jsonl", original)
    kept = load_run(tmp_path / "first.jsonl")
    assert verify(kept) is None
    assert all(same_event(was, now) for was, now in zip(kept.events, replay(kept), strict=True))
    later = next(i for i, event in enumerate(kept.events) if i > wrote and isinstance(event, Asked))
    second = fork(
        kept, later, json.dumps({"choice": "RETRIEVE", "text": "result = facts('Ada Lovelace')"}), live=live
    )
    assert {edge.target for edge in second.graph.edges} == {"Paris"} and second.first_difference == later


def test_a_run_stopped_while_it_waits_for_a_busy_tool_calls_it_again_when_it_goes_on(store, tmp_path):
    path = tmp_path / "run.jsonl"
    walk = record(
        think(
            QUESTION, scripted(**TOLD), store, [Failing(ToolFailed("busy", again=True))], FEW.but(tool_wait=0)
        ),
        path,
    )
    next(event for event in walk if isinstance(event, ToolReturned))
    walk.close()
    store.write("G.clear()")
    events = list(resume(path, store, Resources([TOOL], scripted(**{**TOLD, "vote": votes("R")}))))
    assert [returned.failed for returned in of(ToolReturned, events)] == [True, False]
    assert events[-1].text == "London"


def test_a_run_with_a_lost_call_is_forked_by_the_numbers_that_are_shown(store):
    events = run(store, scripted(**TOLD))
    at = next(i for i, event in enumerate(events) if isinstance(event, Asked) and event.role == "write")
    lost = Asked(
        role="write, failed",
        model="scripted",
        prompt=events[at].prompt,
        reply="",
        usage=Usage(5, 0),
        step=events[at].step,
    )
    events = [*events[:at], lost, *events[at:]]
    with pytest.raises(BadInput, match="a call that failed"):
        fork(events, at, "x")
    other = fork(events, at + 1, json.dumps({"statements": ['add("Ada Lovelace", "born in", "Paris")']}))
    assert {edge.target for edge in other.graph.edges} == {"Paris"} and other.first_difference == at


@pytest.mark.parametrize(
    "title", ["Call Me by Your Name", "Call of Duty", "Match (film)", "Select Ada", "Resultant = force"]
)
def test_a_title_is_no_statement(title):
    assert not is_statement(title)


def test_a_repaired_reply_that_is_cut_gets_room_too(store):
    names = ", ".join(f"name {number}" for number in range(200))
    events = run(store, Ending(scripted(**{**TOLD, "parse": ["no json", {"answer": names}]})))
    assert events[-1].text == names
