"""Look up beliefs by words, without reading all facts, and propose names to merge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import MergeProposal
from kgot_lab.memory.claims.justification import Aliases
from kgot_lab.memory.tables import end_key, word_key
from kgot_lab.memory.triple_store import (
    LONGEST_TEXT,
    InMemoryTripleStore,
    Keyword,
    checked_keywords,
    folded_text,
    spaced_words,
)
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Triple

MOST_LOOKED_AT = 1_000  # facts that a search reads first, for each word and in total
_MOST_KEYS = 100  # of one statement: SQLite takes 500 parts of a UNION


class BelievedTriples:
    """Beliefs with the interface of a triple store.

    Texts that are too long for a prompt are left out. A search reads the newest facts of each word, and of
    these first those with more and rarer words. If too few hold, it continues with older ones. For a word in
    more than MOST_LOOKED_AT facts it may therefore return newer facts before older ones of higher confidence.
    A quoted text without a whole word inside scans everything.
    """

    def __init__(self, beliefs: Beliefs) -> None:
        self._beliefs = beliefs
        self._read: dict[tuple[tuple[Keyword, ...], int], tuple[InMemoryTripleStore, bool]] = {}

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords.

        Those with most keywords come first, then those of higher confidence, then the more recent. Raises
        BadInput for invalid keywords.
        """
        wanted = tuple(checked_keywords(keywords, top_k))
        depth = MOST_LOOKED_AT
        while True:
            if (wanted, depth) not in self._read:
                self._read[wanted, depth] = self._led_to(wanted, depth)
            there, is_all = self._read[wanted, depth]
            found = there.search(keywords, top_k)
            if is_all or len(found) >= top_k:
                return found
            depth *= 8

    def query(self, subject: str) -> list[Triple]:
        """Return the newest triples with a subject, in the order of adding."""
        names = self._beliefs.names()
        ids, _ = self._with_keys([end_key("subject", name) for name in names.names(subject)], MOST_LOOKED_AT)
        facts = {
            fact
            for fact in self._facts(names, {id for each in ids for id in each})
            if fact.subject == subject
        }
        return _tellable(self._beliefs.triples(facts)) if facts else []

    def all(self) -> list[Triple]:
        """Return every triple, in the order of adding."""
        return _tellable(self._beliefs.triples())

    def _led_to(self, keywords: Sequence[Keyword], depth: int) -> tuple[InMemoryTripleStore, bool]:
        """Return the facts that keywords lead to, and whether these are all."""
        there, names = InMemoryTripleStore(), self._beliefs.names()
        keys = self._keys_of(keywords, names)
        if keys is None:
            there.add(self.all())
            return there, True
        found, is_all = self._with_keys(keys, depth)
        # in the order in which they were found, the newest of a word first
        worth: dict[str, float] = defaultdict(float)
        for ids in found:
            for id in ids:
                worth[id] += 1 / len(ids)
        nearest = sorted(worth, key=lambda id: -worth[id])[:depth]
        there.add(_tellable(self._beliefs.triples(self._facts(names, nearest))))
        return there, is_all and len(nearest) == len(worth)

    def _keys_of(self, keywords: Iterable[Keyword], names: Aliases) -> list[int] | None:
        """Return the keys of the facts that may contain any of some keywords.

        Facts are found by their own names and by their canonical ones. None if the keywords give no key.
        """
        keys: dict[int, None] = {}
        for keyword in keywords:
            words = _whole_words(keyword)
            if not words:
                return None
            keys |= dict.fromkeys(map(word_key, words))
        for other in names.merges:
            kept = names.canonical(other)
            folded, words_of = folded_text(kept), spaced_words(kept)
            if any(keyword.found_in(folded, words_of) for keyword in keywords):
                keys |= {end_key("subject", other): None, end_key("object", other): None}
        return list(keys)

    def _with_keys(self, keys: Sequence[int], depth: int) -> tuple[list[list[str]], bool]:
        """Return the ids of the facts with each key, newest first, and whether these are all.

        There are at most `depth` for each key.
        """
        found: list[list[str]] = []
        for start in range(0, len(keys), _MOST_KEYS):
            some = keys[start : start + _MOST_KEYS]
            values = {f"key{number}": key for number, key in enumerate(some)} | {"most": depth + 1}
            of_key: list[list[tuple[int, str]]] = [[] for _ in some]
            for place, id, learnt in self._beliefs.storage.rows(sql.facts_with_keys(len(some)), values):
                of_key[place].append((learnt, id))
            found += [[id for _, id in sorted(each, reverse=True)] for each in of_key if each]
        return [ids[:depth] for ids in found], all(len(ids) <= depth for ids in found)

    def _facts(self, names: Aliases, ids: Iterable[str]) -> list[Triple]:
        """Return facts by id, under their canonical names."""
        return [
            names.read(Triple(*row))
            for row in self._beliefs.storage.rows(sql.FACTS_BY_ID, {"facts": list(ids)})
        ]


