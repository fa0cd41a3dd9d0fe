"""Community detection: partition a large graph into few enough groups to draw each as one node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import NotInstalled, needs_extra
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints, make_read_only

MAX_COMMUNITIES = 40
COARSENING = 0.7  # factor of the resolution while there are too many communities
MIN_RESOLUTION = 1e-4
PART_SHARE = 0.75  # share of the communities for parts of components; the others are for components, which no resolution joins

_Numbers = NDArray[np.int64]
_NO_LABEL = "no label"
# special kinds; that of any other community is ""
WITHOUT_EDGES, THE_REST = ("without edges", "of the smallest groups")


@dataclass(frozen=True, eq=False)
class Communities:
    """A partition of a graph: the node of row r is in community `of[r]`.

    Communities are numbered from 0, the largest first and the rest last. `kinds` says what the members of
    each have in common besides edges. `how` describes the method.
    """

    of: Ints
    kinds: tuple[str, ...]
    how: str

    def __len__(self) -> int:
        return len(self.kinds)


def find_communities(graph: PropertyGraph, *, most: int = MAX_COMMUNITIES) -> Communities:
    """Partition a graph into at most `most` communities, deterministically.

    The method is Louvain, or, without scikit-network, first label or connected component. Each community is
    connected, except two that no edge leaves: the nodes without edges, and the rest, which gathers the
    smallest components of the graph. A community with more than half of all nodes is divided by first label
    if that gives few parts. `most` is at least 1.
    """
    return partition_rows(edge_ends(graph), first_labels(graph)[0], most=most)


def partition_rows(links: Ints, labels: _Numbers, *, most: int = MAX_COMMUNITIES) -> Communities:
    """Partition rows into at most `most` communities, as `find_communities` does.

    `links` are pairs of different rows, shape (2, m). `labels` is the label number of each row, shape
    (rows,).
    """
    is_isolated = np.bincount(links.ravel(), minlength=len(labels)) == 0
    try:
        groups, method = _louvain_communities(links, is_isolated, most), "by the Louvain method"
    except NotInstalled as missing:
        groups, method = labels, "by first label"
        if len(np.unique(labels)) <= 1:  # nodes without edges form one group
            groups = np.where(is_isolated, -1, connected_components(links, len(labels)))
            method = "by connected part"
        method = f"{method}, not by the Louvain method: {missing}"
    groups, divided = _split_giant(_split_components(groups, links), labels, links, most)
    method += ", and the largest by first label" * divided
    return _renumber_by_size(_merge_smallest(groups, links, most), links, is_isolated, most, method)


def split_community(
    division: Communities, rows: Ints, links: Ints, labels: _Numbers, *, most: int
) -> Communities:
    """Split the community of these rows into several, numbered after all others.

    `links` and `labels` are those of all rows, as for `partition_rows`. If it splits, the community's own
    number is no longer used. If not, `division` is returned unchanged.
    """
    local_row = np.full(len(division.of), -1, dtype=np.int64)
    local_row[rows] = np.arange(len(rows))
    inside = local_row[links]
    finer = partition_rows(inside[:, (inside >= 0).all(axis=0)].astype(np.int32), labels[rows], most=most)
    if len(finer) < 2:
        return division
    of = division.of.copy()
    of[rows] = len(division) + finer.of
    return Communities(make_read_only(of), division.kinds + finer.kinds, division.how)


def first_labels(graph: PropertyGraph) -> tuple[_Numbers, tuple[str, ...]]:
    """Return the number of each node's first label, shape (nodes,), and the label names by number."""
    number: dict[str, int] = {}
    codes = [number.setdefault(names[0] if names else _NO_LABEL, len(number)) for names in graph.node_labels]
    return np.array(codes, dtype=np.int64), tuple(number)


def connected_components(links: Ints, size: int) -> _Numbers:
    """Return for each of `size` rows the lowest row in its connected component.

    `links` has shape (2, m).
    """
    part = np.arange(size)
    while True:
        ends = part[links]
        hooked = part.copy()
        np.minimum.at(hooked, ends.ravel(), np.tile(ends.min(axis=0), 2))
        while (hooked[hooked] != hooked).any():
            hooked = hooked[hooked]
        if (hooked == part).all():
            return part
        part = hooked


def edge_ends(graph: PropertyGraph) -> Ints:
    """Return the ends of all edges except self-loops, shape (2, m)."""
    ends = np.stack([graph.sources, graph.targets])
    return ends[:, ends[0] != ends[1]]


def _louvain_communities(links: Ints, is_isolated: NDArray[np.bool_], most: int) -> _Numbers:
    """Find communities by greedy modularity, at ever coarser resolution until there are few enough.

    Source: Blondel et al. 2008. Of the methods tried this was the fastest: 0.1 s for 284,178 edges, where
    NetworkX took 2 to 6 s. The Leiden method of scikit-network gave different communities for one seed.
    Raises NotInstalled if scikit-network is missing.
    """
    with needs_extra("lab", "scikit-network"):
        from scipy.sparse import csr_matrix
        from sknetwork.clustering import Louvain
    groups = np.full(len(is_isolated), -1, dtype=np.int64)
    if not links.size:
        return groups
    row = np.cumsum(~is_isolated) - 1
    one, other = row[links]
    size, count = int(row[-1]) + 1, links.shape[1]
    ends = np.concatenate([one, other]), np.concatenate([other, one])
    network = csr_matrix((np.ones(2 * count), ends), shape=(size, size))
    numbers, resolution = np.arange(size), 1.0
    while True:
        method = Louvain(
            resolution=resolution, modularity="newman", return_probs=False, return_aggregate=False
        )
        merged = method.fit_predict(network)
        numbers, resolution = merged[numbers], resolution * COARSENING
        network = _aggregate_network(network, merged)
        linked = np.count_nonzero(np.diff(network.indptr) > (network.diagonal() > 0))
        if network.shape[0] <= most or linked <= most * PART_SHARE or resolution < MIN_RESOLUTION:
            break
    groups[~is_isolated] = numbers
    return groups


