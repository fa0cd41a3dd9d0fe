"""The names in a text: titles of documents that it mentions, and runs of capitalised words. No model, no
dictionary.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile

from kgot_lab.text.words import composed
from kgot_lab.types import Document

_WORD = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['’]s\b")
BRACKETS = re.compile(r"\([^()]*\)\s*$")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SMALL = r"(?:of|the|de|la|and|for|in|on|von|van|der|du|del|al|bin|ibn)"
# of Latin, Greek, Cyrillic and Armenian letters
CAPITAL = "".join(filter(str.isupper, map(chr, range(0x2000))))
CAPITALISED = re.compile(
    rf"[{CAPITAL}](?<!\w.)[\w.&'’-]*(?:\s+(?:{_SMALL}\s+){{0,2}}[{CAPITAL}0-9][\w.&'’-]*)*"
)
JOINT = re.compile(r"(?<=\S)\s+(?:of|and|in|for|on)\s+(?:the\s+)?")
COMMON = frozenset(
    "a an the of in on at to and or is was were be by for with as it its this that from which who what when where how he she his her "
    "they their i you we not no one two first new are has have had did does do".split()
)
OPENERS = COMMON - frozenset("new first one two no".split())  # New York is not York


def compared_name(name: str) -> str:
    """A name as it is compared: its words in lower case, without a possessive 's."""
    return " ".join(name_words(name)).lower()


def name_words(text: str) -> list[str]:
    """The words of a text without a possessive 's."""
    return _WORD.findall(_POSSESSIVE.sub("", composed(text)))


def called(title: str) -> str:
    """The name a title stands for: the title without a last part in brackets; empty where it would name
    anything.
    """
    name = compared_name(BRACKETS.sub("", title))
    return name if is_distinctive(name) else ""


def capitalised(text: str) -> set[str]:
    """Runs of capitalised words in a sentence, as `plain` writes them, and the parts of a run around "of",
    "and", "in", "for", "on".

    Common words at the head of a run are left off ("The Beatles" is beatles), so one that opens a sentence is
    no name.
    """
    found = set()
    for sentence in SENTENCE_END.split(composed(text)):
        for run in CAPITALISED.finditer(sentence):
            for name in (run.group(), *JOINT.split(run.group())):
                found.add(" ".join(dropwhile(OPENERS.__contains__, compared_name(name).split())))
    return {name for name in found if is_distinctive(name)}


class Titles:
    """Which documents are called what, to find their names in a text; `names` gives those of a document, by
    default that of its title.
    """

    def __init__(
        self, documents: Iterable[Document], names: Callable[[Document], Iterable[str]] | None = None
    ) -> None:
        self._ids: dict[str, list[str]] = defaultdict(list)
        for document in documents:
            for name in names(document) if names else filter(None, [called(document.title)]):
                self._ids[name].append(document.id)
        lengths: dict[str, set[int]] = defaultdict(set)
        for name in self._ids:
            lengths[name.partition(" ")[0]].add(name.count(" ") + 1)
        # of the names that begin with a word
        self._lengths = {word: sorted(some, reverse=True) for word, some in lengths.items()}

    def __getitem__(self, name: str) -> list[str]:
        """The ids of the documents with this name."""
        return self._ids.get(name, [])

    def mentioned(self, text: str, *, cased: bool = True) -> list[str]:
        """The names of documents in a text, in its order, the longer where two overlap. They begin with a
        capital or digit if `cased`.
        """
        return list(self._mentions(text, cased))

    def _mentions(self, text: str, cased: bool) -> Iterator[str]:
        words = name_words(text)
        small = [word.lower() for word in words]
        at = 0
        while at < len(words):
            length = 0
            if not cased or words[at][0].isupper() or words[at][0].isdigit():
                lengths = self._lengths.get(small[at], ())
                length = next(
                    (length for length in lengths if " ".join(small[at : at + length]) in self._ids), 0
                )
            if length:
                yield " ".join(small[at : at + length])
            at += length or 1


def is_distinctive(name: str) -> bool:
    """Whether a name as it is compared would not name just anything."""
    return bool(name) and (" " in name or (len(name) > 2 and name not in COMMON))
