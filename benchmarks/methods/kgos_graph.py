"""A graph of the size and the parts that KG-OS tells of: 2,057 nodes and 284,178 edges, made by a seed, and
larger ones of its kind.

The document counts 266 curated nodes with 605 edges, and 1,791 extracted ones with 283,166; its sum has 407
more edges than that, which run across here. Ends of extracted edges are drawn with a weight
of 1 / square root of the rank, so that there are hubs; edges run in parallel, and some are loops.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import make_read_only
from kgot_lab.kgos.methods.index import graph_index

CURATED_PART, EXTRACTED_PART, ACROSS = (266, 605), (1_791, 283_166), 407
CURATED_TYPES = (
    "requires",
    "enables",
    "has_limitation",
    "has_workaround",
    "feeds_into",
    "optimizes",
    "relates_to",
)
EXTRACTED_TYPES = ("calls", "imports", "part_of", "pattern_instance_of")
_LABELS = ("pattern", "technique", "tool", "goal", "limitation", "function", "class", "module")
_WORDS = "cache search agent prompt index vector graph token query tool model batch stream parse rank cost reduce build deploy secure".split()
RATED = ("pricing_tier", "batch_suitability", "rate_limit_sensitivity")


class AskedNodes(NamedTuple):
    """A curated node of four neighbours, so that the walks from it have several levels; an extracted one,
    nearly a hub; and ten seeds.
    """

    start: str
    end: str
    seeds: list[str]


def kgos_graph(times: int = 1, seed: int = 0) -> PropertyGraph:
    """The graph, every part of it so many times as large."""
    chance = np.random.default_rng(seed)
    curated, extracted = CURATED_PART[0] * times, EXTRACTED_PART[0] * times
    nodes = curated + extracted
    weights = 1 / np.sqrt(1 + np.arange(extracted))
    far = curated + chance.choice(extracted, (2, EXTRACTED_PART[1] * times), p=weights / weights.sum())
    near = chance.integers(0, curated, (2, CURATED_PART[1] * times))
    across = np.stack(
        [chance.integers(0, curated, ACROSS * times), chance.integers(curated, nodes, ACROSS * times)]
    )
    ends = np.concatenate([near, far, across], axis=1)
    few, many = len(CURATED_TYPES), len(EXTRACTED_TYPES)
    sizes = CURATED_PART[1] * times, EXTRACTED_PART[1] * times, ACROSS * times
    codes = [
        chance.integers(0, few, sizes[0]),
        few + chance.integers(0, many, sizes[1]),
        chance.integers(0, few, sizes[2]),
    ]
    words = chance.choice(_WORDS, (nodes, 15)).tolist()
    values = np.round(chance.random((nodes, len(RATED))), 3).tolist()
    return PropertyGraph(
        ids=tuple(f"node_{row}" for row in range(nodes)),
        node_labels=tuple((_LABELS[code],) for code in chance.integers(0, len(_LABELS), nodes).tolist()),
        node_properties=tuple(
            {
                "name": " ".join(said[:3]),
                "description": " ".join(said[3:]),
                **dict(zip(RATED, rated, strict=True)),
            }
            for said, rated in zip(words, values, strict=True)
        ),
        sources=make_read_only(ends[0].astype(np.int32)),
        targets=make_read_only(ends[1].astype(np.int32)),
        type_codes=make_read_only(np.concatenate(codes).astype(np.int32)),
        type_names=(*CURATED_TYPES, *EXTRACTED_TYPES),
        edge_properties=({},) * ends.shape[1],
        edge_keys=tuple(map(str, range(ends.shape[1]))),
    )


def asked_of(graph: PropertyGraph) -> AskedNodes:
    """What the methods are asked about."""
    curated = len(graph) * CURATED_PART[0] // (CURATED_PART[0] + EXTRACTED_PART[0])
    few = int(np.flatnonzero(graph_index(graph).degrees[:curated] == 4)[0])
    return AskedNodes(graph.ids[few], graph.ids[-1], list(graph.ids[:: len(graph) // 10][:10]))


def write_file(graph: PropertyGraph, path: Path) -> None:
    """The graph as an SQLite file of the unified profile, the properties of its nodes in JSON."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TABLE unified_nodes (node_id TEXT PRIMARY KEY, name TEXT, type TEXT, properties TEXT)"
        )
        connection.execute(
            "CREATE TABLE unified_edges (id INTEGER PRIMARY KEY, source_node_id TEXT, target_node_id TEXT, edge_type TEXT)"
        )
        nodes = (
            (
                id,
                known["name"],
                labels[0],
                json.dumps({name: value for name, value in known.items() if name != "name"}),
            )
            for id, labels, known in zip(graph.ids, graph.node_labels, graph.node_properties, strict=True)
        )
        connection.executemany("INSERT INTO unified_nodes VALUES (?, ?, ?, ?)", nodes)
        ends = zip(graph.sources.tolist(), graph.targets.tolist(), graph.type_codes.tolist(), strict=True)
        edges = (
            (graph.ids[source], graph.ids[target], graph.type_names[code]) for source, target, code in ends
        )
        connection.executemany(
            "INSERT INTO unified_edges (source_node_id, target_node_id, edge_type) VALUES (?, ?, ?)", edges
        )
        connection.commit()
