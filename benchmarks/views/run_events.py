"""Which turns of the loop worth teaching happen in which recorded run, with the numbers of the events at
which they do.

python -m benchmarks.views.run_events                  the bundled runs python -m benchmarks.views.run_events
runs/*.jsonl any traces python -m benchmarks.views.run_events --table          what stands in data/README.md:
each event, and the bundled runs that show it
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from benchmarks.views.run_lessons import LESSONS, lessons_of
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.trace import Trace, load_run


def main() -> None:
    """Print the events of each run, or the runs of each event."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="*", type=Path, help="the bundled runs unless named")
    parser.add_argument("--table", action="store_true", help="the runs of each event, as Markdown")
    given = parser.parse_args()
    runs = {path.stem: load_run(path) for path in given.traces or bundled_runs()}
    print(
        table_of_lessons(runs)
        if given.table
        else "\n".join(told_of_run(name, run) for name, run in runs.items())
    )


def bundled_runs() -> list[Path]:
    """The traces that come with the package, by name."""
    return sorted(bundled_path("traces").glob("*.jsonl"))


def told_of_run(name: str, run: Trace) -> str:
    """What happens in a run, a line for each event."""
    lines = [
        f"{each} ({LESSONS[each].told}): event {', '.join(map(str, places))}"
        for each, places in lessons_of(run).items()
    ]
    return "\n  ".join([f"{name}: {run.answer!r}", *(lines or ["none of them"])])


def table_of_lessons(runs: Mapping[str, Trace]) -> str:
    """A Markdown table: each event, what it means, and which runs show it at which events."""
    shown = {name: lessons_of(run) for name, run in runs.items()}
    rows = []
    for name, lesson in LESSONS.items():
        where = [
            f"`{run}` ({', '.join(map(str, lessons[name]))})"
            for run, lessons in shown.items()
            if name in lessons
        ]
        rows.append(f"| {name} | {lesson.told} | {', '.join(where) or 'none'} |")
    return "\n".join(
        ["| what happens | that is | runs, with the numbers of the events |", "|---|---|---|", *rows]
    )


if __name__ == "__main__":
    main()
