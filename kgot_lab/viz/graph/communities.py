"""Community detection: partition a large graph into few enough groups to draw each as one node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints, make_read_only

MOST_COMMUNITIES = 40
COARSER = 0.7  # factor of the resolution while there are too many communities
COARSEST = 1e-4
ROOM = 0.75  # share of the communities for parts of components; the others are for components, which no resolution joins

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


def communities(graph: PropertyGraph, *, most: int = MOST_COMMUNITIES) -> Communities:
    """Partition a graph into at most `most` communities, deterministically.

    The method is Louvain, or, without scikit-network, first label or connected component. Each community is
    connected, except two that no edge leaves: the nodes without edges, and the rest, which gathers the
    smallest components of the graph. A community with more than half of all nodes is divided by first label
    if that gives few parts. Raises BadInput if `most` is below 1.
    """
    return communities_of(links_between(graph), first_labels(graph)[0], most=most)


def communities_of(links: Ints, labels: _Numbers, *, most: int = MOST_COMMUNITIES) -> Communities:
    """Partition rows into at most `most` communities, as `communities` does.

    `links` are pairs of different rows, shape (2, m). `labels` is the label number of each row, shape
    (rows,).
    """
    if most < 1:
        raise BadInput(f"a graph cannot be drawn as {most} communities: give at least 1")
    lonely = np.bincount(links.ravel(), minlength=len(labels)) == 0
    try:
        found, how = _by_louvain(links, lonely, most), "by the Louvain method"
    except NotInstalled as missing:
        found, how = _by_label_or_part(labels, links, lonely)
        how = f"{how}, not by the Louvain method: {missing}"
    found, divided = _giant_divided(_each_connected(found, links), labels, links, most)
    return _gathered(
        _joined(found, links, most), links, lonely, most, how + ", and the largest by first label" * divided
    )


def divided_further(
    division: Communities, rows: Ints, links: Ints, labels: _Numbers, *, most: int
) -> Communities:
    """Split the community of these rows into several, numbered after all others.

    `links` and `labels` are those of all rows, as for `communities_of`. If it splits, the community's own
    number is no longer used. If not, `division` is returned unchanged.
    """
    place = np.full(len(division.of), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    inside = place[links]
    finer = communities_of(inside[:, (inside >= 0).all(axis=0)].astype(np.int32), labels[rows], most=most)
    if len(finer) < 2:
        return division
    of = division.of.copy()
    of[rows] = len(division) + finer.of
    return Communities(make_read_only(of), division.kinds + finer.kinds, division.how)


def first_labels(graph: PropertyGraph) -> tuple[_Numbers, tuple[str, ...]]:
    """Return the number of each node's first label, shape (nodes,), and the label names by number."""
    number: dict[str, int] = {}
    codes = [
        number.setdefault(labels[0] if labels else _NO_LABEL, len(number)) for labels in graph.node_labels
    ]
    return np.array(codes, dtype=np.int64), tuple(number)


def connected_parts(links: Ints, size: int) -> _Numbers:
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


def links_between(graph: PropertyGraph) -> Ints:
    """Return the ends of all edges except self-loops, shape (2, m)."""
    ends = np.stack([graph.sources, graph.targets])
    return ends[:, ends[0] != ends[1]]


def _by_louvain(links: Ints, lonely: NDArray[np.bool_], most: int) -> _Numbers:
    """Find communities by greedy modularity, at ever coarser resolution until there are few enough.

    Source: Blondel et al. 2008. Of the methods tried this was the fastest: 0.1 s for 284,178 edges, where
    NetworkX took 2 to 6 s. The Leiden method of scikit-network gave different communities for one seed.
    Raises NotInstalled if scikit-network is missing.
    """
    try:
        from scipy.sparse import csr_matrix
        from sknetwork.clustering import Louvain
    except ImportError:
        raise NotInstalled("lab", "scikit-network") from None
    found = np.full(len(lonely), -1, dtype=np.int64)
    if not links.size:
        return found
    row = np.cumsum(~lonely) - 1
    one, other = row[links]
    size, count = int(row[-1]) + 1, links.shape[1]
    network = csr_matrix(
        (np.ones(2 * count), (np.concatenate([one, other]), np.concatenate([other, one]))), shape=(size, size)
    )
    numbers, resolution = np.arange(size), 1.0
    while True:
        method = Louvain(
            resolution=resolution, modularity="newman", return_probs=False, return_aggregate=False
        )
        joined = method.fit_predict(network)
        numbers, resolution = joined[numbers], resolution * COARSER
        network = _between(network, joined)
        linked = np.count_nonzero(np.diff(network.indptr) > (network.diagonal() > 0))
        if network.shape[0] <= most or linked <= most * ROOM or resolution < COARSEST:
            break
    found[~lonely] = numbers
    return found


