import math
import random

import numpy as np
import pytest
from support.every import every
from support.searching import const

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.retrieval.fusion import WEIGHT_PRESETS, Weights, fused_ranking, hybrid, rrf, strongest, weighted
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Hit, Query, Ranking, ranked


def scores(stage: Stage) -> dict[str, float]:
    return dict(stage.search("?").hits)


WORDS, MEANING = const("words", a=9, b=6), const("meaning", b=0.8, c=0.4, d=-0.4)
NOTHING = const("nothing")
FUSIONS = {
    "range": lambda *retrievers: weighted(*((0.5, retriever) for retriever in retrievers)),
    "maximum": lambda *retrievers: weighted(*((0.5, retriever) for retriever in retrievers), scale="maximum"),
    "rrf": rrf,
    "strongest": strongest,
}


# --- against a plain reference ---


def retrievers_of_chance(seed: int) -> list[dict[str, float]]:
    chance = random.Random(seed)
    return [
        {f"d{n}": round(chance.uniform(-1, 1), 1) for n in chance.sample(range(60), chance.randint(0, 40))}
        for _ in range(3)
    ]


def plain_range(scores: dict[str, float]) -> dict[str, float]:
    low, high = min(scores.values(), default=0), max(scores.values(), default=0)
    return {id: (score - low) / (high - low) if high > low else 1.0 for id, score in scores.items()}


def plain_maximum(scores: dict[str, float]) -> dict[str, float]:
    high = max(scores.values(), default=0)
    return {id: max(score, 0) / high if high > 0 else 0.0 for id, score in scores.items()}