def _aggregate_network(network: Any, numbers: _Numbers) -> Any:
    """Aggregate a network by group, as a sparse matrix.

    The diagonal counts the edges inside a group twice.
    """
    from scipy.sparse import csr_matrix

    size = len(numbers)
    member = csr_matrix((np.ones(size), numbers, np.arange(size + 1)), shape=(size, int(numbers.max()) + 1))
    return (member.T @ network @ member).tocsr()


def _split_components(groups: _Numbers, links: Ints) -> _Numbers:
    """Split each group into its connected components.

    Nodes without edges stay together.
    """
    inside = links[:, groups[links[0]] == groups[links[1]]]
    return np.where(groups < 0, -1, connected_components(inside, len(groups)))


def _split_giant(groups: _Numbers, labels: _Numbers, links: Ints, most: int) -> tuple[_Numbers, bool]:
    """Split a group with more than half of all nodes by label, if that gives few connected groups.

    Also returns whether it was split.
    """
    values, sizes = np.unique(groups, return_counts=True)
    giant = values[sizes > len(groups) / 2]
    within = np.isin(groups, giant)
    if not within.any() or len(np.unique(labels[within])) == 1:
        return groups, False
    divided = _split_components(np.where(within, groups.max(initial=0) + 1 + labels, groups), links)
    has_few_parts = len(np.unique(divided[within])) <= max(most, len(np.unique(labels[within])))
    return (divided, True) if has_few_parts else (groups, False)


def _merge_smallest(groups: _Numbers, links: Ints, most: int) -> _Numbers:
    """Merge the smallest groups into the neighbour with the most shared edges, until few enough are left.

    Groups without neighbours cannot be merged. If there are any, part of the allowed number is reserved for
    them.
    """
    values, numbers, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    ends = np.sort(numbers[links], axis=0)
    pairs, counts = np.unique(ends[:, ends[0] != ends[1]], axis=1, return_counts=True)
    shared: dict[int, Counter[int]] = defaultdict(Counter)
    for one, other, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        shared[one][other] = shared[other][one] = count
    component_count, into, size = len(values) - len(shared), list(range(len(values))), sizes.tolist()
    smallest = [(size[group], group) for group in shared]
    heapify(smallest)
    while smallest and len(shared) + min(component_count, most - int(most * PART_SHARE)) > most:
        queued_size, group = heappop(smallest)
        if group not in shared or queued_size != size[group]:
            continue  # an outdated heap entry: merged, or larger by now
        target = max(shared[group], key=lambda other: (shared[group][other], size[other], -other))
        into[group] = target
        size[target] += size[group]
        for other, count in shared.pop(group).items():
            del shared[other][group]
            if other != target:
                shared[other][target] = shared[target][other] = shared[target][other] + count
        heappush(smallest, (size[target], target))
        if not shared[target]:
            del shared[target]  # it is now a whole component
            component_count += 1
    for group in range(len(into)):
        while into[into[group]] != into[group]:
            into[group] = into[into[group]]
    return values[np.array(into, dtype=np.int64)][numbers]


def _renumber_by_size(
    groups: _Numbers, links: Ints, is_isolated: NDArray[np.bool_], most: int, how: str
) -> Communities:
    """Renumber the groups by size, ties by first node.

    If there are too many, the smallest ones that no edge leaves are gathered in the rest, the last group.
    """
    values, first, numbers, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    ends = numbers[links]
    is_apart = np.ones(len(values), dtype=bool)
    is_apart[ends[:, ends[0] != ends[1]]] = False
    chosen = np.lexsort((first, -sizes, is_apart))[: len(values) if len(values) <= most else most - 1]
    order = chosen[np.lexsort((first[chosen], -sizes[chosen]))]
    rank = np.full(len(values), len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    is_edgeless = np.bincount(numbers, weights=~is_isolated, minlength=len(values)) == 0
    kinds = tuple(WITHOUT_EDGES if is_edgeless[group] else "" for group in order.tolist())
    kinds += (THE_REST,) if len(order) < len(values) else ()
    return Communities(make_read_only(rank[numbers]), kinds, how)


def members_by_community(division: Communities, degree: Sequence[int] | NDArray[Any]) -> list[Ints]:
    """Return the node rows of each community, by decreasing degree, ties by row."""
    order = np.lexsort((-np.asarray(degree), division.of)).astype(np.int32)
    ends = np.cumsum(np.bincount(division.of, minlength=len(division)))[:-1]
    return np.split(order, ends) if len(division) else []