def _between(network: Any, numbers: _Numbers) -> Any:
    """Aggregate a network by group, as a sparse matrix.

    The diagonal counts the edges inside a group twice.
    """
    from scipy.sparse import csr_matrix

    size = len(numbers)
    member = csr_matrix((np.ones(size), numbers, np.arange(size + 1)), shape=(size, int(numbers.max()) + 1))
    return (member.T @ network @ member).tocsr()


def _by_label_or_part(labels: _Numbers, links: Ints, lonely: NDArray[np.bool_]) -> tuple[_Numbers, str]:
    """Divide nodes by label, or by connected component if all have the same label.

    In the second case, nodes without edges form one group.
    """
    if len(np.unique(labels)) > 1:
        return labels, "by first label"
    return np.where(lonely, -1, connected_parts(links, len(labels))), "by connected part"


def _each_connected(found: _Numbers, links: Ints) -> _Numbers:
    """Split each group into its connected components.

    Nodes without edges stay together.
    """
    inside = links[:, found[links[0]] == found[links[1]]]
    return np.where(found < 0, -1, connected_parts(inside, len(found)))


def _giant_divided(found: _Numbers, labels: _Numbers, links: Ints, most: int) -> tuple[_Numbers, bool]:
    """Split a group with more than half of all nodes by label, if that gives few connected groups.

    Also returns whether it was split.
    """
    values, sizes = np.unique(found, return_counts=True)
    giant = values[sizes > len(found) / 2]
    within = np.isin(found, giant)
    if not within.any() or len(np.unique(labels[within])) == 1:
        return found, False
    divided = _each_connected(np.where(within, found.max(initial=0) + 1 + labels, found), links)
    few = len(np.unique(divided[within])) <= max(most, len(np.unique(labels[within])))
    return (divided, True) if few else (found, False)


def _joined(found: _Numbers, links: Ints, most: int) -> _Numbers:
    """Merge the smallest groups into the neighbour with the most shared edges, until few enough are left.

    Groups without neighbours cannot be merged. If there are any, part of the allowed number is reserved for
    them.
    """
    values, numbers, sizes = np.unique(found, return_inverse=True, return_counts=True)
    ends = np.sort(numbers[links], axis=0)
    pairs, counts = np.unique(ends[:, ends[0] != ends[1]], axis=1, return_counts=True)
    near: dict[int, Counter[int]] = defaultdict(Counter)
    for one, other, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        near[one][other] = near[other][one] = count
    apart, into, size = len(values) - len(near), list(range(len(values))), sizes.tolist()
    smallest = [(size[group], group) for group in near]
    heapify(smallest)
    while smallest and len(near) + min(apart, most - int(most * ROOM)) > most:
        held, group = heappop(smallest)
        if group not in near or held != size[group]:
            continue  # an outdated heap entry: merged, or larger by now
        target = max(near[group], key=lambda other: (near[group][other], size[other], -other))
        into[group] = target
        size[target] += size[group]
        for other, count in near.pop(group).items():
            del near[other][group]
            if other != target:
                near[other][target] = near[target][other] = near[target][other] + count
        heappush(smallest, (size[target], target))
        if not near[target]:
            del near[target]  # it is now a whole component
            apart += 1
    return values[np.array([_root(into, group) for group in range(len(values))], dtype=np.int64)][numbers]


def _root(into: Sequence[int], group: int) -> int:
    while into[group] != group:
        group = into[group]
    return group


def _gathered(found: _Numbers, links: Ints, lonely: NDArray[np.bool_], most: int, how: str) -> Communities:
    """Renumber the groups by size, ties by first node.

    If there are too many, the smallest ones that no edge leaves are gathered in the rest, the last group.
    """
    values, first, numbers, sizes = np.unique(
        found, return_index=True, return_inverse=True, return_counts=True
    )
    ends = numbers[links]
    is_apart = np.ones(len(values), dtype=bool)
    is_apart[ends[:, ends[0] != ends[1]]] = False
    chosen = np.lexsort((first, -sizes, is_apart))[: len(values) if len(values) <= most else most - 1]
    order = chosen[np.lexsort((first[chosen], -sizes[chosen]))]
    rank = np.full(len(values), len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    alone = np.bincount(numbers, weights=~lonely, minlength=len(values)) == 0
    kinds = tuple(WITHOUT_EDGES if alone[group] else "" for group in order.tolist())
    return Communities(make_read_only(rank[numbers]), kinds + (THE_REST,) * (len(order) < len(values)), how)


def members(division: Communities, degree: Sequence[int] | NDArray[Any]) -> list[Ints]:
    """Return the node rows of each community, by decreasing degree, ties by row."""
    order = np.lexsort((-np.asarray(degree), division.of)).astype(np.int32)
    return (
        np.split(order, np.cumsum(np.bincount(division.of, minlength=len(division)))[:-1])
        if len(division)
        else []
    )
