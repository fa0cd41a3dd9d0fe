"""What keeps tables: the statements of one file, run in transactions; SQLite here, another engine behind the
same methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

ClaimRow = tuple[Any, ...]


class TableStorage(Protocol):
    """Tables of a layout, to which statements of ours are put; raises StoreUnavailable, and StoreDamaged."""

    def rows(
        self, statement: str, values: Mapping[str, Any] = ...
    ) -> list[ClaimRow]: ...  # [] where it changes something
    def reading(self) -> AbstractContextManager[None]: ...  # all that is read within is of one time
    def changing(
        self,
    ) -> AbstractContextManager[
        None
    ]: ...  # alone, all or nothing, on the disk when it ends; may be within itself
    def close(self) -> None: ...


class ClaimStorage(TableStorage, Protocol):
    """Tables of claims, to which the statements of `statements` are put, and which can be erased for good."""

    def scrub(self) -> None: ...  # what was deleted leaves every file


class InTables:
    """What is kept in tables of its own, and closed with them, at the end of a `with` block too."""

    storage: TableStorage

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self.storage!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the tables."""
        self.storage.close()
