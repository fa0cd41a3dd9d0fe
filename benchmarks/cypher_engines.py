"""The trial that chose the embedded Cypher engine: what each gets right of the statements models write, how fast it is, and how safe.

Run it: python benchmarks/cypher_engines.py [--quick]. Every part of an engine runs in a process of its own, since some can crash.
Writes benchmarks/results/cypher_engines.json. A value counts as right only if its kind is right too: 1 is neither 1.0 nor "1" nor true.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import metadata, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cypher_candidates import CANDIDATES, Batch, Candidate, Links
from cypher_shapes import SETUP, SHAPES, Shape

RESULTS = Path(__file__).parent / "results" / "cypher_engines.json"
WN18RR = Path(os.environ.get("WN18RR", Path(__file__).parents[2] / "shared" / "data" / "wn18rr-text"))
PATIENCE = 90.0  # seconds that one part of one engine may take
# the month of the last release in the package index, and who keeps it, as seen in November 2026
UPKEEP = {
    "ladybug": "2026-10; fork of Kuzu, which stopped in 2025-10",
    "kglite": "2026-10; beta, one author",
    "arcadedb-embedded": "2026-10; ArcadeDB by a company, the package by another, beta",
}


# --- the parts, each run in a process of its own ---


def shapes(engine: type[Candidate], folder: Path, first: int) -> Iterator[dict[str, Any]]:
    """Whether each shape from some number on is right, and what was there instead."""
    for number, shape in list(enumerate(SHAPES))[first:]:
        yield {"shape": number, "began": True}
        yield {"shape": number, "name": shape.name, "wrong": _wrong(engine, folder / str(number), shape)}


def _wrong(engine: type[Candidate], folder: Path, shape: Shape) -> str:
    candidate = _opened(engine, folder)
    try:
        for statement in SETUP:
            candidate.run(statement)
        if shape.look:
            candidate.run(shape.statement, shape.parameters)
        rows = candidate.run(shape.look, reading=True) if shape.look else candidate.run(shape.statement, shape.parameters, reading=True)
    except Exception as error:
        return f"error: {str(error).strip()[:160]}"
    finally:
        with suppress(Exception):
            candidate.close()
    got, wanted = (list(map(_spelled, each)) for each in (rows, shape.rows))
    return "" if (got == wanted if shape.ordered else sorted(got) == sorted(wanted)) else f"value: {rows!r}"[:160]


def _spelled(row: tuple[Any, ...]) -> str:
    return json.dumps(row, sort_keys=True, default=str)


def _opened(engine: type[Candidate], folder: Path, *, reading: bool = False) -> Candidate:
    folder.mkdir(parents=True, exist_ok=True)
    return engine(folder, reading=reading)


def speed(engine: type[Candidate], folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Seconds until the first answer, and median milliseconds of a small write and a small read beside 10,000 nodes."""
    began = time.perf_counter()
    candidate = _opened(engine, folder)
    candidate.run("RETURN 1 AS n", reading=True)
    yield {"start_s": time.perf_counter() - began}
    nodes: Batch = [(f"n{number}", {"rank": number}) for number in range(10_000)]
    links: Links = {"NEXT": [(f"n{number}", f"n{(number * 7 + 1) % 10_000}") for number in range(10_000)]}
    candidate.load("Thing", nodes, links)
    yield {"write_ms": _median(rounds, lambda at: candidate.run(_fact(at)))}
    hop = 'MATCH (a:Thing {{id: "n{}"}})-[r]-(b) RETURN b.id'
    yield {"read_ms": _median(rounds, lambda at: candidate.run(hop.format(at * 37 % 10_000), reading=True))}
    candidate.close()


def _fact(at: int) -> str:
    return f'MERGE (a:Person {{id: "p{at}"}}) MERGE (b:Town {{id: "t{at % 9}"}}) MERGE (a)-[r:BORN_IN]->(b) SET r.year = {at}'


