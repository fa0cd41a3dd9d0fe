"""Calls that are found in Python, against the hand-made call graphs of PyCG's micro benchmark, by category.

python -m benchmarks.extraction.call_graph             # precision and recall by category, of both halves
python benchmarks/extraction/call_graph.py --pycg      # PyCG itself on the same files, where it is installed
(pip install pycg) python -m benchmarks.extraction.call_graph --misses    # each case that is not exactly
right

Figures go to benchmarks/results/call_graph.json.
"""

import argparse
import gzip
import hashlib
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.extraction.facts import ModuleNames
from kgot_lab.kgos.extraction.python.points_to import PointsTo
from kgot_lab.kgos.extraction.python.program import Program
from kgot_lab.kgos.extraction.python.statements import python_facts

RESULTS = Path(__file__).parents[1] / "results" / "call_graph.json"
Edges = set[tuple[str, str]]


def found(files: Mapping[str, str]) -> Edges:
    """The calls of a program as this package finds them, named as the gold names them."""
    names = ModuleNames(files)
    facts = [
        python_facts(text, path, names.name_of(path), is_package=path.endswith("__init__.py"))
        for path, text in files.items()
    ]
    analysis = PointsTo(Program.of(facts, names))
    analysis.solve()
    edges = set()
    for caller, (kind, name) in analysis.called:
        if kind == "builtin":
            name = f"<**PyStr**>.{name[4:]}" if name.startswith("str.") else f"<builtin>.{name}"
        if kind != "class":  # the gold has the function that makes an instance, not the class
            edges.add((caller, name))
    return edges


def found_by_pycg(files: Mapping[str, str]) -> Edges:
    """The same by PyCG."""
    import PyCG  # the package is named so, and imports itself as pycg

    sys.modules.setdefault("pycg", PyCG)
    from pycg import formats, utils
    from pycg.pycg import CallGraphGenerator

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        os.chdir(folder)
        try:
            generator = CallGraphGenerator(
                [str(Path(folder, "main.py"))], folder, -1, utils.constants.CALL_GRAPH_OP
            )
            generator.analyze()
            called = formats.Simple(generator).generate()
        finally:
            os.chdir(here)
    return {(caller, callee) for caller, callees in called.items() for callee in callees}


def half_of(case: Mapping[str, str]) -> str:
    """The half a case is in: those that were read while the analysis was written, and the others."""
    name = f"{case['category']}/{case['name']}"
    return "read" if int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0 else "unread"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pycg", action="store_true")
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    with gzip.open(bundled_path("pycg-micro/cases.jsonl.gz"), "rt", encoding="utf-8") as rows:
        cases = [json.loads(row) for row in rows]
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0, 0])
    for case in cases:
        edges = (found_by_pycg if options.pycg else found)(case["files"])
        gold = {(caller, callee) for caller, callees in case["gold"].items() for callee in callees}
        for row in (case["category"], f"half: {half_of(case)}", "all"):
            for place, number in enumerate((1, edges == gold, len(edges & gold), len(edges), len(gold))):
                counts[row][place] += number
        if options.misses and edges != gold:
            print(
                f"{case['category']}/{case['name']}: too many {sorted(edges - gold)}, missing {sorted(gold - edges)}"
            )
    if not options.pycg:
        rows = {
            name: dict(zip(("cases", "exactly right", "both", "found", "gold"), counts[name], strict=True))
            for name in sorted(counts)
        }
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print("| category | cases | exactly right | precision | recall |\n|---|---:|---:|---:|---:|")
    for name in sorted(counts, key=lambda count: (count == "all", count.startswith("half"), count)):
        number, exact, both, edges_found, gold_edges = counts[name]
        print(
            f"| {name} | {number} | {exact} | {both / max(1, edges_found):.3f} | {both / max(1, gold_edges):.3f} |"
        )


if __name__ == "__main__":
    main()
