"""The retrieval explorer: scores of presets.hybrid to the last bit, parts that add up, gold that is found,
and no input that breaks it.
"""

import json
import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace

import pytest
from support.every import every
from support.searching import const

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.retrieval.entity_linking import title_graph
from kgot_lab.retrieval.fusion import WEIGHT_PRESETS, Weights, hybrid, weighted
from kgot_lab.retrieval.lexical import bm25, like
from kgot_lab.retrieval.neighbours import boosted_neighbours
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Hit, Query, Ranking
from kgot_lab.viz import live
from kgot_lab.viz.explorer.explorer import Retrievers, explore, explore_dataset
from kgot_lab.viz.explorer.fusion_weights import Mix
from kgot_lab.viz.explorer.hits import excerpt, mark_words
from kgot_lab.viz.external_requests import find_external_requests

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "</title></text></script><script>alert(1)</script><img src=//e.example onerror=x>\"'&"
DOCUMENTS = [
    Document("lovelace", "She wrote the first program for a machine that was never built.", "Ada Lovelace"),
    Document("engine", "A machine of brass wheels, designed by Charles Babbage.", "Analytical Engine"),
    Document("babbage", "A London mathematician who hated street music.", "Charles Babbage"),
    Document("loom", "Punched cards told the loom which threads to lift.", "Jacquard loom"),
    Document("byron", "A poet, and the father of Ada Lovelace.", "Lord Byron"),
]
QUESTION = Query("Who designed the machine?", "q1")
QRELS = {"q1": {"engine": 1, "babbage": 1, "loom": 0}}
WORDS, LETTERS = bm25(DOCUMENTS), like(DOCUMENTS)
RETRIEVERS = Retrievers(text=WORDS, graph=boosted_neighbours(title_graph(DOCUMENTS), LETTERS), intent=LETTERS)
SMALL = explore(RETRIEVERS, DOCUMENTS, queries=[QUESTION, "Who made cloth with cards?"], qrels=QRELS)


def wish(explorer, **changes):
    """What a browser says whose controls stand where the explorer's do, but for some changes."""
    return {"n": 1, "wish": {"question": explorer.question.text, **explorer.mix.to_json, **changes}}


def asked(explorer, **changes):
    """The answer to it as the browser gets it, while the explorer stays as it is."""
    return json.loads(json.dumps(explorer.but().handle_message(wish(explorer, **changes))))["answer"]


def texts(shown) -> str:
    """What is shown as text and in the pictures of it, which are embedded."""
    html = shown._repr_html_()
    pictures = (b64decode(content).decode() for content in re.findall(r"base64,([^\"]*)", html))
    return " ".join([html, *pictures])


@pytest.fixture(scope="module")
def dataset():
    return load_dataset("hotpotqa").dev


@pytest.fixture(scope="module")
def real(dataset):
    return explore_dataset(dataset)


# --- scores ---


@pytest.mark.parametrize("preset", WEIGHT_PRESETS)
def test_the_scores_are_those_of_the_preset_to_the_last_bit(real, dataset, preset):
    retrievers = real._searches.retrievers
    stage = hybrid(preset, **retrievers.available)
    for query in dataset.queries[:6]:
        expected = stage.search(query)
        there = real.but(question=query.text, preset=preset, k=20)
        assert there.ranking.hits == expected.hits[:20]
        assert there.stage.name == f"{stage.name} % 20" == there.ranking.system
        assert [(hit["id"], hit["score"]) for hit in asked(there)["hits"]] == [
            tuple(hit) for hit in expected.hits[:20]
        ]


def test_the_pipeline_that_is_shown_finds_what_is_shown(real):
    there = real.but(weights=Weights(0.55, 0.2, 0.7, 0.1), k=7)
    assert there.stage.search(there.question) == there.ranking and len(there.ranking.hits) == 7
    assert there.ranking.why(there.ranking.ids[0])


def test_weights_are_shares_of_one_and_those_of_missing_retrievers_go_to_the_others():
    there = SMALL.but(weights=Weights(1, 0.6, 0.2, 0))
    assert (
        there.stage.name
        == weighted((0.6 / 0.8, WORDS), (0.2 / 0.8, RETRIEVERS.graph), scale="maximum").name + " % 10"
    )
    assert {
        name: retriever["share"] for name, retriever in asked(there)["retrievers"].items()
    } == pytest.approx({"text": 0.75, "graph": 0.25, "intent": 0})
    off = asked(there, off=["graph"])
    assert off["retrievers"]["text"]["share"] == 1
    assert [hit["id"] for hit in off["hits"]] == WORDS.search(QUESTION).ids


