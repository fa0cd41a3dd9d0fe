"""The reports of the recall benchmark told in rows: scores, gains over the baseline, and two systems beside each
other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kgot_lab.evaluation.reports import Report, span
from kgot_lab.evaluation.significance import Comparison, compare, holm
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.types import Json


def standings(
    report: Report, systems: Sequence[str], parts: Sequence[str] = ("all", "locked")
) -> list[dict[str, Json]]:
    """Return a row for each system: its mean of the primary measure and its gain over the baseline.

    The gain has its interval and p-value. There is a set of columns for each part of the data.
    """
    rows = []
    for system in systems:
        row: dict[str, Json] = {"system": system}
        for part in parts:
            row |= _standing(report, system, part)
        rows.append(row)
    return rows


def _standing(report: Report, system: str, part: str) -> dict[str, str]:
    mean = {part: format_decimal(report.row(system, part=part).mean)}
    if system == report.plan.baseline:
        return mean | {f"gain, {part}": "", f"its 95 %, {part}": "", f"p Holm, {part}": ""}
    gap = report.comparisons[part][system]
    texts = format_signed(gap.difference.mean), span(gap.difference), format_decimal(gap.p_holm)
    return mean | {f"gain, {part}": texts[0], f"its 95 %, {part}": texts[1], f"p Holm, {part}": texts[2]}


def format_gain(report: Report, system: str, part: str = "all") -> str:
    """Format the gain of a system over the baseline with its interval.

    Empty for the baseline itself.
    """
    if system == report.plan.baseline:
        return ""
    difference = report.comparisons[part][system].difference
    # no line breaks in a cell
    return f"{format_signed(difference.mean)} ({span(difference)})".replace(" ", "\u00a0")


def preregistered_gains(
    reports: Mapping[str, Report], system: str, part: str = "all"
) -> list[dict[str, Json]]:
    """Return a row for each report with the gain of one system that was named in advance.

    Its p-value is corrected for as many tests as there are reports.
    """
    gaps = {name: report.comparisons[part][system] for name, report in reports.items()}
    corrected = holm([gap.p for gap in gaps.values()])
    return [
        {
            "questions": part,
            "data": name,
            "gain": format_signed(gap.difference.mean),
            "its 95 %": span(gap.difference),
            "wins": gap.wins,
            "losses": gap.losses,
            "detectable": format_decimal(gap.detectable),
            f"p, of {len(gaps)}": round(p, 4),
            "p, of all systems": round(gap.p_holm, 4),
        }
        for (name, gap), p in zip(gaps.items(), corrected, strict=True)
    ]


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
