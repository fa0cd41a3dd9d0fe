"""What a store of triples does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from kgot_lab.types import Triple


class TripleStore(Protocol):
    """Keeps triples, each once: the first with the same subject, relation and object stays as it was when it
    is added again.

    All raise BadInput for what cannot be kept or asked for, and StoreUnavailable where there is a file that
    cannot be reached.
    """

    def add(self, triples: Iterable[Triple]) -> None:
        """Keep triples, all or none; one that is there already changes nothing."""

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """The triples with exactly these parts, in the order of adding; None stands for any."""

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """The triples that hold any of the keywords as whole words, whatever their case; a keyword in quotes
        as a text within.

        First come those that hold most keywords, then the surer, the more recent, and those that were added
        first.
        """

    def delete(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> int:
        """Delete the triples with exactly these parts and say how many; raises BadInput without any, since
        `clear` deletes everything.
        """

    def all(self) -> list[Triple]:
        """Every triple, in the order of adding."""

    def clear(self) -> None:
        """Delete everything."""

    def count(self) -> int:
        """How many triples there are."""


class ReadTriples(Protocol):
    """As much of a store of triples as a context is made from."""

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """The triples that hold any of the keywords, best first; see `TripleStore`."""

    def query(self, subject: str) -> list[Triple]:
        """The triples with a subject, in the order of adding."""

    def all(self) -> list[Triple]:
        """Every triple, in the order of adding."""


@runtime_checkable
class Newest(Protocol):
    """A store that gives its newest triples without giving all."""

    def newest(self, most: int) -> list[Triple]:
        """At most so many triples, those added last, in the order of adding."""


def newest_of(store: ReadTriples, most: int) -> list[Triple]:
    """The triples that were added last to a store, at most so many, in the order of adding."""
    if isinstance(store, Newest):
        return store.newest(most)
    return store.all()[-most:] if most else []