def test_the_parts_of_a_score_add_up_and_say_where_they_come_from(real):
    for hit in asked(real, k=50)["hits"]:
        assert sum(part["value"] for part in hit["parts"]) == pytest.approx(hit["score"], abs=1e-12)
    there = real.but(k=50)
    counted = {name: real._searches.retrievers.available[name] for name in ("embedding", "text", "graph")}
    for hit in there._searches.hits(there._searches.search_mix(there.question, there.mix)[0], 50):
        for part in hit.parts:
            found = counted[part.retriever].search(real.question)
            assert (part.rank == 0 and part.value == 0) or found.hits[part.rank - 1] == (hit.id, part.score)


def test_each_retriever_is_searched_once_for_a_question():
    searches = []

    def step(ranking: Ranking) -> Ranking:
        searches.append(ranking.query.text)
        return Ranking(ranking.query, (Hit("loom", 1.0),))

    explorer = explore(Retrievers(text=Stage("counted", step), intent=LETTERS), DOCUMENTS, queries=["cards"])
    for number in range(20):
        asked(explorer, weights={"embedding": 0, "text": number / 20, "graph": 0, "intent": 0.5})
    asked(explorer, question="loom")
    asked(explorer, question="cards")
    assert searches == ["cards", "loom"]


# --- what is said of hits ---


def test_gold_is_counted_as_the_benchmark_counts_it(real, dataset):
    for query in dataset.queries[:6]:
        there = real.but(question=query.text, k=5)
        measured = score(
            run(there.stage, [query], keep=5), {query.id: dataset.qrels[query.id]}, ["recall@5"]
        ).mean("recall@5")
        answer = asked(there)
        assert f"(recall@5 = {measured:.2f})" in answer["told"]
        relevant = {id for id, grade in dataset.qrels[query.id].items() if grade > 0}
        assert {hit["id"] for hit in answer["hits"] if hit["gold"]} == relevant & set(there.ranking.ids)


def test_gold_is_said_in_words_with_what_is_missed_and_where_it_stands():
    assert (
        asked(SMALL, k=1)["told"]
        == "1 of 2 gold in the first 1, at rank 1 (recall@1 = 0.50). Missed: “Charles Babbage” (rank 2)."
    )
    assert asked(SMALL)["told"] == "2 of 2 gold in the first 10, at ranks 1 and 2 (recall@10 = 1.00)."
    assert (
        asked(SMALL, question="who wrote it")["told"]
        == "No passages are marked as relevant to this question."
    )
    far = explore(RETRIEVERS, DOCUMENTS, queries=[QUESTION], qrels={"q1": {"loom": 1, "gone": 2}})
    assert "0 of 2 gold" in asked(far)["told"]
    assert "(not found), “gone” (not among the documents)" in asked(far)["told"]


def test_a_hit_says_how_it_moved_since_the_sliders_were_set():
    first = {"text": 1, "graph": 0, "intent": 0, "embedding": 0}
    only = {"text": 0, "graph": 0, "intent": 1, "embedding": 0}
    retrievers = Retrievers(
        text=const("a", loom=3, byron=2, engine=1), intent=const("b", engine=3, loom=2, babbage=1)
    )
    explorer = explore(retrievers, DOCUMENTS, queries=["x"])
    before = {"weights": first, "off": [], "k": 10}
    moved = {hit["id"]: hit["moved"] for hit in asked(explorer, weights=only, before=before)["hits"]}
    assert (moved["engine"]["text"], moved["engine"]["there"]) == ("▲ up 2", 3)
    assert (moved["loom"]["text"], moved["loom"]["there"]) == ("▼ down 1", 1)
    assert moved["babbage"]["text"] == "+ new"
    assert all(
        hit["moved"]["kind"] == "same" for hit in asked(explorer, weights=first, before=before)["hits"]
    )
    assert all(hit["moved"] is None for hit in asked(explorer, weights=first)["hits"])


def test_a_path_through_the_graph_stands_with_the_hit_it_led_to():
    paths = {hit["id"]: hit["path"] for hit in asked(SMALL, question="Analytical Engine")["hits"]}
    assert paths["babbage"] == "Analytical Engine --[mentions]--> Charles Babbage" and paths["engine"] == ""


