"""The product of many vectors with one, on the thread that asks for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Matrix

# OpenBLAS shares a product out among threads from 9,216 numbers on. On a busy computer its threads wait for
# each other, awake: 8 ms in place of .3 for 6,119 rows of 384. So rows are multiplied in blocks below that,
# all in one call of numpy.
_ALONE = 8_192
_SHARED = 1 << 25  # numbers, 128 MB: from here on reading them takes so long that threads pay


def row_products(matrix: Matrix, vector: Matrix) -> NDArray[np.float32]:
    """The product of each row with a vector, shape (n, d) with (d,) to (n,), as `matrix @ vector` to within
    rounding.

    Below 128 MB, and of rows of at most 2,048 numbers, one thread works, whatever the settings of the BLAS
    are, which are left as they are.
    """
    rows, width = matrix.shape
    fits = _ALONE // max(width, 1)
    # so many rows that the kernel, which takes some at a time, adds up each as in the whole
    block = fits - fits % (16 if fits >= 16 else 4)
    if block < 1 or rows <= block or matrix.size >= _SHARED or not matrix.flags.c_contiguous:
        return np.asarray(matrix @ vector)
    whole = rows // block * block
    products = np.empty(rows, np.result_type(matrix, vector))
    np.matmul(matrix[:whole].reshape(-1, block, width), vector, out=products[:whole].reshape(-1, block))
    np.matmul(matrix[whole:], vector, out=products[whole:])
    return products
