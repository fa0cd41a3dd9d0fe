"""A trail: what passages go by, who names whom, the features by hand, and the way it takes."""

import json

import numpy as np
import pytest
from support.every import every
from support.searching import Letters, const

from kgot_lab.errors import BadInput
from kgot_lab.retrieval import dense as dense_module
from kgot_lab.retrieval.multihop import retriever
from kgot_lab.retrieval.multihop.features import (
    FEATURES,
    NAME_FEATURES,
    Mentions,
    QuestionFeatures,
    RaggedArray,
    document_names,
)
from kgot_lab.retrieval.multihop.retriever import (
    LEARNED_WEIGHTS,
    WITHOUT_LINKS,
    Scorer,
    build_index,
    load_scorer,
    multihop,
)
from kgot_lab.text.words import searched_words
from kgot_lab.types import Document

FILM = Document(
    "f",
    "The Circus Cyclone is a silent film directed by Albert Rogell and starring Art Acord.",
    "The Circus Cyclone",
)
DIRECTOR = Document(
    "d", "Albert Rogell was a man of many pictures. He was born in Oklahoma City.", "Albert Rogell"
)
ACTOR = Document("a", "Art Acord was an actor and a rodeo champion.", "Art Acord")
OTHER = Document("o", "Cyclones are storms. A circus was destroyed by one.", "Cyclone")
PASSAGES = (FILM, DIRECTOR, ACTOR, OTHER)
QUESTION = "Where was the director of The Circus Cyclone born?"
BY_NAMES_ALONE = Scorer.linear({"own": 1, "asked": 5, "to its title": 3, "beside": 3})


@every(
    ("title", "text", "names"),
    [
        ("The Beatles", "A band.", ("beatles",)),
        ("Frances Howard (died 1628)", "A courtier.", ("frances howard",)),
        (
            "",
            "Albert S. Rogell (August 21, 1901 – 1988) was a director.",
            ("albert s rogell", "albert rogell"),
        ),
        ("", "Sir Whitmore Acton, 4th Baronet, was a man.", ("sir whitmore acton", "whitmore acton")),
        ("", "Torn from the Flag is a 2007 film.", ("torn from the flag",)),
        ("", "Nobody came, that year or in the next one", ("nobody came",)),  # a name too many leads nowhere
        ("", "Many went away", ()),
        ("", "# Notes\n\nAda Byron was a mathematician.", ("ada byron",)),
        ("", "Notes\n- Ada Byron was a mathematician.", ("ada byron",)),
        ("", "he went away, and came back", ()),
        ("", "", ()),
    ],
)
def test_a_passage_goes_by_its_title_or_else_by_what_its_first_sentence_is_about(title, text, names):
    assert document_names(Document("x", text, title)) == names


def test_mentions_say_who_is_called_what_who_holds_it_and_what_stands_beside_it():
    documents = sorted(PASSAGES, key=lambda document: document.id)
    mentions = Mentions(documents)
    name = mentions.names.index("albert rogell")
    pairs = {documents[mentions.row[pair]].id: pair for pair in mentions.name_pairs([name])[0].tolist()}
    assert set(pairs) == {"d", "f"}
    assert mentions.called[pairs["d"]]
    assert not mentions.called[pairs["f"]]
    assert mentions.held[pairs["f"]]
    beside = mentions.beside.reduce(np.ones(len(mentions.stems)), np.add, np.zeros(len(mentions.row)))
    assert "direc" in mentions.stems and beside[pairs["f"]] >= 3
    assert "oklahoma city" not in mentions.names  # it leads nowhere


def test_lists_are_folded_one_by_one_and_an_empty_one_keeps_what_is_given():
    lists = RaggedArray([[0, 2], [], [1]])
    assert lists.reduce(np.array([1.0, 5.0, 3.0]), np.maximum, np.full(3, -1.0)).tolist() == [3.0, -1.0, 5.0]
    assert RaggedArray([]).reduce(np.zeros(1), np.add, np.zeros(0)).size == 0


def features_of(question=QUESTION, passages=PASSAGES):
    documents = sorted(passages, key=lambda document: document.id)
    index = build_index(documents, Letters())
    rows = {document.id: row for row, document in enumerate(documents)}
    return QuestionFeatures(index, question, Letters().embed([question])[0], searched_words(question)), rows