def test_the_words_of_the_question_are_marked_and_nothing_else():
    snippet = next(hit["snippet"] for hit in asked(SMALL)["hits"] if hit["id"] == "engine")
    assert [text for text, is_marked in snippet if is_marked] == ["machine", "designed"]
    assert "".join(text for text, _ in snippet) == DOCUMENTS[1].text
    pieces = (("The ", False), ("machine", True), ("-made ", False), ("Machine", True))
    assert mark_words("The machine-made Machine", {"machine"}) == pieces


def test_an_excerpt_holds_the_words_of_the_question_and_is_cut_between_words():
    text = "Filler words go here. " * 40 + "The brass wheels of the engine. " + "And more of it. " * 40
    cut = excerpt(text, {"brass", "engine"}, 120)
    assert "brass wheels of the engine" in cut and cut.startswith("… ") and cut.endswith(" …")
    assert len(cut) <= 124
    assert excerpt("short", {"x"}) == "short" and excerpt("no match " * 100, {"x"}, 50).startswith("no match")
    assert len(excerpt("x" * 1000, {"x"}, 50)) <= 54


# --- two systems ---


def test_two_systems_stand_side_by_side_with_the_hits_that_differ():
    other = const("other", byron=3, engine=2, babbage=1)
    explorer = explore(
        RETRIEVERS,
        DOCUMENTS,
        queries=[QUESTION],
        qrels=QRELS,
        systems={"words": WORDS, "other": lambda: other},
    )
    answer = asked(explorer, a={"system": "words"}, b={"system": "other"}, k=2)
    a, b = answer["sides"]
    assert "of the sliders only k changes them" in answer["notes"][0]
    moves = [
        [(hit["id"], hit["moved"]["text"], hit["moved"]["there"]) for hit in side["hits"]] for side in (a, b)
    ]
    assert WORDS.search(QUESTION).ids == ["engine", "babbage", "lovelace"]
    assert moves[0] == [("engine", "▼ down 1", 2), ("babbage", "− gone", 3)]
    assert moves[1] == [("byron", "+ new", 0), ("engine", "▼ down 1", 1)]
    assert (a["title"], b["title"], b["stage"]) == ("words", "other", "other")
    assert a["told"].startswith("2 of 2 gold in the first 2")
    assert b["told"].startswith("1 of 2 gold in the first 2, at rank 2")


def test_kept_weights_stand_beside_the_sliders():
    kept = {"weights": {"embedding": 0, "text": 1, "graph": 0, "intent": 0}, "off": [], "k": 3}
    a, b = asked(SMALL, a=kept, k=5)["sides"]
    assert a["stage"] == "weighted(1 bm25, scale=maximum) % 5" and b["stage"] == SMALL.but(k=5).stage.name
    assert all(hit["parts"] for hit in (*a["hits"], *b["hits"]))
    up = next(hit for hit in a["hits"] if hit["id"] == "engine")
    assert up["moved"]["text"] == "= same"


# --- what cannot be ---


def test_a_blank_question_is_answered_in_words():
    for question in ("", "   \n"):
        answer = asked(SMALL.but(question="loom"), question=question)
        assert answer["hits"] == [] and answer["told"] == "" and "blank" in answer["notes"][0]
    bare = explore(RETRIEVERS, DOCUMENTS)
    assert bare.ranking.hits == () and "blank" in texts(bare.picture)
    assert len(bare.table().sheets[0].rows) == 0


def test_weights_that_are_all_zero_are_answered_in_words():
    zero = dict.fromkeys(("embedding", "text", "graph", "intent"), 0)
    answer = asked(SMALL, weights=zero)
    assert answer["hits"] == []
    assert answer["notes"] == ["All weights are 0: raise a slider (β text, γ graph, δ intent)."]
    assert asked(SMALL, off=["text", "graph", "intent"])["notes"] == [
        "All retrievers are switched off: switch one on."
    ]
    nowhere = SMALL.but(weights=Weights(0.5, 0, 0, 0))
    assert "All weights are 0" in texts(nowhere.picture) and "no retriever" in texts(nowhere.picture)
    with pytest.raises(BadInput, match="All weights are 0"):
        _ = nowhere.ranking


