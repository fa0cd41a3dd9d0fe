"""The triple store in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from threading import RLock

from kgot_lab.errors import require_count
from kgot_lab.io.processes import register_for_forks
from kgot_lab.memory import triples as triple_rules
from kgot_lab.memory.triples import TripleStore
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Triple

__all__ = ["InMemoryTripleStore", "TripleStore"]

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class InMemoryTripleStore:
    """A triple store in a dictionary, for experiments, which several threads may use.

    It is made for some ten thousand triples: a search reads all of them. A forked child has a copy of it.
    """

    def __init__(self) -> None:
        # in the order of adding, with the words of the parts in a row
        self._stored: dict[tuple[str, str, str], tuple[Triple, str]] = {}
        self._lock = RLock()
        register_for_forks(self)

    def after_fork(self) -> None:
        self._lock = RLock()

    def __repr__(self) -> str:
        return f"<InMemoryTripleStore: {format_count(self.count(), 'triple')}>"

    def add(self, triples: Iterable[Triple]) -> None:
        """Store triples, all or none.

        An existing one changes nothing. Raises BadInput for an invalid triple.
        """
        checked = triple_rules.check_triples(triples)
        with self._lock:
            for triple in checked:
                if triple.identity not in self._stored:
                    words = "".join(map(triple_rules.pad_words, triple.identity))
                    self._stored[triple.identity] = triple, words

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """Return the triples with exactly these parts, in the order of adding.

        None matches any text. Raises BadInput for an invalid part.
        """
        pattern = triple_rules.require_triple_pattern(subject, relation, object).items()
        with self._lock:
            triples = [triple for triple, _ in self._stored.values()]
        return [each for each in triples if all(getattr(each, part) == text for part, text in pattern)]

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords.

        Those with most keywords come first, then those of higher confidence, then the more recent, and those
        that were added first. Raises BadInput for invalid keywords.
        """
        checked = triple_rules.check_keywords(keywords, top_k)
        with self._lock:
            stored = list(self._stored.values())
        ranks = []
        for number, (triple, words) in enumerate(stored):
            found = (each.is_in(*triple.identity) if each.quoted else each.words in words for each in checked)
            if count := sum(found):
                ranks.append((count, *_rank(triple), -number, triple))
        return [triple for *_, triple in nlargest(top_k, ranks)]

    def delete(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> int:
        """Delete the triples with exactly these parts and return their number.

        Raises BadInput without any part.
        """
        pattern = triple_rules.require_deletion_pattern(subject, relation, object)
        with self._lock:
            deleted = self.query(**pattern)
            for triple in deleted:
                del self._stored[triple.identity]
            return len(deleted)

    def all(self) -> list[Triple]:
        """Return every triple, in the order of adding."""
        return self.query()

    def newest(self, limit: int) -> list[Triple]:
        """Return the last `limit` triples that were added, in the order of adding."""
        require_count(limit, 0, "limit")
        return self.all()[-limit:] if limit else []

    def clear(self) -> None:
        """Delete everything."""
        self._stored.clear()

    def count(self) -> int:
        """Return the number of triples."""
        return len(self._stored)


def _rank(triple: Triple) -> tuple[float, datetime, int]:
    """Return what orders triples with as many keywords: confidence, time and turn, none being the earliest."""
    turn = -1 if triple.source_turn is None else triple.source_turn
    return triple.confidence, triple.created_at or _LONG_AGO, turn
