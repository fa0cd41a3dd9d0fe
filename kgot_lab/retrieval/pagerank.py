"""Personalised PageRank: a walker who goes along edges from what the question points at, and keeps going back
there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kgot_lab.embedding.embedder import Embedder, descending, row_products
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.entity_linking import Titles, phrase_id
from kgot_lab.retrieval.fusion import by_maximum, fused, scores_of
from kgot_lab.retrieval.pagerank import WALK_ERROR, RandomWalk
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Ranking, Triple


@dataclass(frozen=True)
class Seeds:
    """Where a walk begins, and how much of it at which node, for the ranking that it is given."""

    name: str
    weights: Callable[[Ranking], Mapping[str, float]]


def pagerank(graph: PropertyGraph, *seeds: Seeds, damping: float = 0.5, error: float = WALK_ERROR) -> Stage:
    """Rank the documents of a graph by where a walker is found who begins at the seeds (Page et al. 1998;
    Haveliwala 2002).

    At each step it follows an edge, whichever way it points, with probability `damping`, or goes back to a
    seed. Documents are the nodes with a text; those never reached keep their earlier order behind the others.
    A ranking without any seed stays as it is. In a graph of more than 100,000 edges the walk spreads from the
    seeds until all scores together lack `error` at most; what has less may count as never reached. A larger
    error saves time where hubs bring everything near. Raises BadInput without seeds, for a damping outside 0
    to .99, an error outside 1e-9 to .1, and for a seed that is no node.
    """
    if not seeds:
        raise BadInput("pagerank() takes the seeds of the walk, for example first_hits(5)")
    if not WALK_ERROR <= error <= 0.1:
        raise BadInput(f"pagerank() takes an error from {WALK_ERROR:g} to 0.1, not {error}")
    walk = RandomWalk(graph, damping)
    told = np.array([bool(properties.get("text")) for properties in graph.node_properties], bool)

    def step(ranking: Ranking) -> Ranking:
        start: dict[int, float] = {}
        for part in seeds:
            for id, weight in part.weights(ranking).items():
                if id not in graph:
                    raise BadInput(
                        f"{part.name}: the seed {id!r} is no node of {graph}; seeds are ids of its nodes"
                    )
                start[graph.row(id)] = start.get(graph.row(id), 0.0) + weight
        weights = np.array(list(start.values()))
        if not weights.any():
            return ranking
        rows, shares = walk.reached(np.array(list(start)), weights, error)
        ids, shares = [graph.ids[row] for row in rows[told[rows]].tolist()], shares[told[rows]]
        reached = set(ids)
        rest = [hit.id for hit in ranking.hits if hit.id not in reached]
        # below 0: never reached
        scores = np.concatenate([shares, -np.arange(1, len(rest) + 1) / (len(rest) + 1)])
        walked = fused(ranking.query, [*ids, *rest], scores, ())
        return replace(walked, lanes=((1.0, ranking), (1.0, replace(walked, system="pagerank"))))

    options = [f"error={error:g}"] * (error != WALK_ERROR)
    return Stage(f"pagerank({', '.join([f'{damping:g}', *(part.name for part in seeds), *options])})", step)


# --- seeds
# ------------------------------------------------------------------------------------------------------------


def first_hits(k: int, weight: float = 1.0) -> Seeds:
    """The first k hits, each with its score divided by the largest, times weight. Raises BadInput for k below
    1.
    """
    if k < 1:
        raise BadInput(f"first_hits() takes 1 hit or more, not {k}")

    def weights(ranking: Ranking) -> dict[str, float]:
        shares = weight * by_maximum(scores_of(ranking))[:k]
        return dict(zip(ranking.ids[:k], shares.tolist(), strict=True))

    return Seeds(f"{k} first hits" + f" x{weight:g}" * (weight != 1), weights)


def titles_in_question(titles: Titles, weight: float = 3.0) -> Seeds:
    """The documents whose title stands in the question."""

    def weights(ranking: Ranking) -> dict[str, float]:
        return {
            id: weight for name in titles.mentioned(ranking.query.text, cased=False) for id in titles[name]
        }

    return Seeds(f"titles in the question x{weight:g}", weights)


def nearest_triples(triples: Sequence[Triple], embedder: Embedder, k: int = 5) -> Seeds:
    """Both phrases of the k triples whose words mean most nearly what the question means, each with the
    cosine (as HippoRAG 2 does).
    """
    kept = list(dict.fromkeys(triples))
    if not kept:
        raise BadInput("nearest_triples() needs triples")
    matrix = embedder.embed([f"{triple.subject} {triple.relation} {triple.object}" for triple in kept])

    def weights(ranking: Ranking) -> dict[str, float]:
        cosines = row_products(matrix, embedder.embed([ranking.query.text])[0])
        near: dict[str, float] = {}
        for row in descending(cosines)[:k].tolist():
            for phrase in (kept[row].subject, kept[row].object):
                near[phrase_id(phrase)] = max(near.get(phrase_id(phrase), 0.0), float(cosines[row]))
        return near

    return Seeds(f"{k} nearest triples", weights)
