"""Links by a local model's triples: which passages it is given, what is kept of its replies, and what the
table says of them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput
from kgot_lab.experiments.experts.replies import whole_lines
from kgot_lab.experiments.recall.model_triples import (
    POOLED,
    ReadPool,
    pools,
    questions_in,
    triples_grids,
    triples_measured,
    triples_read,
)
from kgot_lab.llm.scripted import Scripted
from kgot_lab.types import Document

ADA = Document("p1", "Ada worked with Charles Babbage.\nShe wrote notes.", "Ada Lovelace")
BOB = Document("p2", "Bob sleeps.", "Bob")


@pytest.fixture(scope="module")
def brought():
    return pools(minilm())


def as_rows(brought, questions, model="a model"):
    """The triples that GPT-3.5 took, as if a model had taken them."""
    triples = load_dataset("musique").triples
    documents = [document for _, some in brought[:questions] for document in some]
    told = {
        document.id: [list(triple.identity) for triple in triples.get(document.id, ())]
        for document in documents
    }
    return [
        {"passage": id, "model": model, "triples": some, "refused": 0, "cut": False, "seconds": 1.0}
        for id, some in told.items()
    ]


def test_a_question_brings_all_its_relevant_passages_and_no_passage_comes_twice(brought):
    qrels, there = load_dataset("musique").qrels, set()
    for query, some in brought:
        new = {document.id for document in some}
        assert len(new) == len(some) <= POOLED + len(qrels[query]) and not new & there
        there |= new
        assert set(qrels[query]) <= there
    assert len(brought) == 100


def test_a_reply_is_kept_as_far_as_the_passage_says_it_and_a_passage_that_was_read_is_not_asked_again():
    model = Scripted(
        ["Ada Lovelace | worked with | Charles Babbage\nAda Lovelace | born in | London\nno triple"],
        "a scripted model",
    )
    (row,) = triples_read(model, [BOB, ADA], kept={"p2"})
    assert (
        row["passage"] == "p1"
        and row["triples"] == [["Ada Lovelace", "worked with", "Charles Babbage"]]
        and row["refused"] == 1
    )
    assert (
        model.asked[0].messages[-1].text == "[Ada Lovelace] Ada worked with Charles Babbage. She wrote notes."
    )


def test_the_same_triples_by_another_maker_find_the_same_and_those_of_other_passages_do_not(brought):
    pool = ReadPool.of(as_rows(brought, 12), brought)
    for grid in triples_grids(pool, triples_measured(pool, minilm()))[:2]:
        found = {(row[0].text, row[1].text): [cell.text for cell in row[2:]] for row in grid.rows}
        for system in ("follow, triples", "pagerank, triples"):
            assert found[(system, "the model")] == found[(system, "GPT-3.5")]
    assert (
        found[("follow, triples", "the model")] != found[("follow, triples", "the model, shuffled")]
    )  # without titles nothing else links


def test_a_question_counts_once_all_its_passages_are_read(brought):
    rows = as_rows(brought, 3)
    assert [query.id for query in ReadPool.of(rows[:-1], brought).data.queries] == sorted(
        (query for query, _ in brought[:2]), key=[query.id for query in load_dataset("musique").queries].index
    )
    with pytest.raises(BadInput, match="passages of 1 questions have been read"):
        ReadPool.of(as_rows(brought, 1), brought)


def test_a_model_none_of_whose_triples_were_kept_is_told_so(brought):
    with pytest.raises(BadInput, match="no triple was kept"):
        ReadPool.of([row | {"triples": []} for row in as_rows(brought, 3)], brought)


def test_what_the_graphs_hold_is_counted_by_hand(brought):
    pool = ReadPool.of(as_rows(brought, 4), brought)
    (held,) = triples_grids(pool, {})
    model, gpt = (
        [cell.text for cell in row[1:]] for row in held.rows if row[0].text in ("the model", "GPT-3.5")
    )
    assert model == gpt and gpt[2] == "1.000"
    many = [len(some) for some in pool.triples["GPT-3.5"].values()]
    assert gpt[0] == f"{sum(many) / len(many):.1f}"


def test_the_summary_says_what_the_receipts_give(brought):
    folder = Path(__file__).parents[2] / "benchmarks" / "results" / "model_triples"
    rows, told = (
        whole_lines(folder / "triples.jsonl", dict),
        (folder / "summary.md").read_text(encoding="utf-8"),
    )
    for model, found in json.loads((folder / "measured.json").read_text(encoding="utf-8")).items():
        asked = questions_in(found)
        pool = ReadPool.of([row for row in rows if row["model"] == model], brought[: len(asked)])
        assert {query.id for query in pool.data.queries} == asked
        assert all(grid.markdown in told for grid in triples_grids(pool, found))
