"""The benchmark of the stores runs, its tables follow from its results, and the drivers beside the stores
find what these find.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.stores.graphs import power_law_graph
from benchmarks.stores.measured import Ours, Task
from benchmarks.stores.raw import RAW_DRIVERS
from benchmarks.stores.tables import short, store_tables

ROOT = Path(__file__).parents[2]
COMMAND = ROOT / "benchmarks" / "stores" / "stores.py"
RESULTS = ROOT / "benchmarks" / "results" / "stores.jsonl"


def run(*options: str | Path) -> str:
    command = [sys.executable, str(COMMAND), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="a statement in Python needs a sandbox")
def test_a_tiny_graph_is_measured_kept_shown_and_not_measured_again(tmp_path):
    file = tmp_path / "stores.jsonl"
    told = ("--quick", "--graphs", "100", "--stores", "in_memory", "sqlite", "--file", file)
    shown = run(*told)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["store"], row["ours"]["edges"]) for row in rows] == [("in_memory", 100), ("sqlite", 100)]
    assert all(
        "error" not in {**row, **row["ours"], **row["raw"]} and row["machine"]["cores"] for row in rows
    )
    assert all(row["raw"]["write"]["n"] > 1 and row["ours"]["render"]["ms"] > 0 for row in rows)
    assert rows[0]["ours"]["memory"]["others_mb"] > 10  # the worker's
    assert "2 of 2 are there already" in run(*told)
    assert run("--table", "--file", file) in shown


@pytest.mark.parametrize("kind", ["in_memory", "sqlite", "sparql_embedded"])
def test_a_raw_driver_finds_what_the_store_finds(kind, tmp_path):
    diff = power_law_graph(400)
    if kind == "sparql_embedded":
        pytest.importorskip("pyoxigraph")
    ours = Ours(kind, {"path": str(tmp_path / "graph.log")})
    theirs = RAW_DRIVERS[kind]({"path": str(tmp_path / "graph.log")})
    for one in (ours, theirs):
        one.load(diff)
    for id in Task.about(diff).ids[:10]:
        assert len(ours.neighbours(id)) == len(theirs.neighbours(id))
    assert len(ours.read("n7")) == len(theirs.read("n7"))
    for one in (ours, theirs):
        one.close()


@pytest.mark.skipif(not RESULTS.exists(), reason="not measured yet")
def test_every_figure_of_the_tables_is_in_the_results():
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    known = {
        short(each.get("ms", each.get("s", 0)))
        for row in rows
        for each in row["ours"].values()
        if isinstance(each, dict)
    }
    lines = [line.split(" | ")[1:-1] for line in run("--table").splitlines() if line.count(" | ") > 10]
    cells = [cell for line in lines for cell in line]
    shown = {found[0] for cell in cells if (found := re.match(r"<?[\d.,]+(?=\*?( \(|$))", cell))}
    assert len(shown) > 50 and shown <= known


def test_a_store_over_its_time_keeps_what_was_measured_and_the_table_says_so(tmp_path):
    row = {"store": "sqlite", "graph": "1k", "limit_s": 240.0, "date": "2026-01-01", "commit": "", "machine": dict.fromkeys(
        ("cores", "ram_gb", "system", "python"), 1), "ours": {"nodes": 435, "edges": 1000, "load": {"s": 1.5}, "over": "search",
        "path": {"error": "QueryFailed: took long"}}, "raw": {"load": {"s": 0.5}}}  # fmt: skip
    table = store_tables([row])
    assert "| sqlite | 1.5 (3×) | over 240 s |" in table and "| failed |" in table
    assert "sqlite: the store was over 240 s while at search" in table and "QueryFailed: took long" in table
