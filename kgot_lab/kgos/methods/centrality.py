"""Centrality measures (PageRank, betweenness, articulation points) and the ranking of critical nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import repeat
from typing import Any, Literal

import networkx as nx
import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_count, require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Csr, Ints, build_csr
from kgot_lab.kgos.methods.formatting import TableFound
from kgot_lab.kgos.methods.impact_analysis import SOURCE_DEPENDS, TARGET_DEPENDS
from kgot_lab.kgos.methods.index import Reals, graph_index
from kgot_lab.kgos.schemas.rules import edge_rows_of_types
from kgot_lab.retrieval.neighbours import distinct_integers
from kgot_lab.text.cleaning import format_count

PACKAGE_LABEL = "package"  # the type of packages that are not among the files of a folder
DAMPING = 0.85
_CONVERGENCE_TOLERANCE = 1e-12  # the change of a round, per node, below which PageRank has converged
_MAX_ITERATIONS = 200


def distinct_edge_pairs(graph: PropertyGraph) -> tuple[Ints, Ints]:
    """Return the sources and targets of all edges, each ordered pair once, without self-loops."""
    keep, size = graph.sources != graph.targets, max(1, len(graph))
    pairs = distinct_integers(graph.sources[keep].astype(np.int64) * size + graph.targets[keep], size * size)
    return (pairs // size).astype(np.int32), (pairs % size).astype(np.int32)


@check_arguments
def pagerank(graph: PropertyGraph) -> Reals:
    """Compute the PageRank of each node (Page et al. 1999) with damping .85.

    The values sum to 1. A node without outgoing edges distributes its rank to all nodes equally.
    """
    size = len(graph)
    if not size:
        return np.empty(0)
    sources, targets = distinct_edge_pairs(graph)
    leaving = np.bincount(sources, minlength=size).astype(float)
    ends, share = leaving == 0, DAMPING / np.maximum(leaving, 1)
    rank: Reals = np.full(size, 1 / size)
    for _ in range(_MAX_ITERATIONS):
        passed = np.bincount(targets, weights=(rank * share)[sources], minlength=size)
        after: Reals = passed + (1 - DAMPING + DAMPING * rank[ends].sum()) / size
        if np.abs(after - rank).sum() < _CONVERGENCE_TOLERANCE * size:
            return after
        rank = after
    return rank


@check_arguments
def betweenness(graph: PropertyGraph, samples: int | None = None) -> Reals:
    """Compute the betweenness centrality of each node (Freeman 1977), over directed shortest paths.

    It is the share of shortest paths between other nodes that pass through the node, by Brandes' algorithm
    (2001). With `samples`, paths start at that many random nodes and the sum is scaled up (Brandes & Pich
    2007).
    """
    size = len(graph)
    sources, targets = distinct_edge_pairs(graph)
    out = build_csr(sources, targets, size)
    start = np.arange(size)
    if samples is not None and samples < size:
        start = np.sort(np.random.default_rng(0).choice(size, samples, replace=False))
    found = np.zeros(size)
    for node in start.tolist():
        found += _source_dependencies(out, node, size)
    return found / max(1, (size - 1) * (size - 2)) * (size / max(1, len(start)))


def _source_dependencies(out: Csr, start: int, size: int) -> Reals:
    """Return the dependency of one source on each node over shortest paths (Brandes' accumulation)."""
    depth = np.full(size, -1, np.int32)
    paths = np.zeros(size)
    depth[start], paths[start] = 0, 1.0
    level, levels = np.array([start], np.int64), []
    while len(level):
        begins, counts = out.indptr[level], out.indptr[level + 1] - out.indptr[level]
        parents = np.repeat(level, counts)
        starts = counts.cumsum() - counts
        positions = np.arange(counts.sum()) + np.repeat(begins - starts, counts)
        children = out.indices[positions]
        new = depth[children] < 0
        depth[children[new]] = depth[level[0]] + 1
        onward = depth[children] == depth[level[0]] + 1
        parents, children = parents[onward], children[onward]
        paths += np.bincount(children, weights=paths[parents], minlength=size)
        levels.append((parents, children))
        level = np.unique(children).astype(np.int64)
    needed = np.zeros(size)
    for parents, children in reversed(levels):
        share = paths[parents] / paths[children] * (1 + needed[children]) if len(children) else np.empty(0)
        needed += np.bincount(parents, weights=share, minlength=size)
    needed[start] = 0.0
    return needed


def undirected_graph(graph: PropertyGraph) -> nx.Graph[int]:
    """Return the rows of a graph and their neighbours for NetworkX, without directions and parallel edges."""
    plain: nx.Graph[int] = nx.Graph()
    plain.add_nodes_from(range(len(graph)))
    plain.add_edges_from(zip(*(ends.tolist() for ends in distinct_edge_pairs(graph)), strict=True))
    return plain


@check_arguments
def articulation_points(graph: PropertyGraph) -> dict[int, int]:
    """Find the articulation points, ignoring edge direction (Hopcroft & Tarjan 1973).

    Returns, by row, how many nodes would be separated from the largest remaining part. The parts are the
    branches of the block-cut tree at the row; a block has a negative number in it.
    """
    blocks: Iterable[Any] = nx.biconnected_components(undirected_graph(graph))  # sets of rows
    tree: nx.Graph[int] = nx.Graph()
    tree.add_edges_from((row, -number) for number, block in enumerate(blocks, 1) for row in block)
    separated: dict[int, int] = {}
    for nodes in nx.connected_components(tree):
        sizes = {node: int(node >= 0) for node in nodes}
        parts: dict[int, list[int]] = {node: [] for node in nodes}
        for above, node in reversed(list(nx.dfs_edges(tree, max(nodes)))):
            sizes[above] += sizes[node]
            parts[above].append(sizes[node])
        for row in (node for node in nodes if node >= 0 and tree.degree(node) > 1):
            rest = [*parts[row], sizes[max(nodes)] - sizes[row]]
            separated[row] = sum(rest) - max(rest)
    return separated


# Critical components: centralities, bottlenecks, and what to test first.

Metric = Literal["priority", "degree", "betweenness", "pagerank", "bottleneck", "dependants"]
METRICS: tuple[Metric, ...] = ("priority", "degree", "betweenness", "pagerank", "bottleneck", "dependants")
_BETWEENNESS_SAMPLES = 256  # source nodes for betweenness in a larger graph


@check_arguments
def critical_components(
    graph: PropertyGraph, *, metric: Metric = "priority", top_k: int = 10, types: Collection[str] = ()
) -> TableFound:
    """Rank the nodes by a measure of how much depends on them.

    degree: distinct neighbours over all other nodes. betweenness: the share of directed shortest paths
    through the node, from 256 nodes of a larger graph. pagerank: over the largest. dependants: the
    nodes that depend on it directly by the type of an edge. bottleneck: the nodes that would be separated
    without it. priority, for tests and reviews: the mean of these five, each over its largest. Only priority
    computes and lists the others. With `types`
    only nodes of these types are listed. Without it, all are, except packages that are not among the files of
    a folder. Raises UnknownName and BadInput.
    """
    require_known("measure", METRICS, metric)
    require_count(top_k, 1, "top_k")
    index = graph_index(graph)
    size = len(graph)
    require_known("node type", index.rows_by_label, *types)
    compute: dict[str, Callable[[], Reals]] = {
        "degree": lambda: index.centrality,
        "betweenness": lambda: betweenness(graph, _BETWEENNESS_SAMPLES),
        "pagerank": lambda: _divide_by_max(pagerank(graph)),
        "dependants": lambda: _count_dependants(graph),
        "bottleneck": lambda: np.array([*map(articulation_points(graph).get, range(size), repeat(0))], float),
    }
    measures = {name: make() for name, make in compute.items() if metric in (name, "priority")}
    if metric == "priority":
        every = [_divide_by_max(measure) for measure in measures.values()]
        measures = {"priority": np.mean(every, axis=0)} | measures
    order = np.lexsort((index.name_order, -measures[metric])).tolist()
    own_labels = [label for label in index.rows_by_label if label != PACKAGE_LABEL]
    listed_types = types or own_labels or index.rows_by_label
    wanted = {row for type in listed_types for row in index.rows_by_label[type].tolist()} | {
        row for row in range(size) if not types and not graph.node_labels[row]
    }
    rows = [row for row in order if row in wanted and measures[metric][row] > 0][:top_k]
    columns = [
        measure[rows].round(6).astype(int if name in ("dependants", "bottleneck") else float).tolist()
        for name, measure in measures.items()
    ]
    shown = tuple((*index.identity(row), *values) for row, *values in zip(rows, *columns, strict=True))
    why = ["priority: the mean of the five measures over their largest"] if metric == "priority" else []
    if "betweenness" in measures and size > _BETWEENNESS_SAMPLES:
        why.append(
            f"betweenness is estimated from paths that begin at {_BETWEENNESS_SAMPLES} of {size:,} nodes"
        )
    title = f"critical by {metric}: {format_count(len(rows), 'node')}"
    return TableFound(
        title, ("id", "name", "type", *measures), shown, tuple(why), tuple(graph.ids[row] for row in rows)
    )


def _count_dependants(graph: PropertyGraph) -> Reals:
    """Count the distinct nodes that depend on each node by the type of an edge."""
    by_source, by_target = (edge_rows_of_types(graph, *types) for types in (SOURCE_DEPENDS, TARGET_DEPENDS))
    on = np.concatenate([graph.targets[by_source], graph.sources[by_target]]).astype(np.int64)
    of = np.concatenate([graph.sources[by_source], graph.targets[by_target]])
    pairs = np.unique((on * len(graph) + of)[on != of])
    return np.bincount(pairs // max(1, len(graph)), minlength=len(graph)).astype(float)


def _divide_by_max(values: Reals) -> Reals:
    return values / (values.max(initial=0.0) or 1.0)
