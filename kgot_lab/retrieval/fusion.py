"""Fusion of several rankings of the same documents into one, which keeps the originals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import CheckedRecord, check_names
from kgot_lab.embedding.embedder import argsort_descending
from kgot_lab.errors import BadInput, describe_value, require, require_amount, require_known
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import HitColumns, Query, Ranking

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@check_names
def weighted(*retrievers: tuple[float, Stage], scale: str = "range") -> Stage:
    """Fuse retrievers by a weighted sum of normalised scores.

    score(d) = sum over retrievers of weight * scaled(s(d)). scale="range" scales the scores of a retriever to
    (s - min) / (max - min). "maximum" takes max(s, 0) / max, as KG-OS does. The sum is convex if the weights
    add up to 1 (Bruch, Gai and Ingber 2023). A document that a retriever did not find gets 0 from it. Raises
    BadInput if a weight is negative or not a number, or if no weight is above 0, and UnknownName for an
    unknown scale.
    """
    pairs = _checked_pairs(retrievers)
    require_known("scale", SCALES, scale)
    options = [f"scale={scale}"] if scale != "range" else []
    labels = [f"{weight:g}" for weight, _ in pairs]
    return _fusion("weighted", pairs, SCALES[scale], options, labels=labels)


@check_names
def rrf(*stages: Stage, k: int = 60) -> Stage:
    """Fuse retrievers by reciprocal rank fusion (Cormack, Clarke and Buettcher 2009).

    score(d) = sum over stages of 1 / (k + rank). Raises BadInput without a stage, or for k below 0.
    """
    _check_stages("rrf", stages)
    require_amount(k, "the k of rrf()")

    def by_rank(found: _Floats) -> _Floats:
        # k = 60 as in the paper; small k trusts the top ranks more
        return 1 / (float(k) + np.arange(1, len(found) + 1))

    return _fusion("rrf", [(1.0, stage) for stage in stages], by_rank, [f"k={k}"] * (k != 60))


def strongest(*stages: Stage) -> Stage:
    """Fuse retrievers by the largest normalised score of each document.

    score(d) = max over stages of max(s(d), 0) / max. KG-OS joins BM25 and FTS5 in this way. Raises BadInput
    without a stage.
    """
    _check_stages("strongest", stages)
    return _fusion("strongest", [(1.0, stage) for stage in stages], scale_by_maximum, add=np.maximum)


def _fusion(
    function: str,
    retrievers: Sequence[tuple[float, Stage]],
    scale: Callable[[_Floats], _Floats],
    options: Sequence[str] = (),
    *,
    labels: Sequence[str] = (),
    add: np.ufunc = np.add,
) -> Stage:
    """Build a stage that adds up the scaled scores of weighted retrievers, named with their labels and options."""
    stages = [stage for _, stage in retrievers]
    inputs = tuple(zip(labels or [""] * len(stages), stages, strict=True))
    names = [f"{label} {stage.name}" if label else stage.name for label, stage in inputs]

    def step(ranking: Ranking) -> Ranking:
        results = [(weight, retriever(ranking)) for weight, retriever in retrievers]
        ids, lists = merge_rankings([result for _, result in results])
        scores = np.full(len(ids), -1.0)
        for (weight, _), (rows, found) in zip(results, lists, strict=True):
            scores[rows] = add(np.maximum(scores[rows], 0.0), weight * scale(found))
        return fused_ranking(ranking.query, ids, scores, tuple(results), np.flatnonzero(scores >= 0))

    return Stage(f"{function}({', '.join([*names, *options])})", step, inputs=inputs)


def _checked_pairs(pairs: Sequence[Any]) -> list[tuple[float, Stage]]:
    """Return pairs of a weight and a stage.

    Raises BadInput for anything else, and unless a weight is above 0.
    """
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[1], Stage)):
            example = "as in weighted((0.7, one), (0.3, other))"
            raise BadInput(f"weighted() takes pairs (weight, stage), {example}, not {describe_value(pair)}")
        require_amount(pair[0], "a weight of weighted()")
    if not any(weight for weight, _ in pairs):
        raise BadInput("weighted() takes at least one pair (weight, stage) with a weight above 0")
    return [(float(weight), stage) for weight, stage in pairs]


def _check_stages(name: str, stages: Sequence[object]) -> None:
    if not stages:
        raise BadInput(f"{name}() takes at least one stage")
    for stage in stages:
        require(stage, Stage, f"{name}() takes stages")


# --- normalisation ---


def scale_by_range(scores: _Floats) -> _Floats:
    """Scale scores to 0..1 by min-max normalisation.

    The best score becomes 1 and the worst 0. If all are equal, all become 1.
    """
    if not scores.size or scores.min() == scores.max():
        return np.ones_like(scores)
    low = scores.min()
    return (scores - low) / (scores.max() - low)  # type: ignore[no-any-return]


def scale_by_maximum(scores: _Floats) -> _Floats:
    """Divide scores by the largest, after setting negative ones to 0.

    If none is above 0, all become 0.
    """
    clipped = np.maximum(scores, 0.0)
    return clipped / (clipped.max(initial=0.0) or 1.0)


SCALES: Mapping[str, Callable[[_Floats], _Floats]] = {"range": scale_by_range, "maximum": scale_by_maximum}


# --- rankings as columns ---


def ranking_scores(ranking: Ranking) -> _Floats:
    """Return the scores of a ranking, best first."""
    if isinstance(ranking.hits, HitColumns):
        return np.asarray(ranking.hits.scores, dtype=np.float64)
    return np.array([score for _, score in ranking.hits], dtype=np.float64)


def rows_and_scores(
    ranking: Ranking, ids: Sequence[str], row_of: Mapping[str, int] | None = None
) -> tuple[_Ints, _Floats]:
    """Return the index of each hit of a ranking in a list of ids, and the scores of the hits.

    `row_of` is the index of each id, for callers that have it: to make it takes long for many ids. Raises
    BadInput if a hit is not among the ids.
    """
    if isinstance(ranking.hits, HitColumns) and ranking.hits.ids == ids:
        return np.asarray(ranking.hits.rows, dtype=np.int64), ranking_scores(ranking)
    row_of = row_of or {id: row for row, id in enumerate(ids)}
    try:
        return np.array([row_of[id] for id in ranking.ids], dtype=np.int64), ranking_scores(ranking)
    except KeyError as error:
        problem = f"{ranking.system or 'the ranking'} found {error.args[0]!r}"
        raise BadInput(f"{problem}, which is none of the documents at hand") from None


def merge_rankings(rankings: Sequence[Ranking]) -> tuple[Sequence[str], list[tuple[_Ints, _Floats]]]:
    """Return ids with all that rankings found, and the rows and scores of each ranking in them."""
    columns = {n: each.hits for n, each in enumerate(rankings) if isinstance(each.hits, HitColumns)}
    ids = max((hits.ids for hits in columns.values()), key=len, default=[])
    sharing = {number for number, hits in columns.items() if hits.ids is ids or hits.ids == ids}
    row_of: dict[str, int] = {}
    # append the ids of the others that are not in this list
    if len(sharing) < len(rankings):
        row_of = {id: row for row, id in enumerate(ids)}
        for number, ranking in enumerate(rankings):
            if number not in sharing:
                for id in ranking.ids:
                    row_of.setdefault(id, len(row_of))
        ids = ids if len(row_of) == len(ids) else list(row_of)
    lists = []
    for number, ranking in enumerate(rankings):
        if number in sharing and isinstance(ranking.hits, HitColumns):
            rows = np.asarray(ranking.hits.rows, dtype=np.int64)
        else:
            rows = np.fromiter(map(row_of.__getitem__, ranking.ids), np.int64, len(ranking.hits))
        lists.append((rows, ranking_scores(ranking)))
    return ids, lists


def fused_ranking(
    query: Query,
    ids: Sequence[str],
    scores: _Floats,
    inputs: tuple[tuple[float, Ranking], ...],
    found: _Ints | None = None,
) -> Ranking:
    """Build the ranking of ids by score, best first, ties by id. With `found`, only these rows are ranked.

    The ranking keeps the weighted rankings that it was fused from.
    """
    rows = np.arange(len(ids)) if found is None else found
    order = rows[argsort_descending(scores[rows])]
    # most lists of ids ascend, and sorting one that does takes one pass
    if not np.diff(scores[order]).all() and sorted(ids) != ids:
        by_id = np.array(sorted(rows.tolist(), key=ids.__getitem__), np.int64)
        order = by_id[argsort_descending(scores[by_id])]
    return Ranking(query, HitColumns(ids, order, scores[order]), inputs=inputs)


# Named KG-OS presets: the weights of dense, lexical, graph and intent retrieval in a fusion.


@dataclass(frozen=True)
class Weights(CheckedRecord):
    """Weights of the four KG-OS retrievers, with a sum of 1."""

    embedding: float
    text: float
    graph: float
    intent: float


# The tuning table of KG-OS, section 7. "backward-compatible" is not "default" without intent, which would be
# .389/.444/.167.
WEIGHT_PRESETS: Mapping[str, Weights] = {
    "default": Weights(0.35, 0.40, 0.15, 0.10),
    "goal-oriented": Weights(0.25, 0.30, 0.15, 0.30),
    "exact-term": Weights(0.10, 0.65, 0.15, 0.10),
    "exploration": Weights(0.25, 0.25, 0.40, 0.10),
    "highly-connected": Weights(0.35, 0.40, 0.25, 0.00),
    "sparse": Weights(0.45, 0.45, 0.05, 0.05),
    "backward-compatible": Weights(0.40, 0.45, 0.15, 0.00),
}


def normalised_weights(weights: str | Weights, *names: str) -> Weights:
    """Return the weights of some retrievers by a preset or by custom weights, normalised to a sum of 1.

    Retrievers that are not named get 0. Custom weights may have any sum. If none is missing from a preset,
    its weights are returned exactly. Raises UnknownName for an unknown preset, and BadInput if a weight is
    below 0 or no named retriever has a weight above 0.
    """
    if not isinstance(weights, Weights):
        require_known("preset", WEIGHT_PRESETS, weights)
    weight_of = asdict(weights if isinstance(weights, Weights) else WEIGHT_PRESETS[weights])
    selected = {name: weight if name in names else 0.0 for name, weight in weight_of.items()}
    if not any(selected.values()):
        need = "takes at least one retriever that weighs more than 0"
        raise BadInput(f"hybrid({weights!r}) {need} in {Weights(**weight_of)}")
    # no division if nothing is missing, so that a full preset is exact
    full = selected == weight_of and math.isclose(sum(weight_of.values()), 1.0)
    total = 1.0 if full else sum(selected.values())
    return Weights(**{name: weight / total for name, weight in selected.items()})


def hybrid(
    preset: str | Weights,
    *,
    embedding: Stage | None = None,
    text: Stage | None = None,
    graph: Stage | None = None,
    intent: Stage | None = None,
) -> Stage:
    """Fuse retrievers by the KG-OS score: the sum of preset weight times score over maximum.

    The weights of omitted retrievers are shared among the others in proportion. A retriever of weight 0 is
    not run. `preset` may also be custom Weights. Raises UnknownName for an unknown preset, and BadInput as
    `normalised_weights` does.
    """
    retrievers = {"embedding": embedding, "text": text, "graph": graph, "intent": intent}
    given = {name: stage for name, stage in retrievers.items() if stage is not None}
    share = asdict(normalised_weights(preset, *given))
    weighed = [(share[name], stage) for name, stage in given.items() if share[name] > 0]
    return weighted(*weighed, scale="maximum")
