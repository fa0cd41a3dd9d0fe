"""Rows and sentences on compared answers for lessons 50 and 52, all derived from the results on file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from kgot_lab.benchmark.comparison.losses import (
    FAILED,
    LOSSES,
    NEARLY,
    RIGHT,
    LossesBySet,
    count_losses,
)
from kgot_lab.benchmark.comparison.results import ComparisonResults, SystemScores
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.errors import BadInput, require_known
from kgot_lab.evaluation.reports import Contest, ContestRound, Sentences, format_p, span
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

NOT_YET = "not answered yet"
_EQUAL = 1e-9
_SURE = 0.05  # how far likelihood and share right may lie apart and still be called about the same


def pair_comparisons(
    first: ComparisonResults, second: ComparisonResults, pairs: Sequence[tuple[str, str]]
) -> ComparisonResults:
    """Pair the answers of two folders to the same questions, in pairs that no plan named.

    p-values are corrected over all of these pairs. Raises BadInput if the questions differ or both folders have a
    system of one name, and UnknownName for a system that neither has.
    """
    if first.plan["sets"] != second.plan["sets"]:
        difference = "the two comparisons are not of the same questions"
        raise BadInput(f"{difference}, so their answers cannot be paired")
    if both := [name for name in first.answers if name in second.answers]:
        raise BadInput(f"{both[0]} has answers in both comparisons: which are meant is not clear")
    answers = {**first.answers, **second.answers}
    require_known("system with answers", answers, *(name for pair in pairs for name in pair))
    systems = {**first.plan["systems"], **second.plan["systems"]}
    named = [list(pair) for pair in pairs]
    return ComparisonResults({**first.plan, "systems": systems, "pairs": named, "aims": []}, answers)


def contest(findings: ComparisonResults, systems: Mapping[str, str]) -> Contest:
    """Which of some systems is first in F1 on each set of the plan, over the questions that all of them have
    answered who answered any.
    """
    return Contest(
        dict(systems), tuple(_round(findings, list(systems), set) for set in findings.plan["sets"])
    )


def progress_rows(findings: ComparisonResults) -> list[dict[str, Json]]:
    """A row for each system of the plan: how many questions of each set it has answered, of those it is to
    answer.
    """
    rows: list[dict[str, Json]] = []
    for system, told in findings.plan["systems"].items():
        most = {
            set: min(each["questions"], told["questions"] or each["questions"])
            for set, each in findings.plan["sets"].items()
        }
        rows.append(
            {"system": system}
            | {set: f"{len(findings.results_on(system, set))} of {count}" for set, count in most.items()}
        )
    return rows


def score_rows(findings: ComparisonResults) -> list[dict[str, Json]]:
    """A row for each system of the plan: its F1 on each set with the 95 % interval and the number of answers."""
    rows = {(row.system, row.on): row for row in findings.system_scores}
    told: list[dict[str, Json]] = []
    for system in findings.plan["systems"]:
        found = {set: rows.get((system, set)) for set in findings.sets}
        told.append({"system": system} | {set: _f1(row) if row else NOT_YET for set, row in found.items()})
    return told


def cost_rows(findings: ComparisonResults) -> list[dict[str, Json]]:
    """A row for each system of the plan: what an answer took on all sets, medians, and calls of the model on
    average.
    """
    rows = {row.system: row for row in findings.system_scores if row.on == findings.sets[-1]}
    told: list[dict[str, Json]] = []
    for system in findings.plan["systems"]:
        row = rows.get(system)
        if row is None:
            told.append(
                {
                    "system": system,
                    "answers": NOT_YET,
                    "evidence tokens": "",
                    "prompt tokens": "",
                    "calls": "",
                    "seconds": "",
                }
            )
            continue
        amounts = {"evidence tokens": _whole(row.evidence_tokens), "prompt tokens": _whole(row.prompt_tokens)}
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        told.append(
            {"system": system, "answers": str(row.n)}
            | amounts
            | {"calls": f"{row.calls:.1f}", "seconds": seconds}
        )
    return told


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


def trust_told(findings: ComparisonResults, systems: Sequence[str]) -> Sentences:
    """A sentence for each system: how likely it held its answers and how many were right, and what sorting
    them by likelihood gives.
    """
    return Sentences(tuple(_trust(findings, system) for system in systems))


def losses_told(findings: ComparisonResults, stages: LossesBySet, systems: Sequence[str]) -> Sentences:
    """A sentence for each system: at which stage it lost most of the answers whose traces are known, on all
    sets.
    """
    by_system = {
        system: counts for set, system, counts in count_losses(findings, stages) if set == findings.sets[-1]
    }
    lines = []
    for system in systems:
        counts = by_system.get(system)
        if counts is None:
            why = "no trace of it was looked at yet" if system in findings.answers else NOT_YET
            lines.append(f"{system}: {why}.")
            continue
        wrong = {stage: counts[stage] for stage in LOSSES if stage not in (RIGHT, NEARLY) and counts[stage]}
        known = f"{system}: of {format_count(counts.total(), 'answer')} known, {counts[RIGHT]} right and {counts[NEARLY]} nearly"
        most = [stage for stage in wrong if wrong[stage] == max(wrong.values())]
        ends = [
            f"{FAILED} (it ended so)" if stage == FAILED else f"“{stage}” ({LOSSES[stage]})" for stage in most
        ]
        lost = (
            f"of the {sum(wrong.values())} lost, the most ({max(wrong.values())}) at {' and '.join(ends)}"
            if wrong
            else "none was lost"
        )
        lines.append(f"{known}; {lost}.")
    return Sentences(tuple(lines))


# --- parts ---


def _round(findings: ComparisonResults, systems: Sequence[str], set: str) -> ContestRound:
    there = [system for system in systems if findings.results_on(system, set)]
    gone = "".join(
        f"; {NOT_YET}: {', '.join(missing)}"
        for missing in [[each for each in systems if each not in there]]
        if missing
    )
    answers = {system: findings.results_on(system, set) for system in there}
    shared = [
        key for key in (answers[there[0]] if there else ()) if all(key in own for own in answers.values())
    ]
    if len(there) < 2 or not shared:
        return ContestRound(
            set, (), None, len(shared), f"open, since no two have answered the same questions{gone}."
        )
    means = {system: fmean(answers[system][key].f1 for key in shared) for system in there}
    best = max(means.values())
    first = tuple(system for system in there if means[system] > best - _EQUAL)
    behind = max((mean for mean in means.values() if mean <= best - _EQUAL), default=best)
    over = f"over the {format_count(len(shared), 'question')} that {_listed(there)} have all answered"
    if len(first) > 1:
        return ContestRound(
            set,
            first,
            0.0,
            len(shared),
            f"{_listed(first)} are equal with {format_decimal(best)}, {over}{gone}.",
        )
    after = next(system for system in there if abs(means[system] - behind) < _EQUAL)
    told = f"{first[0]} is first with {format_decimal(best)}, {format_decimal(best - behind)} before {after}, {over}{gone}."
    return ContestRound(set, first, best - behind, len(shared), told)


def _f1(row: SystemScores) -> str:
    return f"{format_decimal(row.f1.mean)} [{format_decimal(row.f1.low)}, {format_decimal(row.f1.high)}], n {row.n}"


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
        else f"{own.system} beside {name}: no receipt tells."
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


def _trust(findings: ComparisonResults, system: str) -> str:
    likely, right = findings.token_probabilities(system, findings.sets[-1])
    if not likely:
        return f"{system}: {'no likelihood was told' if system in findings.answers else NOT_YET}."
    sure, correct = fmean(likely), fmean(right)
    apart = (
        "about as sure as it is right"
        if abs(sure - correct) <= _SURE
        else f"too {'sure' if sure > correct else 'modest'} by {format_decimal(abs(sure - correct))}"
    )
    half = sorted(zip(likely, right, strict=True), reverse=True)[: max(1, len(likely) // 2)]
    surest = fmean(score for _, score in half)
    return (
        f"{system} held its {format_count(len(likely), 'answer')} {format_decimal(sure)} likely on average, "
        f"and {format_decimal(correct)} are right: {apart}. "
        f"Of its surer half {format_decimal(surest)} are right."
    )


def _whole(amount: float | None) -> str:
    return "" if amount is None else f"{amount:,.0f}"


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


@dataclass(frozen=True, repr=False)
class Repetition:
    """How many of a system's repeated answers are the same but for their time, and the median seconds of a
    question, where it was told.
    """

    system: str
    answers: int
    same: int
    seconds_then: float | None
    seconds_now: float | None

    def __repr__(self) -> str:
        asked = f"{self.system}: {format_count(self.answers, 'question')} asked again, {self.same} answered and read the same to the letter"
        if self.seconds_then is None or self.seconds_now is None:
            return f"{asked}."
        return f"{asked}; {self.seconds_now:.1f} seconds in the median now, {self.seconds_then:.1f} then."


def repetition(findings: ComparisonResults, again: ComparisonResults, system: str) -> Repetition:
    """A system's answers to the questions that two comparisons share, side by side; raises BadInput where
    they share none.
    """
    then, now = findings.answers.get(system, {}), again.answers.get(system, {})
    shared = [key for key in now if key in then]
    if not shared:
        raise BadInput(f"{system} has answered no question in both comparisons")
    same = sum(what_counts(then[key]) == what_counts(now[key]) for key in shared)
    told = [[seconds for key in shared if (seconds := some[key].seconds) is not None] for some in (then, now)]
    return Repetition(system, len(shared), same, *(median(some) if some else None for some in told))


def what_counts(receipt: QuestionResult) -> tuple[object, ...]:
    """The answer and what was read and asked for it, without times."""
    return (
        receipt.predicted,
        receipt.token_probability,
        receipt.calls,
        receipt.prompt_tokens,
        receipt.evidence_tokens,
        receipt.error,
    )
