"""The loop on scripted replies: a real store, a real sandbox, a real search."""

from __future__ import annotations

import asyncio

import pytest
from support.loop_script import ADA, FEW, WRITE, call, kinds, of, role_of, scripted, votes

from kgot_lab.errors import BadInput, BadReply
from kgot_lab.loop.controller import solve, think
from kgot_lab.loop.events import (
    Answered,
    Asked,
    Chose,
    Computed,
    Cut,
    Failed,
    Forced,
    Merged,
    Parsed,
    Read,
    Refused,
    Repaired,
    ToolReturned,
    Vote,
    Voted,
    Wrote,
)  # fmt: skip
from kgot_lab.loop.limits import REFERENCE, Limits, preset
from kgot_lab.loop.replay.replay import states
from kgot_lab.loop.state import ledger
from kgot_lab.loop.trace import graph_after
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.tools.files import read_attachment
from kgot_lab.tools.search import search
from kgot_lab.types import Document

QUESTION = "In which year was Ada Lovelace born?"
ONCE = votes(*"IIIRRR")  # one INSERT turn, then RETRIEVE


@pytest.fixture(scope="module")
def tool():
    return search(ADA, bm25(ADA), k=2)


def run(llm, store, tool, limits=FEW, **options):
    return list(think(QUESTION, llm, store, [tool], limits, **options))


def straight(**changed):
    """A model that searches once, writes once and reads the answer."""
    replies = {
        "vote": votes(*"IIIR"),
        "merge": {"reason": "both"},
        "tools": call(),
        "write": WRITE,
        "parse": {"answer": "1815"},
    }
    return scripted(**{**replies, **changed})


def test_a_question_goes_in_a_graph_grows_and_the_answer_rests_on_it(store, tool):
    events = run(straight(vote=ONCE), store, tool)
    final = events[-1]
    assert (final.text, final.forced) == ("1815", False)
    assert final.evidence == ("Ada Lovelace --[born in]--> London",)
    # what the write was made from
    assert final.passages == tuple(document.id for document in of(ToolReturned, events)[0].sources)
    assert kinds(events)[:5] == ["Started", "Vote", "Vote", "Vote", "Voted"]
    assert len(store.graph().edges) == 1


def test_five_insert_votes_are_cut_short_after_three(store, tool):
    voted = of(Voted, run(straight(), store, tool))[0]
    assert (voted.choice, voted.inserts, voted.votes, voted.possible, voted.agreement) == (
        "INSERT",
        3,
        3,
        5,
        1.0,
    )


def test_a_tie_goes_to_insert_and_needs_only_half_the_votes(store, tool):
    store.write('add("a", "b", "c")')
    llm = straight(vote=votes(*"RIRIRRR"))
    voted = of(Voted, run(llm, store, tool, FEW.but(votes=4)))[0]
    assert (voted.choice, voted.inserts, voted.retrieves, voted.votes) == ("INSERT", 2, 2, 4)


def test_retrieve_needs_a_strict_majority_of_five(store, tool):
    store.write('add("a", "b", "c")')
    voted = of(Voted, run(straight(vote=votes(*"RIRIR")), store, tool))[0]
    assert (voted.choice, voted.inserts, voted.retrieves) == ("RETRIEVE", 2, 3)


def test_votes_have_a_seed_each_and_at_temperature_zero_only_one_is_asked(store, tool):
    sampled = of(Asked, run(straight(), store, tool))
    seeds = [event.prompt.seed for event in sampled if event.role == "vote" and event.step == 0]
    assert len(set(seeds)) == len(seeds) == 3
    assert {event.prompt.temperature for event in sampled if event.role == "vote"} == {0.7}
    store.write("G.clear()")
    cold = of(Voted, run(straight(vote=votes(*"IR")), store, tool, FEW.but(vote_temperature=0.0)))
    assert [(voted.votes, voted.possible) for voted in cold] == [(1, 1), (1, 1)]


def test_after_a_turn_without_a_valid_vote_what_was_fetched_is_read(store, tool):
    garbage = {"choice": "PONDER", "text": ""}
    forced = {"statement": "result = facts()"}
    events = run(straight(vote=["what?", "hm", garbage, garbage] + ["no"] * 6, forced=forced), store, tool)
    (voted,) = of(Voted, events)
    assert (voted.choice, voted.invalid, voted.reasons) == ("INSERT", 5, ())
    assert {vote.choice for vote in of(Vote, events)} == {""}
    assert of(Wrote, events) and [forced.what for forced in of(Forced, events)] == ["read"]


def test_a_retrieve_whose_read_finds_nothing_counts_as_insert(store, tool):
    events = run(straight(vote=votes(*"RRR")), store, tool)
    first = of(Voted, events)[0]
    assert (first.choice, first.inserts, first.retrieves) == ("INSERT", 3, 0)
    assert "found nothing" in first.reasons[0]
    assert of(Voted, events)[1].choice == "RETRIEVE"  # once the graph holds a fact, the same votes win


