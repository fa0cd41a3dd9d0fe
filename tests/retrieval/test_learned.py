"""A fusion that is learnt: the weights beside those of a minimiser, what is learnt from which lane, and what
is refused.
"""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
from support.every import every

from benchmarks.kgos.learned_fusion import (
    LearnedFusion,
    fit_logistic,
    learn_fusion,
    learned,
    pooled_features,
)
from kgot_lab.errors import BadInput
from kgot_lab.retrieval.lexical import ranked_by_score
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Query, Ranking

IDS = [f"d{number:02}" for number in range(20)]
QUERIES = [Query(f"query {number}", f"q{number}") for number in range(12)]
GOLD = {query.id: {random.Random(query.id).choice(IDS)} for query in QUERIES}


def lane(name: str, how: str) -> Stage:
    """A lane that finds the right ones, or draws lots, the same in every run."""

    def step(ranking: Ranking) -> Ranking:
        chance = random.Random(f"{name} {ranking.query.id}")
        scores = np.array([chance.random() + (how == "right" and id in GOLD[ranking.query.id]) for id in IDS])
        return ranked_by_score(ranking.query, IDS, scores)

    return Stage(name, step)


LANES = {"right": lane("right", "right"), "noise": lane("noise", "noise")}


# --- the weights ---


def test_the_weights_are_those_at_which_a_minimiser_ends():
    chance = np.random.default_rng(0)
    table = chance.normal(size=(300, 4)) * [1, 10, 0.1, 3] + [0, 5, 0, -2]
    right = (table @ [1.0, -0.2, 5.0, 0.1] + chance.logistic(size=300) > 0).astype(float)
    weights, bias = fit_logistic(table, right, 2.0)
    middle, spread = table.mean(axis=0), table.std(axis=0)

    def loss(given):
        scores = (table - middle) / spread @ given[:-1] + given[-1]
        return np.logaddexp(0, -np.where(right == 1, scores, -scores)).sum() + (given[:-1] ** 2).sum()

    minimize = pytest.importorskip("scipy.optimize").minimize
    there = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    assert weights == pytest.approx(there[:-1] / spread, rel=1e-4)
    assert bias == pytest.approx(there[-1] - (there[:-1] / spread) @ middle, rel=1e-3)


def test_what_can_be_told_apart_by_one_number_has_finite_weights_and_a_feature_that_is_everywhere_the_same_has_none():
    table = np.array([[value, 7.0] for value in (-3, -2, -1, 1, 2, 3)])
    weights, bias = fit_logistic(table, [0, 0, 0, 1, 1, 1], 1e-3)
    assert 0 < weights[0] < 100 and weights[1] == 0 and math.isfinite(bias)
    assert ((table @ weights + bias > 0) == [False, False, False, True, True, True]).all()


@every(
    ("features", "answers", "l2", "said"),
    [
        ([[1.0], [2.0]], [1, 1], 1.0, "examples that are not"),
        (np.zeros((0, 2)), [], 1.0, "examples that are right"),
        ([1.0, 2.0], [0, 1], 1.0, r"of shape \(examples, features\)"),
        ([[1.0], [2.0]], [0, 1, 1], 1.0, "for .3,. answers"),
        ([[math.nan], [2.0]], [0, 1], 1.0, "finite"),
        ([[1.0], [2.0]], [0, 1], 0.0, "l2 must be a number, more than 0"),
        ([[1.0], [2.0]], [0, 1], math.nan, "l2 must be a number, more than 0"),
        ([[1.0], [2.0]], [0, 1], math.inf, "l2 must be a number, more than 0"),
        ([[1e300], [-1e300]], [0, 1], 1.0, "too large to learn from"),
    ],
)
def test_what_cannot_be_learnt_from_is_refused(features, answers, l2, said):
    with pytest.raises(BadInput, match=said):
        fit_logistic(features, answers, l2)


# --- a fusion ---


def test_the_lane_that_finds_the_right_ones_counts_and_noise_does_not():
    fusion = learn_fusion(LANES, QUERIES, GOLD)
    assert fusion.lanes == ("right", "noise") and fusion.queries == len(QUERIES)
    assert fusion.scores[0] + fusion.ranks[0] > 5 * abs(fusion.scores[1] + fusion.ranks[1])
    stage = learned(LANES, fusion)
    for query in QUERIES:
        assert stage.search(query).ids[0] in GOLD[query.id]


def test_the_order_of_the_queries_changes_nothing_and_neither_does_a_file():
    fusion = learn_fusion(LANES, QUERIES, GOLD)
    other = learn_fusion(LANES, reversed(QUERIES), GOLD)
    expected = pytest.approx((*other.scores, *other.ranks, other.bias), abs=1e-5)
    assert (*fusion.scores, *fusion.ranks, fusion.bias) == expected
    assert LearnedFusion.of_json(json.loads(json.dumps(fusion.as_json()))) == fusion


