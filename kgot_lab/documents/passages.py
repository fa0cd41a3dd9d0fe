"""Splitting of a text into passages at the ends of paragraphs, lines or sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PASSAGE_WORDS = 150

_BOUNDARIES = (
    re.compile(r"\n\s*\n"),  # paragraphs
    re.compile(r"\n"),  # lines
    re.compile(r"(?<=[.!?])\s+(?=[\"'“(\[]?[A-ZÀ-Þ0-9])|(?<=[。！？])"),  # sentences
    re.compile(r"\s+"),  # words
)
_SEPARATORS = ("\n\n", "\n", " ", " ")


def split_passages(text: str, words: int = _PASSAGE_WORDS) -> list[str]:
    """Split a text into passages of at most `words` words, at the coarsest boundary that works.

    Only white space is lost.
    """
    packed: list[str] = []
    for glue, atom in _atoms(text.replace("\r\n", "\n").replace("\r", "\n").strip(), words, 0, ""):
        if packed and fits_passage(packed[-1] + glue + atom, words):
            packed[-1] += glue + atom
        elif atom:
            packed.append(atom)
    return packed


def fits_passage(text: str, words: int = _PASSAGE_WORDS) -> bool:
    """Return whether a text is short enough for one passage."""
    # ten characters count as a word in scripts without spaces and in very long words
    return len(text) <= 10 * words and len(text.split()) <= words


def _atoms(text: str, words: int, level: int, glue: str) -> Iterator[tuple[str, str]]:
    """Yield parts that fit, each with its separator from the previous part.

    Parts are whole paragraphs, else lines, else sentences, else words.
    """
    if fits_passage(text, words):
        yield glue, text.strip()
    elif level == len(_BOUNDARIES):  # one very long word
        starts = range(0, len(text), 10 * words)
        yield from ((glue if start == 0 else "", text[start : start + 10 * words]) for start in starts)
    else:
        for number, part in enumerate(filter(None, _BOUNDARIES[level].split(text))):
            yield from _atoms(part, words, level + 1, _SEPARATORS[level] if number else glue)
