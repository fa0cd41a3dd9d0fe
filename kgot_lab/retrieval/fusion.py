"""Joining lanes: several rankings of the same documents become one."""

from __future__ import annotations

import math
from collections import defaultdict

from kgot_lab.errors import BadInput
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Ranking, ranked


def weighted(*lanes: tuple[float, Stage]) -> Stage:
    """Weighted sum of min-max normalised scores: score(d) = sum over lanes of weight * (s(d) - min) / (max - min).

    Convex where the weights add up to 1 (Bruch, Gai and Ingber 2023). A document that a lane did not find gets 0 from it.
    Raises BadInput for a weight that is negative or not a number.
    """
    if not lanes or any(not (math.isfinite(weight) and weight >= 0) for weight, _ in lanes):
        raise BadInput("weighted() takes pairs (weight, stage), at least one, with weights of 0 or more")

    def step(ranking: Ranking) -> Ranking:
        scores: dict[str, float] = defaultdict(float)
        for weight, lane in lanes:
            for id, score in normalised(lane(ranking)).items():
                scores[id] += weight * score
        return ranked(ranking.query, scores)

    return Stage(f"weighted({', '.join(f'{weight:g} {lane.name}' for weight, lane in lanes)})", step)


def normalised(ranking: Ranking) -> dict[str, float]:
    """Scores moved into 0..1: the best hit has 1, the worst 0; where all are equal, all have 1."""
    if not ranking.hits:
        return {}
    values = [hit.score for hit in ranking.hits]
    low, high = min(values), max(values)
    return {hit.id: (hit.score - low) / (high - low) if high > low else 1.0 for hit in ranking.hits}


def rrf(*stages: Stage, k: int = 60) -> Stage:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): score(d) = sum over stages of 1 / (k + rank).

    Raises BadInput without a stage, or for k below 0.
    """
    if not stages or k < 0:
        raise BadInput("rrf() takes at least one stage and a k of 0 or more")

    def step(ranking: Ranking) -> Ranking:
        scores: dict[str, float] = defaultdict(float)
        for stage in stages:
            for rank, hit in enumerate(stage(ranking).hits, start=1):
                scores[hit.id] += 1 / (k + rank)  # k = 60 as in the paper; small k trusts the top ranks more
        return ranked(ranking.query, scores)

    return Stage(f"rrf({', '.join([stage.name for stage in stages] + ([f'k={k}'] if k != 60 else []))})", step)
