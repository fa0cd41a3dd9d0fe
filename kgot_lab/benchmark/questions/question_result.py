"""Per-question results: what was answered, whether it is right, and what it cost."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from kgot_lab.arguments import CheckedRecord, bounded
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput, TraceError, require, require_known
from kgot_lab.evaluation.grading import (
    CORRECT,
    NOT_ATTEMPTED,
    UNCLEAR,
    Grade,
    contains_answer,
    exact_match,
    f1,
    gaia_verdict,
    normalise_answer,
)
from kgot_lab.io.seals import append_seal, first_broken_seal, line_seal
from kgot_lab.llm.recorded import read_lines, repair_last_line
from kgot_lab.loop.events import OUTCOMES, Answered, Asked, Event, Forced, Read, Started, ToolReturned
from kgot_lab.loop.render import join_lines, row_text
from kgot_lab.text.cleaning import estimate_tokens
from kgot_lab.types import Usage

ENDINGS = tuple(
    "correct; correct, forced; close call; wrong; wrong, forced; not attempted; unclear; error".split("; ")
)
WITHHELD = "(withheld: this set may not be passed on)"


# wide: one field a key of the line of JSON that a question has in the results file
@dataclass(frozen=True)
class QuestionResult(CheckedRecord):
    """The result of one question, with times in seconds and costs in US dollars.

    `correct` follows the set's own rule (`scored_by`), and is None if the question has no answer. `seconds`
    is the wall-clock time of the session in which it was answered, plus the model time before that. It is
    None if only the trace of an earlier session is left, which does not record it. `outcome` is that of the
    answer, "" if there is none. `out_of_steps` means that reading was forced, and is None for systems without
    a graph. `tools` counts the calls of each tool. `evidence_tokens` is the approximate length of the facts
    that the answer was read from, and `rests` is whether they contain it (None for yes and no).
    `token_probability` is the mean probability of a token of the answer, exp(logprob / tokens), if the model
    reported it. The likelihood in a trace is another thing, the probability of the whole answer.
    """

    id: str
    predicted: str = ""
    gold: str = ""
    correct: bool | None = None
    scored_by: str = "match"
    em: float = bounded(0.0, 0, 1)
    f1: float = bounded(0.0, 0, 1)
    close: bool = False
    rule: str = ""  # of GAIA's three
    grade: str = ""
    span: str = ""  # the words of the grader that decided
    grader: str = ""
    type: str = ""
    level: str = ""
    outcome: str = ""
    out_of_steps: bool | None = None
    steps: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    model_seconds: float = 0.0
    seconds: float | None = 0.0
    tools: dict[str, int] = field(default_factory=dict)
    tools_failed: int = 0
    human_steps: int | None = None
    human_tools: tuple[str, ...] = ()
    group: str = ""
    evidence_tokens: int | None = None
    rests: bool | None = None
    token_probability: float | None = bounded(None, 0, 1)
    error: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_known("outcome", ("", *OUTCOMES), self.outcome)
        require(self.tools, dict, "tools are a dictionary")

    @property
    def end(self) -> str:
        """How the question ended, one of ENDINGS. Guesses of systems without a graph are not called forced."""
        if self.error:
            return "error"
        if self.grade in {NOT_ATTEMPTED, UNCLEAR}:
            return self.grade
        is_guess = self.outcome in ("unsure", "not in the sources") and self.out_of_steps is not None
        forced = ", forced" if is_guess or self.out_of_steps else ""
        if self.correct:
            return f"correct{forced}"
        return "close call" if self.close else f"wrong{forced}"


def score_answer(question: Question, predicted: str, scored_by: str) -> QuestionResult:
    """Compare an answer with the right one and its aliases by every rule that needs no model.

    `correct` follows the rule of the set.
    """
    golds = (question.answer, *question.aliases)
    verdicts = [gaia_verdict(predicted, gold) for gold in golds]
    verdict = max(verdicts, key=lambda verdict: (verdict.correct, verdict.close))
    em = max(exact_match(predicted, gold) for gold in golds)
    words = max(f1(predicted, gold) for gold in golds)
    gaia = scored_by == "gaia"
    return QuestionResult(
        question.id, predicted, question.answer, verdict.correct if gaia else em == 1, "gaia" if gaia else "match", em, words,
        close=gaia and verdict.close, rule=verdict.rule if gaia else "", type=question.type, level=question.level,
        human_steps=question.steps, human_tools=question.tools, group=question.group,
    )  # fmt: skip


def add_grade(result: QuestionResult, grade: Grade, grader: str) -> QuestionResult:
    """Add a model's grade to a result. The grade then decides whether it is correct."""
    graded = replace(result, scored_by="grader", grader=grader, grade=grade.grade, span=grade.span)
    return replace(graded, correct=grade.grade == CORRECT)


def add_costs(result: QuestionResult, events: Sequence[Event], seconds: float | None) -> QuestionResult:
    """Add the costs of a run to a result, whether or not it was answered.

    `steps` and `out_of_steps` apply to runs of the loop.
    """
    asked = [event for event in events if isinstance(event, Asked)]
    spent = Usage.total(event.usage for event in asked)
    used = [event for event in events if isinstance(event, ToolReturned)]
    final = next((event for event in reversed(events) if isinstance(event, Answered)), None)
    facts = facts_read(events)
    return replace(
        result, steps=max((event.step for event in events), default=0), calls=len(asked), prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens, dollars=spent.cost, model_seconds=spent.seconds, seconds=seconds,
        tools=dict(Counter(event.call.tool for event in used)), tools_failed=sum(event.failed for event in used),
        outcome=final.outcome if final else "", out_of_steps=any(isinstance(event, Forced) for event in events),
        evidence_tokens=estimate_tokens(facts) if final else None, rests=_is_supported(final.text, facts) if final else None,
        token_probability=_token_probability(events, final.text) if final else None,
    )  # fmt: skip


