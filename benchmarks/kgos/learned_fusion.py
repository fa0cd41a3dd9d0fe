"""Learned fusion: fixed weights of retrievers, learned from queries with known relevant documents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.errors import BadInput, describe_value, require, require_amount, require_count
from kgot_lab.retrieval.fusion import fused_ranking, merge_rankings, scale_by_range
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Json, Query, Ranking

_Floats = NDArray[np.float64]
_RRF_K = 60  # as in reciprocal rank fusion
# Chosen among the best of 72 settings in cross-validation on the tuning half of the curated graph. The
# differences between these are not significant.
POOL, L2 = 10, 10.0
_NEWTON_STEPS = 50  # of Newton's method, which needs about ten


@dataclass(frozen=True)
class LearnedFusion:
    """Learned weights: for each retriever those of its score and its rank, and a common bias.

    `pool` is how many hits of each retriever are used, `queries` how many queries it was learned on. Raises
    BadInput for a weight that is not finite, no or duplicate retrievers, a number of weights other than that
    of retrievers, and a pool or queries below 1.
    """

    lanes: tuple[str, ...]
    scores: tuple[float, ...]
    ranks: tuple[float, ...]
    bias: float
    pool: int
    queries: int

    def __post_init__(self) -> None:
        for name in ("lanes", "scores", "ranks"):
            require(getattr(self, name), tuple, f"the {name} of a learned fusion are in a tuple")
        are_names = bool(self.lanes) and all(isinstance(lane, str) for lane in self.lanes)
        if not are_names or len(set(self.lanes)) < len(self.lanes):
            problem = "the retrievers of a learned fusion are one name or more"
            raise BadInput(f"{problem}, each once, not {describe_value(self.lanes)}")
        for name in ("scores", "ranks"):
            if len(getattr(self, name)) != len(self.lanes):
                problem = f"a learned fusion has as many {name} as lanes, {len(self.lanes)}"
                raise BadInput(f"{problem}, not {len(getattr(self, name))}")
        for weight in (*self.scores, *self.ranks, self.bias):
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not math.isfinite(weight):
                problem = "the weights of a learned fusion are finite numbers"
                raise BadInput(f"{problem}, not {describe_value(weight)}")
        require_count(self.pool, 1, "pool", "it is how many hits of each retriever are used")
        require_count(self.queries, 1, "queries", "it is on how many a fusion was learnt")

    def as_json(self) -> dict[str, Json]:
        """Return the fusion as JSON values."""
        fields = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}

    @staticmethod
    def of_json(values: Mapping[str, Json]) -> LearnedFusion:
        """Build a fusion from the values that `as_json` returned.

        Raises BadInput for anything else.
        """
        source = "a learned fusion is read from an object, as LearnedFusion(…).as_json() gives it"
        require(values, Mapping, source)
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        try:
            return LearnedFusion(**{**values, **lists})
        except TypeError as error:
            problem = f"this is no learned fusion ({error})"
            raise BadInput(f"{problem}; LearnedFusion(…).as_json() gives one") from None


def learned(retrievers: Mapping[str, Stage], fusion: LearnedFusion) -> Stage:
    """Fuse retrievers with learned weights, by logistic regression over scores and ranks.

    score(d) = 1 / (1 + exp(-(bias + sum over retrievers of w * score + v * rank))). The score of a retriever
    is scaled to 0..1 by its range, and its rank is 61 / (60 + rank). Both are 0 for a document that the
    retriever did not find. Documents that are in the first `pool` of no retriever are not ranked. Raises
    BadInput if a retriever that the fusion was learned with is missing.
    """
    require(fusion, LearnedFusion, "a fusion is what learn_fusion() gives")
    _check_retrievers(retrievers)
    if missing := [name for name in fusion.lanes if name not in retrievers]:
        problem = f"the fusion was learnt with {', '.join(missing)}"
        raise BadInput(f"{problem}, which is not among the retrievers {', '.join(retrievers)}")
    stages = [retrievers[name] for name in fusion.lanes]
    weights = np.array([*fusion.scores, *fusion.ranks])

    def step(ranking: Ranking) -> Ranking:
        found = [stage(ranking) for stage in stages]
        ids, features = pooled_features(found, fusion.pool)
        scores = 1 / (1 + np.exp(-(features @ weights + fusion.bias)))
        return fused_ranking(ranking.query, ids, scores, tuple(zip(fusion.scores, found, strict=True)))

    return Stage(f"learned({', '.join(fusion.lanes)}; {fusion.queries} queries)", step)


def learn_fusion(
    retrievers: Mapping[str, Stage],
    queries: Iterable[Query],
    relevant: Mapping[str, Iterable[str] | Mapping[str, int]],
    *,
    pool: int = POOL,
    l2: float = L2,
) -> LearnedFusion:
    """Learn the weights of retrievers by a logistic regression over their scores and ranks.

    `relevant` maps the id of a query to the ids of relevant documents, or to grades, of which those above 0
    are relevant. Each document in the first `pool` of any retriever is an example, relevant or not. Raises
    BadInput without a retriever, without a query, or if no retriever finds anything relevant.
    """
    require_count(pool, 1, "pool", "it is how many hits of each retriever are used")
    _check_retrievers(retrievers)
    require(relevant, Mapping, "relevant has the ids of documents for the id of each query")
    queries = tuple(queries)
    for query in queries:
        require(query, Query, "a fusion is learnt from queries with ids, as in [Query('who?', 'q1')]")
    if not retrievers or not queries:
        problem = "a fusion is learnt from one retriever or more"
        raise BadInput(f"{problem}, and from queries whose answers are known")
    tables, labels = list[_Floats](), list[_Floats]()
    for query in queries:
        ids, features = pooled_features([retriever.search(query) for retriever in retrievers.values()], pool)
        relevant_ids = _relevant_ids(relevant.get(query.id, ()), query)
        tables.append(features)
        labels.append(np.array([id in relevant_ids for id in ids], np.float64))
    weights, bias = fit_logistic(np.concatenate(tables), np.concatenate(labels), l2)
    rounded = tuple(round(float(weight), 6) for weight in weights)  # so stored weights are those used
    names, scores, ranks = tuple(retrievers), rounded[: len(retrievers)], rounded[len(retrievers) :]
    return LearnedFusion(names, scores, ranks, round(bias, 6), pool, len(queries))


def _check_retrievers(retrievers: object) -> None:
    require(retrievers, Mapping, 'retrievers are stages by their names, as in {"words": bm25(documents)}')
    for stage in retrievers.values():  # type: ignore[attr-defined]
        require(stage, Stage, "a retriever is a stage")


def _relevant_ids(relevant: object, query: Query) -> set[str]:
    if isinstance(relevant, str) or not isinstance(relevant, Iterable):
        problem = f"what is relevant to {query.id!r} are ids in a set or a list"
        raise BadInput(f"{problem}, or grades by id, not {describe_value(relevant)}")
    if isinstance(relevant, Mapping):
        return {id for id, grade in relevant.items() if grade > 0}
    return set(relevant)


def pooled_features(rankings: Sequence[Ranking], pool: int) -> tuple[list[str], _Floats]:
    """Return the documents in the first `pool` of any ranking, and their features.

    The features have one column a ranking for its score, then one a ranking for its rank.
    """
    ids, lists = merge_rankings(rankings)
    features = np.zeros((len(ids), 2 * len(rankings)))
    kept = np.zeros(len(ids), bool)
    for column, (rows, scores) in enumerate(lists):
        features[rows, column] = scale_by_range(scores)
        features[rows, len(rankings) + column] = (_RRF_K + 1) / (_RRF_K + np.arange(1, len(rows) + 1))
        kept[rows[:pool]] = True
    some = np.flatnonzero(kept)
    return [ids[row] for row in some.tolist()], features[some]


def fit_logistic(features: ArrayLike, answers: ArrayLike, l2: float) -> tuple[_Floats, float]:
    """Fit the weights and the bias of a regularised logistic regression by Newton's method.

    Maximises the log likelihood less l2 / 2 times the sum of squared weights, each measured in standard
    deviations of its feature. The bias is not penalised. The maximum is unique, so the result is
    deterministic. Raises BadInput if the shapes do not match, if all answers are equal, if the features are
    too large for their spread to be finite, or if `l2` is not a number above 0.
    """
    require_amount(l2, "l2", positive=True)  # separable examples have no optimum without it
    table, targets = np.asarray(features, np.float64), np.asarray(answers, np.float64)
    if table.ndim != 2 or targets.shape != table.shape[:1] or not np.isfinite(table).all():
        problem = "features must be finite numbers of shape (examples, features)"
        raise BadInput(f"{problem}, not {table.shape} for {targets.shape} answers")
    if not len(targets) or targets.min() != 0 or targets.max() != 1:
        raise BadInput("to learn takes examples that are right and examples that are not")
    with np.errstate(over="ignore", invalid="ignore"):
        means, deviations = table.mean(axis=0), table.std(axis=0)
    if not np.isfinite([means, deviations]).all():
        problem = f"features of a size of {np.abs(table).max():.3g} are too large to learn from"
        raise BadInput(f"{problem}: scale them first")
    deviations[deviations < 1e-12] = 1.0  # a constant feature gets weight 0
    design = np.hstack([(table - means) / deviations, np.ones((len(table), 1))])
    penalties = np.full(design.shape[1], l2)
    penalties[-1] = 0.0
    weights = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        probabilities = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (targets - probabilities) - penalties * weights
        hessian = (design * (probabilities * (1 - probabilities))[:, None]).T @ design + np.diag(penalties)
        step = np.linalg.solve(hessian, gradient)
        # far from the maximum a whole step can overshoot
        weights = weights + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(step).max() < 1e-9:
            break
    unscaled = weights[:-1] / deviations
    return unscaled, float(weights[-1] - unscaled @ means)
