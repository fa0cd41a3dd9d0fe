"""Look up beliefs by words, without reading all facts, and propose names to merge."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

from kgot_lab.errors import require_count
from kgot_lab.memory import tables as sql
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import MergeProposal
from kgot_lab.memory.claims.justification import Aliases
from kgot_lab.memory.tables import end_key, word_key
from kgot_lab.memory.triples import (
    MAX_TEXT_LENGTH,
    InMemoryTripleStore,
    Keyword,
    check_keywords,
    require_triple_pattern,
)
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Triple

MAX_FACTS_READ = 1_000  # facts that a search reads first, for each word and in total
_MAX_KEYS_PER_QUERY = 100  # of one statement: SQLite takes 500 parts of a UNION


class BeliefTriples:
    """Beliefs with the interface of a triple store.

    Texts that are too long for a prompt are left out. A search reads the newest facts of each word, and of
    these first those with more and rarer words. If too few hold, it continues with older ones. For a word in
    more than MOST_LOOKED_AT facts it may therefore return newer facts before older ones of higher confidence.
    A quoted text without a whole word inside scans everything.
    """

    def __init__(self, beliefs: Beliefs, *, as_stated: bool = False) -> None:
        self._beliefs, self._as_stated = beliefs, as_stated
        self._last_read: tuple[object, InMemoryTripleStore, bool] = (None, InMemoryTripleStore(), True)

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords.

        Those with most keywords come first, then those of higher confidence, then the more recent. Raises
        BadInput for invalid keywords.
        """
        self.refresh()
        checked = tuple(check_keywords(keywords, top_k))
        depth, change = MAX_FACTS_READ, self._beliefs.storage.rows(sql.LAST_CHANGE)
        while True:
            if self._last_read[0] != (change, checked, depth):
                self._last_read = ((change, checked, depth), *self._read_candidates(checked, depth))
            _, candidates, is_complete = self._last_read
            found = candidates.search(keywords, top_k)
            if is_complete or len(found) >= top_k:
                return found
            depth *= 8

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """Return the triples with exactly these parts, in the order of adding.

        None matches any text. Raises BadInput for an invalid part.
        """
        self.refresh()
        pattern = require_triple_pattern(subject, relation, object)
        if not pattern:
            return self.triples()
        found = self.triples(self._beliefs.recorded(pattern))  # also by a name that was merged into another
        return [each for each in found if all(getattr(each, part) == text for part, text in pattern.items())]

    def all(self) -> list[Triple]:
        """Return every triple, in the order of adding."""
        return self.query()

    def newest(self, limit: int) -> list[Triple]:
        """Return the last `limit` triples that were added, in the order of adding."""
        require_count(limit, 0, "limit")
        names, depth = self._beliefs.names(), limit
        while True:
            values = {"known": self._beliefs.known, "most": min(depth, 2**62)}
            rows = self._beliefs.storage.rows(sql.LEARNT_LAST, values)
            found = self.triples(names.canonical_facts(rows))
            if len(found) >= limit or len(rows) < depth:
                return found[len(found) - min(limit, len(found)) :]
            depth *= 8

    def refresh(self) -> None:
        """Take in what was written elsewhere, before triples are read."""

    def triples(self, facts: Iterable[Triple] | None = None) -> list[Triple]:
        """Return the facts that hold, or those among `facts`, in the order of adding."""
        found = self._beliefs.triples(facts, as_stated=self._as_stated)
        return [triple for triple in found if max(map(len, triple.identity)) <= MAX_TEXT_LENGTH]

    def _read_candidates(self, keywords: Sequence[Keyword], depth: int) -> tuple[InMemoryTripleStore, bool]:
        """Return the facts that keywords lead to, and whether these are all."""
        candidates, names = InMemoryTripleStore(), self._beliefs.names()
        keys = self._keys_of_keywords(keywords, names)
        if keys is None:
            facts = names.canonical_facts(self._beliefs.storage.rows(sql.select_facts()))
            fitting = [fact for fact in facts if any(keyword.is_in(*fact.identity) for keyword in keywords)]
            candidates.add(self.triples(fitting))
            return candidates, True
        ids_by_key, is_complete = self._fact_ids_by_key(keys, depth)
        # in the order in which they were found, the newest of a word first
        scores: dict[str, float] = defaultdict(float)
        for ids in ids_by_key:
            for id in ids:
                scores[id] += 1 / len(ids)
        nearest = sorted(scores, key=lambda id: -scores[id])[:depth]
        rows = self._beliefs.storage.rows(sql.FACTS_BY_ID, {"facts": nearest})
        candidates.add(self.triples(names.canonical_facts(rows)))
        return candidates, is_complete and len(nearest) == len(scores)

    def _keys_of_keywords(self, keywords: Iterable[Keyword], names: Aliases) -> list[int] | None:
        """Return the keys of the facts that may contain any of some keywords.

        Facts are found by their own names and by their canonical ones. None if the keywords give no key.
        """
        keys: dict[int, None] = {}
        for keyword in keywords:
            words = keyword.complete_words()
            if not words:
                return None
            keys |= dict.fromkeys(map(word_key, words))
        for other in names.merges:
            canonical = names.canonical(other)
            if any(keyword.is_in(canonical) for keyword in keywords):
                keys |= {end_key("subject", other): None, end_key("object", other): None}
        return list(keys)

    def _fact_ids_by_key(self, keys: Sequence[int], depth: int) -> tuple[list[list[str]], bool]:
        """Return the ids of the facts with each key, newest first, and whether these are all.

        There are at most `depth` for each key.
        """
        found: list[list[str]] = []
        for start in range(0, len(keys), _MAX_KEYS_PER_QUERY):
            batch = keys[start : start + _MAX_KEYS_PER_QUERY]
            values = {f"key{number}": key for number, key in enumerate(batch)} | {"most": depth + 1}
            of_key: list[list[tuple[int, str]]] = [[] for _ in batch]
            rows = self._beliefs.storage.rows(sql.select_facts_by_key(len(batch)), values)
            for key_index, id, learnt in rows:
                of_key[key_index].append((learnt, id))
            found += [[id for _, id in sorted(each, reverse=True)] for each in of_key if each]
        return [ids[:depth] for ids in found], all(len(ids) <= depth for ids in found)