def test_a_passage_that_is_chosen_leads_to_those_it_names_and_the_role_asked_for_stands_beside_one():
    features, rows = features_of()
    column = {feature: number for number, feature in enumerate(FEATURES)}
    assert not features.table()[:, [column[feature] for feature in NAME_FEATURES]].any()
    features.choose(rows["f"])
    table = features.table()
    assert table[rows["d"], column["to its title"]] == table[rows["a"], column["to its title"]] > 0
    assert table[rows["d"], column["beside"]] > table[rows["a"], column["beside"]]  # directed by; starring
    assert not table[rows["o"], column["to its title"]]


def test_words_of_the_question_that_were_found_are_no_longer_open():
    features, rows = features_of("Who destroyed the circus of Oklahoma?")
    before = features.table()[:, FEATURES.index("open words")]
    features.choose(rows["o"])
    after = features.table()[:, FEATURES.index("open words")]
    assert before[rows["o"]] > 0 == after[rows["o"]] and after[rows["d"]] == before[rows["d"]] > 0


def test_a_trail_goes_from_the_film_to_its_director_and_tells_the_way():
    ranking = multihop(PASSAGES, Letters(), BY_NAMES_ALONE).search(QUESTION)
    assert ranking.ids[:2] == ["f", "d"] and set(ranking.ids) == {"f", "d", "a", "o"}
    expected = "The Circus Cyclone --[holds]--> (albert rogell) <--[is called]-- Albert Rogell"
    assert expected in str(ranking.why("d"))


@every(
    ("scores", "first"),
    [
        ({"f": 2, "o": 1}, ["f", "o"]),  # the scorer gains nothing by another than the next one
        ({"o": 2, "f": 1}, ["f", "o"]),  # the first passage is the scorer's
        ({"o": 1}, ["f", "o"]),
    ],
)
def test_an_earlier_ranking_is_kept_where_the_scorer_gains_little(scores, first):
    by_question = Scorer.linear({"asked": 1})
    found = (const("earlier", **scores) >> multihop(PASSAGES, Letters(), by_question)).search(QUESTION)
    assert found.ids[:2] == first and "earlier" in str(found.why("o"))


def test_an_earlier_ranking_gives_way_to_a_link_and_stays_without_a_word():
    stage = const("earlier", f=2, o=1) >> multihop(PASSAGES, Letters(), BY_NAMES_ALONE)
    assert stage.search(QUESTION).ids[:2] == ["f", "d"] and stage.search("?").ids == ["f", "o"]
    with pytest.raises(BadInput, match="none of the documents"):
        (const("earlier", ghost=1) >> multihop(PASSAGES, Letters())).search(QUESTION)


def test_the_order_of_the_documents_is_of_no_account():
    one, other = (multihop(some, Letters()).search(QUESTION) for some in (PASSAGES, PASSAGES[::-1]))
    assert one.hits == other.hits


def test_without_titles_the_first_sentence_names_a_passage():
    bare = [Document(document.id, document.text) for document in PASSAGES]
    assert multihop(bare, Letters(), BY_NAMES_ALONE).search(QUESTION).ids[:2] == ["f", "d"]


@pytest.mark.parametrize("question", ["", "  ", "zzz qqq", "?", "Łódź"])
def test_odd_questions_are_answered_without_an_error(question):
    ranking = multihop(PASSAGES, Letters()).search(question)
    assert bool(ranking.hits) == any(letter.isalpha() for letter in question)
    assert all(np.isfinite(hit.score) for hit in ranking.hits)


@pytest.mark.parametrize("hops", [0, -1, 1.5])
def test_hops_are_one_or_more(hops):
    with pytest.raises(BadInput, match="hops"):
        multihop(PASSAGES, Letters(), hops=hops)


def test_weights_are_kept_to_the_last_figure_and_those_of_other_clues_are_refused():
    scorer = load_scorer()
    again = Scorer.of_json(json.loads(json.dumps(scorer.as_json())))
    table = np.random.default_rng(0).random((5, len(FEATURES)))
    assert np.array_equal(scorer(table), again(table)) and len(scorer.bias) > 0
    with pytest.raises(BadInput, match="other features"):
        Scorer.of_json(scorer.as_json() | {"clues": ["own"]})
    with pytest.raises(BadInput, match="no weights"):
        Scorer.of_json({"clues": list(FEATURES)})
    with pytest.raises(BadInput, match="shapes"):
        Scorer(np.zeros(3), np.zeros((3, 0)), np.zeros(0), np.zeros(0))
    with pytest.raises(BadInput, match="finite"):
        Scorer.linear({"own": float("nan")})


