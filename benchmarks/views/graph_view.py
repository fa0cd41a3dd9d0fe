"""How long it takes to see a graph of 2,057 nodes and 284,178 edges: from the graph in memory to what a
browser is sent.

python -m benchmarks.views.graph_view               measures the Python side, medians of 5, and keeps what a
browser measured before python -m benchmarks.views.graph_view --quick       one round, nothing is written
python benchmarks/views/graph_view_browser.py       measures in JupyterLab, from "run cell" to the drawn view,
and adds it to the same file
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.requirements import require_packages
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import make_read_only
from kgot_lab.viz.graph.collapse import View, collapse_graph, open_community, reveal_nodes
from kgot_lab.viz.graph.marks import Point
from kgot_lab.viz.graph.places import view_positions
from kgot_lab.viz.graph.view import show_graph

NODES, EDGES, ROUNDS = 2_057, 284_178, 5
LABELS = ("Person", "City", "Work", "Event")
TYPES = ("knows", "born in", "wrote", "took part in", "near")
REPORT = Path(__file__).parents[1] / "results" / "graph_view.json"


# --- graphs ---


def made(nodes: int, edges: int, *, blocks: int = 1, share: float = 0.0, seed: int = 0) -> PropertyGraph:
    """A graph by chance: nodes fall into blocks of unlike size, and `share` of the edges has both ends in one
    block.
    """
    chance = np.random.default_rng(seed)
    weights = 1 / np.sqrt(1 + np.arange(blocks))
    block = np.sort(chance.choice(blocks, nodes, p=weights / weights.sum()))
    begin = np.searchsorted(block, np.arange(blocks + 1))
    sources, targets = chance.integers(0, nodes, (2, edges))
    low, high = begin[block[sources]], begin[block[sources] + 1]
    targets = np.where(
        chance.random(edges) < share, low + (chance.random(edges) * (high - low)).astype(np.int64), targets
    )
    names = chance.permutation(nodes)  # so that the order of the rows tells nothing of the blocks
    return PropertyGraph(
        ids=tuple(f"node {row}" for row in range(nodes)),
        node_labels=tuple((LABELS[code],) for code in chance.integers(0, len(LABELS), nodes).tolist()),
        node_properties=tuple({"name": f"Name {row}", "year": 1800 + row % 200} for row in range(nodes)),
        sources=make_read_only(names[sources].astype(np.int32)),
        targets=make_read_only(names[targets].astype(np.int32)),
        type_codes=make_read_only(chance.integers(0, len(TYPES), edges).astype(np.int32)),
        type_names=TYPES,
        edge_properties=({},) * edges,
        edge_keys=tuple(map(str, range(edges))),
    )


GRAPHS: dict[
    str, Callable[[], PropertyGraph]
] = {  # each round makes its own, so that nothing is remembered of it
    "planted": lambda: made(NODES, EDGES, blocks=12, share=0.8),
    "without structure": lambda: made(NODES, EDGES),
    "2,000 nodes, all drawn": lambda: made(2_000, 3_500, blocks=30, share=0.9),
    "100,000 nodes": lambda: made(100_000, 300_000, blocks=60, share=0.8),
}


# --- measuring ---


def measured(name: str, rounds: int) -> dict[str, Any]:
    """Median seconds to collapse a graph, to place what is drawn, and to open its largest community; and what
    a browser is sent.
    """
    seconds: dict[str, list[float]] = {}

    def timed(what: str, act: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = act()
        seconds.setdefault(what, []).append(time.perf_counter() - began)
        return result

    for _ in range(rounds):
        graph = GRAPHS[name]()
        view = timed("collapse_s", lambda graph=graph: collapse_graph(graph))
        placed = timed("places_s", lambda view=view: view_positions(view))
        text = timed("json_s", lambda view=view, placed=placed: as_json(view, placed))
        wider, sent = view, ""
        if view.communities:
            wider = timed("open_s", lambda view=view: open_community(view, view.communities[0].id))
            known = timed(
                "open_places_s", lambda wider=wider, placed=placed: view_positions(wider, positions=placed)
            )
            sent = as_json(wider, known)
            timed("reveal_s", lambda view=view, graph=graph: reveal_nodes(view, graph.ids[:10]))
    medians = {what: round(statistics.median(times), 4) for what, times in seconds.items()}
    first = sum(medians[what] for what in ("collapse_s", "places_s", "json_s"))
    size = {"json_kb": round(len(text) / 1000, 1), "open_json_kb": round(len(sent) / 1000, 1)}
    return {
        "graph": name,
        "nodes": len(graph),
        "edges": len(graph.edges),
        "first_s": round(first, 4),
        **medians,
        **size,
        **drawn(view, wider),
    }


def shown_cpu(rounds: int) -> dict[str, Any]:
    """Median CPU seconds of `show_graph` for 50,000 nodes: picture, communities and the data of the live view."""
    ways: dict[str, dict[str, str]] = {
        "plain": {},
        "by community and degree": {"color": "community", "size": "degree"},
        "by a number": {"color": "year", "size": "year"},
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, by in ways.items():
            graph = made(50_000, 150_000, blocks=40, share=0.8)
            began = time.process_time()
            show_graph(graph, by=by)
            seconds[name].append(time.process_time() - began)
    medians = {name: round(statistics.median(times), 2) for name, times in seconds.items()}
    return {"nodes": 50_000, "edges": 150_000, "goal_cpu_s": 6.0, "cpu_s": medians}


def drawn(view: View, wider: View) -> dict[str, Any]:
    """What there is to see, at first and with the largest community open."""
    lines = {
        "lines": len(view.edges) + len(view.bundles),
        "open_lines": len(wider.edges) + len(wider.bundles),
    }
    return {
        "communities": len(view.communities),
        "drawn": len(view.nodes),
        "open_drawn": len(wider.nodes),
        **lines,
        "note": view.note,
    }


def as_json(view: View, placed: dict[str, Point]) -> str:
    """Everything a browser needs to draw a view."""
    nodes = [
        {"id": node.id, "labels": node.labels, "text": node.text, "place": placed[node.id]}
        for node in view.nodes
    ]
    edges = [(edge.source, edge.type, edge.target) for edge in view.edges]
    bundles = [
        {"source": bundle.source, "target": bundle.target, "count": bundle.count, "title": bundle.title}
        for bundle in view.bundles
    ]
    communities = [asdict(community) for community in view.communities]
    return json.dumps(
        {"nodes": nodes, "edges": edges, "bundles": bundles, "communities": communities, "note": view.note}
    )


# --- the report ---


def machine() -> dict[str, Any]:
    """What the numbers were measured on; other programs on the same cores make every number larger, so the
    load is told.
    """
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    facts = {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    versions = {"numpy": np.__version__, "scikit-network": version("scikit-network")}
    return {
        **facts,
        **versions,
        "load_before": round(os.getloadavg()[0], 1),
        "date": date.today().isoformat(),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as aligned text; opening is of the largest community, its places included."""
    head = f"{'graph':>24} {'nodes':>8} {'edges':>8} {'collapse':>9} {'places':>8} {'first, s':>9} {'kB':>7} {'open, s':>8} {'kB':>7}  drawn"
    lines = [head]
    for row in rows:
        what = f"{row['graph']:>24} {row['nodes']:8,} {row['edges']:8,} {row['collapse_s']:9.3f} {row['places_s']:8.3f}"
        opening = row.get("open_s", 0) + row.get("open_places_s", 0)
        sizes = f"{row['first_s']:9.3f} {row['json_kb']:7.0f} {opening:8.3f} {row['open_json_kb']:7.0f}"
        lines.append(f"{what} {sizes}  {row['drawn']:,} nodes, {row['lines']:,} lines")
    return "\n".join(lines)


def keep(part: str, facts: Any) -> None:
    """Write one part of the report and leave the others as they are."""
    known = (
        json.loads(REPORT.read_text(encoding="utf-8"))
        if REPORT.exists()
        else {"python": None, "browser": None}
    )
    REPORT.write_text(
        json.dumps({**known, part: facts}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round, nothing is written")
    options = parser.parse_args()
    require_packages("lab", "sknetwork")
    rounds = 1 if options.quick else ROUNDS
    about = machine()
    began = time.perf_counter()
    # the first call of a session imports the package that finds communities
    collapse_graph(made(2_100, 3_000))
    importing = round(time.perf_counter() - began, 2)
    rows = [measured(name, rounds) for name in GRAPHS]
    print(f"medians of {rounds}, after a first call of {importing} s; {about}\n\n{table(rows)}")
    shown = shown_cpu(rounds)
    print(f"\nshow_graph, 50,000 nodes and 150,000 edges, CPU seconds: {shown['cpu_s']}")
    if not options.quick:
        keep("shown", {"machine": about, "rounds": rounds, **shown})
        keep("python", {"machine": about, "rounds": rounds, "first_call_s": importing, "rows": rows})


if __name__ == "__main__":
    main()
