"""What the loop makes of errors: questions solved by a simulated model against the rate of each kind of
error, and what bends the curves.

python -m benchmarks.competence.competence                  # measures, some ten minutes on two cores python
benchmarks/competence/competence.py --paths          # the mode `paths` alone, the rest stays as on file; the
first time embeds sentences python -m benchmarks.competence.competence --questions 30   # sooner, with wider
intervals; nothing is kept python -m benchmarks.competence.competence --table          # the tables and
figures of what was measured

Every number is of a simulation, whose model knows the answers and errs at the rates that it is given: none is
of a language model.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.requirements import require_files

if TYPE_CHECKING:
    from benchmarks.competence.curves import CompetenceCurve, LoopSetting
    from kgot_lab.loop.limits import Limits

RESULTS = Path(__file__).parents[1] / "results" / "competence.json"
FIGURE = Path(__file__).parents[1] / "results" / "competence.svg"
PATHS_FIGURE = FIGURE.with_name("competence_paths.svg")
RATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
FEW_RATES = (0.0, 0.1, 0.2, 0.3, 0.5)  # in the mode `paths`
HOPS, LONGER = 2, 3
FOUND = 2  # passages that a search of a made-up world returns
ALONG = 100  # questions of a made-up world in the mode `paths`, whose sentences are embedded
FEW, ON_FILE = 40, 12  # of a made-up world and of a set on file, for a model without errors
PASSAGES = 8  # that a search of a set on file returns
SETS = {"musique-train-100": PASSAGES, "musique-498": PASSAGES}


def compared() -> list[tuple[str, LoopSetting]]:
    """Each kind of error at the two presets, on questions of two hops."""
    from benchmarks.competence.curves import LoopSetting
    from benchmarks.competence.exact import (
        solved_despite_inventions,
        solved_despite_misses,
        solved_despite_reads,
        solved_despite_votes,
    )  # fmt: skip
    from kgot_lab.loop.limits import LOCAL, REFERENCE

    exact = {
        "vote": partial(solved_despite_votes, HOPS, REFERENCE.voting.votes), "missed": partial(solved_despite_misses, HOPS, REFERENCE.steps),
        "invented": partial(solved_despite_inventions, HOPS), "read": partial(solved_despite_reads, REFERENCE.voting.votes),
    }  # fmt: skip
    return [
        (kind, each)
        for kind in ("vote", "missed", "invented", "broken", "read")
        for each in (LoopSetting("reference", REFERENCE, exact.get(kind)), LoopSetting("local", LOCAL))
    ]


def bent() -> list[tuple[str, LoopSetting]]:
    """What votes, steps, repairs and forced reads do against the errors that they are for, on questions of
    three hops.
    """
    from benchmarks.competence.curves import LoopSetting
    from benchmarks.competence.exact import (
        solved_despite_forced_reads,
        solved_despite_misses,
        solved_despite_reads,
        solved_despite_votes,
    )  # fmt: skip
    from kgot_lab.loop.limits import REFERENCE
    from kgot_lab.text.cleaning import format_count

    few = REFERENCE.but(steps=LONGER)  # as many turns as hops, so that reading is always forced
    return [
        *(
            (
                "vote",
                LoopSetting(
                    format_count(n, "vote"), REFERENCE.but(votes=n), partial(solved_despite_votes, LONGER, n)
                ),
            )
            for n in (1, 3, 5)
        ),
        *(
            (
                "missed",
                LoopSetting(f"{n} steps", REFERENCE.but(steps=n), partial(solved_despite_misses, LONGER, n)),
            )
            for n in (3, 5, 7, 10)
        ),
        *(("broken", LoopSetting(format_count(n, "repair"), REFERENCE.but(repairs=n))) for n in (0, 1, 3)),
        *(
            (
                "read",
                LoopSetting(
                    format_count(n, "vote"), REFERENCE.but(votes=n), partial(solved_despite_reads, n)
                ),
            )
            for n in (1, 3, 5)
        ),
        *(
            (
                "read",
                LoopSetting(
                    format_count(n, "forced read"),
                    few.but(forced_reads=n),
                    partial(solved_despite_forced_reads, n),
                ),
            )
            for n in (1, 3, 5)
        ),
    ]


@dataclass(frozen=True)
class PathCase:
    """A curve of the mode `paths`: in which panel, of which error, with which other rates, and over which
    world.
    """

    panel: str
    rate: str
    setting: LoopSetting
    others: Mapping[str, float] = field(default_factory=dict)
    hops: int = 2
    found: int = FOUND  # passages that a search returns
    comparing: bool = False


def along() -> list[PathCase]:
    """What errors do in the mode `paths`, and what more paths, the likelihood that is enough, and splitting
    do against them.
    """
    from benchmarks.competence.curves import LoopSetting
    from benchmarks.competence.exact import (
        solved_despite_hop_misreadings,
        solved_despite_misreadings,
        solved_despite_splits,
    )
    from benchmarks.competence.simulated import UNCHECKED

    def case(panel: str, rate: str, name: str, limits: Limits, exact: Any = None, **more: Any) -> PathCase:
        return PathCase(panel, rate, LoopSetting(name, limits, exact), **more)

    # each question is asked of its best paths, and hop by hop, of nothing else
    once = UNCHECKED.but(wide_tokens=0, steps=1)
    # wrong answers that look sure: none, half, all
    told, half, sure = ({"assured": share} for share in (0.0, 0.5, 1.0))
    looks = (("told apart", told), ("half look sure", half), ("all look sure", sure))
    by_hops = {
        name: partial(solved_despite_hop_misreadings, HOPS, assured=rates["assured"]) for name, rates in looks
    }
    # path, all sentences, path
    again = {name: partial(solved_despite_misreadings, 3, assured=rates["assured"]) for name, rates in looks}
    return [
        *(case("1 hop", "read", name, UNCHECKED, again[name], others=rates, hops=1) for name, rates in looks),
        *(case("2 hops", "read", name, UNCHECKED, others=rates) for name, rates in looks),
        *(
            case("2 hops, hop by hop", "read", name, once, by_hops[name], others=rates, found=1)
            for name, rates in looks
        ),
        case("1 hop, a path once", "read", "1 path", once, partial(solved_despite_misreadings, 1), hops=1),
        case("1 hop, a path once", "read", "2 paths", once.but(paths=2), hops=1),
        *(
            case("2 hops, half look sure", "read", f"{n} paths", UNCHECKED.but(paths=n), others=half)
            for n in (2, 3)
        ),
        *(
            case(
                "2 hops, half look sure", "read", f"enough: {enough}", UNCHECKED.but(sure=enough), others=half
            )
            for enough in (0.0, 0.95)
        ),
        case("2 hops, not split", "read", "no hops", UNCHECKED.but(hops=False)),
        case("split", "split", "3 hops", UNCHECKED, hops=3),
        case("split", "split", "2 hops, hop by hop", once, solved_despite_splits, found=1),
        *(
            case(
                "two compared",
                "read",
                f"{hops} hop{'s' * (hops > 1)} each",
                UNCHECKED,
                hops=hops,
                found=4,
                comparing=True,
            )
            for hops in (1, 2)
        ),
    ]


def measured_along(questions: int) -> list[dict[str, Any]]:
    """The curve of each case of the mode `paths`, with its panel and the other rates."""
    found, cases = [], along()
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(cases))) as pool:
        for case, curve in zip(cases, pool.map(partial(one_case, questions), cases), strict=True):
            found.append({"panel": case.panel, "others": dict(case.others), **curve.as_json})
            print(case.panel, curve, flush=True)
    return found


def one_case(questions: int, case: PathCase) -> CompetenceCurve:
    """The curve of one case, on a world that is the same each time."""
    from benchmarks.competence.curves import competence_curve
    from benchmarks.competence.simulated import Competence
    from benchmarks.competence.worlds import chain_world, comparing_world
    from kgot_lab.retrieval.lexical import bm25
    from kgot_lab.tools.search import search

    world = (comparing_world if case.comparing else chain_world)(questions, case.hops)
    tools = [search(world.documents, bm25(world.documents), k=case.found)]
    return competence_curve(
        world.gold, tools, case.rate, case.setting, FEW_RATES, competence=Competence(**case.others)
    )


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
    from benchmarks.competence.curves import competence_curve
    from benchmarks.competence.worlds import chain_world
    from kgot_lab.retrieval.lexical import bm25
    from kgot_lab.tools.search import search

    world = chain_world(questions, hops)
    return competence_curve(
        world.gold, [search(world.documents, bm25(world.documents), k=FOUND)], *setting, RATES
    )


def without_errors(most: int) -> list[dict[str, Any]]:
    """What a model without errors solves: where it fails, the loop did not show it what it needed."""
    from benchmarks.competence.curves import simulated_ends
    from benchmarks.competence.simulated import Competence
    from benchmarks.competence.worlds import chain_world, world_on_file
    from kgot_lab.errors import UnknownName
    from kgot_lab.evaluation.significance import proportion
    from kgot_lab.io.files import bundled_path
    from kgot_lab.loop.limits import LOCAL, REFERENCE
    from kgot_lab.retrieval.lexical import bm25
    from kgot_lab.tools.search import search

    worlds = [
        (f"made up, {hops} hop{'s' * (hops > 1)}", chain_world(most, hops), FOUND) for hops in (1, 2, 3, 4)
    ]
    for name, k in SETS.items():
        try:
            worlds.append((name, world_on_file(bundled_path(name)), k))
        except UnknownName:
            print(f"{name}: not here")
    rows = []
    for name, world, k in worlds:
        tools = [search(world.documents, bm25(world.documents), k=k)]
        for setting, limits in {
            "reference": REFERENCE,
            "local": LOCAL,
            "local, 7 steps": LOCAL.but(steps=7),
        }.items():
            ends = simulated_ends(world.gold, tools, Competence(), limits)
            solved = proportion(sum(end.right for end in ends), len(ends))
            rows.append({"questions": name, "setting": setting, "k": k, **vars(solved)})
            print(rows[-1], flush=True)
    return rows


def along_without_errors(most: int) -> list[dict[str, Any]]:
    """What a model without errors solves in the mode `paths`, of made-up worlds and of the first questions of
    the sets on file.
    """
    from benchmarks.competence.curves import simulated_ends
    from benchmarks.competence.simulated import UNCHECKED, Competence
    from benchmarks.competence.worlds import (
        chain_world,
        comparing_world,
        first_of,
        world_of_triples,
        world_on_file,
    )
    from kgot_lab.errors import UnknownName
    from kgot_lab.evaluation.significance import proportion
    from kgot_lab.io.files import bundled_path
    from kgot_lab.retrieval.lexical import bm25
    from kgot_lab.tools.search import search

    worlds = [
        (f"made up, {hops} hop{'s' * (hops > 1)}", chain_world(most, hops), FOUND) for hops in (1, 2, 3, 4, 5)
    ]
    worlds += [
        (f"made up, two compared, {hops} hop{'s' * (hops > 1)} each", comparing_world(most, hops), 2 * FOUND)
        for hops in (1, 2)
    ]
    for name, k in SETS.items():
        try:
            worlds.append((name, first_of(world_on_file(bundled_path(name)), ON_FILE), k))
        except UnknownName:
            print(f"{name}: not here")
    try:
        worlds.append(
            (
                "2wiki-1000",
                first_of(
                    world_of_triples(bundled_path("2wiki-1000"), bundled_path("2wiki-fastgraphrag-101")),
                    ON_FILE,
                ),
                PASSAGES,
            )
        )
    except UnknownName:
        print("2wiki-1000: not here")
    rows = []
    for name, world, k in worlds:
        tools = [search(world.documents, bm25(world.documents), k=k)]
        settings = (
            {"paths": UNCHECKED}
            if k == PASSAGES
            else {"paths": UNCHECKED, "paths, no hops": UNCHECKED.but(hops=False)}
        )
        for setting, limits in settings.items():
            ends = simulated_ends(world.gold, tools, Competence(), limits)
            rows.append(
                {
                    "questions": name,
                    "setting": setting,
                    "k": k,
                    **vars(proportion(sum(end.right for end in ends), len(ends))),
                }
            )
            print(rows[-1], flush=True)
    return rows


def as_curves(rows: Iterable[dict[str, Any]]) -> list[CompetenceCurve]:
    """Curves from what is on file."""
    from benchmarks.competence.curves import CompetenceCurve, CurvePoint
    from kgot_lab.evaluation.significance import Estimate
    from kgot_lab.loop.limits import Limits

    def point(row: dict[str, Any]) -> CurvePoint:
        return CurvePoint(
            row["rate"], Estimate(**row["solved"]), Estimate(**row["wrong"]), row["exact"], row.get("calls")
        )

    return [
        CompetenceCurve(
            row["rate"], row["setting"], Limits.of_json(row["limits"]), tuple(map(point, row["points"]))
        )
        for row in rows
    ]


def show(report: dict[str, Any]) -> None:
    """Print the tables and draw the figures."""
    from benchmarks.competence.competence_plot import competence_curves
    from benchmarks.competence.curves import curves_grid
    from kgot_lab.evaluation.tables import Cell, Grid, format_decimal

    both = {name: as_curves(report[name]) for name in ("compared", "bent")}
    panels: dict[str, list[CompetenceCurve]] = {}
    for row, curve in zip(report["along"], as_curves(report["along"]), strict=True):
        panels.setdefault(row["panel"], []).append(curve)
    titles = {
        "compared": f"{HOPS} hops, both presets",
        "bent": f"{LONGER} hops, reference with one limit changed",
    }
    for name, curves in both.items():
        print(
            "\n"
            + curves_grid(
                curves, f"questions solved by rate of errors; {titles[name]}, n = {report['questions']}"
            ).markdown
        )
    for name, curves in panels.items():
        print(
            "\n"
            + curves_grid(
                curves,
                f"questions solved by rate of errors; mode paths, {name}, n = {report['along_questions']}",
            ).markdown
        )
    rows = tuple(
        tuple(map(Cell, _cells(row))) for row in (*report["without_errors"], *report["along_without_errors"])
    )
    columns = ("questions", "setting", "solved", "95 %", "n")
    print("\n" + Grid("Simulated model: solved by one without errors", columns, rows).markdown)
    print(competence_curves([*both["compared"], *both["bent"]]).save(FIGURE))
    print(competence_curves(panels).save(PATHS_FIGURE))
    every = [*both["compared"], *both["bent"], *(curve for curves in panels.values() for curve in curves)]
    print(f"largest distance from a formula: {format_decimal(_farthest(every))}")


def _cells(row: dict[str, Any]) -> Sequence[str]:
    return (
        row["questions"],
        row["setting"],
        f"{row['mean']:.3f}",
        f"{row['low']:.3f} to {row['high']:.3f}",
        str(row["n"]),
    )


def _farthest(curves: Iterable[CompetenceCurve]) -> float:
    return max(
        abs(point.solved.mean - point.exact)
        for curve in curves
        for point in curve.points
        if point.exact is not None
    )


def main() -> None:
    """Measure, keep, show."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--questions", type=int, default=200, help="of each made-up world (%(default)s)")
    arguments.add_argument(
        "--paths",
        action="store_true",
        help="measure the mode paths alone, and take the rest from what was measured",
    )
    arguments.add_argument("--table", action="store_true", help="show what was measured")
    options = arguments.parse_args()
    if options.table or options.paths:
        require_files("python -m benchmarks.competence.competence makes it", RESULTS)
    if options.table:
        show(json.loads(RESULTS.read_text()))
        return
    report = json.loads(RESULTS.read_text()) if options.paths else whole_report(options.questions)
    along_questions = min(options.questions, ALONG)
    report |= {
        "along_questions": along_questions,
        "along": measured_along(along_questions),
        "along_without_errors": along_without_errors(min(options.questions, FEW)),
    }
    if options.questions == arguments.get_default("questions"):
        RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    show(report)


def whole_report(questions: int) -> dict[str, Any]:
    """What is measured of the presets reference and local."""
    return {
        "what": "a simulated model of known competence; no number here is of a language model",
        "python": platform.python_version(),
        "questions": questions,
        "compared": [curve.as_json for curve in measured(questions, HOPS, compared())],
        "bent": [curve.as_json for curve in measured(questions, LONGER, bent())],
        "without_errors": without_errors(questions),
    }


if __name__ == "__main__":
    main()
