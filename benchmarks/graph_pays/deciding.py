"""Does the graph help a small model to answer, once decomposition and comparing in code are equal?

The mode `paths` beside controls that differ by one thing, on the questions of the comparison and on others that
were never asked for an answer. The plan is in benchmarks/results/deciding, written before the first answer.

python -m benchmarks.graph_pays.deciding open      # questions that compare nothing: the verdict
python -m benchmarks.graph_pays.deciding compared  # yes or no, and which of two
python -m benchmarks.graph_pays.deciding no-code   # the same, without comparing in code
python -m benchmarks.graph_pays.deciding presets   # what takes minutes a question, on a few open questions
python -m benchmarks.graph_pays.deciding open --table      # asks nothing
python -m benchmarks.graph_pays.deciding open --small MODEL  # another model, on half of the questions

A stopped run goes on. With --dev, the dev split is asked instead, into runs/.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.graph_pays.controls import Walk, with_shuffled_links, without_graph
from benchmarks.graph_pays.report import Goal, report_grids
from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, ComparisonSlice
from kgot_lab.benchmark.comparison.plan import DRAW_SEED, Design, dev_samples, drawn_samples
from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.comparison.systems import ANSWER_SYSTEMS, AnswerSystem
from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.benchmark.questions.sets import BUNDLED_SETS
from kgot_lab.loop.modes.paths.question_form import classify_question
from kgot_lab.types import Json

FOLDER = Path(__file__).parents[1] / "results" / "deciding"
_UNSEEN = 120  # questions of each of two sets that were never asked for an answer
_FEW = 24  # questions of each set, for what takes minutes a question
_PATHS = ANSWER_SYSTEMS["paths"]


def _control(walk: Walk, search: str, **changes: Json) -> AnswerSystem:
    system = replace(_PATHS, search=search, changes={**_PATHS.changes, **changes})
    return replace(system, walk=partial(walk, limits=system.limits))


SYSTEMS: Mapping[str, AnswerSystem] = {
    "paths": _PATHS,
    "paths-shuffled": _control(with_shuffled_links, "shuffled"),
    "paths-no-links": replace(_PATHS, search="convex", changes={**_PATHS.changes, "links": []}),
    "rag-split": _control(without_graph, "convex"),
    "sentences": _control(without_graph, "convex", hops=False, comparisons=False, paths=2),
    "rag": ANSWER_SYSTEMS["rag-few"],
    "paths-checked": replace(_PATHS, questions=_FEW, changes={}),
    "operations": replace(ANSWER_SYSTEMS["local"], questions=_FEW),
}
CONTROLS = ("paths-shuffled", "paths-no-links", "rag-split")
PAIRS = (
    *(("paths", other) for other in SYSTEMS if other != "paths"),
    ("rag-split", "rag"), ("rag-split", "sentences"), ("sentences", "rag"),
)  # fmt: skip
# the graph helps if both of the first are reached, and links of a graph if the last is too
GOALS = (
    Goal("paths above the same calls and code without a graph", "paths", "gain", 0.0, other="rag-split"),
    Goal("paths above its own search without a graph", "paths", "gain", 0.0, other="paths-no-links"),
    Goal("paths above paths with shuffled links", "paths", "gain", 0.0, other="paths-shuffled"),
)
PARTS = ("open", "compared", "no-code", "presets")


def is_open(text: str) -> bool:
    """Return whether a question compares nothing and does not ask for yes or no."""
    return classify_question(text) == "open"


def samples() -> dict[str, QuestionSet]:
    """Return the 370 questions of the comparison, and 240 of the same collections that were never answered."""
    found = drawn_samples()
    for name in ("2wiki", "musique-498"):
        whole = BUNDLED_SETS[name]()
        ids = list((whole.parts or {})["test"])
        random.Random(DRAW_SEED).shuffle(ids)
        found[f"{name}-unseen"] = whole.only(ids[:_UNSEEN])
    return found


def design(part: str, *, dev: bool = False, small: bool = False) -> Design:
    """Return the design of a part. A small model is asked every second question."""
    asked = {}
    for name, of in (dev_samples() if dev else samples()).items():
        wanted = part in ("open", "presets")
        ids = [question.id for question in of.questions if is_open(question.text) is wanted]
        if ids := ids[:: 2 if small else 1]:
            asked[name] = of.only(ids)
    systems = {name: each for name, each in SYSTEMS.items() if each.questions is None}
    if part == "presets":
        systems = {name: SYSTEMS[name] for name in ("paths", "paths-checked", "operations")}
    elif part == "no-code":
        systems = {name: _without_code(SYSTEMS[name]) for name in ("paths", *CONTROLS)}
    pairs = [pair for pair in PAIRS if systems.keys() >= set(pair)]
    return Design(asked, systems, pairs, GOALS if part == "open" else (), dev=dev)


def _without_code(system: AnswerSystem) -> AnswerSystem:
    changed = replace(system, changes={**system.changes, "comparisons": False})
    if changed.walk is None:
        return changed
    return replace(changed, walk=partial(changed.walk.func, limits=changed.limits))


def main() -> None:
    """Ask what is missing, keep it, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--dev", action="store_true", help="ask the dev split")
    parser.add_argument("--small", metavar="MODEL", help="ask this model, half of the questions")
    parser.add_argument("--limit", type=int, help="ask only the first so many questions of each set")
    parser.add_argument("--minutes", type=float, help="start no question after so many minutes")
    parser.add_argument("--table", action="store_true", help="ask nothing")
    given = parser.parse_args()
    root = Path("runs/deciding-dev") if given.dev else FOLDER
    folder = root / (f"{given.part}-small" if given.small else given.part)
    if not given.table:
        from kgot_lab.llm import connect

        chosen = design(given.part, dev=given.dev, small=bool(given.small))
        reuse = [each for part in PARTS if (each := root / folder.name.replace(given.part, part)).is_dir()]
        run = ComparisonRun(chosen, folder, connect(given.small or "local"), reuse=reuse)
        slow = [name for name, system in chosen.systems.items() if system.questions is not None]
        fast = [name for name in chosen.systems if name not in slow]
        for systems in filter(None, (fast, slow)):
            some = ComparisonSlice(systems, limit=given.limit)
            for due, result in run.answer_missing(some, given.minutes):
                print(f"{due.set} {due.system} {result.id}, {result.seconds} s", flush=True)
    for grid in report_grids(ComparisonResults.load(folder)) if given.table else ():
        print(grid.markdown)


if __name__ == "__main__":
    main()