def test_a_retrieve_that_fails_on_an_empty_graph_counts_as_insert_too(store, tool):
    words = [{"choice": "RETRIEVE", "text": "The answer is London."}] * 3
    events = run(straight(vote=[*words, *votes(*"RRR")]), store, tool)
    assert len(of(Failed, events)) == 3
    assert [voted.choice for voted in of(Voted, events)] == ["INSERT", "RETRIEVE"]


def test_several_reasons_are_merged_and_one_is_not(store, tool):
    two = [
        {"choice": "INSERT", "text": "her birth"},
        {"choice": "INSERT", "text": "her town"},
        {"choice": "INSERT", "text": "her birth"},
    ]
    merged = of(Merged, run(straight(vote=[*two, *votes(*"RRR")]), store, tool))
    assert [event.reason for event in merged] == ["both"]
    store.write("G.clear()")
    assert of(Merged, run(straight(vote=ONCE), store, tool)) == []


def test_several_tools_are_called_in_a_step_and_none_twice(store, tool):
    both = {"calls": [*call("Ada")["calls"], *call("Babbage")["calls"], *call("Ada")["calls"]]}
    events = run(
        straight(vote=votes(*"IIIIII"), tools=both, forced={"statement": "result = facts()"}), store, tool
    )
    asked = [returned.call.arguments["query"] for returned in of(ToolReturned, events)]
    assert asked == ["Ada", "Babbage"]
    assert of(Chose, events)[1].calls == () and len(of(Chose, events)[1].skipped) >= 2


def test_an_unknown_tool_or_argument_is_told_to_the_model_and_never_written(store, tool):
    wrong = {
        "calls": [{"tool": "oracle", "arguments": {}}, {"tool": "search", "arguments": {"words": "Ada"}}]
    }
    nothing = {
        "forced": {"statement": "result = facts()"},
        "reread": {"statement": "result = []"},
        "guess": {"answer": "?"},
    }
    events = run(straight(vote=votes(*"III"), tools=wrong, **nothing), store, tool)
    texts = [returned.text for returned in of(ToolReturned, events)]
    assert "no tool 'oracle'" in texts[0] and "query is missing" in texts[1]
    assert all(returned.failed for returned in of(ToolReturned, events)) and not of(Wrote, events)


def test_a_failing_write_is_repaired_with_the_engines_own_message(store, tool):
    llm = straight(
        write={"statements": ["add('Ada',"]}, mend={"statement": WRITE["statements"][0]}, vote=ONCE
    )
    events = run(llm, store, tool)
    repaired = of(Repaired, events)[0]
    assert "SyntaxError" in repaired.error and of(Wrote, events)[0].statement == repaired.mended
    assert not of(Refused, events)


def test_a_write_that_stays_broken_is_given_up_after_three_repairs_and_seen(store, tool):
    broken = [{"statement": f"add({number}"} for number in range(9)]
    llm = straight(write={"statements": ["add(", *WRITE["statements"]]}, mend=broken, vote=ONCE)
    events = run(llm, store, tool)
    assert len(of(Repaired, events)) == 3
    assert [refused.writing for refused in of(Refused, events)] == [True]
    assert len(of(Wrote, events)) == 1  # the other statement was not lost


def test_a_failing_read_is_repaired(store, tool):
    broken = [{"choice": "RETRIEVE", "text": "result = factz()"}] * 3
    events = run(
        straight(vote=[*votes(*"III"), *broken], mend={"statement": "result = facts()"}), store, tool
    )
    assert "NameError" in of(Failed, events)[0].reason
    assert of(Repaired, events)[0].mended == "result = facts()" and of(Answered, events)[0].forced is False


def test_an_empty_read_is_asked_again_when_the_read_was_forced(store, tool):
    first, *others = [
        {"statement": f"result = facts({name!r})"} for name in ("nobody", "no one", "Ada Lovelace")
    ]
    events = run(straight(vote=votes(*"III"), forced=first, reread=others), store, tool)
    assert [read.statement for read in of(Read, events)] == [reply["statement"] for reply in (first, *others)]
    assert of(Forced, events)[0].what == "read" and events[-1].forced is False


def test_identical_read_statements_are_run_once(store, tool):
    events = run(straight(vote=ONCE), store, tool)
    assert len(of(Read, events)) == 1 and len(of(Parsed, events)) == 1


def test_an_answer_is_forced_exactly_when_no_read_gave_rows(store, tool):
    empty = {
        "forced": {"statement": "result = facts('x')"},
        "reread": {"statement": "result = []"},
        "guess": {"answer": "1815"},
    }
    events = run(straight(vote=votes(*"III"), **empty), store, tool)
    assert events[-1].forced is True and events[-1].evidence == ()
    assert [forced.what for forced in of(Forced, events)] == ["read", "answer"]


