"""How long the methods of KG-OS take at 20,000 nodes and 300,000 edges, beside igraph, rustworkx, NetworkX and
sets of Python.

    python -m benchmarks.kgos.speeds [--nodes 20000] [--edges 300000] [--note TEXT] [--dry]

Answers are found to be the same first, and are then timed in turn. It writes benchmarks/results/kgos/speeds.md and
speeds.json. rustworkx comes with no extra of this package, and is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from benchmarks.methods.kgos_graph import write_file
from benchmarks.methods.libraries import libraries_there
from benchmarks.methods.paired import OURS, AnswersDiffer, in_turn, machine_of
from benchmarks.methods.questions import loading
from benchmarks.methods.report import describe_machine
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import make_read_only
from kgot_lab.kgos.methods.centrality import critical_components, pagerank
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.traversal import trace_path

RESULTS = Path(__file__).parents[1] / "results" / "kgos"
TYPES = ("requires", "enables", "calls")
SETS, ASKED, ROUNDS = "sets of Python", 60, 9
RUSTWORKX = find_spec("rustworkx") is not None
WORDS = 3_000  # of which the n-th is drawn in proportion to n ** (-2/3)
Pairs = list[tuple[int, int]]


def random_graph(nodes: int, edges: int, chance: np.random.Generator) -> PropertyGraph:
    """Return a graph of uniformly drawn edges, whose nodes have 2 words in the name and 12 in the description."""
    texts = [_words(chance, 14) for _ in range(nodes)]
    ends = chance.integers(0, nodes, (2, edges)).astype(np.int32)
    return PropertyGraph(
        ids=tuple(f"node_{row}" for row in range(nodes)),
        node_labels=(("thing",),) * nodes,
        node_properties=tuple({"name": " ".join(w[:2]), "description": " ".join(w[2:])} for w in texts),
        sources=make_read_only(ends[0]),
        targets=make_read_only(ends[1]),
        type_codes=make_read_only(chance.integers(0, len(TYPES), edges).astype(np.int32)),
        type_names=TYPES,
        edge_properties=({},) * edges,
        edge_keys=tuple(map(str, range(edges))),
    )


def _words(chance: np.random.Generator, count: int) -> list[str]:
    return [f"w{int(WORDS * number**3)}" for number in chance.random(count)]


class SameGraph:
    """A graph in the other libraries, without loops: with arrows, each once, and without them."""

    def __init__(self, graph: PropertyGraph) -> None:
        ends = zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)
        self.size, self.pairs = len(graph), sorted({pair for pair in ends if pair[0] != pair[1]})
        import igraph  # imports matplotlib

        self.igraph = igraph.Graph(n=self.size, edges=self.pairs, directed=True)
        self.plain_igraph = self.igraph.as_undirected(mode="collapse")
        self.networkx: nx.DiGraph[int] = nx.DiGraph()
        self.networkx.add_nodes_from(range(self.size))
        self.networkx.add_edges_from(self.pairs)
        self.plain_networkx = self.networkx.to_undirected()
        self.out = [set(self.networkx[row]) for row in range(self.size)]
        if RUSTWORKX:
            import rustworkx as rx

            self.rx: Any = rx
            self.rustworkx: Any = rx.PyDiGraph()
            self.rustworkx.add_nodes_from(range(self.size))
            self.rustworkx.add_edges_from_no_data(self.pairs)
            self.plain_rustworkx = self.rustworkx.to_undirected(multigraph=False)

    def reach(self, root: int, depth: int, successors: Callable[[int], Iterable[int]]) -> int:
        """Count the nodes within a depth, by sets."""
        seen, level = {root}, {root}
        for _ in range(depth):
            level = set().union(*map(successors, level)) - seen
            seen |= level
        return len(seen)


class Contest(NamedTuple):
    """A question about each of some inputs; `compared` is what of our answer the others give."""

    name: str
    inputs: Sequence[Any]
    ours: Callable[[Any], Any]
    compared: Callable[[Any], Any] = lambda found: found
    others: Mapping[str, Callable[[Any], Any]] = {}
    target: float | None = None


def contests(graph: PropertyGraph, same: SameGraph, asked: Pairs) -> list[Contest]:
    """Return the questions about paths, changes and ranks."""
    roots, tolerance = [a for a, _ in asked], 1e-12
    within, two_ways = nx.single_source_shortest_path_length, nx.bidirectional_shortest_path
    trace = Contest(
        "trace", asked, lambda pair: trace_path(graph, graph.ids[pair[0]], graph.ids[pair[1]], max_depth=9),
        lambda path: path.length + 1,
        {
            "igraph": lambda pair: len(same.plain_igraph.get_shortest_path(*pair)),
            "rustworkx": lambda pair: len(same.rx.dijkstra_shortest_paths(same.plain_rustworkx, *pair)[pair[1]]),
            "NetworkX": lambda pair: len(two_ways(same.plain_networkx, *pair)),
        },
        0.1,
    )  # fmt: skip
    impacts = [
        Contest(
            f"impact, forward, {depth} deep", roots,
            lambda row, depth=depth: impact_analysis(graph, graph.ids[row], direction="forward", max_depth=depth),
            lambda found: found.total_impacted + 1,
            {
                SETS: lambda row, depth=depth: same.reach(row, depth, same.out.__getitem__),
                "igraph": lambda row, depth=depth: len(same.igraph.neighborhood(row, order=depth, mode="out")),
                "rustworkx": lambda row, depth=depth: same.reach(row, depth, same.rustworkx.successor_indices),
                "NetworkX": lambda row, depth=depth: len(within(same.networkx, row, depth)),
            },
        )
        for depth in (2, 3)
    ]  # fmt: skip
    if not np.allclose(pagerank(graph), same.igraph.pagerank(), rtol=1e-7, atol=0):
        raise AnswersDiffer("PageRank: igraph and ours give different answers")
    ranks = Contest(
        "PageRank", [0], lambda _: pagerank(graph), len,
        {
            "igraph": lambda _: len(same.igraph.pagerank()),
            "rustworkx": lambda _: len(same.rx.pagerank(same.rustworkx, tol=tolerance * same.size)),
            "NetworkX": lambda _: len(nx.pagerank(same.networkx, tol=tolerance)),
        },
    )  # fmt: skip
    critical = Contest("critical by PageRank", [0], lambda _: critical_components(graph, metric="pagerank"))
    return [trace, *impacts, ranks, critical]


def medians(contest: Contest) -> dict[str, Any]:
    """Return the median milliseconds of a call by each, in turn. Raises AnswersDiffer before anything is timed."""
    others = {name: ask for name, ask in contest.others.items() if name != "rustworkx" or RUSTWORKX}
    for given in contest.inputs:
        mine = contest.compared(contest.ours(given)) if others else contest.ours(given)
        for name, ask in others.items():
            if ask(given) != mine:
                raise AnswersDiffer(f"{contest.name}: {name} and ours give different answers for {given}")
    taken: dict[str, list[float]] = {OURS: [], **{name: [] for name in others}}
    for _ in range(ROUNDS):
        for name, ask in {OURS: contest.ours, **others}.items():
            for given in contest.inputs:
                begin = time.perf_counter()
                ask(given)
                taken[name].append(1000 * (time.perf_counter() - begin))
    ms = {name: round(statistics.median(times), 4) for name, times in taken.items()}
    return {"name": contest.name, "target_ms": contest.target, "ms": ms}


def measure(nodes: int, edges: int) -> list[dict[str, Any]]:
    """Return the milliseconds of each, by question, for one call."""
    chance = np.random.default_rng(0)
    graph, queries = random_graph(nodes, edges, chance), [" ".join(_words(chance, 4)) for _ in range(ASKED)]
    asked = [(a, b) for a, b in chance.integers(0, nodes, (ASKED, 2)).tolist() if a != b]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.db"
        write_file(graph, path)
        loads = in_turn(loading(path, libraries_there()), 3)
    times = []
    for query in ["the first search makes the index", *queries]:
        begin = time.perf_counter()
        intent_search(graph, f"how do I {query}")
        times.append(round(1000 * (time.perf_counter() - begin), 4))
    rows = [
        {"name": loads["name"], "target_ms": None, "ms": loads["ms"]},
        {"name": "index and first search", "target_ms": None, "ms": {OURS: times[0]}},
        {"name": "search, each query once", "target_ms": 25, "ms": {OURS: statistics.median(times[1:])}},
    ]
    search = Contest(
        "search, again", queries, lambda query: intent_search(graph, f"how do I {query}"), target=25
    )
    same = SameGraph(graph)
    gc.collect()
    gc.freeze()
    return rows + [medians(each) for each in [search, *contests(graph, same, asked)]]


def report(found: dict[str, Any]) -> str:
    """Write the results as a page."""
    columns = (OURS, SETS, "igraph", "rustworkx", "NetworkX")
    rows = tuple(
        (Cell(row["name"]), Cell(f"{row['target_ms'] or ''}"), *(Cell(f"{row['ms'].get(each, '')}") for each in columns))
        for row in found["rows"]
    )  # fmt: skip
    grid = Grid("milliseconds a call, median", ("question", "target", *columns), rows)
    about = "Written by `python -m benchmarks.kgos.speeds`. Answers are the same. Ours names each edge of a path, and the risk, "
    about += "the parent and the edge of each node that a change reaches; the others give lengths and sets."
    size = f"{found['nodes']:,} nodes and {found['edges']:,} edges, drawn uniformly"
    return (
        "\n\n".join([f"# Speed at {size}", about, describe_machine(found["machine"]), grid.markdown]) + "\n"
    )


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=300_000)
    parser.add_argument("--note", default="", help="what kept the computer busy")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    machine = machine_of("numpy", "networkx", "rustworkx", "igraph") | {"rounds": ROUNDS, "note": given.note}
    found = {"nodes": given.nodes, "edges": given.edges, "machine": machine}
    found["rows"] = measure(given.nodes, given.edges)
    page = report(found)
    print(page)
    if not given.dry:
        (RESULTS / "speeds.md").write_text(page, encoding="utf-8")
        (RESULTS / "speeds.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
