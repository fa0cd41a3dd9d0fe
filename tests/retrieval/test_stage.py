import math

import pytest
from support.searching import const

from kgot_lab.errors import BadInput
from kgot_lab.retrieval.fusion import ranking_scores, rrf, scale_by_range, weighted
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Query, Ranking

WORDS, MEANING = const("words", a=9, b=8), const("meaning", b=0.9, c=0.8)
TEXTS = {
    "rome": "Rome is the capital of Italy. Rome was not built in a day.",
    "oslo": "Oslo is the capital of Norway and its largest city.",
    "fjord": "A fjord is a long narrow inlet; Norway has many, and a fjord may be deep.",
    "none": "Bread is baked from flour and water.",
}
DOCUMENTS = [Document(id, text) for id, text in TEXTS.items()]


def test_then_hands_the_hits_of_one_stage_to_the_next():
    seen = []
    look = Stage("look", lambda ranking: seen.append(ranking.ids) or ranking)
    assert (WORDS >> look).search("?").ids == ["a", "b"] == seen[0]


def test_percent_keeps_the_best_k_and_binds_tighter_than_then():
    assert (WORDS % 1).search("?").ids == ["a"]
    assert (rrf(WORDS, MEANING) >> WORDS % 1).search("?").ids == ["a"]
    assert (WORDS % 9).search("?").ids == ["a", "b"]


def test_a_pipeline_prints_itself():
    boost = Stage("boost(0.2)", lambda ranking: ranking)
    expected = "<weighted(0.7 words, 0.3 meaning) >> boost(0.2) % 100>"
    assert repr(weighted((0.7, WORDS), (0.3, MEANING)) >> boost % 100) == expected
    assert repr((WORDS >> boost) % 5) == "<(words >> boost(0.2)) % 5>"
    assert repr(rrf(WORDS, MEANING)) == "<rrf(words, meaning)>"
    assert repr(rrf(WORDS, MEANING, k=1)) == "<rrf(words, meaning, k=1)>"


def test_a_ranking_names_the_pipeline_and_the_query_it_comes_from():
    ranking = (WORDS % 1).search(Query("who?", id="q1"))
    assert (ranking.system, ranking.query.id) == ("words % 1", "q1")


def test_a_cut_below_one_is_refused():
    with pytest.raises(BadInput, match="1 or more"):
        WORDS % 0


def test_rrf_prefers_the_document_two_lists_agree_on():
    ranking = rrf(WORDS, MEANING).search("?")
    assert ranking.ids == ["b", "a", "c"]
    assert ranking.hits[0].score == pytest.approx(1 / 62 + 1 / 61)


def test_a_retriever_with_one_hit_or_equal_scores_gives_all_of_them_full_marks():
    assert scale_by_range(ranking_scores(const("x", a=3, b=3).search("?"))).tolist() == [1, 1]
    assert scale_by_range(ranking_scores(Ranking(Query("?"), ()))).tolist() == []


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf])
def test_a_weight_that_makes_no_sense_is_refused(weight):
    with pytest.raises(BadInput, match="a weight of"):
        weighted((weight, WORDS))


def lucene(query: list[str], texts: dict[str, list[str]], k1=1.2, b=0.75) -> dict[str, float]:
    mean = sum(map(len, texts.values())) / len(texts)
    scores = dict.fromkeys(texts, 0.0)
    for word in query:
        having = sum(word in words for words in texts.values())
        idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for id, words in texts.items():
            frequency = words.count(word)
            scores[id] += idf * frequency / (frequency + k1 * (1 - b + b * len(words) / mean))
    return {id: score for id, score in scores.items() if score > 0}


def test_bm25_agrees_with_the_formula_written_out():
    lists = {
        "rome": "rome capital italy rome built day".split(),
        "oslo": "oslo capital norway its largest city".split(),
        "fjord": "fjord long narrow inlet norway has many fjord may deep".split(),
        "none": "bread baked from flour water".split(),
    }
    found = {hit.id: hit.score for hit in bm25(DOCUMENTS).search("capital of Norway, fjord").hits}
    assert found == pytest.approx(lucene(["capital", "norway", "fjord"], lists), rel=1e-5)
    assert next(iter(found)) == "fjord"


def test_a_collection_of_stop_words_finds_nothing():
    assert bm25([Document("a", "the and of"), Document("b", "")]).search("the").hits == ()


def test_a_stage_is_equal_to_itself_alone():
    some, others = bm25(DOCUMENTS), bm25(DOCUMENTS[:2])
    assert some.name == others.name and some != others and some == some and len({some, others, some}) == 2
    assert some % 3 != some % 3


@pytest.mark.parametrize("given", [None, ["rome"], {"rome": 1.0}])
def test_a_step_that_gives_no_ranking_is_named(given):
    message = f"the stage 'mine' gave a {type(given).__name__}, not a Ranking; make one with ranked"
    with pytest.raises(BadInput, match=message):
        Stage("mine", lambda ranking: given).search("Norway")
