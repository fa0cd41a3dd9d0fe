"""The interface of a triple store, the triples and keywords it accepts, and the store in memory."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice
from threading import RLock
from typing import Protocol

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.io.processes import register_for_forks
from kgot_lab.io.times import to_utc
from kgot_lab.text.cleaning import checked_text, format_count
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Triple


class ReadableTriples(Protocol):
    """The part of a triple store that a context is built from."""

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords as whole words, ignoring case.

        A keyword in quotes matches as a substring. Those with most keywords come first, then those of higher
        confidence, the more recent, and those that were added first.
        """

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """Return the triples with exactly these parts, in the order of adding.

        None matches any text.
        """

    def all(self) -> list[Triple]:
        """Return every triple, in the order of adding."""


class TripleStore(ReadableTriples, Protocol):
    """A store of distinct triples.

    If the same subject, relation and object are added again, the first triple stays as it was. All methods
    raise BadInput for invalid arguments, and StoreUnavailable if there is a file that cannot be reached.
    """

    def add(self, triples: Iterable[Triple]) -> None:
        """Store triples, all or none.

        An existing one changes nothing.
        """

    def delete(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> int:
        """Delete the triples with exactly these parts and return their number.

        Raises BadInput without any part, since `clear` deletes everything.
        """

    def clear(self) -> None:
        """Delete everything."""

    def count(self) -> int:
        """Return the number of triples."""


def newest_triples(store: ReadableTriples, limit: int) -> list[Triple]:
    """Return the last `limit` triples that were added to a store, in the order of adding."""
    newest: Callable[[int], list[Triple]] | None = getattr(store, "newest", None)  # without reading all
    return newest(limit) if newest else store.all()[-limit:] if limit else []


# The rules of both triple stores: valid triples, keywords, and the order of search results.

MAX_TEXT_LENGTH = 10_000  # of a subject, relation or object: a longer one is a document
MAX_KEYWORDS = 200  # of one search
TRIPLE_PARTS = ("subject", "relation", "object")
_QUOTES = {'"': '"', "“": "”", "„": "“"}


def check_triple(triple: Triple) -> Triple:
    """Return a triple as a store keeps it, with its time in UTC.

    A time without a zone is refused, since it is ambiguous. Raises BadInput, saying what is wrong.
    """
    require(triple, Triple, "a triple store keeps Triple(subject, relation, object)")
    for name, text in zip(TRIPLE_PARTS, triple.identity, strict=True):
        require_triple_part(text, name)
    created = triple.created_at
    time = None if created is None else to_utc(created, "the created_at of a triple")
    return replace(triple, confidence=float(triple.confidence), created_at=time)


@check_arguments
def check_triples(triples: Iterable[Triple]) -> list[Triple]:
    """Return triples as a store keeps them.

    Raises BadInput before any of them is stored.
    """
    return [check_triple(triple) for triple in triples]


def require_triple_part(text: str, name: str, *, blank: bool = False) -> None:
    """Raise BadInput unless a value is a text that can be a part of a triple."""
    size = len(checked_text(text, f"the {name} of a triple", blank=blank))
    if size > MAX_TEXT_LENGTH:
        length = f"{size:,} characters; {MAX_TEXT_LENGTH:,} are the most"
        raise BadInput(f"the {name} of a triple has {length}: keep long texts as documents")


def require_triple_pattern(subject: str | None, relation: str | None, object: str | None) -> dict[str, str]:
    """Return the given parts of a query by name.

    Raises BadInput for an invalid part.
    """
    given = zip(TRIPLE_PARTS, (subject, relation, object), strict=True)
    parts = {name: text for name, text in given if text is not None}
    for name, text in parts.items():
        require_triple_part(text, name, blank=True)
    return parts


def require_deletion_pattern(subject: str | None, relation: str | None, object: str | None) -> dict[str, str]:
    """Return the given parts of a deletion by name.

    Raises BadInput if there are none, since that would delete everything.
    """
    if not (parts := require_triple_pattern(subject, relation, object)):
        remedy = "call clear() for that"
        raise BadInput(f"delete() without a subject, relation or object would delete everything: {remedy}")
    return parts


# --- keywords ---


def normalize_text(text: str) -> str:
    """Normalize a text for comparison: composed characters (NFC), case folded."""
    return unicodedata.normalize("NFC", text).casefold()


def pad_words(text: str) -> str:
    """Return the words of a text in their form for comparison, with a space around each."""
    return f" {' '.join(name_tokens(normalize_text(text)))} "


@dataclass(frozen=True)
class Keyword:
    """A keyword of a search, for each part of a triple: adjacent words, or, if quoted, the text itself."""

    words: str  # with a space around each
    quoted: str = ""

    def is_in(self, *texts: str) -> bool:
        """Return whether any of some texts contains the keyword."""
        if self.quoted:
            return any(self.quoted in normalize_text(text) for text in texts)
        return any(self.words in pad_words(text) for text in texts)

    def complete_words(self) -> list[str]:
        """Return the words that occur whole in any text that contains the keyword.

        The first and the last word of a quoted text are left out, since they may be parts of words.
        """
        if not self.quoted:
            return self.words.split()
        parts = name_tokens(self.quoted)
        skips_first = bool(parts) and self.quoted.startswith(parts[0])
        skips_last = bool(parts) and self.quoted.endswith(parts[-1])
        return list(parts[skips_first : len(parts) - skips_last])


@check_arguments
def check_keywords(keywords: Iterable[str], top_k: int) -> list[Keyword]:
    """Return the distinct keywords of a search, without those that contain no word.

    Raises BadInput for anything but a list of texts, and for too many.
    """
    require_count(top_k, 0, "top_k")
    distinct: dict[Keyword, None] = {}
    for keyword in keywords:
        require(keyword, str, "a keyword is a text")
        inner = keyword.strip()
        if len(inner) > 2 and inner[0] in _QUOTES and inner[-1] == _QUOTES[inner[0]]:
            parsed = Keyword(pad_words(inner[1:-1]), normalize_text(inner[1:-1]))
        else:
            parsed = Keyword(pad_words(inner))
        if parsed.quoted or parsed.words.strip():
            distinct[parsed] = None
    if len(distinct) > MAX_KEYWORDS:
        raise BadInput(f"a search takes {MAX_KEYWORDS} keywords at most, not {len(distinct):,}")
    return list(distinct)


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@check_arguments
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
        checked = check_triples(triples)
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
        pattern = require_triple_pattern(subject, relation, object).items()
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
            for keyword in check_keywords(keywords, top_k):
                matched.update(self._numbers_with(keyword))
            ranks = ((count, *_rank(self._triples[number]), -number) for number, count in matched.items())
            return [self._triples[-rank[-1]] for rank in nlargest(top_k, ranks)]

    def delete(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> int:
        """Delete the triples with exactly these parts and return their number.

        Raises BadInput without any part.
        """
        pattern = require_deletion_pattern(subject, relation, object)
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
    words = (word for part in triple.identity for word in pad_words(part).split())
    parts = zip(TRIPLE_PARTS, triple.identity, strict=True)
    return {*parts, *(("word", word) for word in words)}


def _rank(triple: Triple) -> tuple[float, datetime, int]:
    """Return what orders triples with as many keywords: confidence, time and turn, none being the earliest."""
    turn = -1 if triple.source_turn is None else triple.source_turn
    return triple.confidence, triple.created_at or _LONG_AGO, turn
