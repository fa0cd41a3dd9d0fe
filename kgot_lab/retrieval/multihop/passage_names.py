"""The names that a passage goes by: its title, or, where it has none, what its first sentence is about."""

from __future__ import annotations

import re

from kgot_lab.retrieval.entity_linking import CAPITALISED, called, compared_name, is_distinctive
from kgot_lab.types import Document

_ARTICLES = frozenset(("the", "a", "an"))
# characters in a line above a text that is no sentence of it, and how many of them are looked at
_HEADING, _HEADINGS = (80, 5)
_HEAD = 300  # characters in which a first sentence says what it is about
_SUBJECT = re.compile(r"^\W*(.{2,80}?)\s*(?:\(|,|\b(?:is|was|are|were|refers|may refer)\b)")
_BEGINS = re.compile(rf"^\W*(?:{CAPITALISED.pattern})")
_LONGEST = 8  # words in a subject
_RANKS = frozenset(
    "sir dame lord lady king queen prince princess imam saint st dr general lieutenant admiral captain colonel major count countess duke "
    "duchess baron earl pope archbishop bishop rev reverend".split()
)
_JOINING = frozenset("of the and in for a de on at to from".split())


def without_article(name: str) -> str:
    """A name as it is compared, without "the", "a", "an" at its head: The Beatles are also called Beatles."""
    words = name.split()
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)


def goes_by(document: Document) -> tuple[str, ...]:
    """The names of a document as they are compared, the fullest first; none where nothing tells.

    A title is the only name. Without one it is what the first sentence is about, if it begins with a name and
    then says what that is (`Albert S. Rogell (August 21, 1901 …) was …`); then also without a rank before it,
    and as first and last name.
    """
    if document.title:
        return tuple(filter(is_distinctive, [without_article(called(document.title))]))
    found = _SUBJECT.match(_below_headings(document.text)[:_HEAD])
    if not found or not _BEGINS.match(found.group(1)) or len(found.group(1).split()) > _LONGEST:
        return ()
    name = without_article(compared_name(found.group(1)))
    return (
        tuple(dict.fromkeys(filter(is_distinctive, [name, *_shorter(name)]))) if is_distinctive(name) else ()
    )


def _below_headings(text: str) -> str:
    """A text without the lines at its head that are no sentences, nor the mark of an item."""
    for _ in range(_HEADINGS):
        first, _, rest = text.partition("\n")
        heading = first.lstrip().startswith("#") or (
            len(first) <= _HEADING and not any(end in first for end in ".!?")
        )
        if not (rest.strip() and heading):
            break
        text = rest
    return text.lstrip("-*> \t\n")


def _shorter(name: str) -> list[str]:
    words, shorter = name.split(), []
    ranks = 0
    while ranks < len(words) - 1 and words[ranks] in _RANKS:
        ranks += 1
    if ranks and len(words) - ranks >= 2:
        words = words[ranks:]
        shorter.append(" ".join(words))
    if (
        3 <= len(words) <= 5
        and not _JOINING.intersection(words)
        and not any(letter.isdigit() for letter in name)
    ):
        shorter.append(f"{words[0]} {words[-1]}")
    return shorter
