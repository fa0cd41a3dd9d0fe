"""Names that may mean one thing, proposed with reasons: nothing is merged here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from kgot_lab.memory.claims.claim import MergeProposal
from kgot_lab.text.words import named_words
from kgot_lab.types import Triple

_HONORIFICS = frozenset(
    "mr mrs ms miss dr prof professor sir dame lord lady king queen president st saint the".split()
)
_LONGEST = 100  # characters of what may be a name
_MOST = 50  # names that share a word and are compared with each other: a word of more tells nothing
_SHARED = 2  # neighbours that two names have to share to be proposed for these and a word in common

NameWords = tuple[str, ...]


def merge_proposals(facts: Sequence[Triple]) -> tuple[MergeProposal, ...]:
    """Pairs of names that may mean one thing: by spelling, by initials, or by a shared word and shared
    neighbours; most reasons first.
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
    """The pairs of names that share a word, or are spelt alike but for spaces."""
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
    """The words of a name without titles, where that leaves some."""
    words = named_words(name)
    return tuple(word for word in words if word not in _HONORIFICS) or words


def _by_initials(one: NameWords, other: NameWords) -> bool:
    """Whether two names end alike, and each word before that of one is that of the other or its first letter;
    one may have more words.
    """
    if len(one) < 2 or len(other) < 2 or one[-1] != other[-1] or len(one[-1]) < 2:
        return False
    pairs = list(zip(one[:-1], other[:-1], strict=False))
    return all(a == b or (min(len(a), len(b)) == 1 and a[0] == b[0]) for a, b in pairs)
