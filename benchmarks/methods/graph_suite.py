"""The operations of a published suite for graphs, loading and walking, in our columns beside NetworkX,
rustworkx and igraph.

    python -m benchmarks.methods.graph_suite             the suite's size and ten times that, to
    benchmarks/results/methods/suite.json python -m benchmarks.methods.graph_suite --times 1 --rounds 3 --dry
    as it says, and nothing is written

KGLite publishes times on 25,333 nodes and 280,774 edges (kkollsga/kglite, BENCHMARKS.md). This makes a graph
after its description, asks the same of it, and lets every library do it as that suite does, or faster where
it has a faster way; answers are compared first. Libraries that are not there are left out; `make graphs` gets
them.
"""

from __future__ import annotations

import argparse
import gc
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results" / "methods"


def measured_at(times: int, rounds: int, without: list[str]) -> dict[str, Any]:
    """All operations at one size."""
    from benchmarks.methods.paired import in_turn
    from benchmarks.methods.report import shown
    from benchmarks.methods.social import social
    from benchmarks.methods.social_walkers import walkers_there
    from benchmarks.methods.social_walks import operations

    given = social(times)
    edges = sum(map(len, given.edges.values()))
    print(f"{given.size:,} nodes, {edges:,} edges", flush=True)
    contests = operations(
        given, {name: each(given) for name, each in walkers_there().items() if name not in without}
    )
    gc.collect()
    gc.freeze()
    rows = []
    for contest in contests:
        rows.append(in_turn(contest, rounds))
        print(shown(rows[-1]), flush=True)
    gc.unfreeze()
    return {"times": times, "nodes": given.size, "edges": edges, "rows": rows}


def main() -> None:
    """Measure, and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--times", type=int, nargs="+", default=[1, 10], help="how many times as large the graphs are (1 10)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="runs of which the median is taken (9)")
    parser.add_argument("--without", nargs="*", default=[], help="libraries to leave out")
    parser.add_argument(
        "--note", default="", help="what else the result is to say, such as what kept the computer busy"
    )
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    if min(given.times) < 1 or given.rounds < 1:
        parser.error("--times and --rounds are 1 or more")
    from benchmarks.methods.paired import machine_of
    from benchmarks.methods.report import write_size, written_report

    for times in given.times:
        about = machine_of("numpy", "networkx", "rustworkx", "igraph") | {
            "rounds": given.rounds,
            "note": given.note,
        }
        print(about)
        found = {"machine": about, **measured_at(times, given.rounds, given.without)}
        if not given.dry:
            RESULTS.mkdir(parents=True, exist_ok=True)
            write_size(RESULTS / "suite.json", found)
    if given.dry:
        return
    (RESULTS / "report.md").write_text(written_report(RESULTS), encoding="utf-8")


if __name__ == "__main__":
    main()
