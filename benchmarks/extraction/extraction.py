"""A graph from a whole package: how long it takes on one core, whether it is sound, and how many calls that
happen are in it.

python -m benchmarks.extraction.extraction                      # the installed networkx, and this package:
median of 3, rules, a second run python -m benchmarks.extraction.extraction --happened           # the calls
of 12 test modules of networkx, seen by a profiler, against the graph python -m
benchmarks.extraction.extraction --pyan               # the same calls in what pyan3 says of the same files,
where it is installed

Each run is a process of its own bound to one core, with a cache of its own. A call that goes through the
wrappers that networkx puts around its functions counts as one of the function inside. Results go to
benchmarks/results/extraction.json, the tables in benchmarks/results/extraction.md.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results" / "extraction.json"
REPORT = RESULTS.with_suffix(".md")
ONE = """
import json, os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from pathlib import Path
from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.kgos.extraction.patterns import add_patterns
from kgot_lab.kgos.schemas.vocabularies import CODE
from kgot_lab.kgos.schemas.rules import check_rules
begun = time.perf_counter()
found = extract_folder(sys.argv[1], cache=Path(sys.argv[2]))
seconds = time.perf_counter() - begun
graph, (resolved, sites) = add_patterns(found.graph), found.calls["python"]
report = check_rules(graph, CODE)
print(json.dumps({"seconds": seconds, "files": found.files, "nodes": len(found.graph), "edges": len(found.graph.edge_keys), "digest": found.graph.digest,
    "known": resolved / sites, "sites": sites, "broken": sum(map(len, report.broken)), "patterns": graph.types().get("pattern_instance_of", 0)}))
"""
TESTS = (
    "centrality/tests/test_betweenness_centrality.py", "centrality/tests/test_closeness_centrality.py", "shortest_paths/tests/test_weighted.py",
    "shortest_paths/tests/test_generic.py", "components/tests/test_connected.py", "community/tests/test_louvain.py", "flow/tests/test_mincost.py",
    "tree/tests/test_mst.py", "tests/test_matching.py", "tests/test_dag.py", "link_analysis/tests/test_pagerank.py", "coloring/tests/test_coloring.py",
)  # fmt: skip
WATCH = """
import json, sys
from pathlib import Path
import networkx
import pytest
root = Path(networkx.__file__).parent
inside, outside = str(root), ("decorators.py", "backends.py")
seen = set()

def place(frame):
    file = frame.f_code.co_filename
    if not file.startswith(inside) or file.endswith(outside) or frame.f_code.co_name.startswith("<"):
        return None
    return (str(Path(file).relative_to(root)), frame.f_code.co_firstlineno, frame.f_code.co_name)

def watch(frame, event, _):
    if event != "call":
        return
    callee = place(frame)
    caller = frame.f_back
    while caller is not None and callee is not None and place(caller) is None:
        file = caller.f_code.co_filename
        if not (file.startswith(inside) or "argmap" in file or caller.f_code.co_name.startswith("<")):
            return  # called by a library: no text of this package says it
        caller = caller.f_back
    if callee is not None and caller is not None:
        seen.add((*place(caller), *callee))

sys.setprofile(watch)
code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", *(str(root / "algorithms" / each) for each in json.loads(sys.argv[1]))])
sys.setprofile(None)
Path(sys.argv[2]).write_text(json.dumps(sorted(seen)))
"""


def measured(folder: Path, times: int) -> dict:
    """The median of some first runs, each with a new cache, and a second run with the cache of the last."""
    rows = []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as cache:
            rows += [ran(ONE, str(folder), cache), ran(ONE, str(folder), cache)]
    first, second = rows[::2], rows[1::2]
    assert len({row["digest"] for row in rows}) == 1
    seconds = [row["seconds"] for row in first]
    again = statistics.median(row["seconds"] for row in second)
    return {
        **first[0],
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "slowest": max(seconds),
        "again": again,
        "times": times,
    }


def ran(code: str, *words: str) -> dict:
    done = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def happened() -> set[tuple]:
    """The calls that are made while the tests run: (file, line, name) of the caller and of the callee."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-c", WATCH, json.dumps(TESTS), f"{folder}/seen.json"],
            check=True,
            capture_output=True,
        )
        return {tuple(entry) for entry in json.loads(Path(folder, "seen.json").read_text())}


