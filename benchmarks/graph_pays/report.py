"""The whole report of a comparison: its tables, the verdicts on its goals, calibration, and where answers were lost.

python -m benchmarks.graph_pays.report FOLDER   # writes results.md and results.json; asks nothing
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.calibration import calibration_error, reliability, risk_area, risk_curve
from benchmarks.graph_pays.losses import collect_losses, losses_grid, save_losses
from kgot_lab.benchmark.comparison.plan import ALL_SETS
from kgot_lab.benchmark.comparison.results import (
    ComparisonResults,
    PairedDifference,
    SystemScores,
    comparison_grids,
)
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import format_p, span
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.io.files import write_atomically
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json


def main() -> None:
    """Write the report of a folder, and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the folder of a comparison")
    print(write_report(parser.parse_args().folder))


def write_report(folder: Path) -> str:
    """Write results.md and results.json of a folder, and lost.json while there are traces. Return results.md.

    Raises BadInput if nothing is answered yet, or lost.json holds something else.
    """
    findings = ComparisonResults.load(folder)
    if not findings.answers:
        raise BadInput(f"no question is answered yet in {folder}")
    grids = report_grids(findings)
    if stages := collect_losses(folder, findings):
        save_losses(folder, stages)
        grids.append(losses_grid(findings, stages))
    text = "\n\n".join(grid.markdown for grid in grids) + "\n"
    write_atomically(folder / "results.md", text, "the results")
    values = json.dumps(report_json(findings), indent=1) + "\n"
    write_atomically(folder / "results.json", values, "the results")
    return text


def report_grids(findings: ComparisonResults) -> list[Grid]:
    """Tabulate the systems on each set with their calibration, the pairs, the goals, and calibration on all sets."""
    tables = comparison_grids(findings)
    systems = [_with_calibration(findings, grid) for grid in tables if grid.title.startswith(_SYSTEMS)]
    pairs = [grid for grid in tables if not grid.title.startswith(_SYSTEMS)]
    views = (goals_grid(findings), _reliability_grid(findings), _risk_grid(findings))
    return [*systems, *pairs, *(grid for grid in views if grid.rows)]


def report_json(findings: ComparisonResults) -> dict[str, Json]:
    """Convert the results to plain values, with reliability tables and risk-coverage curves."""
    told = findings.as_json()
    measured = [{**row, **calibration(findings, row["system"], row["on"])} for row in told["measured"]]
    rated = [row for row in measured if row["calibration_error"] is not None]
    curves = [_curves(findings, row["system"], row["on"]) for row in rated]
    return {"measured": measured, "pairs": told["pairs"], "calibration": curves}


# Calibration: the mean token probability of an answer against whether it is right.

_SYSTEMS = "Systems on "
_COVERAGES = (0.2, 0.4, 0.6, 0.8, 1.0)
_SAME = 1e-9  # a coverage of one is a quotient


def token_probabilities(
    findings: ComparisonResults, system: str, set: str
) -> tuple[list[float], list[float]]:
    """Return the mean token probability of each answer, and whether the answer is right.

    Answers without a probability are left out.
    """
    answers = findings.results_on(system, set).values()
    rated = [(each.token_probability, each.em) for each in answers if each.token_probability is not None]
    return [probability for probability, _ in rated], [em for _, em in rated]


def calibration(findings: ComparisonResults, system: str, set: str) -> dict[str, float | None]:
    """Return the calibration error and the risk area of a system on a set, None without probabilities."""
    likely, right = token_probabilities(findings, system, set)
    return {
        "calibration_error": calibration_error(likely, right) if likely else None,
        "risk_area": risk_area(likely, right) if likely else None,
    }


def _with_calibration(findings: ComparisonResults, grid: Grid) -> Grid:
    on = grid.title.removeprefix(_SYSTEMS)
    rows = []
    for row in grid.rows:
        values = calibration(findings, row[0].text, on).values()
        rows.append((*row, *(Cell("" if value is None else format_decimal(value)) for value in values)))
    return replace(grid, columns=(*grid.columns, "ECE", "risk area"), rows=tuple(rows))


def _curves(findings: ComparisonResults, system: str, set: str) -> dict[str, Json]:
    likely, right = token_probabilities(findings, system, set)
    table = [asdict(row) for row in reliability(likely, right)]
    curve = [list(point) for point in risk_curve(likely, right)]
    return {"system": system, "on": set, "reliability": table, "risk at coverage": curve}


def _reliability_grid(findings: ComparisonResults) -> Grid:
    columns = ("answers held likely, exp(logprob / tokens)", "n", "mean likelihood", "share right")
    rows = []
    for system in findings.answers:
        likely, right = token_probabilities(findings, system, findings.sets[-1])
        for row in reliability(likely, right) if likely else []:
            interval = f"{system}, {row.low:.1f} to {row.high:.1f}"
            shown = (interval, str(row.n), format_decimal(row.sure), format_decimal(row.right))
            rows.append(tuple(map(Cell, shown)))
    return Grid("How often an answer is right that the model holds so likely", columns, tuple(rows))


def _risk_grid(findings: ComparisonResults) -> Grid:
    """Tabulate the share of wrong answers among the most probable answers of each system, by coverage."""
    rows = []
    for system in findings.answers:
        likely, right = token_probabilities(findings, system, findings.sets[-1])
        if likely:
            curve = risk_curve(likely, right)
            shown = [next(risk for share, risk in curve if share >= least - _SAME) for least in _COVERAGES]
            rows.append((Cell(system), *(Cell(format_decimal(risk)) for risk in shown)))
    columns = ("coverage", *(f"{least:.0%}" for least in _COVERAGES))
    return Grid("Share of wrong answers among the surest", columns, tuple(rows))


# The verdict on each goal of the plan, with its figure.

REACHED, MISSED, UNKNOWN = "reached", "missed", "open"


@dataclass(frozen=True)
class Goal:
    """A goal for a measure, or for the difference between two systems, on one set or on all.

    kind: "gain" (the mean difference is above `bound`, and p below .05 after Holm over all such goals), "not
    below" (the mean difference is at least `bound`), "at least" (the value), "at most" (the value, or with
    `other` its share of the other's). `share`, if given, is the maximum of the system's evidence tokens as a
    share of the other's.
    """

    said: str
    system: str
    kind: str
    bound: float
    on: str = ALL_SETS
    measure: str = "f1"
    other: str = ""
    share: float | None = None


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


def goals_grid(findings: ComparisonResults) -> Grid:
    """Tabulate the verdict on each goal."""
    verdicts = judge_goals(findings)
    rows = [(Cell(v.goal.said), Cell(v.verdict, v.verdict != MISSED), Cell(v.figure)) for v in verdicts]
    return Grid("Aims", ("aim", "", "figure"), tuple(rows), words=True)


if __name__ == "__main__":
    main()
