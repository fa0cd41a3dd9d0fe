"""How fast each store is, over graphs of 1,000 to 1,000,000 edges and WordNet, beside the driver that it is
built on.

    python -m benchmarks.stores.stores                                    all stores, in about 12 minutes
    python -m benchmarks.stores.stores --stores sqlite --graphs 1k 10k    some of them
    python -m benchmarks.stores.stores --quick                            a first look, kept nowhere
    python -m benchmarks.stores.stores --table                            the tables of the last results

Each store meets each graph in a process of its own, with a time limit; the driver comes after it, in another.
Servers are started for it on this machine. Results go to benchmarks/results/stores.jsonl, a line for each
store and graph; those of this commit are not measured again, so an interrupted run goes on where it was. By
default the servers and Cypher do not get the largest graph: name them for it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.requirements import require_or_exit, require_sandbox
from benchmarks.stores.graphs import size_of
from benchmarks.stores.speed import Allowance, kept_rows, measure_missing
from benchmarks.stores.tables import MEASURED_STORES, store_bars, store_tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "stores.jsonl"
GRAPHS = ("1k", "2300", "10k", "100k", "wn18rr", "1M")  # numbers of edges; 2,300 make 1,000 nodes
LARGEST = ("in_memory", "sparql_embedded", "sqlite", "postgres")  # the stores that get 1M unasked


def graph_name(name: str) -> str:
    """The name of a graph; raises ValueError for what is none."""
    size_of(name)
    return name


def run(wanted: Sequence[tuple[str, str]], file: Path, allowed: Allowance, *, again: bool) -> None:
    """Measure what is wanted and not yet there, showing how far it is."""
    from support.store_homes import home, missing

    for kind in dict.fromkeys(kind for kind, _ in wanted):
        require_or_exit(not missing(kind), missing(kind))
        if kind in ("in_memory", "cypher_embedded", "sparql_embedded"):
            require_sandbox({"in_memory": "python"}.get(kind, kind.split("_")[0]))
    for number, count, told in measure_missing(wanted, file, home=home, allowed=allowed, again=again):
        if number == 0:
            if count < len(wanted):
                print(
                    f"{len(wanted) - count} of {len(wanted)} are there already; --again measures them again",
                    flush=True,
                )
        elif isinstance(told, tuple):
            print(f"[{number}/{count}] {told[0]} over {told[1]} ...", end=" ", flush=True)
        else:
            trouble = told.get("error") or next(
                (told[who]["error"] for who in ("ours", "raw") if "error" in told.get(who, {})), ""
            )
            parts = [who for who in ("ours", "raw") if "over" in told.get(who, {})]
            over = " ".join(f"{who} over {allowed.limit:g} s at {told[who]['over']}" for who in parts)
            print(f"{told['seconds']} s {over or trouble}".rstrip(), flush=True)


def main() -> None:
    sys.path.append(str(ROOT / "tests"))  # the servers that tests start
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # in order, so that no server stays behind
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--stores",
        nargs="+",
        choices=MEASURED_STORES,
        metavar="STORE",
        help=f"of {', '.join(MEASURED_STORES)}",
    )
    parser.add_argument(
        "--graphs",
        nargs="+",
        type=graph_name,
        metavar="GRAPH",
        help=f"of {', '.join(GRAPHS)}, or other numbers of edges",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small graphs and few repetitions; kept only with --file"
    )
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument(
        "--file", type=Path, help=f"where results are kept instead of {RESULTS.relative_to(ROOT)}"
    )
    parser.add_argument(
        "--limit", type=float, default=240, help="seconds for one store and one graph (%(default)g)"
    )
    options = parser.parse_args()
    graphs = options.graphs or (("1k", "10k") if options.quick else GRAPHS)
    kinds = options.stores or MEASURED_STORES
    wanted = [
        (kind, graph)
        for graph in graphs
        for kind in kinds
        if graph != "1M" or options.stores or kind in LARGEST
    ]
    with tempfile.TemporaryDirectory() as nowhere:
        file = options.file or (Path(nowhere) / "quick.jsonl" if options.quick else RESULTS)
        if not options.table:
            run(wanted, file, Allowance(options.limit, 0.3 if options.quick else 0.8), again=options.again)
        rows = kept_rows(file)
    print("\n".join([store_tables(rows), store_bars(rows)]))


if __name__ == "__main__":
    main()
