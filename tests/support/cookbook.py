"""The cookbook of data/, as a graph."""

from __future__ import annotations

import json
from pathlib import Path

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Node

FOLDER = Path(__file__).parents[2] / "data" / "cookbook"


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


def cookbook() -> PropertyGraph:
    nodes = [Node(row.pop("id"), (row.pop("type"),), row) for row in rows("nodes.jsonl")]
    return PropertyGraph.of(
        nodes, [Edge(row["source"], row["type"], row["target"]) for row in rows("edges.jsonl")]
    )
