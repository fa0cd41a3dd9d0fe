"""How well a language model reads news into the investment graph: the document's example and the invented
month, recorded.

    python benchmarks/news_reader.py --model local   # 63 calls and more, hours on a small computer; goes on
    where it stopped python benchmarks/news_reader.py --example       # the example alone: one call python
    benchmarks/news_reader.py --again         # from the tape that was recorded, without a model python
    benchmarks/news_reader.py --table         # what was measured

The month runs through the ticks of the monitor that `kgot-lab invest FOLDER run` runs, and so through all
checks of what a model replies. Told are: of the edges that gold says the items state, how many were read, and
how many edges read are not in gold; what was refused, and why; and whether the right users heard of the right
calls. Beside the model stands a reader without mistakes, for what the checks themselves let through. News,
people and companies are invented, and nothing is advice. Every reply stands on the tape in
benchmarks/results/news_reader/, with the name and hash of the model, and none is asked for twice. Results go
to benchmarks/results/news_reader/results.json.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kgot_lab.cli.requirements import need_files

FOLDER = Path(__file__).parent / "results" / "news_reader"
SHOWN = 8  # reasons
KEPT = "what was read so far is on the tape: start again to go on"


def read_example(llm: Any) -> dict[str, Any]:
    """The example of the document in an empty graph."""
    from kgot_lab.domains.investment.graph import open_investment_graph
    from kgot_lab.domains.investment.monitor.news_reader import read_item
    from kgot_lab.experiments.briefings.edges_read import EdgesRead, edges_of_item
    from kgot_lab.experiments.briefings.example import MULTI_LEVEL, MULTI_LEVEL_EDGES
    from kgot_lab.kgos.schemas.investment import INVESTMENT_WITH_COMPANIES

    with open_investment_graph(vocabulary=INVESTMENT_WITH_COMPANIES) as graph:
        facts = read_item(llm, MULTI_LEVEL, graph.view())
    nodes = {node.id: node for node in facts.nodes}
    found = EdgesRead(Counter(MULTI_LEVEL_EDGES), edges_of_item(facts, nodes.__getitem__))
    parts = {
        name: [list(edge) for edge in getattr(found, name).elements()]
        for name in ("both", "missed", "beyond")
    }
    return {**parts, "refused": list(facts.refused), "warnings": list(facts.warnings)}


def read_month(llm: Any, *, tell: bool = False) -> dict[str, Any]:
    """The month from its first day to its last."""
    from kgot_lab.domains.investment.monitor.events import ItemWritten, StageFailed
    from kgot_lab.experiments.briefings.edges_read import added_edges, edges_of_month
    from kgot_lab.experiments.briefings.month import load_month
    from kgot_lab.experiments.briefings.scoring import TOLD_RIGHT, score_month
    from kgot_lab.experiments.briefings.telling import MonthPlay

    month = load_month()
    with MonthPlay(month, llm) as play:
        for event in play.events():
            if isinstance(event, StageFailed):
                raise SystemExit(f"{event}\n{KEPT}")
            if tell and isinstance(event, ItemWritten):
                print(
                    f"{event.facts.item}: {event.edges} edges, {len(event.facts.refused)} refused", flush=True
                )
        facts = play.places.journal.facts()
        found = added_edges(edges_of_month(month, facts, play.places.graph.view()).values())
        score = score_month(month, play.told)
    lines = [line for each in facts for line in each.refused]
    return {
        "edges": {type: list(counts) for type, counts in found.by_type().items()},
        "items_not_read": [
            each.item for each in facts if any(line.startswith("nothing was read") for line in each.refused)
        ],
        "refused": len(lines),
        "reasons": Counter(line.rsplit(": ", 1)[-1].split("; ")[0] for line in lines).most_common(SHOWN),
        "precision": asdict(score.precision),
        "recall": asdict(score.recall),
        "kinds": dict(score.kinds),
        "wrong": [asdict(each) for each in score.judged if each.kind != TOLD_RIGHT],
    }


def measured(llm: Any, *, month: bool) -> dict[str, Any]:
    """The example, and the month if it is wanted, with a reader without mistakes beside."""
    from kgot_lab.experiments.briefings.month import load_month
    from kgot_lab.experiments.briefings.reader import SimulatedReader

    report: dict[str, Any] = {"head": asdict(llm.head), "example": read_example(llm)}
    if month:
        report["month"] = read_month(llm, tell=True)
        report["without_mistakes"] = read_month(SimulatedReader(load_month()))
    return report


def show(report: Mapping[str, Any]) -> None:
    """Print what was measured."""
    from kgot_lab.evaluation.significance import Estimate
    from kgot_lab.evaluation.tables import Cell, Grid
    from kgot_lab.experiments.briefings.curves import estimate_told

    head = report["head"]
    print(f"{head['model']}, recorded {head['recorded']}, {head['engine']}\n")
    if example := report.get("example"):
        print(
            f"The example of the document: {len(example['both'])} of {len(example['both']) + len(example['missed'])} edges were read."
        )
        for name, what in (("missed", "not read"), ("beyond", "not in the document")):
            for source, type, target in example[name]:
                print(f"  {what}: {source} -{type}-> {target}")
        for line in example["refused"]:
            print(f"  refused: {line}")
    if "month" not in report:
        return
    one, other = report["month"], report["without_mistakes"]
    types = sorted({*one["edges"], *other["edges"]})
    rows = tuple(
        (Cell(type), *(Cell(f"{n}") for side in (one, other) for n in side["edges"].get(type, (0, 0, 0))))
        for type in types
    )
    columns = (
        "edge",
        "in gold",
        "read",
        "right",
        "gold, no mistakes",
        "read, no mistakes",
        "right, no mistakes",
    )
    print("\n" + Grid("The invented month: edges", columns, rows, words=True).markdown)
    for name, side in ((head["model"], one), ("a reader without mistakes", other)):
        told = {each: estimate_told(Estimate(**side[each])) for each in ("precision", "recall")}
        print(
            f"\nBriefings by {name}: precision {told['precision']}, recall {told['recall']}; {side['kinds']}"
        )
    print(
        f"\n{len(one['items_not_read'])} items were not read at all; {one['refused']} lines of replies were refused:"
    )
    for reason, count in one["reasons"]:
        print(f"  {count} {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        default="local",
        help='as in docs/models.md: "local", "http://HOST/v1#MODEL", … (%(default)s)',
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the tape and the results lie")
    parser.add_argument("--example", action="store_true", help="the example alone")
    parser.add_argument("--again", action="store_true", help="from the tape alone")
    parser.add_argument("--table", action="store_true", help="show what was measured")
    options = parser.parse_args()
    tape, results = options.folder / "tape.jsonl", options.folder / "results.json"
    if options.table:
        need_files("python benchmarks/news_reader.py makes it", results)
        show(json.loads(results.read_text()))
        return
    from kgot_lab.errors import LabError
    from kgot_lab.llm import connect
    from kgot_lab.llm.recorded import Recorded, Recorder

    if options.again:
        need_files("python benchmarks/news_reader.py records it", tape)
    try:
        report = measured(
            Recorded(tape) if options.again else Recorder(connect(options.model), tape),
            month=not options.example,
        )
    except LabError as error:
        raise SystemExit(f"{error}\n{KEPT}") from None
    results.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    show(report)


if __name__ == "__main__":
    main()
