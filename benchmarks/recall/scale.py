"""How indexing, memory and searching grow from 1,000 to 1,000,000 synthetic passages; resumes where it was
stopped.

python -m benchmarks.recall.scale                           all lanes, all sizes python -m
benchmarks.recall.scale 1000 10000 --lanes bm25   some of them python -m benchmarks.recall.scale --plan
10000000           what so many would take, from the rows on file, with nothing measured Rows go to
benchmarks/results/scale.jsonl; delete a line to measure it again. A million passages ask for about 8 GB of
memory, as far as the growth up to 100,000 tells.
"""

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.recall.growth import RETRIEVERS, SIZES, measure_growth, scaling_grid
from benchmarks.recall.growth_plan import extrapolated, growth_plan_grid, vectors_told

RESULTS = Path(__file__).parents[1] / "results" / "scale.jsonl"


def plan(file, passages):
    """What so many passages would take, in Markdown, as benchmarks/results/scale.md has it."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return f"{growth_plan_grid(extrapolated(rows, passages)).markdown}\n\n{vectors_told(passages)}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--lanes", nargs="+", default=tuple(RETRIEVERS))
    parser.add_argument("--file", type=Path, default=RESULTS)
    parser.add_argument(
        "--plan", type=int, metavar="PASSAGES", help="carry the rows on file on to so many passages"
    )
    options = parser.parse_args()
    if options.plan:
        print(plan(options.file, options.plan))
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        rows = measure_growth(
            options.sizes,
            options.lanes,
            file=options.file,
            progress=lambda done, total, what: bar.update(
                task, completed=done, total=total, description=what
            ),
        )
    print(scaling_grid(rows).text)
    for row in rows:
        if "error" in row:
            print(f"{row['lane']} over {row['passages']:,} passages failed: {row['error']}")


if __name__ == "__main__":
    main()
