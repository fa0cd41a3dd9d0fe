"""The triple store in memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice
from threading import RLock

from kgot_lab.errors import require_count
from kgot_lab.io.processes import register_for_forks
from kgot_lab.memory import triples as triple_rules
from kgot_lab.memory.triples import Keyword, TripleStore
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Triple

__all__ = ["InMemoryTripleStore", "TripleStore"]

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class InMemoryTripleStore:
    """A triple store in dictionaries, for experiments, which several threads may use.

    A forked child has a copy of it.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._triples: dict[int, Triple] = {}  # by number, in the order of adding
        # the triples with a part, such as ("subject", "Alice"), and with a word
        self._by_key: dict[tuple[str, str], dict[int, Triple]] = defaultdict(dict)
        self._added = 0
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
                if triple.identity not in self._numbers:
                    self._added += 1
                    self._numbers[triple.identity] = self._added
                    self._triples[self._added] = triple
                    for key in _index_keys(triple):
                        self._by_key[key][self._added] = triple

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """Return the triples with exactly these parts, in the order of adding.

        None matches any text. Raises BadInput for an invalid part.
        """
        pattern = triple_rules.require_triple_pattern(subject, relation, object).items()
        with self._lock:
            found = list(self._smallest(pattern).values())
        if len(pattern) < 2:
            return found
        return [each for each in found if all(getattr(each, part) == text for part, text in pattern)]

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords.

        Those with most keywords come first, then those of higher confidence, then the more recent. A quoted
        keyword without a whole word inside, such as "ovelac", scans all words. Raises BadInput for invalid
        keywords.
        """
        matched = Counter[int]()
        with self._lock:
            for keyword in triple_rules.check_keywords(keywords, top_k):
                matched.update(self._numbers_with(keyword))
            ranks = ((count, *_rank(self._triples[number]), -number) for number, count in matched.items())
            return [self._triples[-rank[-1]] for rank in nlargest(top_k, ranks)]

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
                number = self._numbers.pop(triple.identity)
                del self._triples[number]
                for key in _index_keys(triple):
                    del self._by_key[key][number]
                    if not self._by_key[key]:
                        del self._by_key[key]
            return len(deleted)

    def all(self) -> list[Triple]:
        """Return every triple, in the order of adding."""
        return self.query()

    def newest(self, limit: int) -> list[Triple]:
        """Return the last `limit` triples that were added, in the order of adding."""
        require_count(limit, 0, "limit")
        with self._lock:
            return list(islice(reversed(self._triples.values()), limit))[::-1]

    def clear(self) -> None:
        """Delete everything."""
        with self._lock:
            for index in (self._numbers, self._triples, self._by_key):
                index.clear()

    def count(self) -> int:
        """Return the number of triples."""
        return len(self._triples)

    def _smallest(self, keys: Iterable[tuple[str, str]]) -> dict[int, Triple]:
        """Return the smallest of the sets of triples with each key, or all triples without a key."""
        return min((self._by_key.get(key, {}) for key in keys), key=len, default=self._triples)

    def _numbers_with(self, keyword: Keyword) -> list[int]:
        words = keyword.complete_words()
        found = self._smallest(("word", word) for word in words)
        if len(words) == 1 and not keyword.quoted:
            return list(found)
        if not words and (part := max(name_tokens(keyword.quoted), key=len, default="")):
            having = (some for (kind, word), some in self._by_key.items() if kind == "word" and part in word)
            found = {number: triple for some in having for number, triple in some.items()}
        return [number for number, triple in found.items() if keyword.is_in(*triple.identity)]


def _index_keys(triple: Triple) -> set[tuple[str, str]]:
    words = (word for part in triple.identity for word in triple_rules.pad_words(part).split())
    parts = zip(triple_rules.TRIPLE_PARTS, triple.identity, strict=True)
    return {*parts, *(("word", word) for word in words)}


def _rank(triple: Triple) -> tuple[float, datetime, int]:
    """Return what orders triples with as many keywords: confidence, time and turn, none being the earliest."""
    turn = -1 if triple.source_turn is None else triple.source_turn
    return triple.confidence, triple.created_at or _LONG_AGO, turn
