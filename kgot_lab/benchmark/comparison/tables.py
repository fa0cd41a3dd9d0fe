"""The results as tables: the systems on each set, the pairs, the aims, and how far the likelihoods can be
trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgot_lab.benchmark.comparison.results import MISSED, Findings, Measured, reached_goals
from kgot_lab.evaluation.calibration import reliability, risk_curve
from kgot_lab.evaluation.significance import Estimate
from kgot_lab.evaluation.summary import span
from kgot_lab.evaluation.tables import Cell, Grid, decimal, format_p_value, signed

_COLUMNS = (
    "system", "n", "errors", "EM", "F1 [95 %]", "prompt tokens", "evidence tokens", "median s", "calls", "resting", "destroyed",
    "ECE", "risk area",
)  # fmt: skip
_COVERAGES = (0.2, 0.4, 0.6, 0.8, 1.0)
_SAME = 1e-9  # a coverage of one is a quotient


def comparison_grids(findings: Findings) -> list[Grid]:
    """All tables: the systems on each set, the pairs, the aims, and how far the likelihoods of each system
    can be trusted on all sets.
    """
    grids = [_systems(set, [row for row in findings.measured if row.on == set]) for set in findings.sets]
    return [
        grid
        for grid in (*grids, _pairs(findings), _aims(findings), _reliability(findings), _risk(findings))
        if grid.rows
    ]


def _systems(set: str, rows: Iterable[Measured]) -> Grid:
    return Grid(f"Systems on {set}", _COLUMNS, tuple(tuple(map(Cell, _cells(row))) for row in rows))


def _cells(row: Measured) -> Sequence[str]:
    lost, of = row.destroyed
    return (
        row.system, f"{row.n:,}", str(row.errors), decimal(row.em.mean), f"{decimal(row.f1.mean)} {_interval(row.f1)}",
        f"{row.prompt_tokens:,.0f}", _number(row.evidence_tokens, ",.0f"), _number(row.seconds, ".1f"), f"{row.calls:.1f}",
        _share(row.resting), f"{lost} of {of}" if of else "", _share(row.calibration_error), _share(row.risk_area),
    )  # fmt: skip


def _pairs(findings: Findings) -> Grid:
    columns = ("F1, paired", "on", "questions", "difference", "95 %", "p", "p Holm", "aimed at")
    rows = [
        (
            Cell(f"{pair.system} − {pair.other}"), Cell(pair.on), Cell(str(pair.difference.n)),
            Cell(signed(pair.difference.mean), pair.p_holm < 0.05), Cell(span(pair.difference)),
            Cell(format_p_value(pair.p)), Cell(format_p_value(pair.p_holm)), Cell("yes" if pair.aimed else ""),
        )
        for pair in findings.pairs
    ]  # fmt: skip
    return Grid("Pairs of systems on the same questions", columns, tuple(rows))


def _aims(findings: Findings) -> Grid:
    rows = [
        (Cell(each.goal.said), Cell(each.verdict, each.verdict != MISSED), Cell(each.figure))
        for each in reached_goals(findings)
    ]
    return Grid("Aims", ("aim", "", "figure"), tuple(rows), words=True)


def _reliability(findings: Findings) -> Grid:
    columns = ("answers held likely, exp(logprob / tokens)", "n", "mean likelihood", "share right")
    rows = []
    for system in findings.answers:
        likely, right = findings.sure(system, findings.sets[-1])
        for row in reliability(likely, right) if likely else []:
            shown = (
                f"{system}, {row.low:.1f} to {row.high:.1f}",
                str(row.n),
                decimal(row.sure),
                decimal(row.right),
            )
            rows.append(tuple(map(Cell, shown)))
    return Grid("How often an answer is right that the model holds so likely", columns, tuple(rows))


def _risk(findings: Findings) -> Grid:
    """Of the surest answers of each system, so many and at least that share, how many are wrong."""
    rows = []
    for system in findings.answers:
        likely, right = findings.sure(system, findings.sets[-1])
        if likely:
            curve = risk_curve(likely, right)
            shown = [
                next(risk for coverage, risk in curve if coverage >= least - _SAME) for least in _COVERAGES
            ]
            rows.append((Cell(system), *(Cell(decimal(risk)) for risk in shown)))
    return Grid(
        "Share of wrong answers among the surest",
        ("coverage", *(f"{least:.0%}" for least in _COVERAGES)),
        tuple(rows),
    )


def _interval(estimate: Estimate) -> str:
    return f"[{decimal(estimate.low)}, {decimal(estimate.high)}]"


def _share(value: float | None) -> str:
    return "" if value is None else decimal(value)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
