"""Check the calls that are found in JavaScript by an oracle that shares no code with the extractor.

    python -m benchmarks.kgos.script_calls [FOLDER …] [--checks 30] [--seed 7] [--wrong] [--write]

Without folders, the packages below are fetched with npm. The oracle is TypeScript's checker, asked by node
(script_calls_oracle.js), and for a call whose callee it does not know a search by regular expressions for the only
definition of that name. `found` is the share of the oracle's calls of functions of the package that the graph has,
`right` that of the graph's calls which the oracle confirms, `told` and `counted` the share of calls whose
callee is known, as an answer tells it and to the oracle itself. `--checks` draws so many calls for `found` and for `right`,
`--wrong` prints each failure, and `--write` writes benchmarks/results/kgos/script_calls.md.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.kgos.extraction.folder import extract_folder
from kgot_lab.types import Node

RESULTS = Path(__file__).parents[1] / "results" / "kgos"
ORACLE, TYPESCRIPT = Path(__file__).with_name("script_calls_oracle.js"), "typescript@5.6.3"
# the last eight were read after most changes to the extractor; one later change follows a call of semver
PACKAGES = tuple(
    "express@4.21.2 axios@1.7.9 commander@12.1.0 ws@8.18.0 koa@2.15.3 async@3.2.6 superagent@10.1.1 winston@3.17.0 "
    "ejs@3.1.10 underscore@1.13.7 bluebird@3.7.2 jsonwebtoken@9.0.2 knex@3.1.0 mocha@10.8.2 nodemailer@6.9.16 "
    "passport@0.7.0 pino@9.5.0 semver@7.6.3".split()
)
ABOUT = """\
`python -m benchmarks.kgos.script_calls`: TypeScript's checker is the oracle. The last eight packages were read after
most changes to the extractor; one later change follows a call of semver. `undecided` calls, which the oracle does not know and whose name
has several definitions, are in neither share."""
Place = tuple[str, int]  # a file and a line


@dataclass
class Checked:
    """What was found in one package: outcomes of calls (found, right), each with what is said of it."""

    name: str
    sites: int = 0
    told: float = 0.0
    counted: float = 0.0
    found: list[tuple[bool, str]] = field(default_factory=list)
    right: list[tuple[bool, str]] = field(default_factory=list)
    undecided: int = 0


def run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def fetch(folder: Path) -> list[Path]:
    """Fetch the packages with npm, without what is built."""
    places = []
    for each in PACKAGES:
        place = folder / each
        place.mkdir()
        archive = run(["npm", "pack", "--silent", each], place).split()[-1]
        run(["tar", "xzf", archive], place)
        places.append(next(path for path in place.iterdir() if path.is_dir()))
        shutil.rmtree(places[-1] / "dist", ignore_errors=True)
        for bundle in (
            *places[-1].glob("underscore-*"),
            places[-1] / "mocha.js",
            places[-1] / "js" / "browser",
        ):
            shutil.rmtree(bundle) if bundle.is_dir() else bundle.unlink(missing_ok=True)
    return places


def callable_nodes(nodes: tuple[Node, ...]) -> dict[str, list[tuple[int, int, str]]]:
    """Return the lines of the functions, methods and classes of each file, with their ids."""
    found: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for node in nodes:
        if {"function", "method", "class"} & set(node.labels):
            about: Any = node.properties
            found[about["file"]].append((about["line"], about["end_line"], node.id))
    return found


def at(place: Place, known: dict[str, list[tuple[int, int, str]]]) -> set[str]:
    """Return the definitions that begin nearest to a line around which they are, and the class of a constructor."""
    around = [(line, end, id) for line, end, id in known[place[0]] if line <= place[1] <= end]
    last = max((line for line, _, _ in around), default=0)
    ids = {id for line, _, id in around if line == last}
    return ids | {id.rpartition(".")[0] for id in ids if id.endswith(".constructor")}


def definitions(name: str, texts: dict[str, str]) -> Iterator[Place]:
    """Yield where a name is given to a function, by regular expressions."""
    name = re.escape(name)
    forms = (
        rf"\bfunction\s*\*?\s*{name}\s*\(|\bclass\s+{name}\b"
        rf"|\b{name}\s*[:=]\s*(?:[\w$.]+\s*=\s*)*(?:async\s+)?(?:function\b|class\b|\([^()]*\)\s*=>|[\w$]+\s*=>)"
        rf"|^\s*(?:(?:static|async|get|set)\s+)*{name}\s*\([^()]*\)\s*{{"
    )
    for file, text in texts.items():
        for match in re.finditer(forms, text, re.MULTILINE):
            yield file, text.count("\n", 0, match.end()) + 1


def check(folder: Path, typescript: Path) -> Checked:
    """Compare the graph of a package with the oracle."""
    read = extract_folder(folder, cache=False)
    graph, known = read.graph, callable_nodes(read.graph.nodes)
    files = [
        node.id
        for node in graph.nodes
        if "module" in node.labels and node.id.endswith((".js", ".mjs", ".cjs"))
    ]
    texts = {file: (folder / file).read_text(encoding="utf-8") for file in files}
    said = run(["node", str(ORACLE), str(typescript), str(folder), *files], folder)
    calls = [json.loads(line) for line in said.splitlines()]
    resolved, sites = read.calls["javascript"]
    result = Checked(
        folder.parent.name if "@" in folder.parent.name else folder.name, len(calls), resolved / sites
    )

    edges: dict[Place, set[str]] = defaultdict(set)
    for edge in graph.edges:
        lines: Any = edge.properties.get("lines")
        for line in lines if edge.type == "calls" else ():
            edges[str(edge.properties["file"]), line].add(edge.target)
    for node in graph.nodes:  # a call of oneself is a property
        if node.properties.get("calls_itself"):
            for line in range(int(str(node.properties["line"])), int(str(node.properties["end_line"])) + 1):
                edges[str(node.properties["file"]), line].add(node.id)

    by_line: dict[Place, list[dict[str, Any]]] = defaultdict(list)
    for call in calls:
        by_line[call["file"], call["line"]].append(call)
    result.counted = sum(call["kind"] != "unknown" for call in calls) / len(calls)

    for call in calls:
        if call["kind"] == "own":
            meant = at(tuple(call["to"]), known)
            is_found = bool(meant & edges[call["file"], call["line"]])
            says = f"{result.name} {call['file']}:{call['line']} {call['name']} is {call['to']}"
            result.found.append((is_found, f"{says}, graph: {sorted(edges[call['file'], call['line']])}"))
    for edge in graph.edges:
        lines = edge.properties.get("lines")
        target: Any = graph.node(edge.target)
        if edge.type != "calls" or "file" not in target.properties or target.properties["file"] not in texts:
            continue
        for line in lines:
            place = str(edge.properties["file"]), line
            own = [call for call in by_line[place] if call["kind"] == "own"]
            is_right = any(edge.target in at(tuple(call["to"]), known) for call in own)
            name = edge.target.rpartition("#")[2].rpartition(".")[2]
            if not is_right:
                defined = list(definitions(name, texts))
                named = [call for call in by_line[place] if call["name"] == name]
                if any(call["kind"] == "own" for call in named):
                    pass  # the oracle knows another callee
                elif len(defined) == 1 and named:
                    is_right = edge.target in at(defined[0], known)
                else:
                    result.undecided += 1
                    continue
            says = f"{result.name} {place[0]}:{line} {edge.source} calls {edge.target}"
            result.right.append(
                (is_right, f"{says}, oracle: {[(c['name'], c['kind'], c['to']) for c in by_line[place]]}")
            )
    return result


def share(outcomes: list[tuple[bool, str]]) -> str:
    right = sum(is_right for is_right, _ in outcomes)
    return f"{right} of {len(outcomes)} ({right / max(1, len(outcomes)):.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--checks", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(work), TYPESCRIPT], work)
        folders = [each.resolve() for each in given.folders] or fetch(work)
        checked = [check(folder, work / "node_modules" / "typescript") for folder in folders]
    rows = [
        (
            each.name,
            each.sites,
            share(each.found),
            share(each.right),
            each.undecided,
            f"{each.told:.1%}",
            f"{each.counted:.1%}",
        )
        for each in checked
    ]
    every = {name: [one for each in checked for one in getattr(each, name)] for name in ("found", "right")}
    sites = sum(each.sites for each in checked)
    shares = [
        sum(getattr(each, name) * each.sites for each in checked) / sites for name in ("told", "counted")
    ]
    rows.append(
        (
            "all",
            sites,
            share(every["found"]),
            share(every["right"]),
            sum(e.undecided for e in checked),
            *(f"{s:.1%}" for s in shares),
        )
    )
    drawn = random.Random(given.seed)
    lots = {name: drawn.sample(one, min(given.checks, len(one))) for name, one in every.items()}
    columns = ("package", "calls", "found", "right", "undecided", "told", "counted")
    grid = Grid("", columns, tuple(tuple(map(Cell, map(str, row))) for row in rows))
    table = grid.markdown
    said = "\n".join(f"{name}, drawn with seed {given.seed}: {share(lot)}" for name, lot in lots.items())
    print(f"{table}\n\n{said}")
    for is_right, text in (one for lot in every.values() for one in lot if given.wrong):
        if not is_right:
            print(text)
    if given.write:
        body = f"# Calls in JavaScript beside an oracle\n\n{ABOUT}\n\n{table}\n\n{said}\n"
        (RESULTS / "script_calls.md").write_text(body, encoding="utf-8")


if __name__ == "__main__":
    main()
