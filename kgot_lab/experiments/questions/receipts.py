"""A line for each question: what was answered, whether it is right, and what it took."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kgot_lab.errors import TraceError
from kgot_lab.evaluation.answers import exact_match, f1
from kgot_lab.evaluation.gaia_rules import gaia_verdict
from kgot_lab.evaluation.grading import CORRECT, NOT_ATTEMPTED, UNCLEAR, Grade
from kgot_lab.experiments.questions.question import Question
from kgot_lab.loop.events import Answered, Asked, Event, Forced, ToolReturned
from kgot_lab.types import Usage

ENDINGS = ("correct", "correct, forced", "close call", "wrong", "wrong, forced", "not attempted", "unclear", "error")
WITHHELD = "(withheld: this set may not be passed on)"


@dataclass(frozen=True)
class QuestionReceipt:
    """One question: `correct` by the set's own rule (`scored_by`), None where it has no answer; times in seconds, costs in US dollars.

    `seconds` is the wall time of the sitting in which it was answered, and before that what models took. `forced` says that no read of
    the graph gave rows, `out_of_steps` that reading was forced; both are None of systems without a graph. `tools` counts the calls of each.
    """

    id: str
    predicted: str = ""
    gold: str = ""
    correct: bool | None = None
    scored_by: str = "match"
    em: float = 0.0
    f1: float = 0.0
    close: bool = False
    rule: str = ""  # of GAIA's three
    grade: str = ""
    span: str = ""  # the words of the grader that decided
    grader: str = ""
    type: str = ""
    level: str = ""
    forced: bool | None = None
    out_of_steps: bool | None = None
    steps: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    model_seconds: float = 0.0
    seconds: float = 0.0
    tools: dict[str, int] = field(default_factory=dict)
    tools_failed: int = 0
    human_steps: int | None = None
    human_tools: tuple[str, ...] = ()
    error: str = ""

    @property
    def end(self) -> str:
        """What became of the question: one of ENDINGS."""
        if self.error:
            return "error"
        if self.grade in {NOT_ATTEMPTED, UNCLEAR}:
            return self.grade
        forced = ", forced" if self.forced or self.out_of_steps else ""
        if self.correct:
            return f"correct{forced}"
        return "close call" if self.close else f"wrong{forced}"


def scored(question: Question, predicted: str, scored_by: str) -> QuestionReceipt:
    """How an answer compares with the right one and its aliases, by every rule that needs no model; `correct` is the set's own."""
    golds = (question.answer, *question.aliases)
    verdicts = [gaia_verdict(predicted, gold) for gold in golds]
    verdict = max(verdicts, key=lambda each: (each.correct, each.close))
    em, words = max(exact_match(predicted, gold) for gold in golds), max(f1(predicted, gold) for gold in golds)
    gaia = scored_by == "gaia"
    return QuestionReceipt(
        question.id, predicted, question.answer, verdict.correct if gaia else em == 1, "gaia" if gaia else "match", em, words,
        close=gaia and verdict.close, rule=verdict.rule if gaia else "", type=question.type, level=question.level,
        human_steps=question.steps, human_tools=question.tools,
    )  # fmt: skip


def with_grade(receipt: QuestionReceipt, grade: Grade, grader: str) -> QuestionReceipt:
    """The receipt once a model has graded the answer, which then decides."""
    return replace(receipt, correct=grade.grade == CORRECT, scored_by="grader", grade=grade.grade, span=grade.span, grader=grader)


def with_costs(receipt: QuestionReceipt, events: Sequence[Event], seconds: float) -> QuestionReceipt:
    """The receipt with what the events of a run took, answered or not; `forced` and `out_of_steps` are those of a run of the loop."""
    asked = [event for event in events if isinstance(event, Asked)]
    spent = Usage.total(event.usage for event in asked)
    used = [event for event in events if isinstance(event, ToolReturned)]
    final = next((event for event in reversed(events) if isinstance(event, Answered)), None)
    return replace(
        receipt, steps=max((event.step for event in events), default=0), calls=len(asked), prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens, dollars=spent.cost, model_seconds=spent.seconds, seconds=seconds,
        tools=dict(Counter(event.call.tool for event in used)), tools_failed=sum(event.failed for event in used),
        forced=final.forced if final else None, out_of_steps=any(isinstance(event, Forced) for event in events),
    )  # fmt: skip


def without_graph(receipt: QuestionReceipt) -> QuestionReceipt:
    """The receipt of a system that has no graph and no steps: it says nothing of them."""
    return replace(receipt, forced=None, out_of_steps=None, steps=None)


def withheld(receipt: QuestionReceipt) -> QuestionReceipt:
    """The receipt without the right answer, and without the given one where that is right."""
    same = receipt.correct or receipt.close
    return replace(receipt, gold=WITHHELD, predicted=WITHHELD if same else receipt.predicted, span="")


def append_receipt(path: Path, receipt: QuestionReceipt) -> None:
    """Add a line to a file, whole or, after a kill, cut short; raises TraceError where it cannot be written."""
    line = (json.dumps(asdict(receipt), ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    try:
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                line = line if file.read() == b"\n" else b"\n" + line  # what a kill cut short stays a line that is passed over
            file.write(line)
    except OSError as error:
        raise TraceError(f"cannot write the receipts {path}: {error.strerror or error}") from error


def read_receipts(path: Path) -> dict[str, QuestionReceipt]:
    """The last line of each question, by its id; one that a kill cut short is passed over. Raises TraceError for another file."""
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except OSError as error:
        raise TraceError(f"the receipts {path} cannot be read: {error}") from error
    known = {each.name for each in fields(QuestionReceipt)}
    found: dict[str, QuestionReceipt] = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if not isinstance(row, dict) or "id" not in row:
            raise TraceError(f"{path}, line {number}, is no receipt of a question")
        values: dict[str, Any] = {name: tuple(value) if name == "human_tools" else value for name, value in row.items() if name in known}
        found[row["id"]] = QuestionReceipt(**values)
    return found


def by_level(receipts: Iterable[QuestionReceipt]) -> dict[str, list[QuestionReceipt]]:
    """The receipts of each level, "" for those without one, in the order of the levels."""
    groups: dict[str, list[QuestionReceipt]] = {}
    for receipt in sorted(receipts, key=lambda each: (each.level, each.id)):
        groups.setdefault(receipt.level, []).append(receipt)
    return groups
