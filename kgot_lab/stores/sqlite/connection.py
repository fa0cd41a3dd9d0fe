"""A connection that loses no exception: SQLite swallows what is raised within a callback and reports an error
of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Connection(sqlite3.Connection):
    """A connection whose functions, guard and progress handler note what is raised within them, so that it
    can be raised again.
    """

    raised: BaseException | None = None

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any] | None, /, *, deterministic: bool = False
    ) -> None:
        super().create_function(name, narg, func and self._noting(func), deterministic=deterministic)

    def set_authorizer(self, authorizer_callback: Callable[..., int] | None) -> None:
        super().set_authorizer(authorizer_callback and self._noting(authorizer_callback))

    def set_progress_handler(self, progress_handler: Callable[[], int | None] | None, n: int) -> None:
        super().set_progress_handler(progress_handler and self._noting(progress_handler), n)

    @contextmanager
    def surfacing(self) -> Iterator[None]:
        """In the place of the error that SQLite reports, raise what a callback raised within this, Ctrl-C
        above all.
        """
        self.raised = None
        try:
            yield
        except sqlite3.Error:
            if (raised := self.raised) is None:
                raise
            self.raised = None
            raise raised from None

    def _noting(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*values: Any) -> Any:
            try:
                return callback(*values)
            except BaseException as error:
                self.raised = error
                raise

        return noting
