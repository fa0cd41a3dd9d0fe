"""The tables of the structure benchmark, derived from the results in a folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.structure.analogies import SPLITS
from benchmarks.structure.answered import graded
from benchmarks.structure.tables import (
    FITTED,
    AnswersOfSystems,
    accuracies,
    best_control,
    gains,
    gaps,
    kept,
    worst_cells,
)
from kgot_lab.evaluation.significance import Numbers, interval, proportion
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed

# named beforehand, and whether fitted controls count against it
_EXPECTED = {"aligned": False, "fitted surface + aligned": True}


# --- searches, edges, mappings ---


def _rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def _searches(folder: Path) -> Iterator[Grid]:
    """Every search: MAP with interval, and the paired difference in MAP from the surface."""
    rows = _rows_of(folder / "searches.jsonl.gz")
    for name in dict.fromkeys(row["set"] for row in rows):
        by: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["set"] == name:
                by.setdefault(row["system"], []).append(row)
        base = np.array([row["map"] for row in by["surface"]])
        lines = []
        for system, own in sorted(by.items(), key=lambda each: -np.mean([row["map"] for row in each[1]])):
            found = np.array([row["map"] for row in own])
            gap, mean = interval(found - base), interval(found)
            means = [
                format_decimal(float(np.mean([row[measure] for row in own])))
                for measure in ("mrr", "recall@1", "recall@10")
            ]
            test = [row["map"] for row in own if row["locked"]]
            span = f"{format_decimal(mean.low)} to {format_decimal(mean.high)}"
            apart = format_decimal(float(np.mean(test))) if test else ""
            against = f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]"
            cells = (system, own[0]["kind"], format_decimal(mean.mean), span, *means, apart, against)
            lines.append(tuple(map(Cell, cells)))
        columns = (
            "system",
            "kind",
            "map",
            "95 %",
            "mrr",
            "recall@1",
            "recall@10",
            "map, test",
            "map minus surface",
        )
        yield Grid(f"{name}: {len(base)} queries", columns, tuple(lines))


def _edges(folder: Path) -> Iterator[Grid]:
    """Edges over all texts of a set: how many, how many right, and how much better than chance."""
    rows = _rows_of(folder / "edges.jsonl.gz")
    for name in dict.fromkeys(row["set"] for row in rows):
        some = [row for row in rows if row["set"] == name]
        lines = []
        for row in some:
            right, drawn = len(row["right"]), row["edges"]
            sure = proportion(right, drawn)
            prevalence = row["analogous"] / row["pairs"]
            span = f"{format_decimal(sure.low)} to {format_decimal(sure.high)}"
            rule = ", ".join(map(str, row.get("thresholds", [])))
            cells = (
                row["system"],
                SPLITS[row["part"]],
                rule,
                f"{drawn:,}",
                f"{right:,}",
                format_decimal(sure.mean),
                span,
                format_decimal(right / row["analogous"]),
                f"{sure.mean / prevalence:.1f}",
            )
            lines.append(tuple(map(Cell, cells)))
        told = ", ".join(
            dict.fromkeys(
                f"{SPLITS[row['part']]} {row['analogous']:,} of {row['pairs']:,} pairs" for row in some
            )
        )
        columns = (
            "system",
            "part",
            "thresholds",
            "edges",
            "right",
            "precision",
            "95 %",
            "recall",
            "times chance",
        )
        yield Grid(
            f"{name}; analogous are: {told}; intervals take edges for independent of each other",
            columns,
            tuple(lines),
        )


def _mappings(folder: Path) -> Grid:
    """The share of terms mapped rightly, by pair of systems, against the surface."""
    rows = _rows_of(folder / "mappings.jsonl.gz")
    by: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by.setdefault(row["system"], []).append(row)
    base = np.array([row["right"] for row in by["surface"]])
    lines = []
    for system, own in by.items():
        found = np.array([row["right"] for row in own])
        mean, gap = interval(found), interval(found - base)
        test = [row["right"] for row in own if row["locked"]]
        apart = format_decimal(float(np.mean(test))) if test else ""
        cells = (
            system,
            own[0]["kind"],
            format_decimal(mean.mean),
            f"{format_decimal(mean.low)} to {format_decimal(mean.high)}",
            apart,
            f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]",
        )
        lines.append(tuple(map(Cell, cells)))
    by_lot = float(np.mean([1 / row["terms"] for row in by["surface"]]))
    columns = ("system", "kind", "right", "95 %", "test", "minus surface")
    return Grid(
        f"scan-analogies: {len(base)} pairs of systems, words mapped one to one; at random {format_decimal(by_lot)}",
        columns,
        tuple(lines),
    )


# --- the report ---


_ADDED = {  # what each comparison tells
    "order": ("aligned", "aligned, in any order"),
    "alignment beyond masking": ("fitted surface + aligned", "fitted surface + skeleton, masked"),
}


def _added(sets: list[AnswersOfSystems]) -> Grid:
    """What the order of the sentences adds to the alignment, and what the alignment adds to masking; not
    planned beforehand.
    """
    rows = []
    for some, said in sets:
        cells = [Cell(some.name)]
        for one, other in _ADDED.values():
            found = gaps(some, graded(said[one], some), graded(said[other], some))
            cells += [Cell(_told(found["all"]), interval(found["all"]).low > 0), Cell(_told(found["test"]))]
        rows.append(tuple(cells))
    columns = [title for name in _ADDED for title in (name, "test")]
    return Grid(
        "What order adds, and alignment beyond masking: differences in accuracy",
        ("set", *columns),
        tuple(rows),
    )


def _errors(system: str, sets: list[AnswersOfSystems]) -> Grid:
    """Where a system goes wrong: the place it gives the right choice, and whether what it takes instead is
    what the surface would take.
    """
    rows = []
    for some, said in sets:
        places, lured, alike = [], 0, []
        for question in some.questions:
            scores = np.array(said[system].scores[question.id])
            near = np.array(said["surface"].scores[question.id])
            places.append(int((scores > scores[question.answer]).sum()) + 1)
            if places[-1] > 1:
                lured += int(scores.argmax() == near.argmax())
                alike.append(float(near[question.answer]))
        right = [float(said["surface"].scores[question.id][question.answer]) for question in some.questions]
        shares = [format_decimal(places.count(place) / len(places)) for place in (1, 2, 3, 4)]
        wrong = max(1, len(alike))
        means = (
            format_decimal(lured / wrong),
            format_decimal(float(np.mean(alike)) if alike else 0.0),
            format_decimal(float(np.mean(right))),
        )
        rows.append(tuple(map(Cell, (some.name, *shares, *means))))
    columns = (
        "set",
        "1st",
        "2nd",
        "3rd",
        "4th",
        "errors that take the nearest",
        "cosine of the right choice in errors",
        "in all",
    )
    return Grid(
        f"Where {system} puts the right choice, and what its errors have in common", columns, tuple(rows)
    )


def structure_grids(folder: Path) -> Iterator[Grid]:
    """All tables, the ones that decide first."""
    sets = kept(folder)
    plain = [(some, said) for some, said in sets if "skeletons of" not in some.name]
    for system in _EXPECTED:
        yield gains(system, plain, fitted=_EXPECTED[system])
    yield worst_cells(plain)
    yield _added(plain)
    yield _errors("aligned", plain)
    yield _errors("fitted surface + aligned", plain)
    yield from (accuracies(some, said) for some, said in sets)
    yield from _searches(folder)
    yield from _edges(folder)
    yield _mappings(folder)


_SHOWN = (
    "surface",
    "minus surface",
    "noun veto, masked",
    "skeleton, masked",
    "delta, as specified",
    "delta, verified",
    "aligned",
)
_FLOORS = (
    "surface",
    "minus surface",
    "noun veto",
    "delta, as specified",
    "delta, verified",
    "aligned",
    "fitted surface + aligned",
)


def structure_summary(folder: Path) -> str:
    """What the README shows: accuracies on every set, the gain over the best control, and the worst cells."""
    sets = [(some, said) for some, said in kept(folder) if "skeletons of" not in some.name]
    names = (*_SHOWN, FITTED + " surface", FITTED + " surface + aligned")
    lines = [
        f"| accuracy | {' | '.join(names)} | gain over the best control | on test ones |",
        "|---|" + "---:|" * (len(names) + 2),
    ]
    for some, said in sets:
        if len(some.cells) == 4:
            continue
        means = [format_decimal(graded(said[name], some).mean("accuracy")) for name in names]
        rival = best_control(some, said, fitted=True)
        found = gaps(some, graded(said[names[-1]], some), graded(said[rival], some))
        whole, test = (_told(found[part]) if len(found[part]) > 1 else "" for part in ("all", "test"))
        lines.append(
            f"| {some.name} ({len(some.questions)}) | {' | '.join(means)} | {whole} ({rival}) | {test} |"
        )
    floor = worst_cells(sets)
    shown = [row for row in floor.rows if row[0].text in _FLOORS]
    cells = [
        f"| the worst of four cells | {' | '.join(floor.columns[1:])} |",
        "|---|" + "---:|" * (len(floor.columns) - 1),
    ]
    cells += [f"| {' | '.join(cell.text for cell in row)} |" for row in shown]
    return "\n".join(lines) + "\n\n" + "\n".join(cells)


def _told(gap: Numbers) -> str:
    """A mean difference and its interval."""
    own = interval(gap)
    return f"{format_signed(own.mean)} [{format_signed(own.low)}, {format_signed(own.high)}]"