def test_an_unknown_preset_and_weights_out_of_bounds_say_what_is_known():
    with pytest.raises(UnknownName, match="unknown preset 'defualt'; did you mean 'default'"):
        SMALL.but(preset="defualt")
    with pytest.raises(UnknownName, match="unknown retriever 'words'"):
        SMALL.but(off=["words"])
    with pytest.raises(UnknownName, match="unknown retriever 'words'"):
        explore({"words": const("words", a=1)}, [])
    assert "UnknownName" in explore.__doc__
    for weights in (Weights(2, 0, 0, 0), Weights(1, 1, 1, 1.1)):
        with pytest.raises(BadInput, match="from 0 to 1"):
            SMALL.but(weights=weights)
    for k in (0, 51, True, 2.5):
        with pytest.raises(BadInput, match=r"between 1 and 50|a whole number"):
            SMALL.but(k=k)


def test_ids_that_occur_twice_are_refused():
    with pytest.raises(BadInput, match="document ids occur more than once"):
        explore(RETRIEVERS, [*DOCUMENTS, DOCUMENTS[0]])
    with pytest.raises(BadInput, match="query ids occur more than once, for example 'q1'"):
        explore(RETRIEVERS, DOCUMENTS, queries=[QUESTION, replace(QUESTION, text="another")])
    with pytest.raises(BadInput, match="no documents"):
        explore(RETRIEVERS, [])
    with pytest.raises(BadInput, match="at least one retriever"):
        Retrievers()


def broken(ranking: Ranking) -> Ranking:
    raise ZeroDivisionError("no luck")


def test_a_retriever_that_breaks_is_left_out_with_its_reason_and_its_weight_goes_to_the_others():
    twice = Stage("twice", lambda ranking: Ranking(ranking.query, (Hit("loom", 1.0), Hit("loom", 0.5))))
    explorer = explore(
        Retrievers(text=WORDS, graph=Stage("broken", broken), intent=twice), DOCUMENTS, queries=[QUESTION]
    )
    answer = asked(explorer)
    assert [hit["id"] for hit in answer["hits"]] == WORDS.search(QUESTION).ids
    assert answer["retrievers"]["text"]["share"] == 1
    assert (
        answer["notes"][0]
        == "The graph retriever could not search: the stage 'broken' failed on 'Who designed the machine?': ZeroDivisionError: no luck"
    )
    assert (
        "The intent retriever could not search: 1 ids of a ranking occur more than once, for example 'loom'"
        in answer["notes"][1]
    )
    assert explorer.stage.name == "weighted(1 bm25, scale=maximum) % 10"
    alone = explore(Retrievers(text=Stage("broken", broken)), DOCUMENTS, queries=["x"])
    assert "No retriever could search" in " ".join(asked(alone)["notes"])


def test_a_system_that_breaks_or_is_unknown_is_answered_in_words():
    explorer = explore(
        RETRIEVERS,
        DOCUMENTS,
        queries=[QUESTION],
        systems={"bad": Stage("bad", broken), "unbuilt": lambda: 1 / 0},
    )
    for name in ("bad", "unbuilt", "nobody"):
        assert name in asked(explorer, a={"system": name})["trouble"]


@pytest.mark.parametrize("nonsense", [{}, {"question": 3}])
def test_a_wish_without_a_question_is_not_answered(nonsense):
    assert SMALL.but().handle_message({"n": 1, "wish": nonsense}) == {}


@every(
    "nonsense",
    [{"question": "x"}, {"question": "x", "weights": {"embedding": "much"}, "off": [], "k": 3},
     {"question": "x", "weights": {"alpha": 1}, "off": [], "k": 3}, {"question": "x", "weights": None, "off": None, "k": None},
     {"question": "x", **Mix().to_json, "before": {"weights": 1}}, {"question": "x", **Mix().to_json, "a": {"weights": {}}},
     {"question": "x", **Mix().to_json, "off": ["nobody"]}, {"question": "x", **Mix().to_json, "k": 10**9}],
)  # fmt: skip
def test_nonsense_from_a_browser_is_told_and_changes_nothing(nonsense):
    explorer = SMALL.but()
    assert explorer.handle_message({"n": 1, "wish": nonsense})["answer"]["trouble"]
    assert (explorer.question, explorer.mix) == (SMALL.question, SMALL.mix)


# --- in Python and on paper ---