def of_graph(root: Path) -> tuple[dict, set]:
    """The ids of functions by file and line, and the calls in the graph by ids."""
    from kgot_lab.kgos.extraction.folder import extract_folder

    graph = extract_folder(root).graph
    ids = {}
    for node in graph.nodes:
        if node.labels[0] in ("function", "method"):
            for line in [node.properties["line"], *node.properties.get("also_at", [])]:
                ids[node.properties["file"], line] = node.id
        elif node.labels == ("module",):
            ids[node.properties["file"], 1, "<module>"] = node.id
    return ids, {(edge.source, edge.target) for edge in graph.edges if edge.type == "calls"}


def of_pyan(root: Path, ids: dict) -> set:
    """The calls that pyan3 says, by the same ids."""
    from pyan.analyzer import CallGraphVisitor

    visitor = CallGraphVisitor([str(path) for path in sorted(root.rglob("*.py"))], root=str(root.parent))
    known = set(ids.values())
    named = {node: node.get_name() for nodes in visitor.nodes.values() for node in nodes}
    calls = {
        (named.get(one, ""), named.get(two, ""))
        for one, others in visitor.uses_edges.items()
        for two in others
    }
    return {call for call in calls if call[0] in known and call[1] in known}


def recall(seen: set[tuple], ids: dict, calls: set) -> dict:
    """How many of the calls that happened are among those that are said."""
    real = {
        (ids[file, line], ids[of, at])
        for file, line, _, of, at, _ in seen
        if (file, line) in ids and (of, at) in ids
    }
    real = {each for each in real if each[0] != each[1]}
    explicit = {each for each in real if not each[1].rpartition(".")[2].startswith("__")}
    return {
        "happened": len(real),
        "found": len(real & calls),
        "explicit": len(explicit),
        "found explicit": len(explicit & calls),
    }


def tables(results: dict) -> str:
    lines = [
        f"`python -m benchmarks.extraction.extraction`, one core of {results['machine']}, median of {results['packages']['networkx']['times']} runs:",
        "",
    ]
    lines += [
        "| package | files | nodes | edges | seconds | a second run | callee known | faults by the 12 rules |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in results["packages"].items():
        lines.append(
            f"| {name} | {row['files']:,} | {row['nodes']:,} | {row['edges']:,} | {row['seconds']:.1f} ({row['fastest']:.1f} to {row['slowest']:.1f}) | "
            f"{row['again']:.1f} | {row['known']:.0%} of {row['sites']:,} calls | {row['broken']} |"
        )
    lines += [
        "",
        f"Of the calls between functions of networkx that happen while {len(TESTS)} of its test modules run (`--happened`), the graph has:",
        "",
    ]
    lines += [
        "| | calls that happen | found | of those that are written as calls | found |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in ("this analysis", "pyan3"):
        if name in results:
            row = results[name]
            shares = [
                f"{row[part]:,} ({row[part] / row[of]:.1%})"
                for part, of in (("found", "happened"), ("found explicit", "explicit"))
            ]
            lines.append(
                f"| {name} | {row['happened']:,} | {shares[0]} | {row['explicit']:,} | {shares[1]} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--happened", action="store_true")
    parser.add_argument("--pyan", action="store_true")
    options = parser.parse_args()
    import networkx

    import kgot_lab

    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    roots = {"networkx": Path(networkx.__file__).parent, "kgot_lab": Path(kgot_lab.__file__).parent}
    if options.record or options.pyan:
        seen = happened()
        ids, calls = of_graph(roots["networkx"])
        results["this analysis"] = recall(seen, ids, calls)
        if options.pyan:
            results["pyan3"] = recall(seen, ids, of_pyan(roots["networkx"], ids))
    elif not options.write:
        results["machine"] = (
            f"{os.cpu_count()} ({platform.machine()}, Python {platform.python_version()}, networkx {networkx.__version__})"
        )
        results["packages"] = {name: measured(root, options.times) for name, root in roots.items()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(tables(results))
    REPORT.write_text(f"# A graph from code: time and completeness\n\n{tables(results)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
