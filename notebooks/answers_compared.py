"""Rounds, duels and rows of compared answers for lessons 50 and 52, all derived from the results on file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from kgot_lab.benchmark.comparison.plan import drawn_samples
from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.comparison.systems import ANSWER_SYSTEMS, PassageSearches
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import Contest, ContestRound
from kgot_lab.evaluation.tables import format_decimal
from kgot_lab.io.files import bundled_path
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Document, Json

LossesBySet = Mapping[str, Mapping[str, Mapping[str, str]]]  # by set, system, and id of the question
_EQUAL = 1e-9


def contest(f1: pd.DataFrame, systems: Mapping[str, str]) -> Contest:
    """Return a round for each set to guess which of some systems has the best mean F1.

    `f1` has a row for each set and question, and a column for each system.
    """
    means = f1[list(systems)].groupby(level="set").mean()
    return Contest(
        dict(systems), tuple(_round(str(name), row, len(f1.loc[name])) for name, row in means.iterrows())
    )


# --- parts ---


def _round(name: str, means: pd.Series, n: int) -> ContestRound:
    best = means.max()
    first = tuple(means.index[means > best - _EQUAL])
    others = means.drop(list(first))
    over = f"over {format_count(n, 'question')}"
    if others.empty or len(first) > 1:
        said = f"{_listed(first)} are equal with {format_decimal(best)}, {over}."
        return ContestRound(name, first, 0.0, n, said)
    ahead = best - others.max()
    said = f"{first[0]} is first with {format_decimal(best)}, {format_decimal(ahead)} before {others.idxmax()}, {over}."
    return ContestRound(name, first, ahead, n, said)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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
    findings: ComparisonResults,
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


def recorded_duels() -> list[Duel]:
    """Load the duels of RAG and the mode `paths` on the 370 questions that were drawn."""
    folder = bundled_path("benchmarks/results/graph_pays")
    return duels(ComparisonResults.load(folder), _samples(), load_losses(folder))


def load_losses(folder: Path) -> LossesBySet:
    """Load the stages at which answers of a comparison were lost, as lost.json beside its results has them."""
    return dict(json.loads((folder / "lost.json").read_text(encoding="utf-8"))["stages"])


def passages_found(duel: Duel, *systems: str) -> list[list[Document]]:
    """Search again for what each of some systems found for the question of a duel; no model is needed."""
    searches, question = PassageSearches(_samples()[duel.on]), duel.question
    tools = (searches.tools(ANSWER_SYSTEMS[system], question)[0] for system in systems)
    return [[*tool(query=question.text).sources] for tool in tools]


def passages_needed(duel: Duel) -> list[Document]:
    """Return the passages that hold what an answer to the question of a duel needs."""
    return [each for each in _samples()[duel.on].documents if each.id in duel.question.gold]


_samples = cache(drawn_samples)


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
