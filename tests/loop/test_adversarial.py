"""What a model, a tool or a store may do to the loop, and what must still hold: no crash, no endless loop,
nothing lost, nothing untrue.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.loop_script import ADA, FEW, WRITE, call, of, scripted, votes
from support.saved_run import save_run
from support.work import computing_at_most

from kgot_lab.errors import BadInput, LLMError, SandboxError, ToolFailed, TraceError
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Chose,
    Computed,
    Cut,
    Failed,
    Forced,
    Parsed,
    Read,
    Refused,
    Repaired,
    Started,
    ToolCall,
    ToolReturned,
    Vote,
    Wrote,
    from_json,
)  # fmt: skip
from kgot_lab.loop.limits import LOCAL
from kgot_lab.loop.render import row_lines
from kgot_lab.loop.replay.recording import Recording, ReplayLLM, ReplayTool
from kgot_lab.loop.replay.replay import Resources, fork, replay, resume, same_event, verify
from kgot_lab.loop.trace import Trace, append_events, load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool, ask_model
from kgot_lab.types import Document, Message, Prompt, Reply, Usage

pytestmark = pytest.mark.extended

QUESTION = "Where was Ada Lovelace born?"
TOOL = search(ADA, bm25(ADA), k=2)
ONCE = votes(*"IIIRRR")


def model(name="scripted", **changed):
    replies = {"vote": ONCE, "merge": {"reason": "x"}, "tools": call("Ada Babbage"), "write": WRITE}
    return scripted(name, **{**replies, "parse": {"answer": "London"}, "guess": {"answer": "?"}, **changed})


def tool_of(function, name="search"):
    return TextTool(name, "Looks things up.", {"query": "what"}, function, finds="query")


def run(store, tool=TOOL, limits=FEW, llm=None, **options):
    return list(think(QUESTION, llm or model(), store, [tool], limits, **options))


def small(**changed):
    """A model for the preset made for small ones."""
    names = {"about": ["Ada Lovelace"]}
    look = {"answer": "London", "choice": "RETRIEVE", "about": ["Ada Lovelace"], "missing": ""}
    replies = {
        "look": look,
        "next": names,
        "names": names,
        "extract": "Ada Lovelace | born in | London",
        "tools": call("Ada"),
    }
    return scripted(**{**replies, "parse": {"answer": "London"}, "guess": {"answer": "?"}, **changed})


# --- tools ---


@pytest.mark.parametrize("limits", [FEW, LOCAL], ids=["reference", "local"])
@pytest.mark.parametrize(
    "text",
    ["", "   \n", "x" * 1_000_000, "Ada " * 250_000, "A. " * 300_000, "\u2028\x00\x0b é😀 | a | b"],
    ids=["empty", "blank", "a long word", "no ends", "initials", "odd"],
)
def test_whatever_text_a_tool_returns_the_run_ends_and_no_prompt_is_huge(store, tmp_path, limits, text):
    llm = model(
        write={"statements": []},
        vote=votes("I"),
        forced={"statement": "result = []"},
        reread={"statement": "result = []"},
    )
    llm = llm if limits is FEW else small()
    with computing_at_most(150):  # it takes one second and a half; what grows with the square takes minutes
        events = list(
            record(
                think(QUESTION, llm, store, [tool_of(lambda query: Result(text))], limits),
                tmp_path / "t.jsonl",
            )
        )
    assert isinstance(events[-1], Answered)
    assert max(len(message.text) for asked in of(Asked, events) for message in asked.prompt.messages) < 40_000
    assert all(
        same_event(was, now) for was, now in zip(events, load_run(tmp_path / "t.jsonl").events, strict=True)
    )
    # sentences that speak of nothing looked up are not candidates at all
    if len(text) > 10_000 and (limits is FEW or "Ada" in text):
        assert of(Cut, events)


@pytest.mark.parametrize(
    "error", [LLMError("the model is gone"), SandboxError("the worker is gone")], ids=["model", "sandbox"]
)
def test_a_run_that_breaks_off_keeps_its_trace_and_resumes(store, tmp_path, error):
    broken = [True]

    def flaky(query):
        if broken:
            raise error
        return TOOL(query=query)

    path, tool = tmp_path / "t.jsonl", tool_of(flaky)
    with pytest.raises(type(error), match="is gone"):
        list(record(think(QUESTION, model(), store, [tool], FEW), path))
    held = load_run(path)
    assert not held.finished and isinstance(held.events[-1], Chose)
    broken.clear()
    events = list(resume(path, store, Resources([tool], model(vote=votes("R")))))
    assert events[-1].text == "London" and load_run(path).finished


def test_nested_and_odd_arguments_reach_the_tool_check_and_are_never_repeated(store, tmp_path):
    arguments = {"query": {"deep": [1, {"x": None}]}}, {"self": "x", "query": "Ada"}
    nested = [{"tool": "search", "arguments": argument} for argument in arguments]
    llm = model(
        vote=votes("I"),
        tools={"calls": nested * 2},
        forced={"statement": "result = []"},
        reread={"statement": "result = []"},
    )
    path = tmp_path / "t.jsonl"
    events = list(record(think(QUESTION, llm, store, [TOOL], FEW), path))
    returned = of(ToolReturned, events)
    assert [event.failed for event in returned] == [True, True] and isinstance(events[-1], Answered)
    assert "must be a text" in returned[0].text and "self" in returned[1].text
    assert all(same_event(was, now) for was, now in zip(events, replay(load_run(path)), strict=True))


def test_what_a_model_inside_a_tool_cost_survives_replay_verify_and_resume(store, tmp_path):
    inner = Scripted(lambda prompt: "Ada Lovelace was born in London.", "inner")
    tool, path = ask_model(inner), tmp_path / "t.jsonl"
    llm = model(tools=call("Where was she born?", "llm_query"))
    events = list(record(think(QUESTION, llm, store, [tool], FEW), path))
    (inside,) = [asked for asked in of(Asked, events) if asked.role == "inside llm_query"]
    assert inside.usage.prompt_tokens > 0
    assert all(same_event(was, now) for was, now in zip(events, replay(load_run(path)), strict=True))
    store.write("G.clear()")
    assert verify(events, store) is None
    cut = tmp_path / "cut.jsonl"
    save_run(events[:-1], cut)
    store.write("G.clear()")
    assert all(
        same_event(was, now)
        for was, now in zip(events, resume(cut, store, Resources([tool], model())), strict=True)
    )
    assert len(inner.asked) == 1


def test_two_tools_of_one_name_are_refused(store):
    with pytest.raises(BadInput, match="same name"):
        think(QUESTION, model(), store, [TOOL, TOOL])


def test_documents_of_one_id_from_two_tools_do_not_confuse_the_answer(store):
    died = Document("d1", "Ada Lovelace died in Marylebone.", "Ada")
    other = tool_of(lambda query: Result(died.text, (died,)), "other")
    both = {"calls": [*call("Ada Babbage")["calls"], *call("Ada", "other")["calls"]]}
    events = list(think(QUESTION, model(tools=both), store, [TOOL, other], FEW))
    assert len(of(ToolReturned, events)) == 2 and events[-1].passages == ("d1",)
    assert [s.sentence for s in events[-1].supports[0]] == ["Ada Lovelace was born in London in 1815."]


# --- texts that cannot be written ---


def test_half_a_letter_in_a_reply_a_call_or_a_tool_text_does_not_end_the_run(store, tmp_path):
    path = tmp_path / "t.jsonl"
    vote = r'{"choice": "INSERT", "text": "more \ud800"}'
    calls = r'{"calls": [{"tool": "search", "arguments": {"query": "Ada \udfff"}}]}'
    tool = tool_of(
        lambda query: Result(f"{query} \ud800 Ada was born.", (Document("d\ud800", "Ada \ud800", "A"),))
    )
    llm = model(vote=[vote, "\ud800", *votes(*"IIIRRR")], tools=calls, parse=r'{"answer": "Lond\ud800n"}')
    events = list(record(think(QUESTION, llm, store, [tool], FEW), path))
    assert "\ud800" not in "".join(message.text for a in of(Asked, events) for message in a.prompt.messages)
    assert events[-1].text == "Lond?n" and of(Vote, events)[0].text == "more ?"
    assert all(same_event(was, now) for was, now in zip(events, replay(load_run(path)), strict=True))


def test_a_trace_takes_what_only_an_escape_can_write(tmp_path):
    events = [Started(question="\ud800 é"), Refused(statement="\udfff", reason="é😀", writing=True)]
    save_run(events, tmp_path / "t.jsonl")
    assert load_run(tmp_path / "t.jsonl").events == tuple(events)


# --- rows and graphs ---


@pytest.mark.parametrize(
    "result",
    [
        "[None]", "[[1, [2, {'a': None}]], {'b': {'c': []}}]", "[float('nan'), float('inf')]",
        "[{'subject': None, 'relation': 1, 'object': []}]",
        "[{'sentence': ['x']}]", "{'a': 1}", "3", "'text'", "[True]", "[{'subject': 's', 'relation': 'r', 'object': 'o', 'sentence': 7}]",
    ],
)  # fmt: skip
def test_rows_of_any_shape_are_shown_recorded_and_answered_from(store, tmp_path, result):
    samples = [
        *votes(*"III"),
        *[{"choice": "RETRIEVE", "text": f"result = [*facts(), *([{result}] * len(G))]"}] * 3,
    ]
    events = list(record(think(QUESTION, model(vote=samples), store, [TOOL], FEW), tmp_path / "t.jsonl"))
    assert events[-1].text == "London" and events[-1].forced is False
    assert all(
        same_event(was, now) for was, now in zip(events, replay(load_run(tmp_path / "t.jsonl")), strict=True)
    )


def test_a_hundred_thousand_rows_are_cut_not_sent(store):
    samples = [
        *votes(*"III"),
        *[{"choice": "RETRIEVE", "text": "result = [f'{n}' for n in range(100_000 + 0 * len(G))]"}] * 3,
    ]
    with computing_at_most(100):
        events = run(store, llm=model(vote=samples), limits=FEW.but(row_tokens=200))
    parse = next(asked for asked in of(Asked, events) if asked.role == "parse")
    assert len(parse.prompt.messages[-1].text) < 3000
    (cut,) = of(Cut, events)
    assert cut.what == "rows" and cut.left_out > 100_000


def test_one_row_too_long_for_its_budget_is_cut_and_says_so(store):
    samples = [
        *votes(*"III"),
        *[{"choice": "RETRIEVE", "text": "result = ['x' * (10_000 + 0 * len(G))]"}] * 3,
    ]
    (cut,) = of(Cut, run(store, llm=model(vote=samples), limits=FEW.but(row_tokens=100)))
    assert (cut.what, cut.kept, cut.left_out) == ("rows", 100, 2400)


def test_rows_of_one_sentence_share_a_line_and_odd_ones_stand_alone():
    triple = {"subject": "a", "relation": "b", "object": "c", "sentence": "S."}
    assert row_lines((triple, {**triple, "object": "d"}, None, [1], triple)) == [
        'a b c; a b d ("S.")',
        "null",
        "[1]",
    ]


@pytest.mark.parametrize("reading", ["statements", "operations", "whole graph"])
def test_odd_properties_in_the_graph_break_no_prompt_and_no_evidence(store, reading):
    odd = 'add("Ada Lovelace", "born in", "London", source=["d1"], sentence=None, deep={"a": [None, {"b": 1}]}, flag=True)'
    look = {"answer": "London", "choice": "RETRIEVE", "about": ["Ada Lovelace"], "missing": ""}
    answers = votes(*"RRR") if reading == "statements" else [{"choice": "RETRIEVE", "text": "London"}] * 3
    llm = model(write={"statements": [odd]}, vote=[*votes(*"III"), *answers], look=look)
    events = run(store, llm=llm, limits=FEW.but(reading=reading, unpolled=int(reading == "operations")))
    assert events[-1].evidence == ("Ada Lovelace --[born in]--> London",)
    assert events[-1].passages == ("d1",)


def test_a_source_that_a_model_made_up_is_not_named_as_a_passage(store):
    events = run(
        store,
        llm=model(write={"statements": ['add("Ada Lovelace", "born in", "London", source="Encyclopaedia")']}),
    )
    assert events[-1].passages == ("d1",)  # the one that says it, of the two that the tool returned
    store.write("G.clear()")
    events = run(
        store, llm=model(write={"statements": ['add("Ada Lovelace", "born in", "London", source="d2")']})
    )
    assert events[-1].passages == ("d2",)


def test_a_fact_that_was_removed_again_is_no_evidence(store):
    wrong = [
        'add("Ada Lovelace", "born in", "Paris")',
        WRITE["statements"][0],
        'G.remove_edge("Ada Lovelace", "Paris", "born in")',
    ]
    samples = [*votes(*"III"), *[{"choice": "RETRIEVE", "text": "result = facts()"}] * 3]
    events = run(store, llm=model(write={"statements": wrong}, vote=samples))
    assert len(of(Wrote, events)) == 3 and events[-1].evidence == ("Ada Lovelace --[born in]--> London",)


def test_rows_that_no_answer_can_be_made_of_end_in_a_guess_that_says_so(store):
    events = run(store, llm=model(parse="lorem ipsum", guess={"answer": "London"}))
    assert of(Parsed, events)[0].problem and [forced.what for forced in of(Forced, events)] == ["answer"]
    assert (events[-1].text, events[-1].forced, events[-1].evidence) == ("London", True, ())


# --- traces ---


@pytest.fixture(scope="module")
def rich(shared):
    """A run with nearly every kind of event: failures, repairs, a refusal, a computation, an attachment."""
    shared.write("G.clear()")
    broken = [{"choice": "RETRIEVE", "text": "result = factz()"}] * 3
    llm = model(
        vote=[{"choice": "INSERT", "text": "one"}, {"choice": "INSERT", "text": "two"}, *votes("I"), *broken],
        write={"statements": ["add(", *WRITE["statements"]]},
        mend=[{"statement": "add(1"}, "lorem", "ipsum", {"statement": "result = facts()"}],
        **{"arithmetic?": {"needed": True}},
    )
    limits = FEW.but(arithmetic="always", repairs=2)
    executor = scripted("executor", tools=call(), arithmetic={"code": "print(6 * 7)"})
    events = tuple(think(QUESTION, llm, shared, [TOOL], limits, attachments=["note.txt"], execution=executor))
    for kind in (Repaired, Refused, Failed, Computed, Wrote, Read):
        assert of(kind, list(events)), kind
    return events


def script(events):
    """A model that gives the replies of these events in order, whatever it is asked."""
    replies = iter([asked.reply for asked in events if isinstance(asked, Asked)])
    return lambda name: Scripted(lambda prompt: next(replies), name)


def test_a_run_stopped_after_any_event_resumes_to_the_same_end(rich, shared, tmp_path):
    for kept in range(1, len(rich) + 1):
        path = tmp_path / f"{kept}.jsonl"
        save_run(rich[:kept], path)
        shared.write("G.clear()")
        left = script(rich[kept:])
        events = list(resume(path, shared, Resources([TOOL], left("scripted"), left("executor"))))
        assert all(same_event(was, now) for was, now in zip(rich, events, strict=True)), kept
        assert all(same_event(was, now) for was, now in zip(rich, load_run(path).events, strict=True)), kept


@pytest.mark.extended
def test_a_fork_anywhere_without_a_model_ends_with_an_answer_or_a_reason(rich, shared):
    for at, event in enumerate(rich):
        if isinstance(event, Asked | ToolReturned):
            for change in ("", "lorem ipsum", "{}"):
                shared.write("G.clear()")
                other = fork(rich, at, change, shared)
                assert (other.stopped or other.answer) and other.first_difference >= at
                assert all(same_event(a, b) for a, b in zip(other.events[:at], rich[:at], strict=True))


@pytest.mark.parametrize("torn", [b'{"event":"Asked","role":"\xc3', b"{", b"\xff\xfe", b""])
def test_a_line_torn_in_the_middle_of_a_letter_is_left_out(rich, tmp_path, torn):
    path = tmp_path / "t.jsonl"
    save_run(rich[:5], path)
    path.write_bytes(path.read_bytes() + torn)
    assert len(load_run(path).events) == 5
    list(append_events(iter([rich[5]]), path))
    assert len(load_run(path).events) == 6 and b"\xff" not in path.read_bytes()


def test_a_whole_last_line_without_its_end_is_not_lost_when_going_on(rich, tmp_path):
    path = tmp_path / "t.jsonl"
    save_run(rich[:5], path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert len(load_run(path).events) == 5
    list(append_events(iter([rich[5]]), path))
    assert all(same_event(was, now) for was, now in zip(rich[:6], load_run(path).events, strict=True))


@pytest.mark.parametrize(
    "line",
    ["5", "null", "[1]", '"text"', "{}", '{"event":"Asked","prompt":{"messages":[1]}}', '{"event":"Wrote"}'],
)
def test_a_line_that_is_no_event_is_a_trace_error(tmp_path, line):
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"trace":1}}\n{line}\n')
    with pytest.raises(TraceError, match="event 1"):
        load_run(path)


def test_limits_of_another_version_are_a_trace_error(rich):
    strange = (replace(rich[0], limits={**rich[0].limits, "patience": 3}), *rich[1:])
    with pytest.raises(TraceError, match="patience"):
        list(replay(Trace("r", "", strange)))


def test_a_store_with_something_in_it_is_not_walked_into(rich, store, tmp_path):
    store.write('add("a", "b", "c")')
    save_run(rich[:3], tmp_path / "t.jsonl")
    for act in (
        lambda: verify(rich, store),
        lambda: fork(rich, 1, "x", store),
        lambda: resume(tmp_path / "t.jsonl", store, Resources([TOOL], model())),
    ):
        with pytest.raises(BadInput, match="empty"):
            act()


def test_the_whole_graph_as_text_cannot_be_forked_as_if_it_were_a_statement(store):
    answers = [{"choice": "RETRIEVE", "text": "London"}] * 3
    events = run(store, llm=model(vote=[*votes(*"III"), *answers]), limits=FEW.but(reading="whole graph"))
    at = next(number for number, event in enumerate(events) if isinstance(event, Read))
    store.write("G.clear()")
    with pytest.raises(BadInput, match="whole graph"):
        fork(events, at, "result = []", store)


# --- memory ---

PROMPT = Prompt((Message("user", "?"),))


def test_equal_prompts_get_their_replies_in_order_and_models_of_one_name_share_them():
    asked = [Asked(role="vote", model="m", prompt=PROMPT, reply=reply) for reply in ("one", "two")]
    memory = Recording.from_events(asked)
    planning, execution = ReplayLLM(memory, "m"), ReplayLLM(memory, "m")
    assert [planning(PROMPT).text, execution(PROMPT).text] == ["one", "two"] and memory.avoided == 2
    with pytest.raises(LLMError, match="no reply"):
        planning(PROMPT)
    gone_on = ReplayLLM(Recording.from_events(asked), "another")(PROMPT)
    # another model may go on with a run; a reply stays that of who gave it
    assert (gone_on.text, gone_on.model) == ("one", "m")


def test_planning_and_execution_of_one_name_walk_again(store):
    events = run(store, llm=model("same"), execution=model("same"))
    assert all(
        same_event(was, now) for was, now in zip(events, replay(Trace("r", "", tuple(events))), strict=True)
    )


def test_a_remembered_tool_tells_failure_from_result_and_takes_any_argument_name():
    call = ToolCall("t", {"self": 1, "deep": [{"a": None}]})
    memory = Recording.from_events([ToolReturned(call=call, text="broken", failed=True)])
    with pytest.raises(ToolFailed, match="broken"):
        ReplayTool(memory, "t")(**call.arguments)


def test_a_model_that_answers_nothing_at_all_costs_a_bounded_number_of_calls(store):
    calls = []

    class Silent:
        name = "silent"

        def __call__(self, prompt):
            calls.append(prompt)
            return Reply("", Usage())

    for limits in (FEW, LOCAL):
        calls.clear()
        store.write("G.clear()")
        with pytest.raises(LLMError):
            list(think(QUESTION, Silent(), store, [TOOL], limits))
        assert 0 < len(calls) < 60


def test_an_event_that_json_cannot_say_is_written_as_text(tmp_path):
    save_run([Computed(code="x", output=json), Started(question="q")], tmp_path / "t.jsonl")
    assert len(load_run(tmp_path / "t.jsonl").events) == 2
    assert from_json({"event": "Forced", "what": "read"}) == Forced(what="read")
