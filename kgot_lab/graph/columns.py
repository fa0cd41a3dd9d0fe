"""The parts of a graph held in columns: sequences made on demand, and sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
_T = TypeVar("_T")
Int = TypeVar("Int", np.int32, np.int64)


class Csr(NamedTuple):
    """Compressed sparse rows: the neighbours of node row r are indices[indptr[r]:indptr[r + 1]], reached over
    edges[...].
    """

    indptr: NDArray[np.int64]
    indices: Ints
    edges: Ints


class Items(Sequence[_T], Generic[_T]):
    """A sequence whose items are made when they are looked at."""

    def __init__(self, length: int, make: Callable[[int], _T]):
        self._rows, self._make = range(length), make

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_T, ...]: ...
    def __getitem__(self, index: int | slice) -> _T | tuple[_T, ...]:
        if isinstance(index, slice):
            return tuple(map(self._make, self._rows[index]))
        return self._make(self._rows[index])

    def __iter__(self) -> Iterator[_T]:
        return map(self._make, self._rows)

    def __repr__(self) -> str:
        more = f", … {len(self) - 3} more" if len(self) > 3 else ""
        return f"[{', '.join(map(repr, self[:3]))}{more}]"


def csr(rows: Ints, columns: Ints, size: int) -> Csr:
    order = np.argsort(rows, kind="stable").astype(np.int32)  # stable: a node's edges stay in edge order
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=size)))).astype(np.int64)
    return Csr(frozen(indptr), frozen(columns[order]), frozen(order))


def frozen(values: NDArray[Int]) -> NDArray[Int]:
    values.flags.writeable = False
    return values
