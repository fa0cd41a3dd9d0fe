"""The queries of the curated graph, in two halves: one for tuning, and a test half. Both are
checked against their hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.types import Query

QueryHalf = Literal["tuning", "test"]
HALVES: Mapping[QueryHalf, str] = {"tuning": "tuning", "test": "locked"}  # and what files call them
_FOLDER = "cookbook"


@dataclass(frozen=True)
class CookbookQuery:
    """A query with its level and intent, the nodes that answer it, and those that a fair judge would accept
    too; see QUERIES.md.
    """

    id: str
    level: str
    text: str
    intent: str
    other_intents: tuple[str, ...]
    strict: frozenset[str]
    lenient: frozenset[str]


def cookbook_queries(half: QueryHalf) -> tuple[CookbookQuery, ...]:
    """One half of the queries; raises BadInput where queries, nodes or edges are not as they were frozen,
    UnknownName for a half.
    """
    if half not in HALVES:
        raise UnknownName("half of the queries", str(half), HALVES)
    frozen = json.loads(bundled_path(f"{_FOLDER}/FROZEN.json").read_text(encoding="utf-8"))["sha256"]
    name = f"queries_{HALVES[half]}.jsonl"
    for file in (name, "nodes.jsonl", "edges.jsonl"):
        if hashlib.sha256(bundled_path(f"{_FOLDER}/{file}").read_bytes()).hexdigest() != frozen[file]:
            raise BadInput(
                f"data/cookbook/{file} is not as it was frozen, so no figure on it would count; fetch it again"
            )
    rows = map(json.loads, bundled_path(f"{_FOLDER}/{name}").read_text(encoding="utf-8").splitlines())
    return tuple(
        CookbookQuery(
            row["id"],
            row["level"],
            row["text"],
            row["intent"],
            tuple(row["other_intents"]),
            frozenset(row["strict"]),
            frozenset(row["lenient"]),
        )
        for row in rows
    )


def cookbook_data(half: QueryHalf, queries: Sequence[CookbookQuery], graph: PropertyGraph) -> Dataset:
    """The queries of a half that something in the graph answers, as a data set whose documents are the nodes
    and whose gold is strict.
    """
    asked = [query for query in queries if query.strict]
    return Dataset(
        f"cookbook-{HALVES[half]}",
        graph_index(graph).documents,
        tuple(Query(query.text, query.id) for query in asked),
        {query.id: dict.fromkeys(sorted(query.strict), 1) for query in asked},
        {query.id: query.level for query in asked},
    )