def test_reading_cannot_write_and_the_vote_that_tried_is_refused(store, tool):
    sneaky = [{"choice": "RETRIEVE", "text": "add('x', 'y', 'z'); result = 1"}] * 3
    events = run(
        straight(vote=[*votes(*"III"), *sneaky], mend={"statement": "result = facts()"}), store, tool
    )
    assert "may not change the graph" in of(Failed, events)[0].reason
    assert "x" not in store.graph()


def test_the_question_never_enters_the_graph(store, tool):
    llm = straight(vote=ONCE)
    events = list(think("Is the zyxwv canary in Ada's graph?", llm, store, [tool], FEW))
    written = [wrote.diff for wrote in of(Wrote, events)]
    assert written and "zyxwv" not in repr([written, *store.graph().nodes, *store.graph().edges])
    # it does inform the prompts
    assert any("zyxwv" in asked.prompt.messages[-1].text for asked in of(Asked, events))


def test_rows_that_need_arithmetic_are_computed_in_the_sandbox(store, tool):
    llm = straight(
        vote=ONCE, **{"arithmetic?": {"needed": True}, "arithmetic": {"code": "print(1815 + 7 * 6)"}},
        parse=lambda prompt: {"answer": "1857" if "Computed: 1857" in prompt.messages[-1].text else "none"},
    )  # fmt: skip
    events = run(llm, store, tool, FEW.but(arithmetic="always"))
    assert [(event.output, event.failed) for event in of(Computed, events)] == [("1857", False)]
    assert events[-1].text == "1857"


def test_arithmetic_that_fails_is_repaired(store, tool):
    mended = [{"code": "prin(2)"}, {"code": "print(1800 + 15)"}]
    replies = {"arithmetic?": {"needed": True}, "arithmetic": {"code": "1/0"}, "compute again": mended}
    events = run(straight(vote=ONCE, **replies), store, tool, FEW.but(arithmetic="always"))
    assert [(computed.output[:17], computed.failed) for computed in of(Computed, events)] == [
        ("ZeroDivisionError", True), ("NameError: name '", True), ("1815", False),
    ]  # fmt: skip


def test_arithmetic_that_cannot_be_repaired_is_seen_and_the_answer_goes_on_without(store, tool):
    replies = {
        "arithmetic?": {"needed": True},
        "arithmetic": {"code": "1/0"},
        "compute again": {"code": "1/0"},
    }
    events = run(straight(vote=ONCE, **replies), store, tool, FEW.but(arithmetic="always", repairs=2))
    assert len(of(Computed, events)) == 3 and events[-1].text == "1815"


def test_several_parsed_answers_are_put_to_the_model_and_equal_ones_are_not(store, tool):
    llm = straight(
        vote=ONCE, parse=[{"answer": text} for text in ("1815", "1816", "in 1815")], choose={"number": 2}
    )
    events = run(llm, store, tool, FEW.but(parses=3))
    assert events[-1].text == "1816"
    store.write("G.clear()")
    llm = straight(vote=ONCE, parse=[{"answer": "The 1815."}, {"answer": "1815"}])
    events = run(llm, store, tool, FEW.but(parses=3))
    # two of three agree: the third is not asked for
    assert len(of(Parsed, events)) == 2 and events[-1].text == "The 1815."


def test_an_amount_with_its_unit_spelled_otherwise_or_left_out_is_one_answer(store, tool):
    """So no model is asked to choose, and a vote among them is not split."""
    same = [{"answer": text} for text in ("212 meters", "212", "212 metres")]
    for limits in (FEW.but(parses=3), FEW.but(parses=3, pool=True)):
        store.write("G.clear()")
        events = run(straight(vote=ONCE, parse=same), store, tool, limits)
        assert (events[-1].text, len(of(Parsed, events))) == ("212 meters", 2)  # two of three agree


def test_direct_retrieve_answers_from_the_whole_graph(store, tool):
    answers = [{"choice": "RETRIEVE", "text": "1815"}] * 3
    events = run(straight(vote=[*votes(*"III"), *answers]), store, tool, FEW.but(reading="whole graph"))
    read = of(Read, events)
    assert len(read) == 1 and read[0].rows[0]["subject"] == "Ada Lovelace"
    parse = next(asked for asked in of(Asked, events) if asked.role == "parse")
    assert "A first answer: 1815" in parse.prompt.messages[-1].text and events[-1].forced is False


def test_the_answer_format_is_default_or_gaia(store, tool):
    for name, words in (("default", "one short paragraph"), ("gaia", "shortest exact answer")):
        store.write("G.clear()")
        events = run(straight(vote=ONCE), store, tool, FEW.but(answer_format=name))
        assert any(words in a.prompt.messages[-1].text for a in of(Asked, events) if a.role == "parse")


