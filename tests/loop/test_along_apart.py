"""Two things that a question compares are asked about apart: an answer is worked out of values that were
read, of all things named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Chose, Event
from kgot_lab.loop.limits import PATHS
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.types import Document, Prompt, Reply

PASSAGES = [
    Document(
        "d1",
        "Müller Brauerei is a brewery. It was founded in 1872. It is unknown who founded it.",
        "Müller Brauerei",
    ),
    Document(
        "d2",
        "Weber Brauerei is a brewery. It was founded in 1869. It is unknown who founded it.",
        "Weber Brauerei",
    ),
    Document("d3", "A brewery is a house where beer is made.", "Brewery"),
]
TOOL = search(PASSAGES, bm25(PASSAGES), k=3)
YEARS = {"When was Müller Brauerei founded?": "1872", "When was Weber Brauerei founded?": "1869"}


def run_of(question: str, asked: str, replies: Mapping[str, str]) -> list[Event]:
    """The events of a run whose model, which stands for no real one, asks of each thing what it is told, and
    is never sure itself.
    """

    def reply(prompt: Prompt) -> str:
        last = prompt.messages[-1].text.rpartition("Question: ")[2]
        if "Two things are compared" in prompt.messages[0].text:
            return asked
        return replies.get(last, "nothing")

    scripted = Scripted(reply, "scripted")

    class Unsure:
        name = "scripted"

        def __call__(self, prompt: Prompt) -> Reply:
            return replace(scripted(prompt), logprob=math.log(0.1) if prompt.likelihood else None)

    store = open_store("in_memory")
    try:
        return list(think(question, Unsure(), store, [TOOL], PATHS.but(check_answers=False, wide_tokens=320)))
    finally:
        store.close()


def of_role(events: list[Event], role: str) -> list[Asked]:
    return [event for event in events if isinstance(event, Asked) and event.role.partition(",")[0] == role]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Was Müller Brauerei founded earlier than Weber Brauerei?", "no"),
        ("Were Müller Brauerei and Weber Brauerei both founded before 1900?", "yes"),
        # and no document on breweries is
        (
            "Which brewery was founded first, Müller Brauerei or Weber Brauerei?",
            "Weber Brauerei",
        ),
    ],
)
def test_the_answer_that_is_worked_out_is_of_the_kind_that_is_asked_for(question: str, answer: str) -> None:
    final = run_of(question, "When was X founded?", YEARS)[-1]
    assert isinstance(final, Answered)
    assert final.text == answer
    assert not final.forced
    assert set(final.passages) == {"d1", "d2"}


@pytest.mark.parametrize(
    "question",
    [
        "Which is older, Müller Brauerei, Weber Brauerei or the Absent Foundry?",
        "Which brewery is older, Müller Brauerei or the Absent Foundry?",
    ],
)
def test_nothing_is_worked_out_where_one_of_the_things_was_not_found(question: str) -> None:
    events = run_of(question, "When was X founded?", YEARS)
    assert not of_role(events, "compared")
    assert isinstance(events[-1], Answered) and events[-1].forced


def test_words_that_say_that_the_model_does_not_know_are_neither_compared_nor_looked_up() -> None:
    question = "Are the founders of Müller Brauerei and Weber Brauerei both from the same country?"
    for said in ("I cannot tell, sorry", "unknown"):  # the second stands in the sentences
        events = run_of(question, "Who founded X?\nWhat is the nationality of #1?", {f"Who founded {each}?": said for each in (
            "Müller Brauerei", "Weber Brauerei")})  # fmt: skip
        looked_up = [str(call.arguments) for e in events if isinstance(e, Chose) for call in e.calls]
        assert of_role(events, "compared") and not any(said in call for call in looked_up)
        assert isinstance(events[-1], Answered) and events[-1].forced


def test_a_value_that_no_sentence_says_is_not_compared() -> None:
    question = "Which brewery was founded first, Müller Brauerei or Weber Brauerei?"
    final = run_of(question, "When was X founded?", {**YEARS, "When was Weber Brauerei founded?": "1901"})[-1]
    assert isinstance(final, Answered) and final.forced
