"""Questions split into hops: what a model's reply counts for, and what the hops say of a passage."""

import json
from pathlib import Path

import numpy as np
from support.searching import Letters

from benchmarks.standard_sets.splitting import (
    HOP_CLUES,
    SPLIT_BY_HAND,
    SPLIT_SETS,
    UNSPLIT,
    HopClues,
    split_questions,
    splits_grid,
)
from kgot_lab.benchmark.recall.datasets import hops_by_hand, load_dataset
from kgot_lab.retrieval.multihop.features import CLUES, Clues
from kgot_lab.retrieval.multihop.retriever import trail_index
from kgot_lab.text.words import searched_words
from kgot_lab.types import Document, Query, Reply, Usage

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
DOCUMENTS = [
    Document("a", "Kato wrote Red Harbour in 1931.", "Red Harbour"),
    Document("b", "Kato was born in Osaka.", "Kato"),
    Document("c", "Cats sleep all day.", "Cat"),
]
QUESTION = Query("Where was the author of Red Harbour born?", "q")
HOPS = ("Who wrote Red Harbour?", "Where was #1 born?")
LETTERS = Letters()
INDEX = trail_index(DOCUMENTS, LETTERS)


class Says:
    name = "says"

    def __init__(self, *replies):
        self._replies = iter(replies)

    def __call__(self, prompt):
        return Reply(next(self._replies), Usage(200, 20, 1.5))


def column(clues, name):
    return clues.table()[:, len(CLUES) + HOP_CLUES.index(name)]


def test_a_reply_that_is_a_chain_gives_its_hops_and_another_gives_none_with_what_each_cost():
    model = Says("1. Who wrote Red Harbour?\n2. Where was #1 born?", "I cannot split this.")
    chain, none = split_questions(model, [QUESTION, Query("Why?", "w")])
    assert chain == {
        "question": "q",
        "model": "says",
        "hops": list(HOPS),
        "seconds": 1.5,
        "read": 200,
        "written": 20,
    }
    assert none["hops"] == []


def test_the_clues_of_a_question_stay_as_they_are_and_those_of_its_hops_come_after_them():
    plain = Clues(INDEX, QUESTION.text, LETTERS.embed([QUESTION.text])[0], searched_words(QUESTION.text))
    split = HopClues(INDEX, QUESTION, HOPS, LETTERS)
    assert split.table().shape == (3, len(CLUES) + len(HOP_CLUES))
    np.testing.assert_allclose(split.table()[:, : len(CLUES)], plain.table(), atol=1e-6)


def test_a_hop_that_a_chosen_passage_answers_counts_less_and_the_other_stays_open():
    clues = HopClues(INDEX, QUESTION, HOPS, LETTERS)
    before = column(clues, "words of an open hop").copy()
    assert before[0] > before[2] and before[1] > 0
    clues.choose(0)
    after = column(clues, "words of an open hop")
    assert after[0] < before[0] and after[1] == before[1]
    assert column(clues, "open hop, linked")[1] > column(clues, "open hop, linked")[2] == 0


def test_a_question_that_was_not_split_is_its_own_hop():
    (one, other) = (HopClues(INDEX, QUESTION, hops, LETTERS).table() for hops in ((), (QUESTION.text,)))
    assert np.array_equal(one, other)


def test_musique_says_of_each_of_its_questions_how_it_was_composed():
    by_hand = hops_by_hand()
    for name in SPLIT_SETS:
        data = load_dataset(name)
        assert all(len(by_hand[query.id]) == int(data.types[query.id][0]) for query in data.queries)
        assert not any("#" in by_hand[query.id][0] for query in data.queries)


def test_the_table_pairs_each_split_with_questions_that_are_not_split():
    ids = [query.id for query in load_dataset("musique").develop.queries[:8]]
    found = {
        "musique": {UNSPLIT: dict.fromkeys(ids, 0.5), SPLIT_BY_HAND: {**dict.fromkeys(ids, 0.5), ids[0]: 1.0}}
    }
    grid = splits_grid(found)
    assert [cell.text for cell in grid.rows[0]] == ["musique", UNSPLIT, "8", ".500", "", "", ""]
    assert [cell.text for cell in grid.rows[1]][:5] == ["musique", SPLIT_BY_HAND, "8", ".562", "+.062"]


def test_the_page_says_what_the_receipts_of_split_questions_give():
    found = json.loads((RESULTS / "standard_sets" / "split.json").read_text(encoding="utf-8"))
    page = " ".join((RESULTS.parents[1] / "docs" / "recall.md").read_text(encoding="utf-8").split())
    told = page.partition("split the question into hops first?")[2].partition("Tried on develop questions")[0]
    for row in splits_grid({"musique-498": found["musique-498"]}).rows:
        _, _, _, reached, more, span, _ = (cell.text for cell in row)
        assert f"{more} [{span.replace(' to ', ', ')}]" in told if more else reached in told
