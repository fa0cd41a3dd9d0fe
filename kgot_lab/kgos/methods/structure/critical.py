"""Which nodes the rest hangs on: centralities, bottlenecks, and what to test first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import numpy as np

from kgot_lab.errors import UnknownName, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.centrality import betweenness, cut_nodes, pagerank_shares, pairs_of
from kgot_lab.kgos.methods.formatting import TableFound
from kgot_lab.kgos.methods.impact_analysis import SOURCE_DEPENDS, TARGET_DEPENDS
from kgot_lab.kgos.methods.index import Reals, index_of
from kgot_lab.kgos.methods.overview import OUTSIDE
from kgot_lab.text.counted import counted

Metric = Literal["priority", "degree", "betweenness", "pagerank", "bottleneck", "dependants"]
METRICS: tuple[Metric, ...] = ("priority", "degree", "betweenness", "pagerank", "bottleneck", "dependants")
_SAMPLES = 256  # nodes from which paths are counted in a larger graph
_COLUMNS = ("id", "name", "type", "priority", "degree", "betweenness", "pagerank", "dependants", "bottleneck")


def critical_components(
    graph: PropertyGraph,
    *,
    metric: Metric = "priority",
    top_k: int = 10,
    types: Collection[str] = (),
    samples: int = _SAMPLES,
) -> TableFound:
    """The nodes that most depends on, the first by one of the measures.

    degree: different nodes that an edge joins it with, over all others. betweenness: the share of shortest
    directed paths through it, from `samples` nodes of a larger graph. pagerank: over the largest. dependants:
    how many nodes a type of edge says to depend on it directly. bottleneck: how many nodes would lie apart
    without it. priority, for tests and reviews, is the mean of the five, each over its largest. With `types`
    only nodes of these are told, without them all but packages that are not among the files of a folder.
    Raises UnknownName and BadInput.
    """
    if metric not in METRICS:
        raise UnknownName("measure", str(metric), METRICS)
    require_count(top_k, 1, "top_k")
    require_count(samples, 1, "samples")
    index = index_of(graph)
    size = len(graph)
    for type in types:
        if type not in index.of_label:
            raise UnknownName("node type", type, index.of_label)
    sources, targets = pairs_of(graph)
    near = np.unique(
        np.concatenate(
            [
                sources.astype(np.int64) * max(1, size) + targets,
                targets.astype(np.int64) * max(1, size) + sources,
            ]
        )
    )
    cuts = cut_nodes(graph)
    measures: dict[str, Reals] = {
        "degree": np.bincount(near // max(1, size), minlength=size) / max(1, size - 1),
        "betweenness": betweenness(graph, samples),
        "pagerank": _over_largest(pagerank_shares(graph)),
        "dependants": _dependants(graph),
        "bottleneck": np.array([cuts.get(row, 0) for row in range(size)], float),
    }
    measures["priority"] = sum((_over_largest(each) for each in measures.values()), np.zeros(size)) / len(
        measures
    )
    order = np.lexsort((index.name_order, -measures[metric])).tolist()
    told = types or [label for label in index.of_label if label != OUTSIDE] or index.of_label
    wanted = {row for type in told for row in index.of_label[type].tolist()} | {
        row for row in range(size) if not types and not graph.node_labels[row]
    }
    rows = [row for row in order if row in wanted and measures[metric][row] > 0][:top_k]
    shown = tuple(
        (
            graph.ids[row],
            index.names[row],
            index.kinds[row],
            *(
                round(float(measures[name][row]), 6)
                for name in ("priority", "degree", "betweenness", "pagerank")
            ),
            int(measures["dependants"][row]),
            int(measures["bottleneck"][row]),
        )
        for row in rows
    )
    why = [
        f"{counted(len(cuts), 'node')} would leave others apart if taken out",
        "priority: the mean of the five measures over their largest",
    ]
    if samples < size:
        why.append(f"betweenness is estimated from paths that begin at {samples} of {size:,} nodes")
    return TableFound(
        f"critical by {metric}: {counted(len(rows), 'node')}",
        _COLUMNS,
        shown,
        tuple(why),
        tuple(graph.ids[row] for row in rows),
    )


def _dependants(graph: PropertyGraph) -> Reals:
    """How many different nodes depend on each by an edge that says so."""
    found: set[tuple[int, int]] = set()
    for row, code in enumerate(graph.type_codes.tolist()):
        ends = int(graph.sources[row]), int(graph.targets[row])
        if graph.type_names[code] in SOURCE_DEPENDS:
            found.add((ends[1], ends[0]))
        elif graph.type_names[code] in TARGET_DEPENDS:
            found.add(ends)
    return np.bincount(np.array([on for on, of in found if on != of], int), minlength=len(graph)).astype(
        float
    )


def _over_largest(values: Reals) -> Reals:
    return values / (values.max(initial=0.0) or 1.0)
