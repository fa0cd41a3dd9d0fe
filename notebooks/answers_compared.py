"""Rows and sentences on compared answers for lessons 50 and 52, all derived from the results on file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from kgot_lab.benchmark.comparison.losses import LossesBySet
from kgot_lab.benchmark.comparison.results import ComparisonResults, SystemScores
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import Contest, ContestRound, Sentences, format_p, span
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

NOT_YET = "not answered yet"
_EQUAL = 1e-9


def contest(f1: pd.DataFrame, systems: Mapping[str, str]) -> Contest:
    """Return a round for each set to guess which of some systems has the best mean F1.

    `f1` has a row for each set and question, and a column for each system.
    """
    means = f1[list(systems)].groupby(level="set").mean()
    return Contest(
        dict(systems), tuple(_round(str(name), row, len(f1.loc[name])) for name, row in means.iterrows())
    )


def gaps_told(findings: ComparisonResults, pairs: Sequence[tuple[str, str]]) -> Sentences:
    """A sentence for each pair and set: the difference of F1 on the questions that both answered, and what
    chance has to say of it.

    A pair of which one has answered nothing gets one sentence in all.
    """
    lines: list[str] = []
    for system, other in pairs:
        if missing := [name for name in (system, other) if name not in findings.answers]:
            lines.append(f"{system} against {other}: {NOT_YET} by {_listed(missing)}.")
        else:
            lines += (_gap(findings, system, other, set) for set in findings.sets)
    return Sentences(tuple(lines))


def spending_told(findings: ComparisonResults, system: str, others: Sequence[str]) -> Sentences:
    """A sentence for each other system: how much evidence and time the first takes beside it, on all sets."""
    rows = {row.system: row for row in findings.system_scores if row.on == findings.sets[-1]}
    own = rows.get(system)
    if own is None:
        return Sentences(
            (f"{system} has answered no question of this comparison yet, so what it takes is not known.",)
        )
    return Sentences(tuple(_costs(own, rows.get(other), other) for other in others))


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


def _gap(findings: ComparisonResults, system: str, other: str, set: str) -> str:
    pair = next(
        (each for each in findings.pairs if (each.system, each.other, each.on) == (system, other, set)), None
    )
    begun = f"{system} against {other} on {set}: "
    if pair is None:
        missing = [name for name in (system, other) if not findings.results_on(name, set)]
        return begun + (
            f"{NOT_YET} by {_listed(missing)}." if missing else "not compared, or on too few questions yet."
        )
    gap = pair.difference
    beyond = "more, beyond chance" if gap.mean > 0 else "less, beyond chance"
    verdict = beyond if pair.p_holm < 0.05 else "the two cannot be told apart"
    questions = format_count(gap.n, "question")
    difference = f"{format_signed(gap.mean)} ({span(gap)}) on {questions}"
    return f"{begun}{difference}, p {format_p(pair.p_holm)} after Holm: {verdict}."


def _costs(own: SystemScores, other: SystemScores | None, name: str) -> str:
    if other is None:
        return f"{own.system} beside {name}: {name} has answered no question yet."
    parts = list(_beside(own, other))
    return (
        f"{own.system} beside {name}: {'; '.join(parts)}."
        if parts
        else f"{own.system} beside {name}: no result tells."
    )


def _beside(own: SystemScores, other: SystemScores) -> Iterator[str]:
    if own.evidence_tokens is not None and other.evidence_tokens is not None:
        share = (
            f", {own.evidence_tokens / other.evidence_tokens:.0%} of that" if other.evidence_tokens else ""
        )
        yield f"{own.evidence_tokens:,.0f} tokens of evidence where the other reads {other.evidence_tokens:,.0f}{share}"
    yield f"{own.calls:.1f} calls of the model instead of {other.calls:.1f}"
    if own.seconds is not None and other.seconds:
        yield f"{own.seconds:.0f} seconds instead of {other.seconds:.0f}, {own.seconds / other.seconds:.1f} times as long"


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
