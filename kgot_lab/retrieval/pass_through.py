"""Pass-through traversal: a graph walk from the hits along their edges, through nodes without a text."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress, islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.fusion import ranking_scores
from kgot_lab.retrieval.neighbours import LazyTexts, Links, StepIndices, neighbour_steps
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import HitColumns, Node, Ranking

# edges computed from vectors; all others count as curated
COMPUTED = frozenset({"similarity", "structural_isomorphism"})
TEXT_PROPERTIES = ("text", "description", "summary")  # a name alone is not a text


def has_text(node: Node) -> bool:
    """Return whether a node has a text, description or summary.

    A node that has none is called bare.
    """
    return any(str(node.properties.get(key) or "").strip() for key in TEXT_PROPERTIES)


@dataclass(frozen=True)
class Walk:
    """Settings of a traversal and of the order of its results.

    `entry`: number of hits to start from. `depth`: consecutive bare nodes that it may pass through. `types`:
    edge types to follow, by default all but the `COMPUTED` ones, of which `computed` names those to follow
    too. `convergence`: nodes that more hits lead to come first, otherwise similarity alone decides.
    `interleaved`: hits and reached nodes alternate, otherwise all hits come first. `rest`: nodes that were
    not reached follow, by similarity. `described`: returns whether a node has a text.
    """

    entry: int = 5
    depth: int = 1
    types: Collection[str] | None = None
    computed: Collection[str] = ()
    convergence: bool = True
    interleaved: bool = False
    rest: bool = False
    described: Callable[[Node], bool] = has_text


def traverse(
    graph: PropertyGraph,
    entry: Stage,
    similarity: Stage | None = None,
    *,
    through_hubs: bool = True,
    walk: Walk = Walk(),
) -> Stage:
    """Rank the first hits of a stage, then the nodes with a text that a graph walk reaches from them.

    The walk may pass through bare nodes, which have no text. Reached nodes are ordered by convergence: how
    many hits lead to them, then how many ways (a bare hub is one way, an edge from a hit is one), then
    similarity to the query, then id. Similarity is the score of the `similarity` stage, or else of `entry`,
    which must then return more than the hits (so that the query is embedded once). Without `through_hubs`
    bare nodes are dropped, as retrieval usually does. Several keys decide the order, so score(d) = 1 / rank.
    Each reached node has a path. The `inputs` of the ranking are entry, similarity and walk. Raises BadInput
    for an empty graph, for an entry or depth below 1, and for a hit that is not a node.
    """
    if walk.entry < 1 or walk.depth < 1:
        raise BadInput(f"a walk needs an entry and a depth of 1 or more, not {walk.entry} and {walk.depth}")
    terrain = _WalkGraph.of(graph, walk, walk.depth if through_hubs else 0)

    def step(ranking: Ranking) -> Ranking:
        entry_hits = entry(ranking)
        similar = similarity(ranking) if similarity else entry_hits
        starts = terrain.start_rows(entry_hits, walk.entry)
        similarities = dict(zip(similar.ids, ranking_scores(similar).tolist(), strict=True))
        paths = terrain.reached_paths(starts, similarities)
        hit_ids = [graph.ids[row] for row in starts]
        ids = _interleave(hit_ids, list(paths)) if walk.interleaved else [*hit_ids, *paths]
        if walk.rest:
            ids = list(dict.fromkeys(chain(ids, filter(terrain.described_ids.__contains__, similar.ids))))
        walked = Ranking(ranking.query, _found_by_rank(list(paths)), "walk", paths=paths)
        inputs = (entry_hits, similar, walked) if similarity else (entry_hits, walked)

        return Ranking(
            ranking.query, _found_by_rank(ids), inputs=tuple((1.0, ranked) for ranked in inputs), paths=paths
        )

    verb = "pass-through" if through_hubs else "neighbours"
    return Stage(f"{verb}({', '.join([entry.name, *_changed_options(walk)])})", step, inputs=(("", entry),))


# --- the walk ---


@dataclass(frozen=True, eq=False)
class _HitPaths:
    """The ways from one hit: the last step to each node with a text, the step into each bare node."""

    last: StepIndices
    entered: Mapping[int, int]

    def steps(self, place: int, links: Links) -> list[int]:
        """Return all steps from the hit up to and including a last one."""
        steps = [place]
        while (origin := int(links.origins[steps[0]])) in self.entered:
            steps.insert(0, self.entered[origin])
        return steps


@dataclass(frozen=True, eq=False)
class _WalkGraph:
    """A graph prepared for walks: links, rows with a text, and the limit of consecutive bare nodes."""

    links: Links
    described: NDArray[np.bool_]
    depth: int
    convergence: bool

    @classmethod
    def of(cls, graph: PropertyGraph, walk: Walk, depth: int) -> _WalkGraph:
        curated = [name for name in graph.type_names if name not in COMPUTED or name in walk.computed]
        links = Links.of(graph, curated if walk.types is None else walk.types)
        described = np.array([walk.described(node) for node in graph.nodes], dtype=bool)
        return cls(links, described, depth, walk.convergence)

    @cached_property
    def described_ids(self) -> frozenset[str]:
        """The ids of the nodes with a text."""
        return frozenset(compress(self.links.graph.ids, self.described))

    def start_rows(self, near: Ranking, count: int) -> list[int]:
        """Return the rows of the first hits that have a text, since a bare node is never a hit."""
        rows = map(self.links.row, near.ids)
        return list(islice((row for row in rows if self.described[row]), count))

    def reached_paths(self, starts: list[int], similarity: Mapping[str, float]) -> LazyTexts:
        """Return the nodes with a text that a walk from the starts reaches, with their paths.

        They are ordered by (hits, ways, similarity, id). Each has one path from every hit that leads to it.
        """
        tracks = [self._track(start) for start in starts]
        owner = np.repeat(np.arange(len(tracks)), [len(track.last) for track in tracks])
        last = np.concatenate([np.empty(0, np.int64), *(track.last for track in tracks)])
        new = ~np.isin(self.links.ends.indices[last], starts)
        owner, last = owner[new], last[new]
        rows, node = np.unique(self.links.ends.indices[last], return_inverse=True)
        origins = self.links.origins[last]
        per_hit = _first_indices(node, owner)
        hits = np.bincount(node[per_hit])
        # all edges from hits are one way
        ways = np.bincount(node[_first_indices(node, np.where(self.described[origins], -1, origins))])
        ids = [self.links.graph.ids[row] for row in rows.tolist()]
        close = [-similarity.get(id, -math.inf) for id in ids]
        counted = ((-hits).tolist(), (-ways).tolist()) if self.convergence else ()
        order = sorted(zip(*counted, close, ids, range(len(ids)), strict=True))
        ends = np.cumsum(hits)

        def describe(place: int) -> str:
            number = order[place][-1]
            chosen = per_hit[ends[number] - hits[number] : ends[number]]
            steps = (tracks[owner[one]].steps(int(last[one]), self.links) for one in chosen)
            return "; ".join(self.links.path(places) for places in steps)

        return LazyTexts([row[-2] for row in order], describe)

    def _track(self, start: int) -> _HitPaths:
        """Find the ways from a row, nearest first, without returning to the row."""
        ends = self.links.ends
        entered: dict[int, int] = {}
        front, last = [start], []
        for _ in range(self.depth + 1):
            places, _ = neighbour_steps(ends, np.array(front, dtype=np.int32))
            rows = ends.indices[places]
            text = self.described[rows]
            last.append(places[text & (rows != start)])
            bare, first = np.unique(rows[~text], return_index=True)
            steps = zip(bare.tolist(), places[~text][first].tolist(), strict=True)
            fresh = {hub: place for hub, place in steps if hub not in entered}
            entered |= fresh
            front = list(fresh)
        return _HitPaths(np.concatenate(last), entered)


def _first_indices(major: StepIndices, minor: StepIndices) -> StepIndices:
    """Return the first index of each distinct pair, in the order of the pairs."""
    if not len(major):
        return np.empty(0, np.int64)
    return np.unique(major * (minor.max() + 2) + minor + 1, return_index=True)[1]


def _interleave(hits: list[str], walked: list[str]) -> list[str]:
    return [id for pair in zip_longest(hits, walked) for id in pair if id is not None]


def _found_by_rank(ids: list[str]) -> HitColumns:
    places = np.arange(len(ids))
    return HitColumns(ids, places, 1 / (places + 1))


def _changed_options(walk: Walk) -> list[str]:
    """List the options that differ from the defaults, for the name of a stage."""
    numbers, usual = {"entry": walk.entry, "depth": walk.depth}, Walk()
    said = [f"{name}={value}" for name, value in numbers.items() if value != getattr(usual, name)]
    flags = [] if walk.convergence else ["by similarity"]
    flags += [name for name in ("interleaved", "rest") if getattr(walk, name)]
    added = [f"with {name}" for name in sorted(walk.computed)]
    return [*sorted(walk.types or ()), *added, *said, *flags]
