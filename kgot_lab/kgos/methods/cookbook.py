"""The curated graph that comes with the package, as a graph: see data/cookbook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled, read_regular_text
from kgot_lab.types import Edge, Node

_FOLDER = "cookbook"


def cookbook() -> PropertyGraph:
    """The graph about building applications on language models: 291 nodes, 729 edges; a dimension is the mean
    of its two ratings.
    """
    first, second = ({row["id"]: row["ratings"] for row in _rows(f"ratings_{rater}.jsonl")} for rater in "ab")
    dimensions = {
        id: {name: round((value + second[id][name]) / 2, 3) for name, value in first[id].items()}
        for id in first
    }
    nodes = (
        Node(row.pop("id"), (row.pop("type"),), row | dimensions.get(id, {}))
        for row in _rows("nodes.jsonl")
        for id in [row["id"]]
    )
    edges = (Edge(row.pop("source"), row.pop("type"), row.pop("target"), row) for row in _rows("edges.jsonl"))
    return PropertyGraph.of(nodes, edges)


def _rows(name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, read_regular_text(bundled(f"{_FOLDER}/{name}")).splitlines())
