"""How long the rest of the comparison will take: from what its receipts took, or from tokens and a rate where
there is none yet.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from kgot_lab.benchmark.comparison.comparison_run import WHOLE, Slice, missing, receipts_of
from kgot_lab.benchmark.comparison.plan import Design
from kgot_lab.benchmark.comparison.systems import AnswerSystem
from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.benchmark.questions.question_result import QuestionReceipt
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.llm.budget import Rate
from kgot_lab.loop.forecast import forecast
from kgot_lab.text.tokens import tokens
from kgot_lab.types import full_text

_TURNS = 2  # that a question of the loop is reckoned to take
_PROMPT, _FACT = 250, 35  # tokens of a prompt without its facts, and of a sentence
_WRITTEN = 12  # tokens of an answer
MEASURED, RECKONED = "median of this set", "reckoned"


@dataclass(frozen=True)
class Expected:
    """How many questions of a set a system has left, and the seconds that one takes; `by` says from what that
    is known.
    """

    set: str
    system: str
    left: int
    seconds: float
    by: str

    @property
    def hours(self) -> float:
        """How long all of them take."""
        return self.left * self.seconds / 3600


def expected_rest(design: Design, folder: Path, chosen: Slice = WHOLE) -> list[Expected]:
    """What is missing by set and system, with the median seconds of the receipts on file: of the set, else of
    the system's other sets.

    Where a system has none, tokens are reckoned from its passages, and read and written at the rate of the
    receipts of other systems, or of a 1.5B model on two cores.
    """
    left = Counter((due.set, due.system) for due in missing(design, folder, chosen))
    there = {
        (set, system): _answered(folder, set, system) for set in design.samples for system in design.systems
    }
    rate = _rate([receipt for some in there.values() for receipt in some])
    rows = []
    for (set, system), count in left.items():
        elsewhere = [each for (_, other), some in there.items() if other == system for each in some]
        for some, by in ((there[set, system], MEASURED), (elsewhere, "median of other sets")):
            if known := [receipt.seconds for receipt in some if receipt.seconds is not None]:
                rows.append(Expected(set, system, count, median(known), by))
                break
        else:
            rows.append(
                Expected(
                    set, system, count, _reckoned(design.systems[system], design.samples[set], rate), RECKONED
                )
            )
    return rows


def forecast_grid(rows: list[Expected]) -> Grid:
    """What is expected as a table, with the sum of all."""
    columns = ("system on set", "questions left", "seconds each", "hours", "from")
    cells = [
        (f"{row.system} on {row.set}", f"{row.left:,}", f"{row.seconds:.1f}", f"{row.hours:.2f}", row.by)
        for row in rows
    ]
    total = ("all", f"{sum(row.left for row in rows):,}", "", f"{sum(row.hours for row in rows):.2f}", "")
    return Grid("What is left to answer", columns, tuple(tuple(map(Cell, each)) for each in (*cells, total)))


def _answered(folder: Path, set: str, system: str) -> list[QuestionReceipt]:
    return [receipt for receipt in receipts_of(folder, set, system).values() if not receipt.error]


def _rate(receipts: list[QuestionReceipt]) -> Rate:
    """The tokens that are read in a second of the receipts that make one call, which read much and write
    little; else the usual rate.
    """
    once = [
        receipt
        for receipt in receipts
        if receipt.calls == 1 and receipt.prompt_tokens and receipt.model_seconds > 0
    ]
    if not once:
        return Rate()
    usual = Rate()
    read = sum(receipt.prompt_tokens for receipt in once)
    seconds = sum(receipt.model_seconds - receipt.completion_tokens / usual.writing for receipt in once)
    return Rate(reading=read / seconds) if seconds > 0 else usual


def _reckoned(system: AnswerSystem, asked: QuestionSet, rate: Rate) -> float:
    if system.preset:
        return forecast(system.limits, steps=_TURNS, rate=rate).seconds
    passage = fmean(tokens(full_text(document)) for document in asked.documents) if asked.documents else 0.0
    facts = (
        fmean(len(question.facts) for question in asked.questions) * _FACT if system.search == "gold" else 0.0
    )
    return rate.seconds(_PROMPT + system.passages * passage + facts, _WRITTEN)
