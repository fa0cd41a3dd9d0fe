"""Ablations of the comparison: the modes `paths` and `local` with one part changed at a time, on the first
questions of each set.

python -m benchmarks.graph_pays.ablations            # asks the local model, goes on after a stop
python -m benchmarks.graph_pays.ablations --dev  # asks the dev split instead, in a folder of its own
`python -m benchmarks.graph_pays.report FOLDER` writes the tables of what is on file.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, ComparisonSlice
from kgot_lab.benchmark.comparison.plan import Design, dev_samples
from kgot_lab.benchmark.comparison.systems import ANSWER_SYSTEMS, AnswerSystem
from kgot_lab.types import Json

_QUESTIONS = 20  # of each set
_FEW = 7  # of each set, for what takes minutes a question
_ONE_READ = {"steps": 1, "hops": False, "comparisons": False}


def _paths(**changes: Json) -> AnswerSystem:
    whole = ANSWER_SYSTEMS["paths"]
    return replace(whole, questions=_QUESTIONS, changes={**whole.changes, **changes})


def _local(**changes: Json) -> AnswerSystem:
    return replace(ANSWER_SYSTEMS["local"], questions=_FEW, changes=changes)


ABLATIONS: Mapping[str, AnswerSystem] = {
    "paths": _paths(),
    "one-path": _paths(**_ONE_READ, paths=1, wide_tokens=0),
    "one-path-without-examples": _paths(**_ONE_READ, paths=1, wide_tokens=0, examples=False),
    "as-many-sentences": _paths(**_ONE_READ, paths=0, wide_tokens=140),
    "twice-as-many-sentences": _paths(**_ONE_READ, paths=0, wide_tokens=280),
    "four-times-as-many-sentences": _paths(**_ONE_READ, paths=0, wide_tokens=560),
    "no-hops": _paths(hops=False),
    "no-comparisons": _paths(comparisons=False),
    "no-wide-read": _paths(wide_tokens=0),
    "passages-for-sentences": _paths(passages=5),
    "no-second-look-up": _paths(steps=1),
    "2-paths": _paths(paths=2),
    "3-paths": _paths(paths=3),
    "longer-paths": _paths(path_tokens=240, wide_tokens=480),
    "sure-at-30": _paths(sure=0.3),
    "sure-at-90": _paths(sure=0.9),
    "links-by-titles": _paths(links=["titles"]),
    "links-by-names": _paths(links=["names"]),
    "links-by-vectors": _paths(links=["vectors"]),
    "all-links": _paths(links=["titles", "names", "vectors"]),
    "no-links": _paths(links=[]),
    "local": _local(),
    "local-1-ballot": _local(votes=1, unpolled=0),
    "local-3-ballots": _local(votes=3, unpolled=0),
    "local-5-ballots": _local(votes=5, unpolled=0),
    "local-no-repairs": _local(repairs=0),
    "local-3-repairs": _local(repairs=3),
}
ABLATION_PAIRS: tuple[tuple[str, str], ...] = (
    ("one-path", "as-many-sentences"),
    ("one-path", "twice-as-many-sentences"),
    ("one-path", "four-times-as-many-sentences"),
    ("one-path", "one-path-without-examples"),
    *(("paths", name) for name in ABLATIONS if name != "paths" and not name.startswith(("local", "as-many", "twice", "four"))),
    *(("local", name) for name in ABLATIONS if name.startswith("local-")),
)  # fmt: skip


def main() -> None:
    """Ask what is missing, and keep it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dev", action="store_true", help="ask the dev split")
    parser.add_argument("--limit", type=int, help="ask only the first so many questions of each set")
    parser.add_argument("--folder", type=Path, help="by default runs/graph-pays-ablations")
    options = parser.parse_args()
    from kgot_lab.llm import connect

    design = Design(dev_samples(), dev=True) if options.dev else Design()
    design = replace(design, systems=ABLATIONS, pairs=ABLATION_PAIRS, aims=())
    folder = options.folder or Path(f"runs/graph-pays-ablations{'-dev' * options.dev}")
    run = ComparisonRun(design, folder, connect("local"))
    for due, result in run.answer_missing(ComparisonSlice(limit=options.limit)):
        print(f"{due.set:12} {due.system:28} {result.id:30} {result.f1:.2f}", flush=True)


if __name__ == "__main__":
    main()
