"""A tool says itself that it finds documents, whatever its arguments are called; a recording remembers what
it said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from support.loop_script import ADA, FEW, WRITE, call, scripted, votes
from support.saved_run import save_run

from kgot_lab.errors import BadInput
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Chose, Started, ToolCall
from kgot_lab.loop.replay.replay import replay, same_event, verify
from kgot_lab.loop.trace import load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import InMemory
from kgot_lab.stores.opening import Fused
from kgot_lab.stores.protocol import PythonRunner, readers
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool, ask_model, python, search_argument

QUESTION = "In which year was Ada Lovelace born?"
OPENING = replace(FEW, open_with_question=True)


@dataclass(frozen=True)
class Shelf:
    """A stranger's tool, of no class of ours."""

    name: str = "shelf"
    description: str = "Looks on the shelf."
    finds: str = "words"

    @property
    def arguments(self):
        return {
            "type": "object",
            "properties": {"words": {"type": "string"}},
            "required": ["words"],
            "additionalProperties": False,
        }

    def __call__(self, /, **arguments):
        return Result(f"Looked for {arguments['words']}: Ada Lovelace was born in 1815.", (ADA[0],))


def model():
    return scripted(
        vote=votes(*"IIIRRR"), merge={"reason": "x"}, write=WRITE, parse={"answer": "1815"}, tools=call()
    )


class Silent:
    """A tool with a query and without a word on finding."""

    name = "oracle"
    description = "Knows things."
    arguments: ClassVar = {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }

    def __call__(self, /, **arguments):
        return Result("I do not know.")


def walked(*tools):
    with InMemory() as store:
        return list(think(QUESTION, model(), store, tools, OPENING))


def opened(events):
    return next(event.calls for event in events if isinstance(event, Chose))


def test_the_question_opens_the_search_by_the_argument_that_the_tool_names():
    assert opened(walked(Silent(), Shelf())) == (ToolCall("shelf", {"words": QUESTION}),)


def test_a_tool_that_takes_a_query_and_finds_no_documents_is_not_taken_for_a_search():
    events = walked(Silent(), search(ADA, bm25(ADA), name="look"))
    assert opened(events) == (ToolCall("look", {"query": QUESTION}),)


def test_which_tools_of_ours_find_documents():
    tools = [
        search(ADA, bm25(ADA)),
        ask_model(Scripted([]), name="any"),
        python(InMemory()),
        Shelf(),
        Silent(),
    ]
    assert [search_argument(tool) for tool in tools] == ["query", "", "", "words", ""]


def test_a_recording_says_it_where_the_arguments_would_not_and_walks_again(tmp_path):
    events = walked(Silent(), Shelf())
    begun = events[0]
    assert isinstance(begun, Started)
    assert {name: told.get("finds") for name, told in begun.tools.items()} == {"oracle": "", "shelf": "words"}
    save_run(events, tmp_path / "run.jsonl")
    trace = load_run(tmp_path / "run.jsonl")
    with InMemory() as store:
        assert verify(trace.events, store) is None
    with InMemory() as store:
        assert all(same_event(was, now) for was, now in zip(events, replay(trace, store), strict=True))


def test_a_recording_of_our_tools_is_told_as_before():
    begun = walked(search(ADA, bm25(ADA)), ask_model(Scripted([])))[0]
    told = {name: set(about) for name, about in begun.tools.items()}
    usual = {"description", "arguments"}
    assert told == {"search": {*usual, "digest"}, "llm_query": usual}


def test_a_text_tool_that_needs_more_than_what_to_look_for_is_refused():
    with pytest.raises(
        BadInput, match="two finds documents by 'query', so that must be all it takes, not query, shelf"
    ):
        TextTool(
            "two",
            "Looks.",
            {"query": "what", "shelf": "where"},
            lambda query, shelf: Result(""),
            finds="query",
        )


def test_a_store_says_what_else_it_can_do():
    class Plain:
        """A store that computes nothing and stands alone."""

    with InMemory() as one, InMemory() as other:
        assert isinstance(one, PythonRunner) and not isinstance(Plain(), PythonRunner)
        assert readers(one) == () and readers(Fused(one, other)) == (other,)
