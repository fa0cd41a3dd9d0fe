"""Sentences that give another value for the same thing: the same words, but for what stands in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from kgot_lab.memory.extraction import SourcedSentence
from kgot_lab.text.words import named_words, stands_in

SAME_WORDS = (
    0.7  # the least share of a sentence's words, beside the value, that another says in the same order
)
_LONGER = 4  # words that another value may have more
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")


def rival_values(
    said: Iterable[SourcedSentence], known: Iterable[SourcedSentence], about: str, value: str
) -> dict[str, list[SourcedSentence]]:
    """What sentences of other documents give in the place of a value, with those sentences; they or their
    title name what it is about.

    A contradiction in other words is not found: a sentence counts that says at least SAME_WORDS of the words,
    with something of the same kind in the place of the value.
    """
    known = list(known)
    found: dict[str, list[SourcedSentence]] = {}
    for each in said:
        for other in known:
            if (
                other.source == each.source
                or stands_in(value, other.text)
                or not (speaks_of(other, about) or other.title == each.title)
            ):
                continue
            rival = value_instead(each.text, other.text, value)
            # else it says that of its own subject
            if rival and (other.title == each.title or not stands_in(rival, other.title)):
                found.setdefault(rival, []).append(other)
    return found


def value_instead(said: str, other: str, value: str) -> str:
    """What another sentence says where one says a value; "" where it is not the same sentence otherwise, or
    no value of that kind.
    """
    ours, theirs, wanted = _WORD.findall(said), _WORD.findall(other), _WORD.findall(value)
    small, theirs_small = ([word.casefold() for word in words] for words in (ours, theirs))
    start = _place_of([word.casefold() for word in wanted], small)
    if start is None:
        return ""
    end = start + len(wanted)
    before, after, alike = 0, len(theirs), 0
    for block in SequenceMatcher(None, small, theirs_small, autojunk=False).get_matching_blocks():
        head, tail = (
            max(0, min(block.size, start - block.a)),
            max(0, min(block.size, block.a + block.size - end)),
        )
        alike += head + tail
        before = block.b + head if head else before
        after = min(after, block.b + block.size - tail) if tail else after
    around = len(ours) - len(wanted)
    instead = theirs[before:after]
    if around < 2 or alike < SAME_WORDS * around or not 0 < len(instead) <= len(wanted) + _LONGER:
        return ""
    rival = " ".join(instead)
    return (
        rival
        if _kind(rival) == _kind(value) and not (set(named_words(rival)) <= set(named_words(value)))
        else ""
    )


def speaks_of(sentence: SourcedSentence, name: str) -> bool:
    """Whether a sentence with its title names something: all words of the name stand there."""
    wanted = set(named_words(name))
    return bool(wanted) and wanted <= set(named_words(f"{sentence.title} {sentence.text}"))


def _place_of(wanted: list[str], words: list[str]) -> int | None:
    places = range(len(words) - len(wanted) + 1)
    return next((at for at in places if wanted and words[at : at + len(wanted)] == wanted), None)


def _kind(value: str) -> tuple[bool, bool]:
    """Whether a value has a figure, and whether it has a capital."""
    return any(map(str.isdigit, value)), any(map(str.isupper, value))
