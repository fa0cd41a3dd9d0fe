"""Gains over the baseline and pairs of systems in the reports of the recall benchmark, for lesson 42."""

from __future__ import annotations

from collections.abc import Collection

from kgot_lab.evaluation.reports import Report, span
from kgot_lab.evaluation.significance import Comparison, compare
from kgot_lab.evaluation.tables import format_signed


def format_gain(report: Report, system: str, part: str = "all") -> str:
    """Format the gain of a system over the baseline with its interval.

    Empty for the baseline itself.
    """
    if system == report.plan.baseline:
        return ""
    difference = report.comparisons[part][system].difference
    # no line breaks in a cell
    return f"{format_signed(difference.mean)} ({span(difference)})".replace(" ", "\u00a0")


def head_to_head(
    report: Report, before: str, after: str, measure: str = "", *, ids: Collection[str] = ()
) -> Comparison:
    """Compare two systems of a report with each other.

    By default by the primary measure and on all queries.
    """
    scores = {system: report.scores[system] for system in (before, after)}
    if ids:
        scores = {system: own.only(ids) for system, own in scores.items()}
    return compare(scores, before, measure or report.plan.primary)[after]