def test_what_the_reader_did_is_known_in_python():
    explorer = SMALL.but()
    weights = {"embedding": 0, "text": 0.5, "graph": 0, "intent": 0}
    answer = explorer.handle_message(wish(explorer, question="loom cards", k=3, weights=weights))
    assert answer["n"] == 1
    assert explorer.question.text == "loom cards"
    assert explorer.ranking.ids == WORDS.search("loom cards").ids[:3]
    assert (
        repr(explorer)
        == "<Explorer of 5 documents, 2 questions, retrievers text, graph, intent; own weights, k=3: 'loom cards'>"
    )
    assert SMALL.question is QUESTION


def test_the_table_holds_the_exact_numbers():
    table = SMALL.table()
    (sheet,) = table.sheets
    assert sheet.columns == ("rank", "title", "gold", "score", "β text", "γ graph", "δ intent", "path")
    assert sheet.rows[0][:3] == ("1", "Analytical Engine", "gold")
    assert float(sheet.rows[0][3]) == pytest.approx(SMALL.ranking.hits[0].score, abs=1e-4)
    assert sheet.rows[2][5] == "0 (not found)"
    assert sheet.rows[0][6] == "0.154 = 0.15 × 1.000 (score 2, rank 1)"


def test_the_picture_says_what_is_shown_without_a_browser(real):
    picture = real.picture
    said, html = texts(picture), picture._repr_html_()
    assert real.question.text in said and "★ gold" in said and "recall@10" in said and "strongest" in said
    assert "counts 0.39" in said and f"{real.ranking.hits[0].score:.3f}" in said
    assert "<b>demon</b>" in html and "path: Alû --[mentions]--&gt; Lilu (mythology)" in html
    assert find_external_requests(html) == () and 'data-picture="' in html
    assert repr(picture) == repr(real.table())
    assert real.picture._repr_html_() == html != real.but(k=3).picture._repr_html_()


def test_texts_stay_texts():
    evil = [Document("e", f"{EVIL} machine", EVIL), Document(EVIL, "a machine")]
    retrievers = Retrievers(text=bm25(evil), graph=const(EVIL, e=1))
    explorer = explore(retrievers, evil, queries=[f"machine {EVIL}"], systems={EVIL: bm25(evil)})
    drawing = explorer._data()["first"]["pipeline"]
    tags = {node.tag.removeprefix(SVG) for node in ET.fromstring(drawing).iter()}
    assert not tags & {"script", "img"} and find_external_requests(drawing) == ()
    shown = explorer.picture._repr_html_()
    assert "<script" not in shown and "//e.example onerror" in shown and find_external_requests(shown) == ()
    place = live.placeholder(explorer._data())
    assert "<script>alert" not in place and place.count("</script>") == 1


def test_no_held_out_question_is_shown(real):
    held_out = load_dataset("hotpotqa").held_out
    shown = json.dumps(real._data())
    assert len(real._data()["questions"]) == 60
    assert not any(json.dumps(query.text)[1:-1] in shown for query in held_out.queries)


def test_a_document_nobody_knows_is_shown_by_its_id():
    stray = explore(Retrievers(text=const("stray", nobody=1.0)), DOCUMENTS, queries=["x"])
    (hit,) = asked(stray)["hits"]
    assert hit["name"] == "nobody" and "not among the documents" in hit["snippet"][0][0]


def test_a_question_that_finds_nothing_is_answered_in_words():
    answer = asked(SMALL, question="xylophone")
    assert answer["hits"] == []
    assert answer["notes"] == ["No retriever found anything for this question: try other words."]
    assert "No retriever found anything" in texts(SMALL.but(question="xylophone").picture)


def test_more_hits_than_documents_are_asked_for_without_harm():
    everything = const("all", **{document.id: 1.0 for document in DOCUMENTS})
    answer = asked(explore(Retrievers(text=everything), DOCUMENTS, queries=["x"]), k=50)
    assert len(answer["hits"]) == 5
    assert answer["notes"] == ["k is 50, and there are 5 hits: that is every document."]


def test_with_all_four_retrievers_a_preset_is_undivided():
    retrievers = {
        "embedding": WORDS,
        "text": LETTERS,
        "graph": const("g", loom=2),
        "intent": const("i", byron=1),
    }
    there = explore(Retrievers(**retrievers), DOCUMENTS, queries=["machine"]).but(preset="goal-oriented")
    assert there.ranking.hits == hybrid("goal-oriented", **retrievers).search("machine").hits
    assert repr(there.stage) == repr(hybrid("goal-oriented", **retrievers) % 10)
