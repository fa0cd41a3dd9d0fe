"""Two systems on one question: which of them was right, six questions for a lesson chosen by a rule, and a
contest to guess at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.benchmark.comparison.losses import LossesBySet
from kgot_lab.benchmark.comparison.results import Findings
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import Contest, ContestRound
from kgot_lab.types import Json

WINNERS: Mapping[str, str] = {
    "RAG": "only the prompt of five passages gives the right answer",
    "graph": "only the path through the graph does",
    "both": "both give it",
    "neither": "neither does",
}
SIX_SHOWN = (  # what a lesson shows: an outcome, and the set that it is taken from
    ("graph", "hotpotqa"), ("graph", "2wiki"), ("RAG", "hotpotqa"), ("RAG", "musique-498"), ("both", "2wiki"), ("neither", "musique-498"),
)  # fmt: skip
_LONGEST = 25  # words of a question that is read in a lesson


@dataclass(frozen=True)
class Duel:
    """A question of a set, the answers of both systems to it, and at which stage each was lost or that it is
    right; "" if unknown.
    """

    on: str
    question: Question
    rag: QuestionResult
    graph: QuestionResult
    ends: tuple[str, str] = ("", "")

    @property
    def outcome(self) -> str:
        """One of WINNERS, by exact match with the right answer or an alias of it."""
        return {(True, True): "both", (True, False): "RAG", (False, True): "graph"}.get(
            (self.rag.em == 1, self.graph.em == 1), "neither"
        )

    @property
    def told(self) -> str:
        """Both answers beside the right one."""
        return f"RAG: {self.rag.predicted}. Graph: {self.graph.predicted}. Right: {self.question.answer}."

    def row(self) -> dict[str, Json]:
        """The question, the right answer, both answers, and who was right, for a table."""
        answers = {"RAG": self.rag.predicted, "graph": self.graph.predicted}
        return {
            "question": self.question.text.strip(),
            "right": self.question.answer,
            **answers,
            "who": self.outcome,
        }


def duels(
    findings: Findings,
    sets: Mapping[str, QuestionSet],
    stages: LossesBySet,
    rag: str = "rag",
    graph: str = "paths",
) -> list[Duel]:
    """A duel for each question that both systems answered, in the order of the sets; `sets` are the questions
    that were drawn.
    """
    return [
        Duel(
            name,
            question,
            findings.answers[rag][key],
            findings.answers[graph][key],
            _ends(stages, key, rag, graph),
        )
        for name, questions in sets.items()
        for question in questions.questions
        if all((key := (name, question.id)) in findings.answers[system] for system in (rag, graph))
    ]


def one_of_each(every: Sequence[Duel], wanted: Iterable[tuple[str, str]] = SIX_SHOWN) -> list[Duel]:
    """For each outcome and set that is wanted the first such duel of at most twenty-five words, in the order
    of their questions' texts.

    What was given by chance is left out: who is wrong has no word in common with the right answer, and it is
    known where both were lost. Raises BadInput where there is none.
    """
    found: list[Duel] = []
    for outcome, on in wanted:
        fitting = (
            each
            for each in every
            if (each.outcome, each.on) == (outcome, on) and _clear(each) and each not in found
        )
        if (chosen := next(fitting, None)) is None:
            raise BadInput(f"no question of {on} ended so that {outcome!r} fits: choose another set for it")
        found.append(chosen)
    return sorted(found, key=lambda each: each.question.text.strip())


def duel_contest(some: Sequence[Duel]) -> Contest:
    """The duels as rounds to guess at: who was right in each."""
    rounds = tuple(
        ContestRound(each.question.text.strip(), (each.outcome,), None, 1, each.told) for each in some
    )
    return Contest(dict(WINNERS), rounds, asks="Who gave the right answer?")


def outcome_rows(every: Sequence[Duel]) -> list[dict[str, Json]]:
    """How many questions of each set, and of all, ended in which way."""
    counts = {
        on: Counter(each.outcome for each in every if each.on == on)
        for on in dict.fromkeys(each.on for each in every)
    }
    counts["all sets"] = Counter(each.outcome for each in every)
    return [
        {"set": on, "questions": told.total(), **{outcome: told[outcome] for outcome in WINNERS}}
        for on, told in counts.items()
    ]


def _clear(duel: Duel) -> bool:
    scores = [each.f1 for each in (duel.rag, duel.graph)]
    return len(duel.question.text.split()) <= _LONGEST and set(scores) <= {0.0, 1.0} and all(duel.ends)


def _ends(stages: LossesBySet, key: tuple[str, str], *systems: str) -> tuple[str, str]:
    rag, graph = _stages_of(stages, key, systems)
    return rag, graph


def _stages_of(stages: LossesBySet, key: tuple[str, str], systems: Sequence[str]) -> Iterator[str]:
    for system in systems:
        yield stages.get(key[0], {}).get(system, {}).get(key[1], "")