def test_a_score_is_the_logistic_of_the_weighted_scores_and_ranks():
    fusion = LearnedFusion(("right", "noise"), (2.0, -1.0), (0.5, 3.0), -1.0, 4, 1)
    found = learned(LANES, fusion).search(QUERIES[0])
    lists = {name: stage.search(QUERIES[0]) for name, stage in LANES.items()}
    for id, score in found.hits:
        total = fusion.bias
        for name, weight, rank_weight in zip(fusion.lanes, fusion.scores, fusion.ranks, strict=True):
            scores = [each for _, each in lists[name].hits]
            place = lists[name].ids.index(id)
            total += weight * (scores[place] - min(scores)) / (
                max(scores) - min(scores)
            ) + rank_weight * 61 / (61 + place)
        assert score == pytest.approx(1 / (1 + math.exp(-total)))


def test_what_no_lane_has_among_its_first_is_not_ranked():
    fusion = LearnedFusion(("right", "noise"), (1.0, 1.0), (1.0, 1.0), 0.0, 3, 1)
    pools = {id for stage in LANES.values() for id in stage.search(QUERIES[0]).ids[:3]}
    assert set(learned(LANES, fusion).search(QUERIES[0]).ids) == pools
    ids, features = pooled_features([stage.search(QUERIES[0]) for stage in LANES.values()], 3)
    assert set(ids) == pools
    assert features.shape == (len(pools), 4)
    assert features.min() >= 0
    assert features.max() == 1


def test_a_lane_that_is_missing_no_lane_no_query_no_answer_and_no_fusion_are_refused():
    fusion = learn_fusion(LANES, QUERIES, GOLD)
    with pytest.raises(BadInput, match="learnt with noise, which is not among the retrievers right"):
        learned({"right": LANES["right"]}, fusion)
    for lanes, queries in (({}, QUERIES), (LANES, [])):
        with pytest.raises(BadInput, match="from one retriever or more, and from queries"):
            learn_fusion(lanes, queries, GOLD)
    with pytest.raises(BadInput, match="examples that are right"):
        learn_fusion(LANES, QUERIES, {})
    with pytest.raises(BadInput, match="pool"):
        learn_fusion(LANES, QUERIES, GOLD, pool=0)
    with pytest.raises(BadInput, match="this is no learned fusion"):
        LearnedFusion.of_json({"weights": [1]})


def test_a_graded_answer_counts_from_a_grade_above_0():
    graded = {
        id: {right: 2, "d19" if right != "d19" else "d18": 0}
        for id, (right,) in ((id, tuple(right)) for id, right in GOLD.items())
    }
    assert learn_fusion(LANES, QUERIES, graded) == learn_fusion(LANES, QUERIES, GOLD)


@every(
    ("lanes", "queries", "relevant", "said"),
    [
        ([LANES["right"]], QUERIES, GOLD, "retrievers are stages by their names"),
        ({"right": print}, QUERIES, GOLD, "a retriever is a stage"),
        (LANES, ["query 1"], GOLD, "queries with ids"),
        (LANES, QUERIES, [GOLD], "relevant has the ids"),
        (LANES, QUERIES, {"q0": "d01"}, "ids in a set or a list, or grades by id, not a str"),
        (LANES, QUERIES, {"q0": 3}, "ids in a set or a list, or grades by id, not 3"),
    ],
)
def test_what_is_no_lane_query_or_answer_is_told(lanes, queries, relevant, said):
    with pytest.raises(BadInput, match=said):
        learn_fusion(lanes, queries, relevant)


@every(
    ("part", "value", "said"),
    [
        ("scores", [math.nan, 1.0], "finite numbers, not nan"),
        ("ranks", [1.0, "2"], "finite numbers, not a str"),
        ("bias", math.inf, "finite numbers, not inf"),
        ("scores", [1.0], "as many scores as lanes, 2, not 1"),
        ("lanes", ["right", "right"], "each once"),
        ("lanes", [], "one name or more"),
        ("lanes", "right", "in a tuple"),
        ("pool", 0, "pool must be 1 or more"),
        ("queries", 0, "queries must be 1 or more"),
    ],
)
def test_a_file_that_holds_no_fusion_is_refused(part, value, said):
    whole = LearnedFusion(("right", "noise"), (2.0, -1.0), (0.5, 3.0), -1.0, 4, 1).as_json()
    assert LearnedFusion.of_json(whole).lanes == ("right", "noise")
    with pytest.raises(BadInput, match=said):
        LearnedFusion.of_json({**whole, part: value})
    for none in ([1], None, "fusion"):
        with pytest.raises(BadInput, match="read from an object"):
            LearnedFusion.of_json(none)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="what learn_fusion"):
        learned(LANES, whole)  # type: ignore[arg-type]
