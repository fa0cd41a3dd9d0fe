"""Texts in lines of a width: SVG breaks no line by itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from kgot_lab.viz.static.markup import text_width

BROAD, NARROW = frozenset("MWm@%&\u2014\u2026"), frozenset(" fijlrtI.,:;!|'()[]-")


def wrapped(text: str, width: float, size: float) -> Iterator[str]:
    """A text in lines of at most this width: broken at spaces, between Chinese signs, and inside a word that
    fills a line.
    """
    flat, start = " ".join(text.split()), 0
    while start < len(flat):
        end, stop, used = start, 0, 0.0
        while end < len(flat) and (used := used + _cautious(flat[end], size)) <= width:
            end += 1
            if flat[end : end + 1] == " " or flat[end - 1] == "-" or text_width(flat[end - 1], 1) == 1:
                stop = end
        cut = end if end == len(flat) else stop or max(end, start + 1)
        yield flat[start:cut].rstrip()
        start = cut + (flat[cut : cut + 1] == " ")


def fitted(text: str, width: float, size: float, most: int) -> tuple[list[str], int]:
    """The first lines of a text, and how many of its letters they leave out."""
    lines = list(islice(wrapped(text, width, size), most + 1))
    if len(lines) <= most:
        return lines, 0
    # room for the mark of what is left out
    last = next(wrapped(lines[most - 1], width - 1.4 * size, size), "")
    shown = [*lines[: most - 1], last]
    return [*shown[:-1], f"{last} …"], sum(
        len("".join(part.split())) * sign for part, sign in ((text, 1), (" ".join(shown), -1))
    )


@lru_cache(maxsize=4096)  # each step of a run asks for the same names again
def balanced(text: str, width: float, size: float, most: int) -> tuple[str, ...]:
    """A text in as few lines of at most this width as can be, and those about equally long; what is over
    `most` lines is cut.
    """
    lines, cut = fitted(text, width, size, most)
    if len(lines) < 2 or cut:
        return tuple(lines)
    longest = max(line_width(word, size) for word in text.split())
    low, high = min(max(width / 2, longest), width), width
    while high - low > size / 2:  # the narrowest width that needs no more lines
        middle = (low + high) / 2
        fits = len(fitted(text, middle, size, len(lines) + 1)[0]) <= len(lines)
        low, high = (low, middle) if fits else (middle, high)
    return tuple(fitted(text, high, size, len(lines))[0])


def _cautious(letter: str, size: float) -> float:
    """How wide a letter may be: finer than the average by which texts are measured, for lines that fill a
    box.
    """
    finer = 0.4 if letter in BROAD else -0.24 if letter in NARROW else 0.18 if letter.isupper() else 0.0
    return text_width(letter, size) + size * finer


def line_width(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a line may be at most in a sans-serif font of this size, in the same unit."""
    return sum(_cautious(letter, size) for letter in text) * (1.08 if bold else 1.0)
