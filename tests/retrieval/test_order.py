"""Scores in their order, and rankings that were sorted another way before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.every import every

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.embedder import argsort_descending
from kgot_lab.retrieval.lexical import INTENT_VERBS, bm25
from kgot_lab.text.words import searched_words
from kgot_lab.types import full_text

ONES = np.array([0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, np.inf, -np.inf])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@given(st.data())
def test_scores_come_in_the_order_of_a_stable_sort(kind, data):
    width = 8 * np.dtype(kind).itemsize
    some = st.one_of(st.sampled_from(ONES.astype(kind)), st.floats(allow_nan=False, width=width))
    scores = data.draw(arrays(kind, st.integers(0, 40), elements=some))
    assert argsort_descending(scores).tolist() == np.argsort(-scores, kind="stable").tolist()


@every("kind", [np.float32, np.float64, np.int64])
@every("different", [1, 3, 1_000, 10**6])
def test_many_scores_do_too(kind, different):
    scores = np.random.default_rng(different).integers(-different, different, 20_000).astype(kind)
    assert argsort_descending(scores).tolist() == np.argsort(-scores, kind="stable").tolist()


def test_bm25_gives_to_the_last_bit_what_its_words_add_up_to_one_by_one():
    data, emphasis = load_dataset("musique").dev, INTENT_VERBS
    documents = sorted(data.documents[:150], key=lambda document: document.id)
    single = {}

    def of_word(word):
        if word not in single:
            single[word] = {hit.id: np.float32(hit.score) for hit in bm25_plain.search(word).hits}
        return single[word]

    bm25_plain, stage = bm25(documents), bm25(documents, emphasis=emphasis)
    for query in data.queries[::20]:
        sums = {document.id: np.float32(0) for document in documents}
        for word in searched_words(query.text):
            for id, score in of_word(word).items():
                sums[id] += score * np.float32(emphasis.get(word, 1.0))
        expected = sorted(
            ((id, float(score)) for id, score in sums.items() if score > 0),
            key=lambda pair: (-pair[1], pair[0]),
        )
        assert [tuple(hit) for hit in stage.search(query).hits] == expected
    assert any(word in INTENT_VERBS for document in documents for word in searched_words(full_text(document)))
