"""What the receipts say: each system's measures on each set, pairs of systems on the same questions, and
which aims are reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any

from kgot_lab.benchmark.comparison.comparison_run import receipts_of
from kgot_lab.benchmark.comparison.plan import ALL_SETS, comparison_plan
from kgot_lab.benchmark.questions.question_result import QuestionReceipt
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.calibration import calibration_error, reliability, risk_area, risk_curve
from kgot_lab.evaluation.significance import Estimate, grouped_interval, grouped_p, holm
from kgot_lab.types import Json

CLOSED_BOOK = "closed-book"  # the system that answers from what the model knows
AnsweredBy = Mapping[tuple[str, str], QuestionReceipt]  # by set and id of the question


@dataclass(frozen=True)
class Measured:
    """A system's answers on a set, by ANSWER_MEASURES; None where no receipt tells it. An answer that ended
    in an error counts as wrong.
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
class Paired:
    """A system against another on the questions that both answered: the mean difference of F1.

    p is corrected over one of two families: what the aims of a gain name (`aimed`), or everything else that
    is looked at.
    """

    system: str
    other: str
    on: str
    difference: Estimate
    p: float
    p_holm: float
    aimed: bool


@dataclass(frozen=True)
class Findings:
    """All results of a folder, from its plan and its receipts alone."""

    plan: Mapping[str, Any]
    answers: Mapping[str, AnsweredBy]  # by system

    @staticmethod
    def of(folder: Path) -> Findings:
        """What the receipts of a folder say; raises BadInput where there is no plan, TraceError for receipts
        that were changed.
        """
        plan = comparison_plan(folder)
        answers = {
            system: {
                (set, id): receipt
                for set in plan["sets"]
                for id, receipt in receipts_of(folder, set, system).items()
            }
            for system in plan["systems"]
        }
        return Findings(plan, {system: some for system, some in answers.items() if some})

    @property
    def sets(self) -> list[str]:
        """The sets by name, and all of them together where there are several."""
        return [*self.plan["sets"], *[ALL_SETS] * (len(self.plan["sets"]) > 1)]

    def on(self, system: str, set: str) -> AnsweredBy:
        """The answers of a system to a set, or to all."""
        return {
            key: receipt for key, receipt in self.answers.get(system, {}).items() if set in (key[0], ALL_SETS)
        }

    @cached_property
    def measured(self) -> list[Measured]:
        """A row for each set and system that answered some of it."""
        return [
            self._measured(system, set)
            for set in self.sets
            for system in self.answers
            if self.on(system, set)
        ]

    @cached_property
    def pairs(self) -> list[Paired]:
        """A row for each pair and set of the plan with two groups of questions that both answered; p-values
        corrected by family.
        """
        rows: list[Paired] = []
        aimed = {
            (aim["system"], aim["other"], aim["on"]) for aim in self.plan["aims"] if aim["kind"] == "gain"
        }
        for system, other in self.plan["pairs"]:
            for set in self.sets:
                ours, theirs = self.on(system, set), self.on(other, set)
                both = [key for key in ours if key in theirs]
                groups = [_group(key, ours[key]) for key in both]
                if len(dict.fromkeys(groups)) < 2:
                    continue
                gaps = [ours[key].f1 - theirs[key].f1 for key in both]
                p = grouped_p(gaps, groups, **self.chance)
                gap = grouped_interval(gaps, groups, **self.chance)
                rows.append(Paired(system, other, set, gap, p, p, (system, other, set) in aimed))
        corrected = {
            family: iter(holm([row.p for row in rows if row.aimed is family])) for family in (True, False)
        }
        return [replace(row, p_holm=next(corrected[row.aimed])) for row in rows]

    def compare_with(self, other: Findings, pairs: Sequence[tuple[str, str]]) -> Findings:
        """The answers of two folders to the same questions, in pairs that no plan named; p is corrected over
        all of these.

        Raises BadInput where the questions are others, where both have a system of one name, and for a pair
        that neither has.
        """
        if self.plan["sets"] != other.plan["sets"]:
            raise BadInput(
                "the two comparisons are not of the same questions, so their answers cannot be paired"
            )
        if both := [name for name in self.answers if name in other.answers]:
            raise BadInput(f"{both[0]} has answers in both comparisons: which are meant is not clear")
        answers = {**self.answers, **other.answers}
        for name in (name for pair in pairs for name in pair if name not in answers):
            raise UnknownName("system with answers", name, answers)
        systems = {**self.plan["systems"], **other.plan["systems"]}
        return Findings(
            {**self.plan, "systems": systems, "pairs": [list(pair) for pair in pairs], "aims": []}, answers
        )

    def as_json(self) -> dict[str, Json]:
        """The same as plain values, with the tables of reliability and the curves of risk against coverage."""
        told = {
            "measured": [asdict(row) for row in self.measured],
            "pairs": [asdict(row) for row in self.pairs],
        }
        return {
            **told,
            "calibration": [
                self._curves(row.system, row.on) for row in self.measured if row.calibration_error is not None
            ],
        }

    def sure(self, system: str, set: str) -> tuple[list[float], list[float]]:
        """How likely the model held each answer of a system whose likelihood it told, and whether it is
        right.
        """
        told = [
            (receipt.likelihood, receipt.em)
            for receipt in self.on(system, set).values()
            if receipt.likelihood is not None
        ]
        return [likelihood for likelihood, _ in told], [em for _, em in told]

    @property
    def chance(self) -> dict[str, int]:
        """The rounds and the seed of the plan, for intervals and p-values."""
        return {name: self.plan["chance"][name] for name in ("rounds", "seed")}

    def _measured(self, system: str, set: str) -> Measured:
        answers = self.on(system, set)
        rows, groups = list(answers.values()), [_group(*item) for item in answers.items()]
        alone = self.on(CLOSED_BOOK, set)
        right = [key for key in answers if key in alone and alone[key].em == 1]
        resting = [float(row.rests) for row in rows if row.rests is not None]
        facts = [row.evidence_tokens for row in rows if row.evidence_tokens is not None]
        seconds = [row.seconds for row in rows if row.seconds is not None and not row.error]
        likely, correct = self.sure(system, set)
        return Measured(
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
        return grouped_interval(values, groups, **self.chance)

    def _curves(self, system: str, set: str) -> dict[str, Json]:
        likely, right = self.sure(system, set)
        table = [asdict(row) for row in reliability(likely, right)]
        return {
            "system": system,
            "on": set,
            "reliability": table,
            "risk at coverage": [list(point) for point in risk_curve(likely, right)],
        }


def _group(key: tuple[str, str], receipt: QuestionReceipt) -> str:
    """What a question is drawn together with: its group, or itself."""
    return f"{key[0]} {receipt.group or key[1]}"