def facts_read(events: Sequence[Event]) -> str:
    """Return the facts that the answer of a run was read from.

    These are the rows of all reads of the graph, or what the search returned if there is no graph. For the
    mode `paths`, whose reads return more than the model is shown, they are the lines above the question in
    its prompts.
    """
    begun = next((event for event in events if isinstance(event, Started)), None)
    if begun is not None and begun.limits.get("reading") == "paths":
        prompts = (event.prompt.messages[-1].text for event in events if isinstance(event, Asked))
        shown = (text.rpartition("\n\nQuestion: ")[0] for text in prompts)
        return join_lines(dict.fromkeys(line for text in shown for line in text.splitlines()))
    if begun is not None and begun.dialect:
        reads = (event for event in events if isinstance(event, Read))
        return join_lines(dict.fromkeys(row_text(row) for event in reads for row in event.rows))
    return join_lines(event.text for event in events if isinstance(event, ToolReturned) and not event.failed)


def _is_supported(answer: str, facts: str) -> bool | None:
    plain = normalise_answer(answer)
    return None if plain in {"yes", "no"} else bool(plain) and contains_answer(facts, answer)


def _token_probability(events: Sequence[Event], answer: str) -> float | None:
    """Return the mean token probability of the last reply that contains the answer.

    If no reply contains it, the last reply with log-probabilities is used. Returns None if there is none.
    """
    replies = [event for event in events if isinstance(event, Asked) and event.logprob is not None]
    if not replies:
        return None
    containing = [event for event in replies if contains_answer(event.reply, answer)]
    reply = (containing or replies)[-1]
    assert reply.logprob is not None
    return min(1.0, math.exp(reply.logprob / max(1, reply.usage.completion_tokens)))


def withhold_answer(result: QuestionResult) -> QuestionResult:
    """Return the result without the right answer, and without the predicted one if it is right."""
    same = result.correct or result.close
    return replace(result, gold=WITHHELD, predicted=WITHHELD if same else result.predicted, span="")


def append_result(path: Path, result: QuestionResult) -> None:
    """Append a line with a checksum of itself and of those before it.

    A truncated last line is dropped. Raises TraceError.
    """
    line = json.dumps(asdict(result), ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    try:
        lines: list[str] = []
        if path.exists():
            repair_last_line(path)
            lines = read_lines(path)
        before = next((line_seal(line) for line in reversed(lines) if line.strip()), "")
        with path.open("ab") as file:
            file.write(f"{append_seal(line, before)}\n".encode())
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise TraceError(f"cannot write the results {path}: {reason}") from error


def read_results(path: Path) -> dict[str, QuestionResult]:
    """Read the last line of each question in a results file, by its id. A truncated last line is skipped.

    Raises TraceError for another kind of file, and for a line that was changed or has impossible values.
    Lines of older versions have no checksum.
    """
    older = path.with_name("receipts.jsonl")  # as older versions called it
    try:
        if older.exists() and not path.exists():
            older.rename(path)
        lines = read_lines(path) if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"the results {path} cannot be read: {error}") from error
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    whole = numbered[:-1] if lines and lines[-1].strip() else numbered
    if broken := first_broken_seal(line for _, line in whole):
        reason = "is not as it was written, or a line before it is missing"
        raise _results_error(path, numbered[broken - 1][0], reason)
    found: dict[str, QuestionResult] = {}
    for number, line in numbered:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            if line.rstrip().endswith("}") and number < len(lines):
                raise _results_error(path, number, "is not JSON") from None
            continue  # a kill cut it short; older versions wrote on behind such a line
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise _results_error(path, number, "is no result of a question")
        row.setdefault("token_probability", row.get("likelihood"))  # as older versions called it
        values = {name: _as_tuple(value) for name, value in row.items() if name in _FIELDS}
        if "outcome" not in row and row.get("forced") is not None:  # of older versions
            values["outcome"] = "unsure" if row["forced"] else "not checked"
        try:
            found[row["id"]] = QuestionResult(**values)
        except BadInput as error:
            wrong = str(error).removeprefix("the argument ")
            raise _results_error(path, number, f"holds an impossible value: {wrong}") from None
    return found


_FIELDS = {each.name for each in fields(QuestionResult)}


def _results_error(path: Path, number: int, why: str) -> TraceError:
    remedy = "restore a copy; the traces from which it could be made again are not beside it"
    if path.with_name("traces").is_dir():
        again = "the same command makes it again from the traces, without asking anything"
        lost = "the seconds that each answer took are lost then"
        remedy = f"restore a copy, or delete {path.name}, and {again}; {lost}"
    return TraceError(f"{path}, line {number}, {why}: {remedy}")


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def group_by_level(results: Iterable[QuestionResult]) -> dict[str, list[QuestionResult]]:
    """Group results by level, in the order of the levels, with "" for those without one."""
    groups: dict[str, list[QuestionResult]] = {}
    for result in sorted(results, key=lambda result: (result.level, result.id)):
        groups.setdefault(result.level, []).append(result)
    return groups
