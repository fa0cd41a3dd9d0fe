"""What the certificates say of the changes, and which wrong answers they keep back, beside the model's own
likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from benchmarks.certificates.cases import CASE_CHANGES
from benchmarks.certificates.trial import CertifiedCase
from kgot_lab.evaluation.significance import Estimate, proportion, risk_area, risk_curve
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal
from kgot_lab.memory.claims.certificate import RULINGS
from kgot_lab.types import Json

SURE = 0.6  # the likelihood below which the mode `paths` itself goes on looking, set before these cases were drawn
_COVERAGES = (0.2, 0.4, 0.6, 0.8, 1.0)
_SAME = 1e-9  # a coverage of one is a quotient
Alarm = Callable[[CertifiedCase], bool]
ALARMS: dict[str, dict[str, Alarm]] = {  # by change: what could have said so
    "without": {
        "certificate: a fact is missing": lambda row: "missing" in row.states,
        "certificate: it does not pass": lambda row: row.ruling != "passes",
        f"likelihood below {SURE}": lambda row: (row.likelihood or 0.0) < SURE,
    },
    "contradicted": {
        "certificate: a fact is contested": lambda row: "contested" in row.states,
        "certificate: it does not pass": lambda row: row.ruling != "passes",
        f"likelihood below {SURE}": lambda row: (row.likelihood or 0.0) < SURE,
    },
}
CASE_ORDERS: dict[str, Callable[[CertifiedCase], float]] = {  # 0 to 1, the surest first
    "likelihood": lambda row: row.likelihood or 0.0,
    "certificate, then likelihood": lambda row: (
        (len(RULINGS) - 1 - RULINGS.index(row.ruling) + (row.likelihood or 0.0)) / len(RULINGS)
    ),
}


@dataclass(frozen=True)
class AlarmRow:
    """How often an alarm was raised on changed questions (recall) and on the same ones untouched, and which
    share of alarms is right.
    """

    change: str
    alarm: str
    questions: str
    recall: Estimate
    untouched: Estimate
    precision: Estimate


def alarm_rows(rows: Sequence[CertifiedCase]) -> list[AlarmRow]:
    """A row for each change and alarm: over all its questions, and over those that the model answers right
    when they are untouched.

    Only questions count that are answered both ways; intervals are Wilson's.
    """
    whole = {(row.set, row.id): row for row in rows if row.change == "whole"}
    found = []
    for change, alarms in ALARMS.items():
        pairs = [
            (row, whole[row.set, row.id])
            for row in rows
            if row.change == change and (row.set, row.id) in whole
        ]
        for questions, some in (
            ("all", pairs),
            ("right when untouched", [pair for pair in pairs if pair[1].em == 1]),
        ):
            for name, alarm in alarms.items() if some else ():
                right, false = sum(alarm(row) for row, _ in some), sum(alarm(before) for _, before in some)
                shares = (
                    proportion(right, len(some)),
                    proportion(false, len(some)),
                    proportion(right, right + false),
                )
                found.append(AlarmRow(change, name, questions, *shares))
    return found


def certificate_grids(rows: Sequence[CertifiedCase], model: str) -> list[Grid]:
    """All tables: the alarms, the rulings with the answers that are right among them, and risk against
    coverage.
    """
    of = "Simulated model: " if model.startswith("simulated:") else ""
    grids = [_alarms(rows, of), _rulings(rows, of), _risks(rows, of)]
    return [grid for grid in grids if grid.rows]


def certificate_figures(rows: Sequence[CertifiedCase], model: str) -> dict[str, Json]:
    """The same as plain values, with the curves of risk against coverage."""
    told = [
        {
            "cases": name,
            "order": order,
            "area": risk_area(sure, right),
            "risk at coverage": [list(point) for point in risk_curve(sure, right)],
        }
        for name, order, sure, right in _ordered(rows)
    ]
    return {
        "model": model,
        "cases": len(rows),
        "alarms": [asdict(row) for row in alarm_rows(rows)],
        "risk": told,
    }


def _alarms(rows: Sequence[CertifiedCase], of: str) -> Grid:
    columns = (
        "change: what says so",
        "questions",
        "n",
        "recall [95 %]",
        "untouched [95 %]",
        "precision [95 %]",
    )
    told = [
        (
            Cell(f"{row.change}: {row.alarm}"), Cell(row.questions), Cell(str(row.recall.n)), Cell(_share(row.recall)),
            Cell(_share(row.untouched)), Cell(_share(row.precision)),
        )
        for row in alarm_rows(rows)
    ]  # fmt: skip
    return Grid(f"{of}Does it say so?", columns, tuple(told))


def _rulings(rows: Sequence[CertifiedCase], of: str) -> Grid:
    told = []
    for change in CASE_CHANGES:
        some = [row for row in rows if row.change == change]
        cells = [Cell(change), Cell(str(len(some))), Cell(f"{sum(row.em == 1 for row in some)}")]
        for ruling in RULINGS:
            ruled = [row for row in some if row.ruling == ruling]
            cells.append(Cell(f"{len(ruled)} ({sum(row.em == 1 for row in ruled)} right)"))
        named = [row for row in some if row.named is not None]
        cells.append(Cell(f"{sum(bool(row.named) for row in named)} of {len(named)}" if named else ""))
        told += [tuple(cells)] if some else []
    return Grid(
        f"{of}What becomes of the answers",
        ("cases", "n", "right", *RULINGS, "names the changed fact"),
        tuple(told),
    )


def _risks(rows: Sequence[CertifiedCase], of: str) -> Grid:
    told = []
    for name, order, sure, right in _ordered(rows):
        curve = risk_curve(sure, right)
        shown = (next(risk for coverage, risk in curve if coverage >= least - _SAME) for least in _COVERAGES)
        told.append(
            (
                Cell(f"{name}, by {order}"),
                Cell(str(len(sure))),
                *(Cell(format_decimal(risk)) for risk in shown),
                Cell(format_decimal(risk_area(sure, right))),
            )
        )
    columns = (
        "share of wrong answers among the surest",
        "n",
        *(f"{least:.0%}" for least in _COVERAGES),
        "risk area",
    )
    return Grid(f"{of}Risk against coverage", columns, tuple(told))


def _ordered(rows: Sequence[CertifiedCase]) -> list[tuple[str, str, list[float], list[float]]]:
    """Each change, and all cases, by each order: how sure each answer is, and whether it is right."""
    groups: dict[str, list[CertifiedCase]] = {
        change: [row for row in rows if row.change == change] for change in CASE_CHANGES
    }
    groups["all cases"] = list(rows)
    return [
        (name, order, [sure(row) for row in some], [row.em for row in some])
        for name, some in groups.items()
        for order, sure in CASE_ORDERS.items()
        if some
    ]


def _share(estimate: Estimate) -> str:
    return (
        f"{format_decimal(estimate.mean)} [{format_decimal(estimate.low)}, {format_decimal(estimate.high)}]"
        if estimate.n
        else ""
    )
