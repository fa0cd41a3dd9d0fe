"""The names in a text: titles of documents that it mentions, and runs of capitalised words. No model, no dictionary."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from kgot_lab.types import Document

WORD = re.compile(r"\w+")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
SMALL = r"(?:of|the|de|la|and|for|in|on|von|van|der|du|del|al|bin|ibn)"
CAPITALISED = re.compile(rf"[A-Z][\w.&'’-]*(?:\s+(?:{SMALL}\s+){{0,2}}[A-Z0-9][\w.&'’-]*)*")
JOINT = re.compile(r"\s+(?:of|and|in|for|on)\s+(?:the\s+)?")
COMMON = frozenset(
    "a an the of in on at to and or is was were be by for with as it its this that from which who what when where how he she his her "
    "they their i you we not no one two first new are has have had did does do".split()
)


def plain(name: str) -> str:
    """A name as it is compared: its words in small letters, without a possessive 's."""
    return " ".join(WORD.findall(re.sub(r"['’]s\b", "", name).lower()))


def called(title: str) -> str:
    """The name a title stands for: the title without a last part in brackets; empty where it would name anything."""
    name = plain(re.sub(r"\s*\([^)]*\)\s*$", "", title))
    return name if _telling(name) else ""


def capitalised(text: str) -> set[str]:
    """Runs of capitalised words, and the parts of a run around "of", "and", "in"; a lone common word that opens a sentence is none."""
    found = set()
    for sentence in SENTENCE_END.split(text):
        for run in CAPITALISED.finditer(sentence):
            for name in (run.group(), *JOINT.split(run.group())):
                words = plain(name).split()
                while words and words[0] in COMMON:
                    words = words[1:]
                found.add(" ".join(words))
    return {name for name in found if _telling(name)}


class Titles:
    """Which documents are called what, to find their names in a text."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._ids: dict[str, list[str]] = defaultdict(list)
        for document in documents:
            if name := called(document.title):
                self._ids[name].append(document.id)
        self._longest = max((name.count(" ") + 1 for name in self._ids), default=0)

    def __getitem__(self, name: str) -> list[str]:
        """The ids of the documents with this name."""
        return self._ids.get(name, [])

    def mentioned(self, text: str, *, cased: bool = True) -> list[str]:
        """The names of documents in a text, in its order, the longer where two overlap. They begin with a capital or digit if `cased`."""
        return list(self._mentions(text, cased))

    def _mentions(self, text: str, cased: bool) -> Iterator[str]:
        words = WORD.findall(re.sub(r"['’]s\b", "", text))
        small = [word.lower() for word in words]
        at = 0
        while at < len(words):
            length = 0
            if not cased or words[at][0].isupper() or words[at][0].isdigit():
                lengths = range(min(self._longest, len(words) - at), 0, -1)
                length = next((length for length in lengths if " ".join(small[at : at + length]) in self._ids), 0)
            if length:
                yield " ".join(small[at : at + length])
            at += length or 1


def _telling(name: str) -> bool:
    return bool(name) and (" " in name or (len(name) > 2 and name not in COMMON))
