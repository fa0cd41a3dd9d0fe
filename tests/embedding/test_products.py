"""One vector times many, without the threads of a BLAS."""

import numpy as np
import pytest
from support.every import every

from kgot_lab.embedding import embedder as products
from kgot_lab.embedding.embedder import row_products


def vectors(rows: int, width: int) -> np.ndarray:
    made = np.random.default_rng(rows * width).standard_normal((rows, width), dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@every("width", [1, 7, 100, 384, 512, 768, 1024, 3072, 9000])
@every("rows", [0, 1, 5, 16, 17, 333, 2000])
def test_rows_are_multiplied_in_blocks_as_they_are_whole(rows, width):
    matrix, vector = vectors(rows, width), vectors(2, width)[1]
    found = row_products(matrix, vector)
    assert found.dtype == np.float32 and found.shape == (rows,)
    assert np.abs(found - matrix.astype(float) @ vector.astype(float)).max(initial=0) < 1e-6


def test_a_matrix_of_another_order_or_another_kind_of_number_is_multiplied_too():
    matrix, vector = vectors(400, 384), vectors(2, 384)[1]
    for other in (np.asfortranarray(matrix), matrix[::2], matrix[:, ::-1], matrix.astype(np.float64)):
        assert row_products(other, vector) == pytest.approx(other @ vector, abs=1e-6)


def test_no_block_is_so_large_that_a_blas_shares_it_out(monkeypatch):
    sizes = []
    multiply = np.matmul

    def watched(some, vector, **options):
        sizes.append(some[0].size if some.ndim == 3 else some.size)
        return multiply(some, vector, **options)

    monkeypatch.setattr(products.np, "matmul", watched)
    for width in (7, 100, 384, 768, 3072):
        row_products(vectors(2_000, width), vectors(2, width)[1])
    assert len(sizes) >= 5 and max(sizes) < 9_216
