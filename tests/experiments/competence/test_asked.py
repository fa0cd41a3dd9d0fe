"""Prompts read backwards: each that the loop makes is known again, with the texts that went into it."""

from __future__ import annotations

import inspect

import pytest

from benchmarks.competence.asked import Asking, PromptReader, situation_of
from benchmarks.competence.simulated import DIALECTS
from kgot_lab.errors import LLMError
from kgot_lab.llm.structured import schema_of
from kgot_lab.loop import prompts
from kgot_lab.loop import prompts as shapes
from kgot_lab.loop.events import ToolCall
from kgot_lab.loop.modes.paths.comparison import question_for_each
from kgot_lab.loop.modes.paths.question_form import question_hops
from kgot_lab.loop.modes.paths.reading import few_prompt
from kgot_lab.memory.extraction import facts_prompt
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Prompt

GRAPH = '2 nodes, 1 edges (born in 1)\nAda {"x": 1} --[born in]--> London'
SITUATION = prompts.situation("Where was Ada born?\nSay it.", ("a.txt",), GRAPH)
CALLS = [ToolCall("search", {"query": "Ada (poet)"}), ToolCall("look", {})]
TOOLS = [
    TextTool("search", "Finds. All of it: quickly.", {"query": "what"}, Result, finds="query"),
    TextTool("look", "Looks.", {}, Result),
]
READER = PromptReader(DIALECTS)


def told(messages, shape=None):
    return READER.read(Prompt(messages, schema_of(shape) if shape else None))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_what_is_asked_in_a_language_is_known_again(dialect):
    vote = told(prompts.vote(SITUATION, CALLS, dialect), shapes.Vote)
    assert (vote.what, vote.dialect, vote.texts["situation"]) == ("vote", dialect, SITUATION)
    assert vote.texts["calls"].split("\n- ") == ["search(query='Ada (poet)')", "look()"]
    write = told(
        prompts.write(SITUATION, "search(query='x')", "Ada >>> was\n\nhere.", dialect), shapes.Statements
    )
    assert (write.what, write.texts["source"], write.texts["text"]) == (
        "write",
        "search(query='x')",
        "Ada >>> was\n\nhere.",
    )
    for what in ("read_in", "forced_read"):
        found = told(getattr(prompts, what)(SITUATION, dialect), shapes.Statement)
        assert (found.what, found.dialect) == (what, dialect)
    assert told(prompts.reread(SITUATION, "x = 1", dialect), shapes.Statement).texts["wrong"] == "x = 1"
    for writing in (True, False):
        mend = told(prompts.mend("x )", "no: )\n", GRAPH, dialect, writing=writing), shapes.Statement)
        assert (mend.what, mend.texts["statement"], mend.dialect) == ("mend", "x )", dialect)


def test_what_is_asked_in_no_language_is_known_again():
    assert told(prompts.vote(SITUATION, [], None), shapes.Vote).dialect is None
    assert told(prompts.vote(SITUATION, [], None), shapes.Vote).texts["calls"] == "none"
    assert told(prompts.vote_by_names(SITUATION), shapes.Look).what == "vote_by_names"
    assert told(prompts.names(SITUATION), shapes.Names).what == "names"
    assert told(prompts.next_names(SITUATION, ["Ada", "London"]), shapes.Names).what == "next_names"
    assert told(prompts.merge(["one", "two"]), shapes.Reason).texts["reasons"] == "one\n- two"
    assert told(prompts.choose_tools(SITUATION, CALLS, "", TOOLS), shapes.Calls).what == "choose_tools"
    assert told(prompts.needs_arithmetic("How many?", "a\nb"), shapes.Needed).what == "needs_arithmetic"
    assert told(prompts.choose("Who?", "a", ["x", "y"]), shapes.Number).texts["candidates"] == "x\n2. y"
    assert told(facts_prompt("[Ada] She was here.")).texts == {"sentence": "[Ada] She was here."}
    for format in prompts.FORMATS:
        assert told(prompts.guess(SITUATION, format), shapes.Answer).what == "guess"
        assert told(prompts.answer("Who?", "a\n\nb", format), shapes.Answer).texts["facts"] == "a\n\nb"


@pytest.mark.parametrize(
    "question", ["Where was Ada born?", "Who is older, Ada or Bob?", "Are Ada and Bob both poets?"]
)
def test_what_the_mode_paths_asks_is_known_again_in_every_form(question):
    facts = "[Ada] Ada was a poet.\n[Bob] Bob asked:\n\nWho?"
    assert told(few_prompt(question, facts).messages) == Asking(
        "few_prompt", {"question": question, "facts": facts}
    )
    assert told(few_prompt(question, "").messages) == Asking(
        "few_prompt", {"question": question, "facts": ""}
    )
    assert told(question_hops(question).messages) == Asking("question_hops", {"question": question})
    assert told(question_for_each(question).messages) == Asking("question_for_each", {"question": question})


def test_a_text_with_other_examples_before_it_is_no_prompt_of_the_mode_paths():
    first, *_, last = few_prompt("Where was Ada born?", "[Ada] Ada was born in Ulm.").messages
    with pytest.raises(LLMError, match="the loop's own prompts only"):
        told((first, last))


def test_every_prompt_of_the_loop_is_known_but_those_that_follow_a_yes_to_arithmetic():
    made = {
        name
        for name, each in vars(prompts).items()
        if inspect.isfunction(each) and each.__module__ == prompts.__name__
    }
    public = {name for name in made if not name.startswith("_")} - {"situation"}
    known = {form.what for forms in READER._forms.values() for form in forms} | {"extract"}
    assert public - known == {"arithmetic", "mend_arithmetic"}


@pytest.mark.parametrize("files", [(), ("a.txt", "b.txt")])
@pytest.mark.parametrize("graph", [GRAPH, ""])
def test_the_question_and_the_graph_are_found_with_and_without_files(files, graph):
    assert situation_of(prompts.situation("Who, and why?", files, graph)) == (
        "Who, and why?",
        graph or "empty",
    )


def test_another_text_is_an_error():
    with pytest.raises(LLMError, match="not what a prompt of the loop begins with"):
        situation_of("Hello!")
