"""Tables of question results, every share with its 95 % interval, and the costs of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, median

from kgot_lab.benchmark.questions.batch import (
    LEDGER,
    RESULTS_FILE,
    TOOL_TIMES,
    TOTALS,
    QuestionRun,
    load_traces,
    trace_files,
)
from kgot_lab.benchmark.questions.question_result import QuestionResult, group_by_level, read_results
from kgot_lab.errors import TraceError
from kgot_lab.evaluation.grading import graded_scores, grading_prompt
from kgot_lab.evaluation.reports import span
from kgot_lab.evaluation.significance import Estimate, interval, proportion
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.io.files import write_atomically
from kgot_lab.llm.budget import CostEstimate, Rate, Spending, estimate, estimate_tokens, requested_price
from kgot_lab.loop.events import OUTCOMES, Event
from kgot_lab.loop.limits import forecast
from kgot_lab.loop.state import Entry, Ledger, ledger
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import LLM, Json, Usage


def results_grid(results: Iterable[QuestionResult], title: str = "") -> Grid:
    """Tabulate results with a row for each level and one for all.

    Columns include correct answers by the set's own rule, close answers, exact match, F1, the share of each
    outcome, the correct answers among the supported ones, and costs.
    """
    rows = list(results)
    groups = group_by_level(rows)
    levels = {level or "no level": some for level, some in groups.items()} if len(groups) > 1 else {}
    scores = "questions;n;correct [95 %];close;errors;EM;F1 [95 %]".split(";")
    columns = (*scores, *_SHARES, "calls", "$", "median s")
    return Grid(title, columns, tuple(_cells(name, some) for name, some in [*levels.items(), ("all", rows)]))


def graded_grid(results: Iterable[QuestionResult]) -> Grid | None:
    """Tabulate SimpleQA's measures with their intervals, or return None if nothing was graded."""
    grades = [result.grade for result in results if result.grade]
    if not grades:
        return None
    scores = asdict(graded_scores(grades)).items()
    rows = [(name.replace("_", " "), Estimate(**score)) for name, score in scores]
    cells = ((Cell(name), Cell(format_decimal(each.mean)), Cell(span(each))) for name, each in rows)
    return Grid(
        f"Graded by a model, {format_count(len(grades), 'answer')}",
        ("measure", "value", "95 %"),
        tuple(cells),
    )


def results_json(results: Iterable[QuestionResult]) -> dict[str, Json]:
    """Return the same numbers as plain values."""
    rows = list(results)
    grades = [result.grade for result in rows if result.grade]
    groups = group_by_level(rows).items()
    by_level: dict[str, Json] = {level or "no level": _statistics(some) for level, some in groups}
    by_level["all"] = _statistics(rows)
    return {"by level": by_level, **({"graded": asdict(graded_scores(grades))} if grades else {})}


def _statistics(rows: Sequence[QuestionResult]) -> dict[str, Json]:
    right, ends = sum(bool(row.correct) for row in rows), [row.end for row in rows]
    return {
        "questions": len(rows),
        "correct": asdict(proportion(right, len(rows))),
        "close calls": ends.count("close call"),
        "ends": {end: ends.count(end) for end in dict.fromkeys(ends)},
        "outcomes": {name: asdict(share) for name, share in _outcome_shares(rows).items()},
        "exact match": asdict(proportion(sum(row.em == 1 for row in rows), len(rows))),
        "f1": asdict(_mean_interval([row.f1 for row in rows])),
        "calls": sum(row.calls for row in rows),
        "dollars": sum(row.dollars for row in rows),
        "questions of unknown seconds": sum(row.seconds is None for row in rows),
        "questions without told tokens": sum(map(_lacks_usage, rows)),
        "dollars per correct": sum(row.dollars for row in rows) / right if right else None,
    }


_SHARES = (*OUTCOMES, "right of supported")


def _outcome_shares(rows: Sequence[QuestionResult]) -> dict[str, Estimate]:
    """Return the share of each outcome, and of correct answers among the supported ones, as far as known."""
    known = [row.outcome for row in rows if row.outcome]
    right = [bool(row.correct) for row in rows if row.outcome == "supported"]
    shares = {name: proportion(known.count(name), len(known)) for name in OUTCOMES if known}
    return shares | ({"right of supported": proportion(sum(right), len(right))} if right else {})


