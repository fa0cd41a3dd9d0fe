"""Does the graph pay? The same 370 questions of three sets with and without a graph, by a plan written first.

python -m benchmarks.graph_pays.run                  # asks the local model; the same command goes on after a stop
python -m benchmarks.graph_pays.run --minutes 60 --only rag --only paths
python -m benchmarks.graph_pays.run --table          # the results so far; nothing is asked

All systems answer a question before the next, so that a stop leaves them comparable.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kgot_lab.benchmark.comparison import plan
from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, ComparisonSlice, missing_answers
from kgot_lab.benchmark.comparison.results import ComparisonResults, comparison_grids
from kgot_lab.benchmark.questions.batch import lock_folder
from kgot_lab.llm import connect


def show(folder: Path) -> None:
    """Print the results so far, and write them to results.md and results.json."""
    results = ComparisonResults.load(folder)
    grids = comparison_grids(results)
    (folder / "results.md").write_text("\n\n".join(grid.markdown for grid in grids) + "\n", "utf-8")
    (folder / "results.json").write_text(json.dumps(results.as_json(), indent=1) + "\n", "utf-8")
    print("\n\n".join(grid.text for grid in grids))


def main(words: list[str] | None = None) -> None:
    """Ask what is missing, keep it, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="local", help="any that kgot-lab ask --model takes")
    parser.add_argument("--only", action="append", default=[], help="ask only this system; repeat for more")
    parser.add_argument("--set", action="append", default=[], help="ask only of this set; repeat for more")
    parser.add_argument("--limit", type=int, help="ask only the first so many questions of each set")
    parser.add_argument("--minutes", type=float, help="start no question after so many minutes")
    parser.add_argument("--dev", action="store_true", help="ask the dev split instead")
    parser.add_argument(
        "--reuse",
        action="append",
        default=[],
        type=Path,
        help="take replies to the same prompts from traces in this folder",
    )
    parser.add_argument("--folder", type=Path, help="of plan, traces and results (default: runs/graph-pays)")
    parser.add_argument("--table", action="store_true", help="ask nothing")
    given = parser.parse_args(words)
    folder = given.folder or Path("runs/graph-pays" + "-dev" * given.dev)
    if not given.table:
        design = plan.Design(plan.dev_samples(), dev=True) if given.dev else plan.Design()
        some = ComparisonSlice(given.only, given.set, given.limit)
        left = len(missing_answers(design, folder, some))
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            run = ComparisonRun(design, folder, connect(given.model), reuse=given.reuse)
            for due, result in run.answer_missing(some, given.minutes):
                left -= not result.error
                answer = result.error or f"{result.predicted!r}; right is {result.gold!r}"
                print(f"{left:5} left  {due.set} {due.system} {result.id}: {answer}", flush=True)
        if run.reused:
            print(f"{run.reused} replies taken from file instead of asking again")
    show(folder)


if __name__ == "__main__":
    main()
