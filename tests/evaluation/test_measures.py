import random

import pytest
from support.every import every

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.measures import MEASURES, score
from kgot_lab.evaluation.runs import Run
from kgot_lab.types import Hit

pytrec_eval = pytest.importorskip("pytrec_eval")


def found(kept: int = 20, **ids: str) -> Run:
    """A run that found these ids, a letter each."""
    return Run(
        "test",
        "<test>",
        "toy",
        kept,
        {query: tuple(Hit(id, -place) for place, id in enumerate(them)) for query, them in ids.items()},
    )


def random_runs(seed: int) -> tuple[Run, dict[str, dict[str, int]]]:
    generator = random.Random(seed)
    documents = [f"d{number}" for number in range(40)]
    qrels = {
        f"q{number}": {id: generator.choice([0, 1, 1, 2]) for id in generator.sample(documents, 5)}
        for number in range(25)
    }
    hits = {}
    for number in range(2, 30):  # q0 and q1 were not run; q25 to q29 have no qrels
        ids = generator.sample(documents, generator.randint(0, 20))
        # many ties, in no order of ids
        scores = sorted((generator.choice([0.1, 0.2, 0.3]) for _ in ids), reverse=True)
        hits[f"q{number}"] = tuple(map(Hit, ids, scores))
    return Run("random", "<random>", "toy", 20, hits), qrels


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_pytrec_eval_on_rankings_with_ties(seed):
    run, qrels = random_runs(seed)
    theirs = {
        "recall@2": "recall_2",
        "recall@5": "recall_5",
        "recall@10": "recall_10",
        "ndcg@10": "ndcg_cut_10",
        "mrr": "recip_rank",
        "map": "map",
    }
    theirs |= {"precision@3": "P_3", "success@5": "success_5"}
    ours = score(run, qrels, list(theirs))
    places = {
        query: {hit.id: 1000.0 - place for place, hit in enumerate(hits)}
        for query, hits in run.hits.items()
        if hits
    }
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, {"recall.2,5,10", "ndcg_cut.10", "recip_rank", "map", "P.3", "success.5"}
    )
    reference = evaluator.evaluate(places)
    for measure, name in theirs.items():
        expected = {query: reference.get(query, {}).get(name, 0.0) for query in qrels}
        assert dict(ours.per_query(measure)) == pytest.approx(expected, abs=1e-12)
        assert ours.mean(measure) == pytest.approx(sum(expected.values()) / len(qrels))


def test_hits_of_one_score_count_in_our_order_and_not_in_that_of_trec_eval():
    tied = Run("tied", "", "toy", 5, {"q": (Hit("a", 1.0), Hit("b", 1.0))})
    assert score(tied, {"q": {"a": 1}}, ["recall@1"]).mean("recall@1") == 1.0
    assert (
        pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"recall.1"}).evaluate({"q": {"a": 1.0, "b": 1.0}})[
            "q"
        ]["recall_1"]
        == 0.0
    )


def test_a_query_that_was_not_run_counts_zero_and_one_without_qrels_is_left_out():
    scores = score(found(q="a", other="b"), {"lost": {"b": 1}, "q": {"a": 1}})
    for measure in MEASURES:
        assert list(scores.per_query(measure).items()) == [("lost", 0.0), ("q", 1.0)]
        assert scores.mean(measure) == 0.5


def test_a_lenient_count_takes_one_of_a_class_for_another_and_each_class_once():
    classes = {"a": "first", "b": "first", "c": "second"}
    qrels = {"q": {"a": 1, "c": 1}}
    run = found(q="xbac")
    assert score(run, qrels, ["recall@2"]).mean("recall@2") == 0.0
    lenient = score(
        run, qrels, ["recall@2", "recall@3", "recall@4", "all@3", "all@4", "mrr"], classes=classes
    )
    assert lenient.mean("recall@2") == 0.5
    assert lenient.mean("recall@3") == 0.5  # a is the same as b: it keeps its place and adds nothing
    assert (lenient.mean("recall@4"), lenient.mean("all@3"), lenient.mean("all@4"), lenient.mean("mrr")) == (
        1.0,
        0.0,
        1.0,
        0.5,
    )


@every(
    ("measure", "error", "message"),
    [
        ("recall@21", BadInput, "kept 20 hits"),
        ("all@21", BadInput, "kept 20 hits"),
        ("recal@5", UnknownName, "did you mean 'recall'"),
        ("recall", BadInput, r"recall@5"),
        ("recall@0", BadInput, "1 or more"),
        ("recall@-1", BadInput, "1 or more"),
        ("recall@five", BadInput, "1 or more"),
    ],
)
def test_a_measure_that_cannot_be_told_is_refused(measure, error, message):
    with pytest.raises(error, match=message):
        score(found(q="a"), {"q": {"a": 1}}, [measure])


def test_a_run_kept_eight_deep_is_scored_as_deep_as_it_goes():
    shallow = found(kept=8, q="a")
    assert score(shallow, {"q": {"a": 1}}, ["all@8"]).mean("all@8") == 1.0
    with pytest.raises(BadInput, match="kept 8 hits"):
        score(shallow, {"q": {"a": 1}})


def test_scores_can_be_cut_to_a_part_of_the_queries():
    scores = score(found(q="a", r="b"), {"q": {"a": 1}, "r": {"a": 1}}, ["recall@1"])
    assert scores.only({"q"}).mean("recall@1") == 1.0 and scores.only({"r"}).mean("recall@1") == 0.0
    assert repr(scores) == "<test on toy, 2 queries: recall@1 0.500>"
    with pytest.raises(BadInput, match="none of the queries"):
        scores.only({"z"})
    with pytest.raises(UnknownName, match="recall@1"):
        scores.mean("recall@2")


def test_no_qrels_is_an_error():
    with pytest.raises(BadInput, match="no qrels"):
        score(found(q="a"), {})


def test_values_worked_out_by_hand():
    scores = score(
        found(q="xaybz"),
        {"q": {"a": 1, "b": 1, "x": 0}},
        ["recall@2", "all@3", "all@4", "mrr", "mrr@1", "ndcg@10"],
    )
    assert {measure: scores.mean(measure) for measure in ("recall@2", "all@3", "all@4", "mrr", "mrr@1")} == {
        "recall@2": 0.5, "all@3": 0.0, "all@4": 1.0, "mrr": 0.5, "mrr@1": 0.0,
    }  # fmt: skip
    assert scores.mean("ndcg@10") == pytest.approx((1 / 1.5849625 + 1 / 2.3219281) / (1 + 1 / 1.5849625))


def test_a_class_does_not_swallow_a_document_of_the_same_name():
    assert score(found(q="b"), {"q": {"a": 1}}, ["recall@1"], classes={"a": "b"}).mean("recall@1") == 0.0


def test_two_relevant_documents_of_one_class_are_one():
    assert (
        score(found(q="b"), {"q": {"a": 1, "b": 1}}, ["recall@1"], classes={"a": "x", "b": "x"}).mean(
            "recall@1"
        )
        == 1.0
    )
