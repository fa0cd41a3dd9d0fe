"""Synthetic passages, their vectors, and the measurement of growth."""

import collections
import json

import numpy as np
import pytest

from benchmarks.recall import growth as growth_room
from benchmarks.recall.growth import (
    RETRIEVERS,
    SyntheticVectors,
    measure_growth,
    reachable_bytes,
    synthetic,
    synthetic_title,
    synthetic_word,
)
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.text.words import searched_words
from kgot_lab.types import full_text

SMALL = synthetic(1_000, 20)


def test_the_same_numbers_give_the_same_passages_and_others_do_not():
    assert synthetic(1_000, 20) == SMALL
    assert synthetic(1_000, 20, seed=1).documents != SMALL.documents


def test_words_follow_zipfs_law():
    counts = collections.Counter(word for d in SMALL.documents for word in searched_words(d.text))
    first, tenth, hundredth = (counts[synthetic_word(rank - 1)] for rank in (1, 10, 100))
    assert 7 < first / tenth < 14 and 6 < tenth / hundredth < 15


def test_the_first_passage_has_the_rare_words_and_names_the_second():
    by_id = {document.id: document for document in SMALL.documents}
    words_of = {document: set(searched_words(document.text)) for document in SMALL.documents}
    for query in SMALL.queries:
        rare = set(query.text.split()[:2])
        both = [document for document, its in words_of.items() if rare <= its]
        one = [document for document, its in words_of.items() if len(rare & its) == 1]
        assert len(both) == 1 and len(one) == 2
        second = by_id[next(id for id in SMALL.qrels[query.id] if id != both[0].id)]
        assert second.title in both[0].text and both[0].id in SMALL.qrels[query.id]


def test_vectors_have_length_one_and_depend_on_the_words_alone():
    texts = [full_text(document) for document in SMALL.documents[:50]]
    rows = SyntheticVectors().embed(texts)
    assert rows.shape == (50, 384) and rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert np.array_equal(SyntheticVectors().embed(texts[::-1]), rows[::-1])
    assert np.allclose(
        SyntheticVectors().embed(["a b", "B a."]) @ SyntheticVectors().embed(["b a"])[0], 1, atol=1e-6
    )
    assert not SyntheticVectors().embed(["", "..."]).any() and SyntheticVectors(16).embed([]).shape == (0, 16)


# -----------------------------------------------------------------------------------------------------------


def test_growth_measures_in_processes_and_resumes(tmp_path, monkeypatch):
    file, told = tmp_path / "rows" / "scale.jsonl", []
    rows = measure_growth(
        [400], ["bm25", "embeddings"], file=file, queries=10, progress=lambda *state: told.append(state)
    )
    assert told == [(0, 2, "bm25 over 400 passages"), (1, 2, "embeddings over 400 passages"), (2, 2, "done")]
    assert [json.loads(line) for line in file.read_text().splitlines()] == rows
    assert all(
        row["queries"] == 10 and row["p95_ms"] >= row["median_ms"] > 0 and row["index_s"] > 0 for row in rows
    )
    assert rows[0]["recall@10"] >= 0.5 and rows[1]["index_mb"] >= 400 * 384 * 4 / 1e6
    monkeypatch.setattr(growth_room, "_measure_in_process", lambda *_: pytest.fail("measured again"))
    assert measure_growth([400], ["bm25", "embeddings"], file=file, queries=10) == rows


def test_a_lane_that_fails_says_so_and_is_not_kept(tmp_path):
    rows = measure_growth([2], ["bm25"], file=tmp_path / "scale.jsonl", queries=1)
    assert "four passages a query" in rows[0]["error"] and not (tmp_path / "scale.jsonl").exists()


@pytest.mark.parametrize("lane", RETRIEVERS)
def test_every_lane_of_the_benchmark_finds_planted_answers(lane):
    stage = RETRIEVERS[lane](SMALL)
    found = [len(set(stage.search(q).ids[:10]) & set(SMALL.qrels[q.id])) / 2 for q in SMALL.queries]
    assert sum(found) / len(found) >= 0.1  # ten of a thousand passages by chance are 0.01


def test_held_bytes_counts_what_a_function_closes_over_once():
    numbers, text = np.zeros(10_000), "x" * 5_000
    view = numbers[10:]

    def keeps():
        return numbers, view, text

    held = reachable_bytes(keeps)
    assert 85_000 < held < 88_000
    assert reachable_bytes(keeps, excluding=numbers) < 8_000


def test_a_line_cut_short_is_measured_again(tmp_path, monkeypatch):
    file = tmp_path / "scale.jsonl"
    row = {"lane": "bm25", "passages": 400, "asked": 10}
    file.write_text(json.dumps({**row, "passages": 40}) + "\n" + json.dumps(row)[:-3])
    monkeypatch.setattr(growth_room, "_measure_in_process", lambda *_: row)
    assert measure_growth([400], ["bm25"], file=file, queries=10) == [row]
    assert [json.loads(line)["passages"] for line in file.read_text().splitlines()] == [40, 400]


def test_an_unknown_lane_and_a_strange_file_are_refused(tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'bm25'"):
        measure_growth([400], ["bm52"])
    (tmp_path / "notes").write_text("hello\n")
    with pytest.raises(BadInput, match="line 1 is not a row"):
        measure_growth([400], ["bm25"], file=tmp_path / "notes")


def test_vectors_of_another_dimension_have_another_digest():
    assert SyntheticVectors(64).digest != SyntheticVectors().digest
    with pytest.raises(BadInput, match="at least 8 dimensions"):
        SyntheticVectors(4)


def test_words_and_titles_differ_by_number_and_survive_the_tokenizer():
    made = [synthetic_word(number) for number in range(52**3)]
    assert len(set(made)) == len(made) and searched_words(" ".join(made[:10_000])) == made[:10_000]
    found = len({synthetic_title(number) for number in range(0, 5_000_000, 97)})
    assert found == len(range(0, 5_000_000, 97))
