"""Which aims of the plan are reached, each with the figure that says so."""

from __future__ import annotations

from dataclasses import dataclass

from kgot_lab.benchmark.comparison.plan import Goal
from kgot_lab.benchmark.comparison.results import Findings, Measured, Paired
from kgot_lab.evaluation.summary import format_p, span
from kgot_lab.evaluation.tables import decimal, signed

REACHED, MISSED, UNKNOWN = "reached", "missed", "open"


@dataclass(frozen=True)
class Reached:
    """What became of an aim: "reached", "missed", or "open" where the answers that would tell it are not
    there; and the figure.
    """

    goal: Goal
    verdict: str
    figure: str


def reached_goals(findings: Findings) -> list[Reached]:
    """Each aim of the plan, judged by the receipts; one whose questions are not all answered is marked as
    such in its figure.
    """
    rows = {(row.system, row.on): row for row in findings.measured}
    pairs = {(pair.system, pair.other, pair.on): pair for pair in findings.pairs}
    judged = []
    for told in findings.plan["aims"]:
        goal = Goal(**told)
        own, other = rows.get((goal.system, goal.on)), rows.get((goal.other, goal.on))
        pair = pairs.get((goal.system, goal.other, goal.on))
        verdict = _judged(goal, own, other, pair)
        of = _asked(findings, goal)
        if own is not None and own.n < of:
            verdict = Reached(goal, verdict.verdict, f"{verdict.figure}; so far {own.n} of {of} questions")
        judged.append(verdict)
    return judged


def _judged(goal: Goal, own: Measured | None, other: Measured | None, pair: Paired | None) -> Reached:
    if own is None or (goal.other and other is None) or (goal.kind in {"gain", "not below"} and pair is None):
        return Reached(goal, UNKNOWN, "not answered yet")
    if pair is not None and goal.kind in {"gain", "not below"}:
        return _by_difference(goal, pair, own, other)
    value, base = _value(goal, own), _value(goal, other) if other is not None else 1.0
    if value is None or not base:
        return Reached(goal, UNKNOWN, "no receipt tells it")
    measured = value / base
    holds = measured >= goal.bound if goal.kind == "at least" else measured <= goal.bound
    shown = decimal(measured) if goal.other or goal.measure in {"f1", "em"} else f"{measured:.1f}"
    if goal.measure == "f1" and not goal.other:
        shown += f" [{decimal(own.f1.low)}, {decimal(own.f1.high)}]"
    return Reached(goal, REACHED if holds else MISSED, shown + f" of {goal.other}" * bool(goal.other))


def _by_difference(goal: Goal, pair: Paired, own: Measured, other: Measured | None) -> Reached:
    gap = pair.difference
    figure = f"{signed(gap.mean)} ({span(gap)}), p {format_p(pair.p_holm)} after Holm, {gap.n} questions"
    if goal.kind == "gain":
        holds = gap.mean > goal.bound and pair.p_holm < 0.05
    else:
        holds = gap.mean >= goal.bound
        figure += (
            ""
            if gap.low >= goal.bound
            else f"; the interval does not rule out a loss of more than {decimal(-goal.bound)}"
        )
    if goal.share is not None:
        if own.evidence_tokens is None or other is None or not other.evidence_tokens:
            return Reached(goal, UNKNOWN, f"{figure}; no receipt tells the evidence tokens")
        taken = own.evidence_tokens / other.evidence_tokens
        holds, figure = holds and taken <= goal.share, f"{figure}; {decimal(taken)} of its evidence tokens"
    return Reached(goal, REACHED if holds else MISSED, figure)


def _value(goal: Goal, row: Measured) -> float | None:
    values = {
        "f1": row.f1.mean,
        "em": row.em.mean,
        "seconds": row.seconds,
        "prompt tokens": row.prompt_tokens,
    }
    return values[goal.measure]


def _asked(findings: Findings, goal: Goal) -> int:
    """How many questions the plan has for an aim."""
    most = findings.plan["systems"][goal.system]["questions"]
    sets = [
        each["questions"]
        for name, each in findings.plan["sets"].items()
        if goal.on in (name, findings.sets[-1])
    ]
    return sum(count if most is None else min(count, most) for count in sets)
