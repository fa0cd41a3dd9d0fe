"""The tables of the receipts: targets, times beside the others, and growth."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kgot_lab.evaluation.tables import Cell, Grid

_OTHERS = ("NetworkX", "rustworkx", "igraph", "SQL", "plain Python")
_Row = dict[str, Any]


def shown(row: _Row, times: int = 1) -> str:
    """A row on one line, while it is measured."""
    beside = "".join(f"  {name} {row['ms'][name]:.3f} (x {row['times_ours'][name]:g})" for name in _OTHERS if name in row["ms"])
    return f"{row['name']:50}{row['ms']['ours']:10.3f} ms {_verdict(row) if times == 1 else '':14}{beside}".rstrip()


def written_report(folder: Path) -> str:
    """The report of the receipts that are in a folder."""
    parts = ["# The query methods at size", "Written by `python benchmarks/kgos_methods.py --table` from the receipts beside it."]
    scale = _read(folder / "scale.json")
    if scale:
        parts += [_told(scale["machine"]), *_scale_tables(scale["sizes"])]
    suite = _read(folder / "suite.json")
    if suite:
        parts += ["## The operations of a published suite", _told(suite["machine"]), suite["about"], *_suite_tables(suite["sizes"])]
    return "\n\n".join(parts) + "\n"


def _scale_tables(sizes: list[_Row]) -> Iterable[str]:
    for size in sizes:
        yield f"## {size['nodes']:,} nodes, {size['edges']:,} edges"
        yield f"The index that the methods share is made in {size['index_s']:.2f} s, once for a graph."
        if size["times"] == 1:
            aimed = (row for row in size["rows"] if row["target_ms"])
            told = ((row["name"], _ms(row["ms"]["ours"]), f"{row['target_ms']:g}", _met(row)) for row in aimed)
            yield _grid("targets, milliseconds", ("method", "median", "target", "met"), told)
        yield _beside(size["rows"])
    if len(sizes) > 1:
        yield _growth(sizes[0], sizes[-1])


def _suite_tables(sizes: list[_Row]) -> Iterable[str]:
    for size in sizes:
        yield f"### {size['nodes']:,} nodes, {size['edges']:,} edges"
        yield _beside(size["rows"])
    if len(sizes) > 1:
        yield _growth(sizes[0], sizes[-1])


def _beside(rows: list[_Row]) -> str:
    others = [name for name in _OTHERS if any(name in row["ms"] for row in rows)]
    told = []
    for row in rows:
        there = (f"{_ms(row['ms'][name])} ({row['times_ours'][name]:g})" if name in row["ms"] else "" for name in others)
        told.append((row["name"], _ms(row["ms"]["ours"]), *there))
    return _grid("milliseconds, median (over ours, median of the pairs)", ("question", "ours", *others), told)


def _growth(small: _Row, large: _Row) -> str:
    """How many times as long each takes where the graph is some times as large."""
    of_large = {row["name"]: row for row in large["rows"]}
    others = [name for name in _OTHERS if any(name in row["ms"] for row in large["rows"])]
    told = []
    for row in small["rows"]:
        then = of_large[row["name"]]["ms"]
        grown = [f"{then[name] / row['ms'][name]:.3g}" if name in then and row["ms"].get(name) else "" for name in ("ours", *others)]
        told.append((row["name"], *grown))
    factor = large["edges"] / small["edges"]
    return _grid(f"growth: times as long on {factor:.3g} times as many edges", ("question", "ours", *others), told)


def _grid(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return Grid(title, columns, tuple(tuple(map(Cell, row)) for row in rows)).markdown


def _told(machine: _Row) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    note = f" {machine['note']}" if machine["note"] else ""
    return (
        f"Measured {machine['date']} with Python {machine['python']} on {machine['cores']} cores ({machine['system']}); {packages}. "
        f"Medians of {machine['rounds']} runs in turn; load before: {machine['load_before']:g}.{note}"
    )


def _met(row: _Row) -> str:
    return "yes" if row["ms"]["ours"] < row["target_ms"] else "no"


def _verdict(row: _Row) -> str:
    return f"({'met' if _met(row) == 'yes' else 'NOT met'}: {row['target_ms']:g})" if row["target_ms"] else ""


def _ms(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}"


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
