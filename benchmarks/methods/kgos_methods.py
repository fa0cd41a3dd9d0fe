"""How long the query methods take on a graph of the size that KG-OS names, 2,057 nodes and 284,178 edges, and
on larger ones.

    python -m benchmarks.methods.kgos_methods                 the graph and one ten times as large, to
    benchmarks/results/methods/scale.json python -m benchmarks.methods.kgos_methods --times 1 --rounds 3 --dry
    as it says, and nothing is written python -m benchmarks.methods.kgos_methods --table         write
    benchmarks/results/methods/report.md from what is on file

Each method is timed in turn with the straightforward versions in NetworkX, rustworkx, igraph and SQL, after
their answers were found to be the same. The last three libraries need not be there; `make graphs` gets them.
Graphs are in memory before the clock starts, and so are the index that the methods share and what the others
prepare. The graph ten times as large takes 10 GB with NetworkX, 3 GB with
--without NetworkX.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results" / "methods"
READ_FROM = (
    "links",
    "neighbours",
    "centrality",
    "diversity",
    "name_order",
    "substring_retriever",
    "text",
    "goal_retriever",
    "rows_by_name_word",
    "rows_by_stem",
)


def measured_at(times: int, rounds: int, without: list[str]) -> dict[str, Any]:
    """All questions at one size."""
    from benchmarks.methods.kgos_graph import asked_of, kgos_graph, write_file
    from benchmarks.methods.libraries import libraries_there
    from benchmarks.methods.paired import in_turn
    from benchmarks.methods.questions import kgos_questions, loading
    from benchmarks.methods.report import shown
    from kgot_lab.kgos.methods.index import graph_index

    graph = kgos_graph(times)
    begin = time.perf_counter()
    for part in READ_FROM:
        getattr(graph_index(graph), part)
    ready = time.perf_counter() - begin
    print(
        f"{len(graph):,} nodes, {len(graph.edge_keys):,} edges; the index is made in {ready:.2f} s",
        flush=True,
    )
    there = {name: each for name, each in libraries_there().items() if name not in without}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.db"
        write_file(graph, path)
        # before the others hold millions of objects that Python looks through
        rows.append(in_turn(loading(path, there), min(rounds, 3)))
        print(shown(rows[-1], times), flush=True)
    contests = kgos_questions(graph, asked_of(graph), {name: each(graph) for name, each in there.items()})
    gc.collect()
    gc.freeze()
    for contest in contests:
        rows.append(in_turn(contest, rounds))
        print(shown(rows[-1], times), flush=True)
    gc.unfreeze()
    return {
        "times": times,
        "nodes": len(graph),
        "edges": len(graph.edge_keys),
        "index_s": round(ready, 3),
        "rows": rows,
    }


def main() -> None:
    """Measure, or write the report."""
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
    parser.add_argument("--table", action="store_true", help="measure nothing, write the report")
    given = parser.parse_args()
    if min(given.times) < 1 or given.rounds < 1:
        parser.error("--times and --rounds are 1 or more")
    from benchmarks.methods.paired import machine_of
    from benchmarks.methods.report import write_size, written_report

    RESULTS.mkdir(parents=True, exist_ok=True)
    for times in [] if given.table else given.times:
        about = machine_of("numpy", "networkx", "rustworkx", "igraph") | {
            "rounds": given.rounds,
            "note": given.note,
        }
        print(about)
        found = {"machine": about, **measured_at(times, given.rounds, given.without)}
        if not given.dry:
            write_size(RESULTS / "scale.json", found)
    if given.dry:
        return
    (RESULTS / "report.md").write_text(written_report(RESULTS), encoding="utf-8")


if __name__ == "__main__":
    main()
