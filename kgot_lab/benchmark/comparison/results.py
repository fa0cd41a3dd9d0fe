"""Results of the comparison: measures per system and set, paired differences, and which goals are reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from kgot_lab.benchmark.comparison.comparison_run import load_system_results
from kgot_lab.benchmark.comparison.plan import ALL_SETS, Goal, load_comparison_plan
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.evaluation.reports import format_p, span
from kgot_lab.evaluation.significance import (
    Estimate,
    calibration_error,
    holm,
    interval,
    reliability,
    risk_area,
    risk_curve,
    sign_flip_p,
)
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

CLOSED_BOOK = "closed-book"  # the system that answers from what the model knows
ResultsByQuestion = Mapping[tuple[str, str], QuestionResult]  # by set and id of the question


# wide: one field a column of the results table
@dataclass(frozen=True)
class SystemScores:
    """A system's scores on a set, by ANSWER_MEASURES, or None if no result has the value.

    An answer that ended in an error counts as wrong.
    """

    system: str
    on: str
    n: int
    errors: int
    em: Estimate
    f1: Estimate
    prompt_tokens: float
    evidence_tokens: float | None
    seconds: float | None
    calls: float
    resting: float | None
    destroyed: tuple[int, int]  # so many of so many that the model alone answers right
    calibration_error: float | None
    risk_area: float | None


@dataclass(frozen=True)
class PairedDifference:
    """A system against another on the questions that both answered: the mean difference of F1.

    p is corrected over one of two families: the comparisons in goals of kind "gain" (`aimed`), or all others.
    """

    system: str
    other: str
    on: str
    difference: Estimate
    p: float
    p_holm: float
    aimed: bool


@dataclass(frozen=True)
class ComparisonResults:
    """The results of a folder, computed from its plan and its per-question results alone."""

    plan: Mapping[str, Any]
    answers: Mapping[str, ResultsByQuestion]  # by system

    @staticmethod
    def load(folder: Path) -> ComparisonResults:
        """Read the results of a folder.

        Raises BadInput if there is no plan, and TraceError if results were changed.
        """
        plan = load_comparison_plan(folder)
        answers: dict[str, dict[tuple[str, str], QuestionResult]] = {}
        for system, set in product(plan["systems"], plan["sets"]):
            for id, result in load_system_results(folder, set, system).items():
                answers.setdefault(system, {})[set, id] = result
        return ComparisonResults(plan, answers)

    @property
    def sets(self) -> list[str]:
        """The names of the sets, and one for all of them together if there are several."""
        return [*self.plan["sets"], *([ALL_SETS] if len(self.plan["sets"]) > 1 else [])]

    def results_on(self, system: str, set: str) -> ResultsByQuestion:
        """Return the answers of a system to a set, or to all sets."""
        answers = self.answers.get(system, {})
        return {key: result for key, result in answers.items() if set in (key[0], ALL_SETS)}

    @cached_property
    def system_scores(self) -> list[SystemScores]:
        """A row for each set and system that answered some of it."""
        answered = ((system, set) for set in self.sets for system in self.answers)
        return [self._score_system(*each) for each in answered if self.results_on(*each)]

    @cached_property
    def pairs(self) -> list[PairedDifference]:
        """The comparisons of the plan, one for each pair and set with two groups of questions that both
        answered.

        p-values are corrected by family.
        """
        rows: list[PairedDifference] = []
        gains = [aim for aim in self.plan["aims"] if aim["kind"] == "gain"]
        aimed = {(aim["system"], aim["other"], aim["on"]) for aim in gains}
        for system, other in self.plan["pairs"]:
            for set in self.sets:
                ours, theirs = self.results_on(system, set), self.results_on(other, set)
                both = [key for key in ours if key in theirs]
                groups = [_resampling_group(key, ours[key]) for key in both]
                if len(dict.fromkeys(groups)) < 2:
                    continue
                gaps = [ours[key].f1 - theirs[key].f1 for key in both]
                p = sign_flip_p(gaps, groups, **self.test_settings)
                gap = interval(gaps, groups, **self.test_settings)
                rows.append(PairedDifference(system, other, set, gap, p, p, (system, other, set) in aimed))
        families = {kind: [row.p for row in rows if row.aimed is kind] for kind in (True, False)}
        corrected = {kind: iter(holm(family)) for kind, family in families.items()}
        return [replace(row, p_holm=next(corrected[row.aimed])) for row in rows]

    def as_json(self) -> dict[str, Json]:
        """Convert the results to plain values, with reliability tables and risk-coverage curves."""
        rated = [row for row in self.system_scores if row.calibration_error is not None]
        return {
            "measured": [asdict(row) for row in self.system_scores],
            "pairs": [asdict(row) for row in self.pairs],
            "calibration": [self._curves(row.system, row.on) for row in rated],
        }

    def token_probabilities(self, system: str, set: str) -> tuple[list[float], list[float]]:
        """Return the mean token probability of each answer, and whether the answer is right.

        Answers without a probability are left out.
        """
        answers = self.results_on(system, set).values()
        rated = [
            (answer.token_probability, answer.em)
            for answer in answers
            if answer.token_probability is not None
        ]
        return [probability for probability, _ in rated], [em for _, em in rated]

    @property
    def test_settings(self) -> dict[str, int]:
        """The rounds and the seed of the plan, for intervals and p-values."""
        return {name: self.plan["chance"][name] for name in ("rounds", "seed")}

    def _score_system(self, system: str, set: str) -> SystemScores:
        answers = self.results_on(system, set)
        rows, groups = list(answers.values()), [_resampling_group(*item) for item in answers.items()]
        alone = self.results_on(CLOSED_BOOK, set)
        right = [key for key in answers if key in alone and alone[key].em == 1]
        resting = [float(row.rests) for row in rows if row.rests is not None]
        facts = [row.evidence_tokens for row in rows if row.evidence_tokens is not None]
        seconds = [row.seconds for row in rows if row.seconds is not None and not row.error]
        likely, correct = self.token_probabilities(system, set)
        return SystemScores(
            system, set, len(rows), sum(bool(row.error) for row in rows),
            self._mean([row.em for row in rows], groups), self._mean([row.f1 for row in rows], groups),
            prompt_tokens=median(row.prompt_tokens for row in rows), evidence_tokens=median(facts) if facts else None,
            seconds=median(seconds) if seconds else None, calls=fmean(row.calls for row in rows),
            resting=fmean(resting) if resting else None, destroyed=(sum(answers[key].em < 1 for key in right), len(right)),
            calibration_error=calibration_error(likely, correct) if likely else None,
            risk_area=risk_area(likely, correct) if likely else None,
        )  # fmt: skip

    def _mean(self, values: Sequence[float], groups: Sequence[str]) -> Estimate:
        if len(dict.fromkeys(groups)) < 2:
            mean = fmean(values)
            return Estimate(mean, mean, mean, len(values))
        return interval(values, groups, **self.test_settings)

    def _curves(self, system: str, set: str) -> dict[str, Json]:
        likely, right = self.token_probabilities(system, set)
        table = [asdict(row) for row in reliability(likely, right)]
        curve = [list(point) for point in risk_curve(likely, right)]
        return {"system": system, "on": set, "reliability": table, "risk at coverage": curve}


def _resampling_group(key: tuple[str, str], result: QuestionResult) -> str:
    """Return the resampling group of a question, or the question itself if it has none."""
    return f"{key[0]} {result.group or key[1]}"


# The verdict on each goal of the plan, with its figure.

REACHED, MISSED, UNKNOWN = "reached", "missed", "open"


@dataclass(frozen=True)
class GoalVerdict:
    """The verdict on a goal, "reached", "missed" or "open" (answers are missing), with the figure."""

    goal: Goal
    verdict: str
    figure: str


def judge_goals(findings: ComparisonResults) -> list[GoalVerdict]:
    """Judge each goal of the plan by the results.

    The figure of a goal says so if not all its questions are answered.
    """
    rows = {(row.system, row.on): row for row in findings.system_scores}
    pairs = {(pair.system, pair.other, pair.on): pair for pair in findings.pairs}
    judged = []
    for aim in findings.plan["aims"]:
        goal = Goal(**aim)
        own, other = rows.get((goal.system, goal.on)), rows.get((goal.other, goal.on))
        pair = pairs.get((goal.system, goal.other, goal.on))
        verdict = _judge_goal(goal, own, other, pair)
        of = _planned_questions(findings, goal)
        if own is not None and own.n < of:
            verdict = replace(verdict, figure=f"{verdict.figure}; so far {own.n} of {of} questions")
        judged.append(verdict)
    return judged


def _judge_goal(
    goal: Goal, own: SystemScores | None, other: SystemScores | None, pair: PairedDifference | None
) -> GoalVerdict:
    if own is None or (goal.other and other is None) or (goal.kind in {"gain", "not below"} and pair is None):
        return GoalVerdict(goal, UNKNOWN, "not answered yet")
    if pair is not None and goal.kind in {"gain", "not below"}:
        return _judge_difference(goal, pair, own, other)
    value, base = _measure_value(goal, own), _measure_value(goal, other) if other is not None else 1.0
    if value is None or not base:
        return GoalVerdict(goal, UNKNOWN, "no result tells it")
    measured = value / base
    holds = measured >= goal.bound if goal.kind == "at least" else measured <= goal.bound
    shown = format_decimal(measured) if goal.other or goal.measure in {"f1", "em"} else f"{measured:.1f}"
    if goal.measure == "f1" and not goal.other:
        shown += f" [{format_decimal(own.f1.low)}, {format_decimal(own.f1.high)}]"
    return GoalVerdict(
        goal, REACHED if holds else MISSED, shown + (f" of {goal.other}" if goal.other else "")
    )


def _judge_difference(
    goal: Goal, pair: PairedDifference, own: SystemScores, other: SystemScores | None
) -> GoalVerdict:
    gap = pair.difference
    corrected = f"p {format_p(pair.p_holm)} after Holm"
    figure = f"{format_signed(gap.mean)} ({span(gap)}), {corrected}, {format_count(gap.n, 'question')}"
    if goal.kind == "gain":
        holds = gap.mean > goal.bound and pair.p_holm < 0.05
    else:
        holds = gap.mean >= goal.bound
        if gap.low < goal.bound:
            loss = format_decimal(-goal.bound)
            figure += f"; the interval does not rule out a loss of more than {loss}"
    if goal.share is not None:
        if own.evidence_tokens is None or other is None or not other.evidence_tokens:
            return GoalVerdict(goal, UNKNOWN, f"{figure}; no result tells the evidence tokens")
        taken = own.evidence_tokens / other.evidence_tokens
        holds = holds and taken <= goal.share
        figure = f"{figure}; {format_decimal(taken)} of its evidence tokens"
    return GoalVerdict(goal, REACHED if holds else MISSED, figure)


def _measure_value(goal: Goal, row: SystemScores) -> float | None:
    values: dict[str, float | None] = {"f1": row.f1.mean, "em": row.em.mean}
    values |= {"seconds": row.seconds, "prompt tokens": row.prompt_tokens}
    return values[goal.measure]


def _planned_questions(findings: ComparisonResults, goal: Goal) -> int:
    """Return the number of questions that the plan has for a goal."""
    most = findings.plan["systems"][goal.system]["questions"]
    sets = findings.plan["sets"].items()
    counts = [each["questions"] for name, each in sets if goal.on in (name, findings.sets[-1])]
    return sum(count if most is None else min(count, most) for count in counts)


# Tables: the systems on each set, the pairs, the goals, and calibration.

_COLUMNS = (
    "system", "n", "errors", "EM", "F1 [95 %]", "prompt tokens", "evidence tokens", "median s", "calls", "resting", "destroyed",
    "ECE", "risk area",
)  # fmt: skip
_COVERAGES = (0.2, 0.4, 0.6, 0.8, 1.0)
_SAME = 1e-9  # a coverage of one is a quotient


def comparison_grids(findings: ComparisonResults) -> list[Grid]:
    """Tabulate the systems on each set, the pairs, the goals, and the calibration on all sets."""
    grids = []
    for set in findings.sets:
        rows = [_system_cells(row) for row in findings.system_scores if row.on == set]
        grids.append(Grid(f"Systems on {set}", _COLUMNS, tuple(tuple(map(Cell, row)) for row in rows)))
    views = (_pairs_grid, _goals_grid, _reliability_grid, _risk_grid)
    return [grid for grid in (*grids, *(tabulate(findings) for tabulate in views)) if grid.rows]


def _system_cells(row: SystemScores) -> Sequence[str]:
    lost, of = row.destroyed
    return (
        row.system, f"{row.n:,}", str(row.errors), format_decimal(row.em.mean),
        f"{format_decimal(row.f1.mean)} [{format_decimal(row.f1.low)}, {format_decimal(row.f1.high)}]",
        f"{row.prompt_tokens:,.0f}", _optional_number(row.evidence_tokens, ",.0f"), _optional_number(row.seconds, ".1f"), f"{row.calls:.1f}",
        _optional_decimal(row.resting), f"{lost} of {of}" if of else "",
        _optional_decimal(row.calibration_error), _optional_decimal(row.risk_area),
    )  # fmt: skip


def _pairs_grid(findings: ComparisonResults) -> Grid:
    columns = ("F1, paired", "on", "questions", "difference", "95 %", "p", "p Holm", "aimed at")
    rows = [
        (
            Cell(f"{pair.system} − {pair.other}"), Cell(pair.on), Cell(str(pair.difference.n)),
            Cell(format_signed(pair.difference.mean), pair.p_holm < 0.05), Cell(span(pair.difference)),
            Cell(format_p_value(pair.p)), Cell(format_p_value(pair.p_holm)), Cell("yes" if pair.aimed else ""),
        )
        for pair in findings.pairs
    ]  # fmt: skip
    return Grid("Pairs of systems on the same questions", columns, tuple(rows))


def _goals_grid(findings: ComparisonResults) -> Grid:
    verdicts = judge_goals(findings)
    rows = [(Cell(v.goal.said), Cell(v.verdict, v.verdict != MISSED), Cell(v.figure)) for v in verdicts]
    return Grid("Aims", ("aim", "", "figure"), tuple(rows), words=True)


def _reliability_grid(findings: ComparisonResults) -> Grid:
    columns = ("answers held likely, exp(logprob / tokens)", "n", "mean likelihood", "share right")
    rows = []
    for system in findings.answers:
        likely, right = findings.token_probabilities(system, findings.sets[-1])
        for row in reliability(likely, right) if likely else []:
            interval = f"{system}, {row.low:.1f} to {row.high:.1f}"
            shown = (interval, str(row.n), format_decimal(row.sure), format_decimal(row.right))
            rows.append(tuple(map(Cell, shown)))
    return Grid("How often an answer is right that the model holds so likely", columns, tuple(rows))


def _risk_grid(findings: ComparisonResults) -> Grid:
    """Tabulate the share of wrong answers among the most probable answers of each system, by coverage."""
    rows = []
    for system in findings.answers:
        likely, right = findings.token_probabilities(system, findings.sets[-1])
        if likely:
            curve = risk_curve(likely, right)
            shown = [next(risk for share, risk in curve if share >= least - _SAME) for least in _COVERAGES]
            rows.append((Cell(system), *(Cell(format_decimal(risk)) for risk in shown)))
    columns = ("coverage", *(f"{least:.0%}" for least in _COVERAGES))
    return Grid("Share of wrong answers among the surest", columns, tuple(rows))


def _optional_decimal(value: float | None) -> str:
    return "" if value is None else format_decimal(value)


def _optional_number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
