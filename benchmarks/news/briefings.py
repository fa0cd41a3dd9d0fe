"""Who is told of what in the invented month: precision and recall of briefings against gold, as the reader of
the news errs more.

    python -m benchmarks.news.briefings               # measures, half an hour on a busy machine python
    benchmarks/news/briefings.py --seeds 1     # sooner, with wider intervals; nothing is kept but with --keep
    python -m benchmarks.news.briefings --gold        # a reader without errors only: what is not right is a
    fault of the program or of gold python -m benchmarks.news.briefings --table       # the tables and the
    figure of what was measured

The month runs through the ticks of the monitor that `kgot-lab invest FOLDER run` runs, with the reader in
place of a language model. A briefing is right if the right person hears of the right call by the right paths,
in time. The reader is simulated: it knows the gold and errs at the rates that it is given, so no number is of
a language model. News, people and companies are invented, and nothing is advice. Results go to
benchmarks/results/briefings.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.requirements import require_files

RESULTS = Path(__file__).parents[1] / "results" / "briefings.json"
FIGURE = RESULTS.with_suffix(".svg")
RATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
SEEDS = 5
# hours between decisions
ROUNDS = {"after each item": None, "every hour": 1, "every 6 hours": 6, "every 24 hours": 24}


def without_errors() -> list[dict[str, Any]]:
    """Gold itself put into the graph: by how often is decided, and by which hops are walked."""
    from kgot_lab.domains.investment.reach import DECAYS, OPTIONAL_DECAYS
    from notebooks.invented_month.month import load_month

    month = load_month()
    rounds = {name: {"every": timedelta(hours=hours) if hours else None} for name, hours in ROUNDS.items()}
    walks = {
        "across companies too": DECAYS | OPTIONAL_DECAYS,
        "from companies to assets only": {name: DECAYS[name] for name in ("about", "issued_by")},
        "named assets only": {"about": DECAYS["about"]},
    }
    return [
        _row(month, name, **options)
        for name, options in (rounds | {name: {"decays": walk} for name, walk in walks.items()}).items()
    ]


def _row(month: Any, name: str, **options: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from notebooks.invented_month.reader import SimulatedReader
    from notebooks.invented_month.scoring import TOLD_RIGHT, score_month
    from notebooks.invented_month.telling import tell_month

    told = tell_month(month, SimulatedReader(month), **options)
    score = score_month(month, told.told)
    wrong = [asdict(each) for each in score.judged if each.kind != TOLD_RIGHT]
    return {
        "setting": name, "precision": asdict(score.precision), "recall": asdict(score.recall), "kinds": dict(score.kinds),
        "refused": list(told.refused), "wrong": wrong,
    }  # fmt: skip


def curves(seeds: int) -> list[dict[str, Any]]:
    """A curve for each kind of error, and for all of them at once."""
    from notebooks.invented_month.curves import ALL_KINDS, briefing_curve
    from notebooks.invented_month.month import load_month
    from notebooks.invented_month.reader import READING_ERRORS

    month, found = load_month(), []
    for kind in (*READING_ERRORS, ALL_KINDS):
        found.append(briefing_curve(month, kind, RATES, seeds=seeds).as_json)
        print(f"{kind}: measured", file=sys.stderr, flush=True)
    return found


def show(report: dict[str, Any]) -> None:
    """Print the tables and draw the figure."""
    from kgot_lab.evaluation.significance import Estimate
    from kgot_lab.evaluation.tables import Cell, Grid
    from notebooks.invented_month.curves import (
        BriefingCurve,
        briefing_curves,
        briefing_grid,
        estimate_told,
        kinds_grid,
    )

    rows = tuple(
        (
            Cell(row["setting"]),
            Cell(estimate_told(Estimate(**row["precision"]))),
            Cell(estimate_told(Estimate(**row["recall"]))),
            Cell(", ".join(f"{count} {kind}" for kind, count in row["kinds"].items())),
        )
        for row in report["without_errors"]
    )
    print(
        Grid(
            "Without errors: by when is decided, and what is walked",
            ("setting", "precision", "recall", "briefings"),
            rows,
            words=True,
        ).markdown
    )
    for row in report["without_errors"][:1]:
        for wrong in row["wrong"]:
            print(f"\n{wrong['kind']}: {wrong['user']}, {wrong['item']}, {wrong['action']}. {wrong['why']}")
    if measured := [BriefingCurve.of_json(row) for row in report.get("curves", ())]:
        print(f"\n{briefing_grid(measured).markdown}\n")
        print(
            kinds_grid(
                measured, f"Simulated reader: briefings of a month by kind, mean of {report['seeds']} seeds"
            ).markdown
        )
        print(briefing_curves(measured).save(FIGURE))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help="months for each rate of errors (%(default)s)"
    )
    parser.add_argument(
        "--gold", action="store_true", help="with a reader without errors only; nothing is kept"
    )
    parser.add_argument("--keep", action="store_true", help="keep what fewer seeds give too")
    parser.add_argument("--table", action="store_true", help="show what was measured")
    options = parser.parse_args()
    if options.table:
        require_files("python -m benchmarks.news.briefings makes it", RESULTS)
        show(json.loads(RESULTS.read_text()))
        return
    report: dict[str, Any] = {
        "what": "a simulated reader of invented news; no number here is of a language model",
        "seeds": options.seeds,
    }
    report["without_errors"] = without_errors()
    if not options.gold:
        report["curves"] = curves(options.seeds)
        if options.keep or options.seeds >= SEEDS:
            RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    show(report)


if __name__ == "__main__":
    main()
