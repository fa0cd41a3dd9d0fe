"""Keep what matters when a text does not fit: sentences and facts ranked by the words they share with the
question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from kgot_lab.text.cleaning import tokens
from kgot_lab.text.words import content_words


def relevance(question: str, texts: Sequence[str]) -> list[float]:
    """How much each text shares with the question: the summed rarity of shared words, idf = ln(1 + n / df)."""
    asked = set(content_words(question))
    bags = [set(content_words(text)) for text in texts]
    frequency = Counter(word for bag in bags for word in bag)
    # in whatever order a set has
    return [math.fsum(math.log(1 + len(texts) / frequency[word]) for word in asked & bag) for bag in bags]


def fit(
    question: str,
    texts: Sequence[str],
    budget: int,
    *,
    bonus: Sequence[float] | None = None,
    least: float = 0.0,
) -> tuple[list[int], int]:
    """Which texts to keep within a token budget, most relevant first but returned in their own order, and the
    tokens left out.

    `bonus` is added to the relevance of each text; a text below `least` times the best is left out even where
    there is room. The best text is kept even when it alone is over the budget.
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


def joined_lines(parts: Iterable[str]) -> str:
    """Lines that are not empty, one under the other."""
    return "\n".join(part for part in parts if part)
