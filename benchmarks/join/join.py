"""How fast pairs of similar vectors are found, as a share of the rate at which this computer multiplies
matrices.

python -m benchmarks.join.join           10,000, 30,000 and 100,000 vectors: about half an hour; writes
benchmarks/results/join.json python -m benchmarks.join.join --quick   a minute, 4,000 and 10,000 vectors;
writes nothing python -m benchmarks.join.join --only nearest delta   some of: similar nearest delta dense
dimensions memory dask approximate

One core: SGEMM on one thread, blocks of the join's shape, is the ceiling; each pair counts once. A join of
two matrices has half of it. The products that calibrate run between the blocks of a join, twice a second, and
their time is taken off: so both meet the same clock. Vectors are of chance but clustered: a common direction,
sqrt(n) topics, n / 20 events within topics, and a rest, all with a falling spectrum (the standard deviation
of dimension j is j^-.4). At n = 6,119 that is near to the MiniLM vectors of 2wiki-fastgraphrag-101.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.join.join_speed import (
    join_approximately,
    join_bars,
    join_dimensions,
    join_machine,
    join_memory,
    join_on_dask,
    join_scale,
)
from benchmarks.join.join_vectors import vectors_used
from benchmarks.requirements import require_packages

REPORT = Path(__file__).parents[1] / "results" / "join.json"


def show(row: dict[str, Any]) -> None:
    """Print how one join went."""
    rates = f"{row['pairs_per_s'] / 1e6:.1f} M pairs/s, share {row['share']:.3f} (cpu {row['cpu_share']:.3f})"
    print(f"{row['join']:>8} {row['n']:8,} {row['seconds']:8.2f} s, {rates}", flush=True)


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as aligned text."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "shares"))
    lines = [
        names,
        *(
            [
                f"{row.get(name, ''):,}" if isinstance(row.get(name), int | float) else str(row.get(name, ""))
                for name in names
            ]
            for row in rows
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a minute, nothing is written")
    parser.add_argument(
        "--only",
        nargs="+",
        default=["similar", "nearest", "delta", "dense", "dimensions", "memory", "dask", "approximate"],
    )
    options = parser.parse_args()
    if "dask" in options.only:
        require_packages("bench", "distributed", "dask")
    if "approximate" in options.only:
        require_packages("bench", "faiss")
    names = tuple(name for name in ("similar", "nearest", "delta", "dense") if name in options.only)
    sizes = {4_000: 3, 10_000: 3} if options.quick else {10_000: 9, 30_000: 3, 100_000: 3}
    small, middle, large = (2_000, 4_000, 4_000) if options.quick else (10_000, 30_000, 100_000)
    experiments: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "scale": lambda: join_scale(sizes, names, show),
        "dimensions": lambda: join_dimensions(small),
        "memory": lambda: join_memory(middle),
        "dask": lambda: join_on_dask(middle),
        "approximate": lambda: join_approximately(large),
    }
    report: dict[str, Any] = {"machine": join_machine(), "vectors": vectors_used()}
    print(json.dumps(report, indent=1))
    for name, experiment in experiments.items():
        if name in options.only or (name == "scale" and names):
            report[name] = experiment()
            print(f"\n{name}\n{table(report[name])}", flush=True)
    report["bars"] = join_bars(report.get("scale", []))
    print(
        "\n"
        + "\n".join(
            f"{'reached' if reached else 'MISSED':>8}  {bar}" for bar, reached in report["bars"].items()
        )
    )
    if not options.quick:
        REPORT.write_text(
            json.dumps({**(json.loads(REPORT.read_text()) if REPORT.exists() else {}), **report}, indent=1)
            + "\n"
        )


if __name__ == "__main__":
    main()