def _median(rounds: int, act: Callable[[int], object]) -> float:
    times = []
    for at in range(rounds):
        began = time.perf_counter()
        act(at)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def load(engine: type[Candidate], folder: Path, _: int) -> Iterator[dict[str, Any]]:
    """Seconds to take in the 40,943 nodes and 93,003 edges of WN18RR."""
    with gzip.open(WN18RR / "nodes.jsonl.gz", "rt") as lines:
        nodes: Batch = [(each.pop("id"), each) for each in map(json.loads, lines)]
    links: Links = {}
    with gzip.open(WN18RR / "triples.tsv.gz", "rt") as lines:
        next(lines)
        for source, relation, target, *_rest in dict.fromkeys(tuple(line.split("\t")[:3]) for line in lines):
            links.setdefault(relation, []).append((source, target))
    candidate = _opened(engine, folder)
    began = time.perf_counter()
    candidate.load("Synset", nodes, links)
    seconds = time.perf_counter() - began
    counted = candidate.run("MATCH (a)-[r]->(b) RETURN count(r) AS n", reading=True)[0][0]
    yield {"load_s": seconds, "edges": counted}


def writing(engine: type[Candidate], folder: Path, number: int) -> Iterator[dict[str, Any]]:
    """Write numbers without an end, saying before and after each; first say which were there."""
    candidate = _opened(engine, folder)
    yield {"found": sorted(int(row[0]) for row in candidate.run("MATCH (n:Number) RETURN n.value AS v", reading=True))}
    while True:
        yield {"begins": number}
        candidate.run(f'CREATE (n:Number {{id: "n{number}", value: {number}}})')
        yield {"done": number}
        number += 1


def reader(engine: type[Candidate], folder: Path, _: int) -> Iterator[dict[str, Any]]:
    """What a handle that is said to read only lets through."""
    candidate = _opened(engine, folder)
    candidate.run(SETUP[0])
    candidate.close()
    candidate = _opened(engine, folder, reading=True)
    for name, statement in engine.attacks.items():
        try:
            candidate.run(statement.replace("PATH", str(folder / "out.csv")), reading=True)
        except Exception:
            continue
        yield {"passed": name}


PARTS: dict[str, Callable[[type[Candidate], Path, int], Iterator[dict[str, Any]]]] = {
    "shapes": shapes, "speed": speed, "load": load, "writing": writing, "reader": reader,
}  # fmt: skip


# --- the parent's side ---


def told(engine: str, part: str, folder: Path, number: int = 0) -> list[dict[str, Any]]:
    """What a part said, as far as it got."""
    process = _start(engine, part, folder, number)
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    return [json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}")]


def _start(engine: str, part: str, folder: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--engine", engine, "--part", part, "--folder", str(folder), "--number", str(number)]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{part}.errors").open("w") as errors:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def right_shapes(engine: str, folder: Path) -> dict[str, str]:
    """What is wrong with each shape, "" for nothing; an engine that crashes goes on after the shape that crashed it."""
    wrong: dict[str, str] = {}
    first = 0
    while first < len(SHAPES):
        for line in told(engine, "shapes", folder, first):
            if "wrong" in line:
                wrong[line["name"]] = line["wrong"]
            first = line["shape"] + 1
        if SHAPES[first - 1].name not in wrong:
            wrong[SHAPES[first - 1].name] = "crash, or no answer"
    return wrong


def kills(engine: str, folder: Path, times: int) -> dict[str, Any]:
    """Kill a writer so many times: how many writes it had told of, how many of those were lost, and how many kills met an open write."""
    said: set[int] = set()
    counts: dict[str, Any] = {"kills": 0, "lost": 0, "inside": 0, "unopened": []}
    chance = random.Random(0)
    while counts["kills"] <= times and len(counts["unopened"]) < 3:
        process = _start(engine, "writing", folder, 1 + max(said, default=0) + 1000)
        assert process.stdout is not None
        line = process.stdout.readline()
        if line.startswith('{"found"'):
            counts["lost"] = len(said - set(json.loads(line)["found"]))
            process.stdout.readline()
            time.sleep(chance.uniform(0.02, 0.3) if counts["kills"] < times else 0)
        process.send_signal(signal.SIGKILL)
        rest = [json.loads(line) for line in process.communicate()[0].splitlines() if line.endswith("}")]
        if not line.startswith('{"found"'):
            counts["unopened"].append((folder.parent / "writing.errors").read_text()[-300:])
            continue
        counts["kills"] += 1
        if counts["kills"] <= times:
            said |= {line["done"] for line in rest if "done" in line}
            counts["inside"] += "begins" in (rest or [{"begins": 0}])[-1]
    return {**counts, "told": len(said), "kills": min(counts["kills"], times)}


