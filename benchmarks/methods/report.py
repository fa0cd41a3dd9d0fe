"""The tables of the results: targets, times beside the others, and growth."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.io.files import write_atomically

_OTHERS = ("NetworkX", "rustworkx", "igraph", "SQL", "plain Python")
_Row = dict[str, Any]
_READ = (
    "Everybody answers the same, which is compared first, and is then timed in turn, round after round. Where other programs keep the "
    "computer busy, time on the clock says little: the tables beside others and of growth count time of the processor. The results have "
    "both, and the ratios of each round."
)
_ABOUT = (
    "KGLite (kkollsga/kglite, BENCHMARKS.md, 280,774 edges, an Apple computer) publishes for loading 13.7 ms (rustworkx), 17.5 (igraph), "
    "39.7 (KGLite) and 221 (NetworkX), and for its six walks together 2.9 (igraph), 8.0 (NetworkX), 8.5 (rustworkx) and 16.8 (KGLite). "
    "Its igraph and rustworkx load the edges of two of the seven types, without properties; both ways of loading stand here. What is ours "
    "walks in the columns that the methods walk in; the shortest paths are those of `trace_path`, which names every edge."
)


def shown(row: _Row, times: int = 1) -> str:
    """A row on one line, while it is measured."""
    beside = "".join(
        f"  {name} {row['ms'][name]:.3f} (x {row['times_ours'][name]:g})"
        for name in _OTHERS
        if name in row["ms"]
    )
    target = f"(target {row['target_ms']:g}: {_met(row, 'ms')})" if row["target_ms"] and times == 1 else ""
    return f"{row['name']:50}{row['ms']['ours']:10.3f} ms, processor {row['processor_ms']['ours']:.3f} {target:20}{beside}".rstrip()


def write_size(path: Path, found: _Row) -> None:
    """Put what was measured at one size into a result, in place of what it had for that size."""
    there = [each for each in _read(path) or [] if each["times"] != found["times"]]
    sizes = sorted([*there, found], key=lambda each: int(each["times"]))
    write_atomically(path, (json.dumps(sizes, indent=1) + "\n").encode(), "the result")


def written_report(folder: Path) -> str:
    """The report of the results that are in a folder."""
    parts = [
        "# The query methods at size",
        "Written by `python -m benchmarks.methods.kgos_methods --table` from the results beside it.",
        _READ,
    ]
    if scale := _read(folder / "scale.json"):
        parts += _tables(scale, "##")
    if suite := _read(folder / "suite.json"):
        parts += ["## The operations of a published suite", _ABOUT, *_tables(suite, "###")]
    return "\n\n".join(parts) + "\n"


def _tables(sizes: list[_Row], level: str) -> Iterable[str]:
    for size in sizes:
        yield f"{level} {size['nodes']:,} nodes, {size['edges']:,} edges"
        yield describe_machine(size["machine"])
        if "index_s" in size:
            yield f"The index that the methods share is made in {size['index_s']:.2f} s, once for a graph."
        if size["times"] == 1 and any(row["target_ms"] for row in size["rows"]):
            yield _targets(size["rows"])
        yield _beside(size["rows"])
    if len(sizes) > 1:
        yield _growth(sizes[0], sizes[-1])


def _targets(rows: list[_Row]) -> str:
    aimed = [row for row in rows if row["target_ms"]]
    told = (
        (
            row["name"],
            f"{row['target_ms']:g}",
            _ms(row["ms"]["ours"]),
            _met(row, "ms"),
            _ms(row["processor_ms"]["ours"]),
            _met(row, "processor_ms"),
        )
        for row in aimed
    )
    return _grid(
        "targets, milliseconds",
        ("method", "target", "median on the clock", "met", "median of the processor", "met so"),
        told,
    )


def _beside(rows: list[_Row]) -> str:
    others = [name for name in _OTHERS if any(name in row["ms"] for row in rows)]
    told = []
    for row in rows:
        taken = row["processor_ms"]
        there = (
            f"{_ms(taken[name])} ({_over(taken[name], taken['ours'])})" if name in taken else ""
            for name in others
        )
        told.append((row["name"], _ms(taken["ours"]), *there))
    return _grid("milliseconds of the processor, median (over ours)", ("question", "ours", *others), told)


def _growth(small: _Row, large: _Row) -> str:
    """How many times as long each takes where the graph is some times as large."""
    of_large = {row["name"]: row for row in large["rows"]}
    others = [name for name in _OTHERS if any(name in row["ms"] for row in large["rows"])]
    told = []
    for row in small["rows"]:
        now, then = row["processor_ms"], of_large[row["name"]]["processor_ms"]
        grown = [
            _over(then[name], now[name]) if name in then and name in now else "" for name in ("ours", *others)
        ]
        told.append((row["name"], *grown))
    factor = large["edges"] / small["edges"]
    return _grid(
        f"growth: times as much of the processor on {factor:.3g} times as many edges",
        ("question", "ours", *others),
        told,
    )


def _grid(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return Grid(title, columns, tuple(tuple(map(Cell, row)) for row in rows)).markdown


def describe_machine(machine: _Row) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    note = f" {machine['note']}" if machine["note"] else ""
    return (
        f"Measured {machine['date']} with Python {machine['python']} on {machine['cores']} cores ({machine['system']}); {packages}. "
        f"Medians of {machine['rounds']} runs in turn; load before: {machine['load_before']:g}.{note}"
    )


def _met(row: _Row, by: str) -> str:
    return "yes" if row[by]["ours"] < row["target_ms"] else "no"


def _over(time: float, other: float) -> str:
    return "–" if not other else f"{time / other:,.0f}" if time >= 10 * other else f"{time / other:.2g}"


def _ms(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
