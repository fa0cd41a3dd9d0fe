"""The statements over which a server went away: a store sends none of them a second time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kgot_lab.errors import ServerLost


class LostStatements:
    """What one store has learnt not to send."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    @contextmanager
    def minded(self, statement: str) -> Iterator[None]:
        """Refuse a statement that is known, and remember this one if the server goes away over it; raises
        ServerLost.
        """
        if statement in self._known:
            raise ServerLost(statement)
        try:
            yield
        except ServerLost as error:
            self._known.add(statement)
            raise ServerLost(statement) from error
