"""Triples in this process, gone with it: for trying out, and for some ten thousand triples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import NamedTuple

from kgot_lab.memory.triple_store import (
    Keyword,
    checked_keywords,
    checked_triples,
    deletable,
    folded_text,
    ranking_key,
    require_pattern,
    spaced_words,
)  # fmt: skip
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Triple


class _Kept(NamedTuple):
    triple: Triple
    # each as `folded_text` and as `spaced_words`: a search looks at every triple
    parts: tuple[tuple[str, str], ...]

    def holds(self, keyword: Keyword) -> bool:
        return any(keyword.found_in(folded, words) for folded, words in self.parts)


class InMemoryTripleStore:
    """A triple store without a file; several threads may use it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], _Kept] = {}
        self._lock = RLock()

    def add(self, triples: Iterable[Triple]) -> None:
        """Keep triples, all or none; one that is there already changes nothing. Raises BadInput."""
        checked = checked_triples(triples)
        with self._lock:
            for triple in checked:
                if triple.identity not in self._kept:
                    parts = tuple((folded_text(part), spaced_words(part)) for part in triple.identity)
                    self._kept[triple.identity] = _Kept(triple, parts)

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """The triples with exactly these parts, in the order of adding; None stands for any. Raises BadInput."""
        return self._with(require_pattern(subject, relation, object))

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """The triples that hold any of the keywords; most keywords first, then the surer, then the more
        recent. Raises BadInput.
        """
        wanted = checked_keywords(keywords, top_k)
        with self._lock:
            counts = [(sum(map(kept.holds, wanted)), kept.triple) for kept in self._kept.values()]
        found = sorted(
            (each for each in counts if each[0]), key=lambda each: ranking_key(*each), reverse=True
        )
        return [triple for _, triple in found[:top_k]]

    def delete(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> int:
        """Delete the triples with exactly these parts and say how many; raises BadInput without any part."""
        given = deletable(subject, relation, object)
        with self._lock:
            gone = self._with(given)
            for triple in gone:
                del self._kept[triple.identity]
            return len(gone)

    def all(self) -> list[Triple]:
        """Every triple, in the order of adding."""
        return self._with({})

    def newest(self, most: int) -> list[Triple]:
        """At most so many triples, those added last, in the order of adding."""
        return self.all()[-most:] if most else []

    def clear(self) -> None:
        """Delete everything."""
        with self._lock:
            self._kept.clear()

    def count(self) -> int:
        """How many triples there are."""
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<InMemoryTripleStore: {counted(self.count(), 'triple')}>"

    def _with(self, given: Mapping[str, str]) -> list[Triple]:
        with self._lock:
            kept = [each.triple for each in self._kept.values()]
        return [
            triple for triple in kept if all(getattr(triple, name) == text for name, text in given.items())
        ]
