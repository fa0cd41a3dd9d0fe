"""Find what a change of a node reaches, level by level, with risks and a critical path (KG-OS, method 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import UnknownName, require_count, require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.index import GraphIndex, LevelEdges, Reals, graph_index, node_name
from kgot_lab.retrieval.neighbours import Rows, StepIndices
from kgot_lab.text.cleaning import format_count

ImpactDirection = Literal["forward", "backward", "both"]
FollowMode = Literal["arrows", "dependants"]
_DIRECTION_WEIGHTS = {"forward": (1.0, 0.0), "backward": (0.0, 1.0), "both": (1.0, 1.0)}

# Which end of an edge depends on the other: A requires B means that a change of B
# reaches A. An edge of another type, such as relates_to or alternative_to, carries no change.
SOURCE_DEPENDS = frozenset(
    "requires depends_on implements part_of caused_by imports calls uses inherits inherits_from extends references "
    "measures".split()
)
TARGET_DEPENDS = frozenset(
    "enables feeds_into contributes_to optimizes reduces configures prerequisite_of prevents has_limitation has_workaround".split()
)


class Impacted(NamedTuple):
    """A node that a change reaches: its depth, its risk by distance alone and in full, and the last edge of
    its riskiest chain.
    """

    id: str
    name: str
    depth: int
    distance_risk: float
    risk: float
    via: str
    parent: str


@dataclass(frozen=True, repr=False, eq=False)
class Impact(MethodResult):
    """The effect of a change: nodes with risks by level, the riskiest chain, and the edge types between
    levels.
    """

    node: str
    direction: ImpactDirection
    search: _ImpactSearch
    critical_path: tuple[str, ...]
    critical_risk: float
    edge_types: tuple[str, ...]
    why: tuple[str, ...]
    name: str  # of the node itself

    COLUMNS = ("id", "name", "depth", "distance risk", "risk", "via", "from")

    @cached_property
    def nodes(self) -> tuple[Impacted, ...]:  # type: ignore[override]
        """The nodes that a change reaches, the nearest first; at one depth the riskiest first, ties by id."""
        return self.search.impacted_nodes()

    @property
    def ids(self) -> list[str]:
        """The node and those that a change of it reaches."""
        return [self.node, *(node.id for node in self.nodes)]

    @property
    def total_impacted(self) -> int:
        """The number of nodes that a change reaches."""
        return sum(map(len, self.search.levels[1:]))

    @cached_property
    def risk_by_depth(self) -> Mapping[int, tuple[Impacted, ...]]:
        """The nodes at each depth, the riskiest first."""
        levels: dict[int, list[Impacted]] = {}
        for node in self.nodes:
            levels.setdefault(node.depth, []).append(node)
        return {depth: tuple(nodes) for depth, nodes in levels.items()}

    @property
    def title(self) -> str:
        sizes = list(map(len, self.search.levels))
        levels = "".join(f", {size:,} at depth {depth}" for depth, size in enumerate(sizes) if depth)
        total = format_count(self.total_impacted, "node")
        return f"impact of {self.node} ({self.direction}): {total}{levels}"


@check_arguments
def impact_analysis(
    graph: PropertyGraph,
    node: str,
    *,
    direction: ImpactDirection = "both",
    max_depth: int = 3,
    follow: FollowMode = "arrows",
    weight: str | None = "weight",
) -> Impact:
    """Find the nodes that a change of a node reaches within `max_depth` edges, breadth first.

    risk(d) = 1 / depth * weight * centrality. The weight is that of the heaviest edge from the level before,
    1 if the property is missing. The centrality is degree centrality. "forward" follows the arrows,
    "backward" goes against them. With follow="dependants" the meaning of an edge type decides: forward leads
    to what depends on the node, whichever way the arrow points, backward to what it depends on, and other
    types are not followed. The critical path goes from the node to the riskiest that leads on, and so on; only
    its end leads to nothing. Ties are broken by id. (The greatest product of risks would prefer a short dead end,
    as no factor is above 1.)

    Raises UnknownName for an unknown node or option, or for a weight other than the default that no edge has.
    Raises BadInput if the depth or a weight is not above 0.
    """
    for name, value, known in (
        ("direction", direction, tuple(_DIRECTION_WEIGHTS)),
        ("way to follow edges", follow, ("arrows", "dependants")),
    ):
        require_known(name, known, value)
    require_count(max_depth, 1, "max_depth")
    index = graph_index(graph)
    type_weights = _followed_edge_weights(index, direction, follow)
    weights = index.weights(weight) if weight else None
    if weights is None and weight not in (None, "", "weight") and graph.edge_properties:
        property_names = {name for known in graph.edge_properties for name in known}
        raise UnknownName("property of edges", str(weight), property_names)
    search = _ImpactSearch(index, index.row(node), type_weights, max_depth, weights)
    why = [_describe_followed_edges(index, direction, follow, type_weights)]
    if len(search.levels) == 1:
        why.append(f"no such edge of {node} is known")
    chain = search.critical_path()
    if len(chain) > 1:
        path_text = " → ".join(graph.ids[row] for row in chain)
        why.append(f"critical path, product of risks {search.products[chain[-1]]:.3g}: {path_text}")
    path = tuple(graph.ids[row] for row in chain) if len(chain) > 1 else ()
    risk = float(search.products[chain[-1]]) if path else 0.0
    name = node_name(node, graph.node_properties[search.root])
    return Impact(node, direction, search, path, risk, search.edge_types(), tuple(why), name)


class _ImpactSearch:
    """A breadth-first search with the heaviest edge and the best product of risks that lead to each node.

    `levels` holds the rows at each depth, the root first.
    """

    def __init__(
        self, index: GraphIndex, root: int, type_weights: Reals, max_depth: int, weights: Reals | None
    ) -> None:
        size = len(index.graph)
        self.index, self.root = index, root
        self.depths = np.full(size, -1, np.int32)
        self.depths[root] = 0
        self.levels: list[Rows] = [np.array([root])]
        self.risks, self.products = np.zeros(size), np.zeros(size)
        self.products[root] = 1.0
        # set where a node is reached, and read only there
        self.parents, self.ways = np.empty(size, np.int64), np.empty(size, np.int64)
        self.types = np.zeros(len(index.graph.type_names), bool)
        for depth in range(1, max_depth + 1):
            reached = index.next_level(self.depths, self.levels[-1], type_weights)
            if not len(reached.children):
                break
            self._record_level(reached, depth, weights)

    def _record_level(self, reached: LevelEdges, depth: int, weights: Reals | None) -> None:
        """Record a level.

        Risks use the heaviest edge. The parent of a node is that of its riskiest chain.
        """
        children = reached.children
        products = self.products[reached.parents] * self.index.centrality[children] / depth
        if weights is not None:
            own = weights[self.index.links.edge_rows[reached.places]]
            np.maximum.at(self.risks, children, own)
            products *= own
        # equal edges are ranked by the parent's id, then by edge type and direction
        tie_rank = self.index.name_order[reached.parents] * (2 * len(self.types)) + reached.ways
        riskiest = _best_positions(children, products, tie_rank)
        new = children[riskiest]
        self.levels.append(new)
        self.depths[new], self.products[new] = depth, products[riskiest]
        heaviest = 1.0 if weights is None else self.risks[new]
        self.risks[new] = self.index.centrality[new] * heaviest / depth
        self.parents[new], self.ways[new] = reached.parents[riskiest], reached.ways[riskiest]
        self.types[reached.ways // 2] = True

    def critical_path(self) -> list[int]:
        """Return the rows from the root on, at each step the riskiest that leads on, or else the riskiest."""
        leads_on, chain = np.zeros(len(self.depths), bool), [self.root]
        for rows in self.levels[1:]:
            leads_on[self.parents[rows]] = True
        for rows in self.levels[1:]:
            after = rows[self.parents[rows] == chain[-1]]
            after = after[leads_on[after]] if leads_on[after].any() else after
            if not len(after):
                break
            chain.append(int(self._by_risk(after)[0]))
        return chain

    def _by_risk(self, rows: Rows) -> Rows:
        return rows[np.lexsort((self.index.name_order[rows], -self.risks[rows]))]

    def impacted_nodes(self) -> tuple[Impacted, ...]:
        """Return the reached nodes as results, the nearest first; at one depth the riskiest first, ties by id."""
        graph, rows = self.index.graph, np.concatenate([*map(self._by_risk, self.levels[1:]), []]).astype(int)
        ids, names = (map(each.__getitem__, rows.tolist()) for each in (graph.ids, self.index.names))
        columns = (each.tolist() for each in (self.depths[rows], 1 / self.depths[rows], self.risks[rows]))
        via, parents = (self.ways[rows] // 2).tolist(), self.parents[rows].tolist()
        types_and_parents = map(graph.type_names.__getitem__, via), map(graph.ids.__getitem__, parents)
        return tuple(map(Impacted, ids, names, *columns, *types_and_parents))

    def edge_types(self) -> tuple[str, ...]:
        names = self.index.graph.type_names
        return tuple(sorted(names[code] for code in np.flatnonzero(self.types).tolist()))


def _best_positions(children: Rows, values: Reals, rank: StepIndices) -> StepIndices:
    """Return the position of the largest value of each child, ties by the lowest rank."""
    size = int(children.max()) + 1
    largest = np.zeros(size)  # no value is below 0
    np.maximum.at(largest, children, values)
    positions = np.flatnonzero(values == largest[children])
    lowest = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(lowest, children[positions], rank[positions])
    positions = positions[rank[positions] == lowest[children[positions]]]
    # parallel edges of one type may still tie, and any of them will do
    lowest[children[positions]] = positions
    best: StepIndices = positions[lowest[children[positions]] == positions]
    return best


def _followed_edge_weights(index: GraphIndex, direction: ImpactDirection, follow: FollowMode) -> Reals:
    along, against = _DIRECTION_WEIGHTS[direction]
    if follow == "arrows":
        return index.edge_type_weights(along=along, against=against)
    # a dependent target is along the arrow, a dependent source against it
    targets = index.edge_type_weights(TARGET_DEPENDS, along=along, against=against)
    return targets + index.edge_type_weights(SOURCE_DEPENDS, along=against, against=along)


def _describe_followed_edges(
    index: GraphIndex, direction: ImpactDirection, follow: FollowMode, type_weights: Reals
) -> str:
    if follow == "arrows":
        ways = {"forward": "along the arrows", "backward": "against the arrows", "both": "both ways"}
        return f"edges followed {ways[direction]}"
    meant = {"forward": "to what depends on it", "backward": "to what it depends on"}
    meant["both"] = "to what depends on it and on what it does"
    followed = (type_weights[0::2] + type_weights[1::2]).tolist()
    left = sorted(name for name, has in zip(index.graph.type_names, followed, strict=True) if not has)
    return f"edges followed {meant[direction]}" + (f"; not followed: {', '.join(left)}" if left else "")