def megabytes(folders: tuple[str, ...]) -> float:
    """What an engine takes on disk."""
    spec = find_spec(folders[0])
    assert spec is not None and spec.origin is not None
    packages = Path(spec.origin).parent.parent
    files = [file for name in folders for found in packages.glob(name) for file in (found.rglob("*") if found.is_dir() else [found])]
    return sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts) / 1e6


def trial(engine: str, *, rounds: int, times: int) -> dict[str, Any]:
    """Everything about one engine."""
    candidate = CANDIDATES[engine]
    folder = Path(tempfile.mkdtemp(prefix="cypher-trial-"))
    try:
        wrong = right_shapes(engine, folder / "shapes")
        measured = {name: value for line in told(engine, "speed", folder / "speed", rounds) for name, value in line.items()}
        measured |= {name: value for line in told(engine, "load", folder / "load") for name, value in line.items()}
        passed = [line["passed"] for line in told(engine, "reader", folder / "reader")]
        durable = kills(engine, folder / "kills", times)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts = metadata(candidate.package)
    return {
        "engine": engine, "version": version(candidate.package), "note": candidate.note,
        "right": sum(not each for each in wrong.values()), "shapes": len(SHAPES),
        **{kind: sum(each.startswith(kind) for each in wrong.values()) for kind in ("value", "error", "crash")},
        "wrong": {name: each for name, each in wrong.items() if each},
        **measured, "passed_readonly": passed, "durability": durable, "megabytes": megabytes(candidate.folders),
        "licence": facts.get("License-Expression") or facts.get("License"), "upkeep": UPKEEP[candidate.package],
    }  # fmt: skip


def table(trials: list[dict[str, Any]]) -> str:
    """The trial as a table, one engine a column."""

    def number(name: str, form: str) -> Callable[[dict[str, Any]], str]:
        return lambda each: form.format(each[name]) if name in each else f"> {PATIENCE:g} s"

    def durable(each: dict[str, Any]) -> str:
        counts = each["durability"]
        opened = "file opens" if not counts["unopened"] else f"file did not open {len(counts['unopened'])} times"
        return (
            f"{counts['told'] - counts['lost']} of {counts['told']} writes, {counts['inside']} of {counts['kills']} kills inside, {opened}"
        )

    lines: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("version", lambda each: each["version"]),
        ("shapes right", lambda each: f"{each['right']} of {each['shapes']}"),
        ("made up or lost values", lambda each: str(each["value"])),
        ("errors, crashes", lambda each: f"{each['error']}, {each['crash']}"),
        ("start, s", number("start_s", "{:.2f}")),
        ("load 93,003 edges, s", number("load_s", "{:.1f}")),
        ("write a fact beside 10k nodes, ms", number("write_ms", "{:.2f}")),
        ("one hop beside 10k nodes, ms", number("read_ms", "{:.2f}")),
        ("installed, MB", number("megabytes", "{:.0f}")),
        ("after kill -9", durable),
        ("read-only lets through", lambda each: ", ".join(each["passed_readonly"]) or "nothing of what was tried"),
        ("licence", lambda each: each["licence"]),
        ("last release; upkeep", lambda each: each["upkeep"]),
        ("note", lambda each: each["note"]),
    ]
    rows = [["", *(each["engine"] for each in trials)], *([name, *map(say, trials)] for name, say in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer kills and repetitions, nothing written")
    for name in ("engine", "part", "folder"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        for line in PARTS[given.part](CANDIDATES[given.engine], Path(given.folder), given.number):
            print(json.dumps(line), flush=True)
        os._exit(0)  # an engine may take its time to end
    trials = []
    for engine in [given.engine] if given.engine else CANDIDATES:
        began = time.perf_counter()
        trials.append(trial(engine, rounds=20 if given.quick else 100, times=3 if given.quick else 20))
        print(f"{engine}: {trials[-1]['right']} of {len(SHAPES)} shapes, {time.perf_counter() - began:.0f} s", file=sys.stderr)
        for name, why in trials[-1]["wrong"].items():
            print(f"  {name}: {why}", file=sys.stderr)
    print(table(trials))
    if not given.quick and not given.engine:
        about = {
            "machine": platform.platform(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "date": time.strftime("%Y-%m-%d"),
        }
        RESULTS.write_text(json.dumps({**about, "trials": trials}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
