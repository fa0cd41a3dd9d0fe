"""A report told in rows: what systems reached, what each gained over the baseline, and two of them held
against each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.evaluation.reports import Report
from kgot_lab.evaluation.significance import Comparison, Estimate, compare, holm
from kgot_lab.evaluation.tables import decimal, escaped_cell, signed
from kgot_lab.types import Json


def standings(
    report: Report, systems: Sequence[str], parts: Sequence[str] = ("all", "locked")
) -> list[dict[str, Json]]:
    """A row for each system: its mean of the primary measure and its gain over the baseline, with interval
    and p, by part of the data.
    """
    return [
        {"system": system}
        | {name: text for part in parts for name, text in _part(report, system, part).items()}
        for system in systems
    ]


def gain(report: Report, system: str, part: str = "all") -> str:
    """The gain of a system over the baseline as a short text with its interval; empty for the baseline
    itself.
    """
    if system == report.plan.baseline:
        return ""
    difference = report.comparisons[part][system].difference
    # so that a cell does not break within it
    return f"{signed(difference.mean)} ({span(difference)})".replace(" ", "\u00a0")


def span(estimate: Estimate) -> str:
    """An interval as a short text, with signs."""
    return f"{signed(estimate.low)} to {signed(estimate.high)}"


def format_p(p: float) -> str:
    """A p as a short text: one of hardly anything is said to be below .001."""
    return "below .001" if p < 0.001 else decimal(p)


def named_before(reports: Mapping[str, Report], system: str, part: str = "all") -> list[dict[str, Json]]:
    """A row for each report: the gain of one system that was named beforehand, its p corrected for as many
    tests as there are reports.
    """
    gaps = {name: report.comparisons[part][system] for name, report in reports.items()}
    corrected = holm([gap.p for gap in gaps.values()])
    return [
        {
            "questions": part,
            "data": name,
            "gain": signed(gap.difference.mean),
            "its 95 %": span(gap.difference),
            "wins": gap.wins,
            "losses": gap.losses,
            "detectable": decimal(gap.detectable),
            f"p, of {len(gaps)}": round(p, 4),
            "p, of all systems": round(gap.p_holm, 4),
        }
        for (name, gap), p in zip(gaps.items(), corrected, strict=True)
    ]


def head_to_head(
    report: Report, before: str, after: str, measure: str = "", *, ids: Collection[str] = ()
) -> Comparison:
    """One system of a report against another instead of the baseline: by default by the primary measure, on
    all queries.
    """
    scores = {
        system: report.scores[system].only(ids) if ids else report.scores[system]
        for system in (before, after)
    }
    return compare(scores, before, measure or report.plan.primary)[after]


def _part(report: Report, system: str, part: str) -> dict[str, str]:
    mean = {part: decimal(report.row(system, part=part).mean)}
    if system == report.plan.baseline:
        return mean | {f"gain, {part}": "", f"its 95 %, {part}": "", f"p Holm, {part}": ""}
    gap = report.comparisons[part][system]
    told = signed(gap.difference.mean), span(gap.difference), decimal(gap.p_holm)
    return mean | {f"gain, {part}": told[0], f"its 95 %, {part}": told[1], f"p Holm, {part}": told[2]}


@dataclass(frozen=True, repr=False)
class Sentences:
    """Sentences that were made from figures; in a notebook they show as a paragraph each."""

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escaped_cell(line)}</p>" for line in self.lines)