# Names that may mean the same thing, proposed with reasons. Nothing is merged here.

_HONORIFICS = frozenset(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen president st saint the".split()
)
_MAX_NAME_LENGTH = 100  # characters of a name
_MAX_NAMES = 50  # names with a common word up to which they are compared: a more frequent word says nothing
_MIN_SHARED_NEIGHBOURS = 2  # common neighbours that two names with a common word need to be proposed

NameWords = tuple[str, ...]


def propose_merges(facts: Sequence[Triple]) -> tuple[MergeProposal, ...]:
    """Return pairs of names that may mean the same thing, those with most reasons first.

    Reasons are spelling, initials, or a shared word and shared neighbours.
    """
    neighbours: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    name_counts: Counter[str] = Counter()
    for fact in facts:
        neighbours[fact.subject].add(("to", fact.relation, fact.object))
        neighbours[fact.object].add(("from", fact.relation, fact.subject))
        name_counts.update((fact.subject, fact.object))
    words = {name: _name_words(name) for name in name_counts if len(name) <= _MAX_NAME_LENGTH}

    def rank(name: str) -> tuple[int, int, int, str]:
        return -len(words[name]), -len("".join(words[name])), -name_counts[name], name

    proposals = []
    for one, other in sorted(_comparable_pairs(words)):
        reasons = _merge_reasons(words[one], words[other], len(neighbours[one] & neighbours[other]))
        if reasons:
            kept, merged = sorted((one, other), key=rank)
            proposals.append(MergeProposal(kept, merged, reasons))
    return tuple(
        sorted(proposals, key=lambda proposal: (-len(proposal.reasons), proposal.kept, proposal.other))
    )


def _comparable_pairs(words: dict[str, NameWords]) -> set[tuple[str, str]]:
    """Return the pairs of names that share a word, or differ only in spaces."""
    by_word: dict[str, list[str]] = defaultdict(list)
    for name in sorted(words):
        for word in {*words[name], "".join(words[name])}:
            by_word[word].append(name)
    return {pair for names in by_word.values() if len(names) <= _MAX_NAMES for pair in combinations(names, 2)}


def _merge_reasons(one: NameWords, other: NameWords, shared: int) -> tuple[str, ...]:
    reasons = []
    if "".join(one) == "".join(other):
        reasons.append("the same name but for case, punctuation, spaces or a title")
    elif _matches_by_initials(one, other):
        reasons.append("the same name with initials or a middle name")
    elif shared < _MIN_SHARED_NEIGHBOURS:
        return ()
    if shared:
        reasons.append(f"{shared} neighbour{'s' * (shared > 1)} in common")
    return tuple(reasons)


def _name_words(name: str) -> NameWords:
    """Return the words of a name without titles, or all if nothing else is left."""
    words = name_tokens(name)
    return tuple(word for word in words if word not in _HONORIFICS) or words


def _matches_by_initials(one: NameWords, other: NameWords) -> bool:
    """Return whether two names have the same last word and compatible earlier words.

    Earlier words are compatible if they are equal or one is the first letter of the other. One name may have
    more of them.
    """
    if len(one) < 2 or len(other) < 2 or one[-1] != other[-1] or len(one[-1]) < 2:
        return False
    pairs = zip(one[:-1], other[:-1], strict=False)
    return all(word in (match, match[0]) or match == word[0] for word, match in pairs)