def test_planning_and_execution_are_separate_models(store, tool):
    planner = scripted("planner", vote=ONCE, write=WRITE, parse={"answer": "1815"})
    events = run(planner, store, tool, execution=scripted("executor", tools=call()))
    models = {asked.role: asked.model for asked in of(Asked, events)}
    assert models == {"vote": "planner", "tools": "executor", "write": "planner", "parse": "planner"}


def test_an_attached_file_is_named_in_the_prompts_and_read_by_its_tool(store, tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("Ada Lovelace was born in 1815.")
    attachment = read_attachment([note])
    argument = next(iter(attachment.arguments["properties"]))
    llm = straight(
        vote=ONCE, tools={"calls": [{"tool": attachment.name, "arguments": {argument: "note.txt"}}]}
    )
    events = list(think(QUESTION, llm, store, [attachment], FEW, attachments=["note.txt"]))
    assert "born in 1815" in of(ToolReturned, events)[0].text
    assert all("note.txt" in a.prompt.messages[1].text for a in of(Asked, events) if a.role == "vote")


def test_long_tool_texts_and_large_graphs_are_cut_by_relevance_and_say_so(store):
    filler = " ".join(f"Sentence {number} speaks of nothing much." for number in range(300))
    documents = [Document("long", f"{filler} Ada Lovelace was born in 1815. {filler}", "Ada Lovelace")]
    for number in range(0, 600, 50):
        store.write(
            "\n".join(f"add('thing {n}', 'is near', 'place {n}')" for n in range(number, number + 50))
        )
    llm = straight(vote=ONCE)
    events = run(
        llm,
        store,
        search(documents, bm25(documents), k=1),
        FEW.but(tool_tokens=100, graph_tokens=200, row_tokens=100),
    )
    cuts = {cut.what.split("(")[0]: cut for cut in of(Cut, events)}
    assert set(cuts) == {"graph", "search", "rows"} and all(cut.left_out > cut.kept for cut in cuts.values())
    write = next(asked for asked in of(Asked, events) if asked.role == "write")
    assert "born in 1815" in write.prompt.messages[-1].text and len(write.prompt.messages[-1].text) < 6000


def test_every_question_asked_is_in_the_ledger_and_the_ledger_adds_up(store, tool):
    events = run(straight(vote=ONCE), store, tool)
    book = ledger(events, "r1")
    assert len(book.entries) == len(of(Asked, events)) == 9
    assert book.total.prompt_tokens == sum(asked.usage.prompt_tokens for asked in of(Asked, events)) > 0
    assert set(book.by_role()) == {"vote", "tools", "write", "parse"} and "role" in repr(book)


def test_the_state_is_the_fold_of_the_events_and_the_graph_of_their_diffs(store, tool):
    events = run(straight(vote=ONCE), store, tool)
    *_, (_, state) = states(events)
    assert state.answer == events[-1] and state.step == 1 and len(state.calls) == 1
    assert graph_after(events) == store.graph()


def test_the_loop_runs_inside_a_running_event_loop(store, tool):
    async def cell():
        return solve(think(QUESTION, straight(vote=ONCE), store, [tool], FEW))

    assert asyncio.run(cell()).text == "1815"


def test_the_reference_preset_has_the_published_command_line_limits():
    assert preset("reference") is REFERENCE == Limits()
    assert (
        REFERENCE.steps,
        REFERENCE.voting.votes,
        REFERENCE.voting.rereads,
        REFERENCE.voting.repairs,
        REFERENCE.voting.parses,
    ) == (
        7,
        5,
        3,
        3,
        3,
    )


@pytest.mark.parametrize("question", ["", "  \n"])
def test_an_empty_question_is_refused(store, tool, question):
    with pytest.raises(BadInput, match="blank"):
        think(question, straight(), store, [tool])


def test_no_tools_wrong_limits_and_unknown_presets_are_refused(store, tool):
    with pytest.raises(BadInput, match="tool"):
        think(QUESTION, straight(), store, [])
    with pytest.raises(BadInput, match="steps"):
        REFERENCE.but(steps=0)
    with pytest.raises(BadInput, match="Known: local, paths, reference"):
        preset("fast")


def test_a_model_that_only_talks_garbage_ends_in_one_clear_error(store, tool):
    llm = scripted(**dict.fromkeys(("vote", "tools", "forced", "guess"), "lorem ipsum"))
    with pytest.raises(BadReply, match="not in the shape"):
        run(llm, store, tool)


def test_roles_are_told_apart_by_their_prompts(store, tool):
    events = run(straight(vote=ONCE), store, tool)
    told = {asked.role: role_of(asked.prompt) for asked in of(Asked, events)}
    assert set(told) == {"vote", "tools", "write", "parse"} and all(role == told[role] for role in told)
