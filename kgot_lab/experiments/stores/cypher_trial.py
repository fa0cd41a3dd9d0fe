"""The trial of embedded Cypher engines: what each gets right of the statements models write, how fast it is,
and how safe.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import metadata, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kgot_lab.experiments.stores.cypher_candidates import CANDIDATES
from kgot_lab.experiments.stores.cypher_shapes import CYPHER_SHAPES

_PATIENCE = 90.0  # seconds that one part of one engine may take
# the month of the last release in the package index, and who keeps it, as seen in November 2026
_UPKEEP = {
    "ladybug": "2026-10; fork of Kuzu, which stopped in 2025-10",
    "kglite": "2026-10; beta, one author",
    "arcadedb-embedded": "2026-10; ArcadeDB by a company, the package by another, beta",
}


def _told(engine: str, part: str, folder: Path, number: int = 0) -> list[dict[str, Any]]:
    """What a part said, as far as it got."""
    process = _start(engine, part, folder, number)
    try:
        said, _ = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
    return [json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}")]


def _start(engine: str, part: str, folder: Path, number: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "kgot_lab.experiments.stores.cypher_parts",
        engine,
        part,
        str(folder),
        str(number),
    ]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{part}.errors").open("w") as errors:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder.parent
        )  # engines write logs


def _right_shapes(engine: str, folder: Path) -> dict[str, str]:
    """What is wrong with each shape, "" for nothing; an engine that crashes goes on after the shape that
    crashed it.
    """
    wrong: dict[str, str] = {}
    first = 0
    while first < len(CYPHER_SHAPES):
        for line in _told(engine, "shapes", folder, first):
            if "wrong" in line:
                wrong[line["name"]] = line["wrong"]
            first = line["shape"] + 1
        if CYPHER_SHAPES[first - 1].name not in wrong:
            wrong[CYPHER_SHAPES[first - 1].name] = "crash, or no answer"
    return wrong


def _kills(engine: str, folder: Path, times: int) -> dict[str, Any]:
    """Kill a writer so many times: how many writes it had told of, how many of those were lost, and how many
    kills met an open write.
    """
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


def _megabytes(folders: tuple[str, ...]) -> float:
    """What an engine takes on disk."""
    spec = find_spec(folders[0])
    assert spec is not None and spec.origin is not None
    packages = Path(spec.origin).parent.parent
    files = [
        file
        for name in folders
        for found in packages.glob(name)
        for file in (found.rglob("*") if found.is_dir() else [found])
    ]
    return (
        sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts) / 1e6
    )


def cypher_trial(engine: str, *, rounds: int, times: int) -> dict[str, Any]:
    """Everything about one engine."""
    candidate = CANDIDATES[engine]
    folder = Path(tempfile.mkdtemp(prefix="cypher-trial-"))
    try:
        wrong = _right_shapes(engine, folder / "shapes")
        measured = {
            name: value
            for line in _told(engine, "speed", folder / "speed", rounds)
            for name, value in line.items()
        }
        measured |= {
            name: value for line in _told(engine, "load", folder / "load") for name, value in line.items()
        }
        passed = [line["passed"] for line in _told(engine, "reader", folder / "reader")]
        durable = _kills(engine, folder / "kills", times)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts: Any = metadata(candidate.package)
    return {
        "engine": engine, "version": version(candidate.package), "note": candidate.note,
        "right": sum(not each for each in wrong.values()), "shapes": len(CYPHER_SHAPES),
        **{kind: sum(each.startswith(kind) for each in wrong.values()) for kind in ("value", "error", "crash")},
        "wrong": {name: each for name, each in wrong.items() if each},
        **measured, "passed_readonly": passed, "durability": durable, "megabytes": _megabytes(candidate.folders),
        "licence": facts.get("License-Expression") or facts.get("License"), "upkeep": _UPKEEP[candidate.package],
    }  # fmt: skip


def trial_table(trials: list[dict[str, Any]]) -> str:
    """The trial as a table, one engine a column."""

    def number(name: str, form: str) -> Callable[[dict[str, Any]], str]:
        return lambda each: form.format(each[name]) if name in each else f"> {_PATIENCE:g} s"

    def durable(each: dict[str, Any]) -> str:
        counts = each["durability"]
        opened = (
            "file opens" if not counts["unopened"] else f"file did not open {len(counts['unopened'])} times"
        )
        return f"{counts['told'] - counts['lost']} of {counts['told']} writes, {counts['inside']} of {counts['kills']} kills inside, {opened}"

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
        (
            "read-only lets through",
            lambda each: ", ".join(each["passed_readonly"]) or "nothing of what was tried",
        ),
        ("licence", lambda each: each["licence"]),
        ("last release; upkeep", lambda each: each["upkeep"]),
        ("note", lambda each: each["note"]),
    ]
    rows = [["", *(each["engine"] for each in trials)], *([name, *map(say, trials)] for name, say in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]))