def summed(parts: list[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for id, score in part.items():
            total[id] = total.get(id, 0.0) + score
    return total


@every("seed", range(20))
def test_fusions_agree_to_the_last_bit_with_loops_over_dictionaries(seed):
    retrievers = retrievers_of_chance(seed)
    stages, query = (
        [const(str(number), **retriever) for number, retriever in enumerate(retrievers)],
        Query("?"),
    )
    by_rank = [
        {id: 1 / (60 + rank) for rank, id in enumerate(ranked(query, retriever).ids, start=1)}
        for retriever in retrievers
    ]
    shares = (0.5, 0.3, 0.2)
    for scale, scaled in (("range", plain_range), ("maximum", plain_maximum)):
        expected = summed(
            [
                {id: share * score for id, score in scaled(retriever).items()}
                for share, retriever in zip(shares, retrievers, strict=True)
            ]
        )
        found = weighted(*zip(shares, stages, strict=True), scale=scale).search("?").hits
        assert found == ranked(query, expected).hits
    assert rrf(*stages).search("?").hits == ranked(query, summed(by_rank)).hits
    best = {
        id: max(plain_maximum(retriever).get(id, 0) for retriever in retrievers)
        for id in {id for retriever in retrievers for id in retriever}
    }
    assert strongest(*stages).search("?").hits == ranked(query, best).hits


# --- what holds for every fusion ---


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
def test_a_fusion_of_nothing_found_is_empty_and_an_empty_retriever_changes_nothing(fuse):
    assert fuse(NOTHING, NOTHING).search("?").hits == ()
    assert fuse(WORDS, NOTHING).search("?").ids == WORDS.search("?").ids


@every("fuse", FUSIONS.values(), ids=FUSIONS)
@every("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_a_finite_number_is_refused(fuse, score):
    broken = Stage("broken", lambda ranking: Ranking(ranking.query, (Hit("a", 1), Hit("b", score))))
    with pytest.raises(BadInput, match="a score is a finite number; document 'b' has"):
        fuse(WORDS, broken).search("?")


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
def test_a_retriever_that_finds_a_document_twice_is_refused(fuse):
    twice = Stage("twice", lambda ranking: Ranking(ranking.query, (Hit("a", 1), Hit("a", 0.5))))
    with pytest.raises(BadInput, match="ids of a ranking occur more than once, for example 'a'"):
        fuse(WORDS, twice).search("?")


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
def test_ties_are_broken_by_id(fuse):
    assert fuse(const("x", z=1, m=1, a=1)).search("?").ids[:1] == ["a"]
    assert fuse(const("x", b=1, z=2), const("y", a=1, z=2)).search("?").ids == ["z", "a", "b"]


@pytest.mark.parametrize("fuse", FUSIONS.values(), ids=FUSIONS)
def test_a_fused_hit_is_explained_by_every_retriever_that_found_it(fuse):
    reasons = fuse(WORDS, MEANING).search("?").why("b")
    assert [(r.retriever, r.score, r.rank) for r in reasons] == [("words", 6, 2), ("meaning", 0.8, 1)]
    assert [reason.retriever for reason in fuse(WORDS, MEANING).search("?").why("a")] == ["words"]


def test_the_weights_of_an_explanation_multiply_downwards():
    text = strongest(WORDS, const("fts5", b=1))
    ranking = (weighted((0.7, MEANING), (0.3, text)) % 2).search("?")
    expected = [("meaning", 0.7), ("words", 0.3), ("fts5", 0.3)]
    assert [(reason.retriever, reason.weight) for reason in ranking.why("b")] == expected
    assert {reason.weight for reason in rrf(WORDS, MEANING).search("?").why("b")} == {1}


def test_a_fusion_prints_the_whole_pipeline():
    fusion = weighted((0.4, MEANING), (0.6, strongest(WORDS, NOTHING)), scale="maximum") % 10
    assert repr(fusion) == "<weighted(0.4 meaning, 0.6 strongest(words, nothing), scale=maximum) % 10>"


def test_an_unknown_scale_or_no_retriever_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'maximum'"):
        weighted((1, WORDS), scale="maximal")
    with pytest.raises(BadInput, match="at least one"):
        strongest()


# --- presets ---

GRAPH, INTENT = const("graph", b=1, e=0.5), const("intent", e=1)
RETRIEVERS = {"embedding": MEANING, "text": WORDS, "graph": GRAPH, "intent": INTENT}


def test_the_weights_of_every_preset_add_up_to_1():
    assert len(WEIGHT_PRESETS) == 7
    for weights in WEIGHT_PRESETS.values():
        assert weights.embedding + weights.text + weights.graph + weights.intent == pytest.approx(1)


def test_the_default_preset_is_the_sum_written_out():
    expected = {"a": 0.4, "b": 0.35 + 0.4 * 6 / 9 + 0.15, "c": 0.35 / 2, "d": 0, "e": 0.15 / 2 + 0.1}
    assert scores(hybrid("default", **RETRIEVERS)) == pytest.approx(expected)


def test_the_backward_compatible_preset_is_exact_and_does_not_ask_for_intent():
    stage = hybrid("backward-compatible", **RETRIEVERS)
    assert repr(stage) == "<weighted(0.4 meaning, 0.45 words, 0.15 graph, scale=maximum)>"
    assert [reason.weight for reason in stage.search("?").why("b")] == [0.40, 0.45, 0.15]


def test_the_weight_of_a_missing_retriever_is_shared_out_in_proportion():
    stage = hybrid("default", embedding=MEANING, text=WORDS, graph=GRAPH)
    weights = [reason.weight for reason in stage.search("?").why("b")]
    assert weights == pytest.approx([0.35 / 0.9, 0.40 / 0.9, 0.15 / 0.9])
    assert scores(hybrid("sparse", text=WORDS)) == pytest.approx({"a": 1, "b": 6 / 9})


def test_an_unknown_preset_or_no_retriever_that_counts_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'sparse'"):
        hybrid("spars", text=WORDS)
    with pytest.raises(BadInput, match="at least one retriever"):
        hybrid("default")
    with pytest.raises(BadInput, match="at least one retriever"):
        hybrid("highly-connected", intent=INTENT)


def test_presets_cannot_be_changed():
    with pytest.raises(AttributeError):
        WEIGHT_PRESETS["default"].text = 1
    assert WEIGHT_PRESETS["exploration"] == Weights(0.25, 0.25, 0.40, 0.10)


def test_ties_are_by_id_even_where_the_ids_do_not_ascend():
    found = fused_ranking(Query("?"), ["c", "a", "b", "d"], np.array([1.0, 1.0, 2.0, 1.0]), ())
    assert found.ids == ["b", "a", "c", "d"]
