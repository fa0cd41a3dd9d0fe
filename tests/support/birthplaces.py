"""A tiny comparison with and without a graph: four birthplaces, and a scripted model that reads them well. It
stands for no real model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.graph_pays.report import Goal
from kgot_lab.benchmark.comparison.plan import Design
from kgot_lab.benchmark.comparison.systems import AnswerSystem
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Document, Prompt
from support.answering_server import BORN, told_birthplaces

PASSAGES = [
    Document(f"p{number}", f"{name} was born in {place}.", name)
    for number, (name, place) in enumerate(BORN.items())
]
ASKED = [
    Question(
        name.split()[-1].lower(),
        f"Where was {name} born?",
        place,
        gold=(f"p{number}",),
        facts=(PASSAGES[number].text,),
    )
    for number, (name, place) in enumerate(BORN.items())
]
SETS = {
    "first": QuestionSet(PASSAGES, ASKED[:3], "first"),
    "second": QuestionSet(PASSAGES, ASKED[2:], "second"),
}
WAYS_TO_ANSWER = {
    "closed-book": AnswerSystem("few"),
    "rag": AnswerSystem("json", "convex", 2),
    "follow-few": AnswerSystem("few", "follow", 2),
    "loop": AnswerSystem("loop", "convex", 2, "reference", "in_memory", questions=1),
    "gold": AnswerSystem("few", "gold"),
}
AIMED_AT = (
    Goal("RAG above the model alone", "rag", "gain", 0.0, other="closed-book"),
    Goal("follow not below RAG", "follow-few", "not below", -0.03, other="rag"),
    Goal("RAG at least .5 on first", "rag", "at least", 0.5, "first"),
)
TINY = Design(SETS, WAYS_TO_ANSWER, (("rag", "closed-book"), ("follow-few", "rag")), AIMED_AT, rounds=300)


def told_in_brief(prompt: Prompt) -> str:
    """What the model says: the place where it can be read, and without any text the same wrong place always."""
    text = prompt.messages[-1].text
    if len(prompt.messages) == 2:
        return told_birthplaces(prompt)
    name = next(name for name in BORN if f"Where was {name} born?" in text)
    return BORN[name] if BORN[name] in text else "London"


def reader(reply: Callable[[Prompt], str] = told_in_brief) -> Scripted:
    """The scripted model."""
    return Scripted(reply, "scripted reader")


def without(*systems: str) -> Design:
    """The design without some systems."""
    return replace(
        TINY, systems={name: system for name, system in WAYS_TO_ANSWER.items() if name not in systems}
    )
