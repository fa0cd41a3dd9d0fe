"""The results of a run of questions as tables, every share with its 95 % interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import fmean, median

from kgot_lab.benchmark.questions.question_result import QuestionReceipt, by_level
from kgot_lab.evaluation.grading import graded_scores
from kgot_lab.evaluation.significance import Estimate, interval, share
from kgot_lab.evaluation.summary import span
from kgot_lab.evaluation.tables import Cell, Grid, decimal
from kgot_lab.types import Json


def results_grid(receipts: Iterable[QuestionReceipt], title: str = "") -> Grid:
    """A row for each level and one for all: correct by the set's own rule, close calls apart, exact match,
    F1, and what it took.
    """
    rows = list(receipts)
    groups = by_level(rows)
    shown = {
        **({level or "no level": some for level, some in groups.items()} if len(groups) > 1 else {}),
        "all": rows,
    }
    columns = (
        "questions",
        "n",
        "correct [95 %]",
        "close",
        "errors",
        "EM",
        "F1 [95 %]",
        "calls",
        "$",
        "median s",
    )
    return Grid(title, columns, tuple(_cells(name, some) for name, some in shown.items()))


def graded_grid(receipts: Iterable[QuestionReceipt]) -> Grid | None:
    """SimpleQA's measures with their intervals, or None where nothing was graded."""
    grades = [receipt.grade for receipt in receipts if receipt.grade]
    if not grades:
        return None
    rows = [
        (name.replace("_", " "), Estimate(**each)) for name, each in asdict(graded_scores(grades)).items()
    ]
    title = f"Graded by a model, {len(grades)} answers"
    return Grid(
        title,
        ("measure", "value", "95 %"),
        tuple((Cell(name), Cell(decimal(each.mean)), Cell(span(each))) for name, each in rows),
    )


def results_json(receipts: Iterable[QuestionReceipt]) -> dict[str, Json]:
    """The same numbers as plain values."""
    rows = list(receipts)
    grades = [receipt.grade for receipt in rows if receipt.grade]
    told: dict[str, Json] = {
        level or "no level": _numbers(some) for level, some in by_level(rows).items()
    } | {"all": _numbers(rows)}
    return {"by level": told, **({"graded": asdict(graded_scores(grades))} if grades else {})}


def _numbers(rows: Sequence[QuestionReceipt]) -> dict[str, Json]:
    right, ends = sum(bool(row.correct) for row in rows), [row.end for row in rows]
    return {
        "questions": len(rows),
        "correct": asdict(share(right, len(rows))),
        "close calls": ends.count("close call"),
        "ends": {end: ends.count(end) for end in dict.fromkeys(ends)},
        "exact match": asdict(share(sum(row.em == 1 for row in rows), len(rows))),
        "f1": asdict(_mean([row.f1 for row in rows])),
        "calls": sum(row.calls for row in rows),
        "dollars": sum(row.dollars for row in rows),
        "questions of unknown seconds": sum(row.seconds is None for row in rows),
        "questions without told tokens": sum(map(_untold, rows)),
        "dollars per correct": sum(row.dollars for row in rows) / right if right else None,
    }


def _cells(name: str, rows: Sequence[QuestionReceipt]) -> tuple[Cell, ...]:
    correct, words = share(sum(bool(row.correct) for row in rows), len(rows)), _mean([row.f1 for row in rows])
    ends = [row.end for row in rows]
    told = (
        name, str(len(rows)), f"{decimal(correct.mean)} {span(correct)}", str(ends.count("close call")), str(ends.count("error")),
        decimal(fmean(row.em for row in rows) if rows else 0.0), f"{decimal(words.mean)} {span(words)}",
        f"{sum(row.calls for row in rows):,}", _dollars(rows),
        _median_seconds(rows),
    )  # fmt: skip
    return tuple(map(Cell, told))


def _dollars(rows: Sequence[QuestionReceipt]) -> str:
    """US dollars in all, and whether a server did not tell what some calls took."""
    dollars = sum(row.dollars for row in rows)
    if not any(map(_untold, rows)):
        return f"{dollars:.4f}"
    return f"{dollars:.4f} + not told" if dollars else "not told"


def _median_seconds(rows: Sequence[QuestionReceipt]) -> str:
    """The median of the seconds that are known, and of how many questions they are not."""
    known = [row.seconds for row in rows if row.seconds is not None]
    unknown = len(rows) - len(known)
    told = f"{median(known):.1f}" if known else "" if rows else "0.0"
    return ", ".join(filter(None, (told, f"{unknown} unknown" if unknown else "")))


def _untold(row: QuestionReceipt) -> bool:
    """Whether the server did not tell all tokens of a question's calls: none reads nothing or writes nothing."""
    return bool(row.calls and not row.error and not (row.prompt_tokens and row.completion_tokens))


def _mean(values: Sequence[float]) -> Estimate:
    """A mean with its bootstrap interval, or without one where there are fewer than two values."""
    if len(values) > 1:
        return interval(values)
    only = values[0] if values else 0.0
    return Estimate(only, only, only, len(values))
