"""What the loop makes of errors: questions solved by a simulated model against the rate of each kind of error, and what bends the curves.

python benchmarks/competence.py                  # measures, some ten minutes on two cores
python benchmarks/competence.py --questions 30   # sooner, with wider intervals; nothing is kept
python benchmarks/competence.py --table          # the table and figure of what was measured

Every number is of a simulation, whose model knows the answers and errs at the rates that it is given: none is of a language model.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.cli.needs import need_files

if TYPE_CHECKING:
    from kgot_lab.experiments.competence.curves import CompetenceCurve, LoopSetting

RESULTS = Path(__file__).parent / "results" / "competence.json"
FIGURE = Path(__file__).parent / "results" / "competence.svg"
RATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
HOPS, LONGER = 2, 3
FOUND = 2  # passages that a search of a made-up world returns
SETS = {"musique-train-100": 8, "musique-498": 8}  # sets on file, with the passages that a search of them returns


def compared() -> list[tuple[str, LoopSetting]]:
    """Each kind of error at the two presets, on questions of two hops."""
    from kgot_lab.experiments.competence.curves import LoopSetting
    from kgot_lab.experiments.competence.exact import (
        solved_despite_inventions,
        solved_despite_misses,
        solved_despite_reads,
        solved_despite_votes,
    )  # fmt: skip
    from kgot_lab.experiments.competence.simulated import ERROR_RATES
    from kgot_lab.loop.limits import LOCAL, REFERENCE

    exact = {
        "vote": partial(solved_despite_votes, HOPS, REFERENCE.votes), "missed": partial(solved_despite_misses, HOPS, REFERENCE.steps),
        "invented": partial(solved_despite_inventions, HOPS), "read": partial(solved_despite_reads, REFERENCE.votes),
    }  # fmt: skip
    return [
        (kind, each) for kind in ERROR_RATES for each in (LoopSetting("reference", REFERENCE, exact.get(kind)), LoopSetting("local", LOCAL))
    ]


def bent() -> list[tuple[str, LoopSetting]]:
    """What ballots, steps, repairs and forced reads do against the errors that they are for, on questions of three hops."""
    from kgot_lab.experiments.competence.curves import LoopSetting
    from kgot_lab.experiments.competence.exact import (
        solved_despite_forced_reads,
        solved_despite_misses,
        solved_despite_reads,
        solved_despite_votes,
    )  # fmt: skip
    from kgot_lab.loop.limits import REFERENCE

    few = REFERENCE.but(steps=LONGER)  # as many turns as hops, so that reading is always forced
    return [
        *(("vote", LoopSetting(f"{n} votes", REFERENCE.but(votes=n), partial(solved_despite_votes, LONGER, n))) for n in (1, 3, 5)),
        *(("missed", LoopSetting(f"{n} steps", REFERENCE.but(steps=n), partial(solved_despite_misses, LONGER, n))) for n in (3, 5, 7, 10)),
        *(("broken", LoopSetting(f"{n} repairs", REFERENCE.but(repairs=n))) for n in (0, 1, 3)),
        *(("read", LoopSetting(f"{n} votes", REFERENCE.but(votes=n), partial(solved_despite_reads, n))) for n in (1, 3, 5)),
        *(("read", LoopSetting(f"{n} forced reads", few.but(forced_reads=n), partial(solved_despite_forced_reads, n))) for n in (1, 3, 5)),
    ]


def measured(questions: int, hops: int, settings: Sequence[tuple[str, LoopSetting]]) -> list[CompetenceCurve]:
    """The curve of each setting, as many at a time as there are cores."""
    found = []
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(settings))) as pool:
        for each in pool.map(partial(one_curve, questions, hops), settings):
            found.append(each)
            print(each, flush=True)
    return found


def one_curve(questions: int, hops: int, setting: tuple[str, LoopSetting]) -> CompetenceCurve:
    """The curve of one setting, on a world that is the same each time."""
    from kgot_lab.experiments.competence.curves import competence_curve
    from kgot_lab.experiments.competence.worlds import chain_world
    from kgot_lab.retrieval.bm25 import bm25
    from kgot_lab.tools.search import search

    world = chain_world(questions, hops)
    return competence_curve(world.gold, [search(world.documents, bm25(world.documents), k=FOUND)], *setting, RATES)


def without_errors(most: int) -> list[dict[str, Any]]:
    """What a model without errors solves: where it fails, the loop did not show it what it needed."""
    from kgot_lab.bundled import bundled
    from kgot_lab.errors import UnknownName
    from kgot_lab.evaluation.significance import share
    from kgot_lab.experiments.competence.curves import simulated_ends
    from kgot_lab.experiments.competence.simulated import Competence
    from kgot_lab.experiments.competence.worlds import chain_world, world_on_file
    from kgot_lab.loop.limits import LOCAL, REFERENCE
    from kgot_lab.retrieval.bm25 import bm25
    from kgot_lab.tools.search import search

    worlds = [(f"made up, {hops} hop{'s' * (hops > 1)}", chain_world(most, hops), FOUND) for hops in (1, 2, 3, 4)]
    for name, k in SETS.items():
        try:
            worlds.append((name, world_on_file(bundled(name)), k))
        except UnknownName:
            print(f"{name}: not here")
    rows = []
    for name, world, k in worlds:
        tools = [search(world.documents, bm25(world.documents), k=k)]
        for setting, limits in {"reference": REFERENCE, "local": LOCAL, "local, 7 steps": LOCAL.but(steps=7)}.items():
            ends = simulated_ends(world.gold, tools, Competence(), limits)
            solved = share(sum(end.right for end in ends), len(ends))
            rows.append({"questions": name, "setting": setting, "k": k, **vars(solved)})
            print(rows[-1], flush=True)
    return rows


def as_curves(rows: Iterable[dict[str, Any]]) -> list[CompetenceCurve]:
    """Curves from what is on file."""
    from kgot_lab.evaluation.significance import Estimate
    from kgot_lab.experiments.competence.curves import CompetenceCurve, CurvePoint
    from kgot_lab.loop.limits import Limits

    def point(row: dict[str, Any]) -> CurvePoint:
        return CurvePoint(row["rate"], Estimate(**row["solved"]), Estimate(**row["wrong"]), row["exact"])

    return [CompetenceCurve(row["rate"], row["setting"], Limits(**row["limits"]), tuple(map(point, row["points"]))) for row in rows]


def show(report: dict[str, Any]) -> None:
    """Print the tables and draw the figure."""
    from kgot_lab.draw.plots.competence import competence_curves
    from kgot_lab.evaluation.tables import Cell, Grid, decimal
    from kgot_lab.experiments.competence.curves import curves_grid

    both = {name: as_curves(report[name]) for name in ("compared", "bent")}
    titles = {"compared": f"{HOPS} hops, both presets", "bent": f"{LONGER} hops, reference with one limit changed"}
    for name, curves in both.items():
        print("\n" + curves_grid(curves, f"questions solved by rate of errors; {titles[name]}, n = {report['questions']}").markdown)
    rows = tuple(tuple(map(Cell, _cells(row))) for row in report["without_errors"])
    columns = ("questions", "setting", "solved", "95 %", "n")
    print("\n" + Grid("Simulated model: solved by one without errors", columns, rows).markdown)
    print(competence_curves([*both["compared"], *both["bent"]]).save(FIGURE))
    print(f"largest distance from a formula: {decimal(_farthest([*both['compared'], *both['bent']]))}")


def _cells(row: dict[str, Any]) -> Sequence[str]:
    return row["questions"], row["setting"], f"{row['mean']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}", str(row["n"])


def _farthest(curves: Iterable[CompetenceCurve]) -> float:
    return max(abs(point.solved.mean - point.exact) for curve in curves for point in curve.points if point.exact is not None)


def main() -> None:
    """Measure, keep, show."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--questions", type=int, default=200, help="of each made-up world (%(default)s)")
    arguments.add_argument("--table", action="store_true", help="show what was measured")
    options = arguments.parse_args()
    if options.table:
        need_files("python benchmarks/competence.py makes it", RESULTS)
        show(json.loads(RESULTS.read_text()))
        return
    report = {
        "what": "a simulated model of known competence; no number here is of a language model",
        "python": platform.python_version(),
        "questions": options.questions,
        "compared": [curve.as_json for curve in measured(options.questions, HOPS, compared())],
        "bent": [curve.as_json for curve in measured(options.questions, LONGER, bent())],
        "without_errors": without_errors(options.questions),
    }
    if options.questions == arguments.get_default("questions"):
        RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    show(report)


if __name__ == "__main__":
    main()
