"""Near vectors by their signs alone: never far off, and the nearest are among them."""

import numpy as np
import pytest

from benchmarks.join.join_vectors import clustered
from kgot_lab.embedding import embedder as signs
from kgot_lab.embedding.embedder import SignBits
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput
from kgot_lab.retrieval import dense as lanes
from kgot_lab.retrieval.dense import dense, dense_from_vectors
from kgot_lab.types import Document

pytestmark = pytest.mark.skipif(not signs.CAN_COUNT_BITS, reason="numpy before 2 counts no bits")


@pytest.mark.parametrize("width", [8, 64, 100, 384, 768])
def test_products_by_signs_are_near_and_without_bias(width):
    matrix = clustered(3_000, width, 1)
    asked = matrix[7]
    wrong = SignBits(matrix).approximate_products(asked) - (matrix - matrix.mean(axis=0)) @ asked
    others = np.arange(len(matrix)) != 7
    assert abs(wrong[others].mean()) < 0.3 / width**0.5 and wrong[others].std() < 1.0 / width**0.5


def test_the_ten_nearest_are_among_the_candidates():
    matrix = clustered(20_000, 384, 3)
    bits, held = SignBits(matrix), []
    for row in range(0, 20_000, 500):
        nearest = np.argsort(-(matrix @ matrix[row]))[:10]
        found = bits.nearest(matrix[row], 500)
        assert len(found) >= 500 and (np.diff(found) > 0).all()
        held.append(np.isin(nearest, found).mean())
    assert np.mean(held) > 0.98


@pytest.mark.parametrize("rows", [np.zeros((5, 64)), np.eye(64)[[3] * 5], np.eye(64)[:1]])
def test_blank_vectors_and_vectors_that_are_all_the_same_have_numbers(rows):
    bits = SignBits(rows.astype(np.float32))
    assert np.isfinite(bits.approximate_products(np.eye(64, dtype=np.float32)[3])).all()
    assert bits.nearest(np.zeros(64, np.float32), 1).tolist() == list(range(len(rows)))
    assert bits.nearest(np.eye(64, dtype=np.float32)[3], 100).tolist() == list(range(len(rows)))


class Listed:
    """An embedder whose texts are the numbers of the rows of a matrix."""

    name, digest = "listed", "0" * 64

    def __init__(self, matrix):
        self.matrix, self.dimension = matrix, matrix.shape[1]

    def embed(self, texts):
        return self.matrix[[int(text) for text in texts]]


def test_a_large_collection_is_searched_by_signs_first_and_ranked_by_cosines(monkeypatch):
    matrix = clustered(3_000, 384, 4)
    matrix[100] = matrix[200]  # a tie
    embedder, documents = Listed(matrix), [Document(f"d{row:04d}", str(row)) for row in range(len(matrix))]
    exact = dense(documents, embedder, keep=20)
    monkeypatch.setattr(lanes, "SIGN_BITS_FROM", 1_000)
    monkeypatch.setattr(lanes, "_CANDIDATES", 300)
    rough = dense(documents, embedder, keep=20)
    stored = StoredVectors.of([document.id for document in documents], matrix, model="listed")
    of_vectors = dense_from_vectors(stored, embedder, keep=20)
    forced = dense(documents, embedder, keep=20, exact=True)
    same = 0
    for asked in ["200", *map(str, range(0, 3_000, 100))]:
        wanted, found = exact.search(asked), rough.search(asked)
        assert len(found.hits) == 20 and found == of_vectors.search(asked)
        assert dict(found.hits) == pytest.approx(
            {id: float(matrix[int(id[1:])] @ matrix[int(asked)]) for id in found.ids}, abs=1e-6
        )
        assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
        assert forced.search(asked) == wanted
        same += len(set(wanted.ids[:10]) & set(found.ids[:10]))
    assert same / 310 > 0.98
    assert rough.search("200").ids[:2] == ["d0100", "d0200"] and str(rough) == str(exact)
    assert dense(documents, embedder).search("200") == lanes.dense(documents, embedder, exact=True).search(
        "200"
    )
    with pytest.raises(BadInput, match="keep"):
        dense(documents, embedder, keep=0)
