"""An answer that is rows of one form: what most questions about the structure of a graph give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kgot_lab.kgos.methods.formatting import MethodResult


@dataclass(frozen=True, repr=False)
class TableFound(MethodResult):
    """Rows under their columns, what was asked, and sentences on how they came about; `about` are the nodes
    in them, by id.
    """

    asked: str
    columns: tuple[str, ...]
    found: tuple[tuple[Any, ...], ...]
    why: tuple[str, ...] = ()
    about: tuple[str, ...] = ()

    @property
    def COLUMNS(self) -> tuple[str, ...]:  # type: ignore[override]  # noqa: N802
        """The names of the columns."""
        return self.columns

    @property
    def title(self) -> str:
        return self.asked

    @property
    def ids(self) -> list[str]:
        """The nodes that the rows are about."""
        return list(self.about)

    def rows(self) -> Sequence[tuple[Any, ...]]:
        return self.found
