"""Keep what matters when a text does not fit: sentences and facts ranked by the words they share with the question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kgot_lab.types import Json

_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    "a an and are as at be been but by did do does for from had has have he her his how i in is it its of on or s she that the their "
    "them then there they this to was were what when where which who whom whose why will with".split()
)


def tokens(text: str) -> int:
    """About how many tokens a text has: a token is near four characters of English; estimates need no model."""
    return math.ceil(len(text) / 4)


def words(text: str) -> list[str]:
    """The telling words of a text, lower-cased, lightly stemmed."""
    return [stem(word) for word in _WORD.findall(text.lower()) if word not in _COMMON]


def stem(word: str) -> str:
    """A word without its plural or past ending, roughly."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def relevance(question: str, texts: Sequence[str]) -> list[float]:
    """How much each text shares with the question: the summed rarity of shared words, idf = ln(1 + n / df)."""
    asked = set(words(question))
    bags = [set(words(text)) for text in texts]
    frequency = Counter(word for bag in bags for word in bag)
    return [sum(math.log(1 + len(texts) / frequency[word]) for word in asked & bag) for bag in bags]


def fit(
    question: str, texts: Sequence[str], budget: int, *, bonus: Sequence[float] | None = None, least: float = 0.0
) -> tuple[list[int], int]:
    """Which texts to keep within a token budget, most relevant first but returned in their own order, and the tokens left out.

    `bonus` is added to the relevance of each text; a text below `least` times the best is left out even where there is room.
    The best text is kept even when it alone is over the budget.
    """
    sizes = [tokens(text) for text in texts]
    if sum(sizes) <= budget and not least:
        return list(range(len(texts))), 0
    scores = relevance(question, texts)
    if bonus is not None:
        scores = [score + extra for score, extra in zip(scores, bonus, strict=True)]
    enough = least * max(scores, default=0.0)
    kept: list[int] = []
    used = 0
    for number in sorted(range(len(texts)), key=lambda number: (-scores[number], number)):
        if not kept or (used + sizes[number] <= budget and scores[number] >= enough):
            kept.append(number)
            used += sizes[number]
    return sorted(kept), sum(sizes) - used


_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Inc|Ltd|Co|c|ca|[A-Z])\.)$")
LONGEST = 2000  # letters: what has no sentence ends for longer, such as a table, is cut into pieces of this length


def sentences(text: str) -> list[str]:
    """The sentences of a text, by punctuation, with common abbreviations and initials respected; none is longer than LONGEST."""
    found: list[str] = []
    start = 0
    for match in re.finditer(r"[.!?][\"')\]]*\s+(?=[\"'(\[A-Z0-9])|\n\s*\n|\n(?=\s*[-*\[])", text):
        if _ABBREVIATION.search(text[max(start, match.start() - 20) : match.end()].strip()):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [piece[first : first + LONGEST] for piece in found for first in range(0, len(piece), LONGEST)]


def shorten(text: str, budget: int) -> str:
    """The first part of a text that fits the budget, with a mark where it was cut."""
    return text if tokens(text) <= budget else text[: budget * 4].rstrip() + " …"


def whole(value: Json) -> Json:
    """A text, or every text in a JSON value, with halves of surrogate pairs replaced: no file, model or engine takes them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {whole(key): whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list | tuple) else value


def joined(parts: Iterable[str]) -> str:
    """Lines that are not empty, one under the other."""
    return "\n".join(part for part in parts if part)
