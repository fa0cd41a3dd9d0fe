"""Names that may mean the same thing, proposed with reasons. Nothing is merged here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from kgot_lab.memory.claims.claim import MergeProposal
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Triple

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