def test_the_control_looks_at_no_name():
    blind, seeing = load_scorer(WITHOUT_LINKS), load_scorer(LEARNED_WEIGHTS)
    table = np.random.default_rng(0).random((5, len(FEATURES)))
    changed = table.copy()
    changed[:, [FEATURES.index(feature) for feature in NAME_FEATURES]] = 0.0
    assert np.allclose(blind(table), blind(changed)) and not np.allclose(seeing(table), seeing(changed))


def test_few_documents_and_empty_ones_are_ranked():
    with pytest.raises(BadInput, match="no documents"):
        multihop([], Letters())
    assert multihop([Document("x", "")], Letters()).search("Who?").ids == ["x"]
    found = set(multihop([Document("x", ""), Document("y", "Ada.")], Letters()).search("Who is Ada?").ids)
    assert found == {"x", "y"}


CROWD = [Document(f"x{number:03}", f"Cyclone {number} met Art Acord in Rome.") for number in range(200)]


def test_of_a_large_collection_a_pool_is_compared_and_the_rest_keeps_the_earlier_order(monkeypatch):
    documents = [*PASSAGES, *CROWD]
    stage = const("earlier", f=300, **{document.id: -row for row, document in enumerate(CROWD)})
    stage >>= multihop(documents, Letters(), BY_NAMES_ALONE)
    exact = stage.search(QUESTION)
    monkeypatch.setattr(retriever, "POOL_ABOVE", 100)
    monkeypatch.setattr(retriever, "_POOL", 20)
    monkeypatch.setattr(retriever, "_LAST", 5)
    pooled = stage.search(QUESTION)
    assert pooled.ids[:3] == exact.ids[:3] and {str(why) for why in pooled.why("d")} == {
        str(why) for why in exact.why("d")
    }
    assert len(set(pooled.ids)) == len(pooled.ids) and {document.id for document in CROWD} < set(pooled.ids)
    assert [score for _, score in pooled.hits] == sorted((score for _, score in pooled.hits), reverse=True)
    rest = pooled.ids[-100:]
    assert rest == sorted(rest)


def test_a_passage_has_the_same_features_among_some_passages_but_for_the_ranges():
    documents = sorted([*PASSAGES, *CROWD], key=lambda document: document.id)
    whole, words = build_index(documents, Letters()), searched_words(QUESTION)
    vector = Letters().embed([QUESTION])[0]
    tables = []
    for rows in (whole.rows, whole.rows[::1].copy(), whole.rows[::3]):
        index = whole if rows is whole.rows else whole.subset(rows, words)
        features = QuestionFeatures(index, QUESTION, vector, words)
        features.choose(0)
        tables.append(features.table())
    assert np.array_equal(tables[0], tables[1])
    exact = [FEATURES.index(feature) for feature in ("asked", "to its title", "from its text", "beside")]
    assert np.allclose(tables[0][::3, exact], tables[2][:, exact])


def test_in_a_very_large_collection_the_best_documents_of_the_hybrid_have_both_scores(monkeypatch):
    letters = np.random.default_rng(0).choice([*"abcdefghijklmnop"], (300, 12))
    many = [Document(f"x{row:03}", f"{' '.join(text)} Cyclone.") for row, text in enumerate(letters)]
    documents = [*PASSAGES, *many]
    exact = retriever.convex_hybrid(documents, Letters()).search(QUESTION)
    for module in (retriever, dense_module):
        monkeypatch.setattr(module, "SIGN_BITS_FROM", 100)
    monkeypatch.setattr(retriever, "_KEPT", 20)
    monkeypatch.setattr(dense_module, "_CANDIDATES", 40)
    stage = retriever.convex_hybrid(documents, Letters())
    hybrid = stage.search(QUESTION)
    assert 40 <= len(hybrid.ids) < 100 < len(exact.ids) and hybrid.ids[:3] == exact.ids[:3]
    scores = dict(exact.hits)
    assert all(abs(score - scores[id]) < 0.05 for id, score in hybrid.hits[:10])
    assert stage.search("xyzzy").ids and not stage.search(" ").ids