def _cells(name: str, rows: Sequence[QuestionResult]) -> tuple[Cell, ...]:
    correct = proportion(sum(bool(row.correct) for row in rows), len(rows))
    words = _mean_interval([row.f1 for row in rows])
    ends, shares = [row.end for row in rows], _outcome_shares(rows)
    texts = (
        name, str(len(rows)), f"{format_decimal(correct.mean)} {span(correct)}", str(ends.count("close call")), str(ends.count("error")),
        format_decimal(fmean(row.em for row in rows) if rows else 0.0), f"{format_decimal(words.mean)} {span(words)}",
        *(format_decimal(shares[name].mean) if name in shares else "" for name in _SHARES),
        f"{sum(row.calls for row in rows):,}", _dollars(rows), _median_seconds(rows),
    )  # fmt: skip
    return tuple(map(Cell, texts))


def _dollars(rows: Sequence[QuestionResult]) -> str:
    """Format the total in US dollars, with a note if a server did not report the usage of some calls."""
    dollars = sum(row.dollars for row in rows)
    if not any(map(_lacks_usage, rows)):
        return f"{dollars:.4f}"
    return f"{dollars:.4f} + not reported" if dollars else "not reported"


def _median_seconds(rows: Sequence[QuestionResult]) -> str:
    """Format the median of the known seconds, and the number of questions without a known time."""
    known = [row.seconds for row in rows if row.seconds is not None]
    unknown = len(rows) - len(known)
    text = f"{median(known):.1f}" if known else "" if rows else "0.0"
    return ", ".join(filter(None, (text, f"{unknown} unknown" if unknown else "")))


def _lacks_usage(row: QuestionResult) -> bool:
    """Return whether the server did not report all tokens of a question's calls.

    A successful call reads and writes at least one token.
    """
    return bool(row.calls and not row.error and not (row.prompt_tokens and row.completion_tokens))


def _mean_interval(values: Sequence[float]) -> Estimate:
    """Return a mean with its bootstrap interval, which has no width for fewer than two values."""
    if len(values) > 1:
        return interval(values)
    only = values[0] if values else 0.0
    return Estimate(only, only, only, len(values))


# Costs of a run over all its sessions, from its folder, and an estimate for the rest.

UNTRACED = "untraced.json"
_TURNS = 2  # assumed for a question; most decide earlier than their limits
# tokens read and written: five passages, or the question alone
_TYPICAL_TOKENS = {"rag": (1000, 40), "rag-unknown": (1020, 40), "zero-shot": (150, 40)}
_GRADING_TOKENS = (estimate_tokens(grading_prompt("", "", "")) + 60, 5)


def estimate_rest(run: QuestionRun) -> dict[str, CostEstimate]:
    """Estimate the cost of the unanswered questions, and of their grades if a model grades.

    The keys say what is done.
    """
    there, missing = run.results, run.missing()
    open_ = [question for question in missing if question.id not in there or there[question.id].error]
    expected = {}
    rate = _rate_of(run.equipment.planning)
    if open_ and run.system == "loop":
        one = forecast(run.equipment.limits, steps=_TURNS, rate=rate)
        expected[f"{format_count(len(open_), 'question')} of {_TURNS} turns"] = _multiply_estimate(
            len(open_), one
        )
    elif open_:
        expected[format_count(len(open_), "question")] = estimate(
            {run.system: len(open_)}, _TYPICAL_TOKENS, rate
        )
    if missing and run.grader is not None:
        counts, tokens = {"grade": len(missing)}, {"grade": _GRADING_TOKENS}
        expected[format_count(len(missing), "grade")] = estimate(counts, tokens, _rate_of(run.grader))
    return expected


def earlier_spending(folder: Path) -> tuple[int, Usage]:
    """Return the number and cost of calls in earlier sessions, from the traces and the notes beside them."""
    traced, (calls, more) = _traced_usage(folder), _untraced_usage(folder)
    return len(traced) + calls, Usage.total([*traced, more])


def note_untraced(folder: Path, spending: Spending) -> None:
    """Record spending that no trace holds: failed calls, and requests without an answer.

    It counts in later sessions too. After a kill it is lost.
    """
    traced, spent = _traced_usage(folder), spending.spent
    known = Usage.total(traced)
    beside = {
        "calls": max(0, spending.calls - len(traced)),
        "prompt_tokens": max(0, spent.prompt_tokens - known.prompt_tokens),
        "completion_tokens": max(0, spent.completion_tokens - known.completion_tokens),
        # sums in another order differ in their last digits
        "cost": max(0.0, round(spent.cost - known.cost, 9)),
    }
    write_atomically(folder / UNTRACED, json.dumps(beside) + "\n", "what no trace holds")


