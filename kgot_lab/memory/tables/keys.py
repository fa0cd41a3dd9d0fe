"""By what facts are looked up: the words of their texts, and their ends. Keys are numbers, since a word may
be of any length.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from kgot_lab.memory.triple_store import LONGEST_TEXT, spaced_words


def word_key(word: str) -> int:
    """The key of the facts that hold a word, as `spaced_words` cuts it."""
    return _number("word", word)


def end_key(end: Literal["subject", "object"], name: str) -> int:
    """The key of the facts that begin, or end, with a name, letter by letter."""
    return _number(end, name)


def fact_keys(subject: str, relation: str, object: str) -> list[int]:
    """All keys of a fact, each once; the words of a text that is too long to be told lead nowhere."""
    told = [part for part in (subject, relation, object) if len(part) <= LONGEST_TEXT]
    words = {word for part in told for word in spaced_words(part).split()}
    return sorted({*map(word_key, words), end_key("subject", subject), end_key("object", object)})


def _number(kind: str, text: str) -> int:
    """A whole number of eight bytes with a sign, as databases keep them; that two texts have one costs a
    look, since facts are read.
    """
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8, person=kind.encode()).digest(), "big", signed=True
    )