def _whole_words(keyword: Keyword) -> list[str]:
    """Return the words that occur whole in any text that contains a keyword.

    The first and the last word of a quoted text are left out, since they may be parts of words.
    """
    words = keyword.words.split()
    if not keyword.quoted:
        return words
    inner = name_tokens(keyword.quoted)
    begins = bool(inner) and keyword.quoted.startswith(inner[0])
    ends = bool(inner) and keyword.quoted.endswith(inner[-1])
    return list(inner[begins : len(inner) - ends])


def _tellable(triples: Iterable[Triple]) -> list[Triple]:
    return [each for each in triples if max(map(len, each.identity)) <= LONGEST_TEXT]


# Names that may mean the same thing, proposed with reasons. Nothing is merged here.

_HONORIFICS = frozenset(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen president st saint the".split()
)
_LONGEST = 100  # characters of a name
_MOST = 50  # names with a common word up to which they are compared: a more frequent word says nothing
_SHARED = 2  # common neighbours that two names with a common word need to be proposed

NameWords = tuple[str, ...]


def merge_proposals(facts: Sequence[Triple]) -> tuple[MergeProposal, ...]:
    """Return pairs of names that may mean the same thing, those with most reasons first.

    Reasons are spelling, initials, or a shared word and shared neighbours.
    """
    neighbours: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    named: Counter[str] = Counter()
    for fact in facts:
        neighbours[fact.subject].add(("to", fact.relation, fact.object))
        neighbours[fact.object].add(("from", fact.relation, fact.subject))
        named.update((fact.subject, fact.object))
    words = {name: _telling(name) for name in named if len(name) <= _LONGEST}
    proposals = []
    for one, other in sorted(_comparable(words)):
        reasons = _reasons(words[one], words[other], len(neighbours[one] & neighbours[other]))
        if reasons:
            kept, gone = sorted(
                (one, other),
                key=lambda name: (-len(words[name]), -len("".join(words[name])), -named[name], name),
            )
            proposals.append(MergeProposal(kept, gone, reasons))
    return tuple(sorted(proposals, key=lambda each: (-len(each.reasons), each.kept, each.other)))


def _comparable(words: dict[str, NameWords]) -> set[tuple[str, str]]:
    """Return the pairs of names that share a word, or differ only in spaces."""
    by_word: dict[str, list[str]] = defaultdict(list)
    for name in sorted(words):
        for word in {*words[name], "".join(words[name])}:
            by_word[word].append(name)
    return {pair for names in by_word.values() if len(names) <= _MOST for pair in combinations(names, 2)}


def _reasons(one: NameWords, other: NameWords, shared: int) -> tuple[str, ...]:
    found = []
    if "".join(one) == "".join(other):
        found.append("the same name but for case, punctuation, spaces or a title")
    elif _by_initials(one, other):
        found.append("the same name with initials or a middle name")
    elif shared < _SHARED:
        return ()
    if shared:
        found.append(f"{shared} neighbour{'s' * (shared > 1)} in common")
    return tuple(found)


def _telling(name: str) -> NameWords:
    """Return the words of a name without titles, or all if nothing else is left."""
    words = name_tokens(name)
    return tuple(word for word in words if word not in _HONORIFICS) or words


def _by_initials(one: NameWords, other: NameWords) -> bool:
    """Return whether two names have the same last word and compatible earlier words.

    Earlier words are compatible if they are equal or one is the first letter of the other. One name may have
    more of them.
    """
    if len(one) < 2 or len(other) < 2 or one[-1] != other[-1] or len(one[-1]) < 2:
        return False
    pairs = list(zip(one[:-1], other[:-1], strict=False))
    return all(a == b or (min(len(a), len(b)) == 1 and a[0] == b[0]) for a, b in pairs)
