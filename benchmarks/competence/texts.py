"""What a text tells of a question, as gold has it, and what one who reads wrongly takes from it instead."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.competence.gold import GoldSet, GoldStep
from kgot_lab.errors import LLMError
from kgot_lab.loop.modes.paths.question_form import classify_question
from kgot_lab.loop.modes.paths.reading import rejection_reason
from kgot_lab.retrieval.entity_linking import CAPITALISED_RUN
from kgot_lab.text.words import canonical_answer, name_tokens

_FIGURE = re.compile(r"\b\d{3,4}\b")


class NoGold(LLMError):
    """A simulated model was asked what it has no gold for."""

    def __init__(self, question: str):
        super().__init__(
            f"there is no gold for the question {question[:200]!r}; simulate only questions whose facts are known"
        )


def told_answer(gold: GoldSet, question: str, text: str) -> str:
    """The right answer to a question of gold, or to one of its hops, where the text holds all it rests on; ""
    where it does not.

    Raises NoGold for a question that is neither. A hop that is asked of a name of which gold knows nothing
    has no answer.
    """
    lines = {" ".join(line.split()) for line in text.splitlines()}
    if chain := gold.by_question.get(question):
        return chain.answer if all(_told(step, lines) for step in chain.steps) else ""
    if steps := gold.by_hop.get(name_tokens(question)):
        return next((step.fact.object for step in steps if _told(step, lines)), "")
    if gold.asks_so(question):
        return ""
    raise NoGold(question)


def misread_names(gold: GoldSet, question: str, text: str, right: str) -> list[str]:
    """What stands in a text and may be taken for the answer to a question, though it is not; none where there
    is nothing else.

    Of two things it is the other one, of yes and no the other; else a name of a fact that the text says, or
    any name or figure in it.
    """
    form = classify_question(question)
    if form == "yes or no":
        return ["no" if canonical_answer(right) == "yes" else "yes"]
    for names in (_of_facts(gold, text), _written(text)):
        fit = {
            name: None
            for name in names
            if not rejection_reason(question, name, text)
            and canonical_answer(name) != canonical_answer(right)
        }
        if form == "choice":
            # which holds its name
            fit = {name: None for name in fit if not rejection_reason("", name, question)}
        if fit:
            return list(fit)
    return []


def _told(step: GoldStep, lines: set[str]) -> bool:
    """Whether lines hold a step: its sentence under its title, or its fact."""
    fact = step.fact
    sentence = f"[{step.title}] {step.sentence}" if step.title else step.sentence
    return " ".join(sentence.split()) in lines or f"{fact.subject} {fact.relation} {fact.object}" in lines


def _of_facts(gold: GoldSet, text: str) -> Iterator[str]:
    for line in text.splitlines():
        for fact in gold.by_sentence.get(line, ()):
            yield from (fact.object, fact.subject)


def _written(text: str) -> Iterator[str]:
    for pattern in (CAPITALISED_RUN, _FIGURE):
        yield from (found.group() for found in pattern.finditer(text))
