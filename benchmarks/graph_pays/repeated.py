"""Questions that were asked again: whether the answers are the same, and how long each time took."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from kgot_lab.benchmark.comparison.results import Findings
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import counted


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
        asked = f"{self.system}: {counted(self.answers, 'question')} asked again, {self.same} answered and read the same to the letter"
        if self.seconds_then is None or self.seconds_now is None:
            return f"{asked}."
        return f"{asked}; {self.seconds_now:.1f} seconds in the median now, {self.seconds_then:.1f} then."


def repetition(findings: Findings, again: Findings, system: str) -> Repetition:
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
        receipt.likelihood,
        receipt.calls,
        receipt.prompt_tokens,
        receipt.evidence_tokens,
        receipt.error,
    )