def _untraced_usage(folder: Path) -> tuple[int, Usage]:
    try:
        noted = json.loads((folder / UNTRACED).read_text(encoding="utf-8"))
        return int(noted.pop("calls")), Usage(**noted)
    except FileNotFoundError:
        return 0, Usage()
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        lost = "delete it, and what failed calls of earlier sittings took is not counted"
        wrong = f"does not hold what no trace holds ({type(error).__name__})"
        raise TraceError(f"{folder / UNTRACED} {wrong}: {lost}") from error


def _traced_usage(folder: Path) -> list[Usage]:
    """Return the cost of each call in the traces.

    If an interrupted rerun beside a trace holds more calls, it is used instead.
    """
    pairs = ((_usage_in(path), _usage_in(path.with_suffix(".again"))) for path in trace_files(folder))
    return [usage for pair in pairs for usage in max(pair, key=len)]


def _usage_in(path: Path) -> Sequence[Usage]:
    # the other events, often long, need not be read
    lines = path.read_bytes().splitlines() if path.exists() else []
    asked = (line for line in lines if line.startswith(b'{"event":"Asked"') and line.endswith(b"}"))
    return [Usage(**json.loads(line)["usage"]) for line in asked]


def _rate_of(llm: LLM) -> Rate:
    return Rate(price=requested_price(llm))


def _multiply_estimate(count: int, one: CostEstimate) -> CostEstimate:
    return replace(
        one, calls=count * one.calls, prompt_tokens=count * one.prompt_tokens, completion_tokens=count * one.completion_tokens,
        seconds=count * one.seconds, dollars=None if one.dollars is None else count * one.dollars,
    )  # fmt: skip


# The ledger of a run by role and by model, and the calls of each tool.


def write_totals(folder: Path) -> dict[str, Json]:
    """Write the ledger and the totals of all sessions, derived from the files, and return the totals."""
    entries = build_ledger(load_traces(folder))
    entries.save(folder / LEDGER)
    results = read_results(folder / RESULTS_FILE).values()
    roles, models = entries.by_role(), dict.fromkeys(entry.model for entry in entries.entries)
    totals: dict[str, Json] = {
        "questions": len(results),
        "errors": sum(bool(result.error) for result in results),
        "all": _sum_entries(entries.entries),
        "by role": {role: _sum_entries(e for e in entries.entries if e.role == role) for role in roles},
        "by model": {name: _sum_entries(e for e in entries.entries if e.model == name) for name in models},
        "tools": tool_totals(folder / TOOL_TIMES),
        "seconds of all questions": round(sum(result.seconds or 0.0 for result in results), 3),
        "questions of unknown seconds": sum(result.seconds is None for result in results),
    }
    write_atomically(folder / TOTALS, json.dumps(totals, indent=1) + "\n", "the totals")
    return totals


def build_ledger(traces: Mapping[str, Iterable[Event]]) -> Ledger:
    """Build a ledger of all model calls in some runs, under the names of the runs."""
    return Ledger(tuple(entry for name, events in traces.items() for entry in ledger(events, name).entries))


def tool_totals(path: Path) -> dict[str, Json]:
    """Sum the calls, failures and wall-clock seconds of each tool. A truncated line is skipped."""
    found: dict[str, Json] = {}
    for line in path.read_text(encoding="utf-8").split("\n") if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        each = found.setdefault(row["tool"], {"calls": 0, "failed": 0, "seconds": 0.0})
        each["calls"], each["failed"] = each["calls"] + 1, each["failed"] + row["failed"]
        each["seconds"] = round(each["seconds"] + row["seconds"], 4)
    return dict(sorted(found.items()))


def _sum_entries(entries: Iterable[Entry]) -> dict[str, Json]:
    some = list(entries)
    read, written = sum(entry.prompt_tokens for entry in some), sum(entry.completion_tokens for entry in some)
    seconds, dollars = sum(entry.seconds for entry in some), sum(entry.cost for entry in some)
    tokens = {"prompt tokens": read, "completion tokens": written}
    return {"calls": len(some), **tokens, "seconds": round(seconds, 3), "dollars": dollars}
