"""Results of the comparison: measures per system and set, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from kgot_lab.benchmark.comparison.comparison_run import load_system_results
from kgot_lab.benchmark.comparison.plan import ALL_SETS, load_comparison_plan
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.evaluation.reports import span
from kgot_lab.evaluation.significance import Estimate, holm, interval, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed
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
        """Convert the scores and the differences to plain values."""
        return {"measured": list(map(asdict, self.system_scores)), "pairs": list(map(asdict, self.pairs))}

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
        return SystemScores(
            system, set, len(rows), sum(bool(row.error) for row in rows),
            self._mean([row.em for row in rows], groups), self._mean([row.f1 for row in rows], groups),
            prompt_tokens=median(row.prompt_tokens for row in rows), evidence_tokens=median(facts) if facts else None,
            seconds=median(seconds) if seconds else None, calls=fmean(row.calls for row in rows),
            resting=fmean(resting) if resting else None, destroyed=(sum(answers[key].em < 1 for key in right), len(right)),
        )  # fmt: skip

    def _mean(self, values: Sequence[float], groups: Sequence[str]) -> Estimate:
        if len(dict.fromkeys(groups)) < 2:
            mean = fmean(values)
            return Estimate(mean, mean, mean, len(values))
        return interval(values, groups, **self.test_settings)


def _resampling_group(key: tuple[str, str], result: QuestionResult) -> str:
    """Return the resampling group of a question, or the question itself if it has none."""
    return f"{key[0]} {result.group or key[1]}"


# Tables: the systems on each set, and the pairs.

_COLUMNS = (
    "system", "n", "errors", "EM", "F1 [95 %]", "prompt tokens", "evidence tokens", "median s", "calls", "resting", "destroyed",
)  # fmt: skip


def comparison_grids(findings: ComparisonResults) -> list[Grid]:
    """Tabulate the systems on each set, and the pairs."""
    grids = []
    for set in findings.sets:
        rows = [_system_cells(row) for row in findings.system_scores if row.on == set]
        grids.append(Grid(f"Systems on {set}", _COLUMNS, tuple(tuple(map(Cell, row)) for row in rows)))
    return [grid for grid in (*grids, _pairs_grid(findings)) if grid.rows]


def _system_cells(row: SystemScores) -> Sequence[str]:
    lost, of = row.destroyed
    return (
        row.system, f"{row.n:,}", str(row.errors), format_decimal(row.em.mean),
        f"{format_decimal(row.f1.mean)} [{format_decimal(row.f1.low)}, {format_decimal(row.f1.high)}]",
        f"{row.prompt_tokens:,.0f}", _optional_number(row.evidence_tokens, ",.0f"), _optional_number(row.seconds, ".1f"), f"{row.calls:.1f}",
        _optional_decimal(row.resting), f"{lost} of {of}" if of else "",
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


def _optional_decimal(value: float | None) -> str:
    return "" if value is None else format_decimal(value)


def _optional_number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
