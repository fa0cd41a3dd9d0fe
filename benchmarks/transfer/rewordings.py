"""Texts told of something else, by rule: each noun makes way for one that is drawn, so that what happens
stays and the field goes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from benchmarks.structure.nouns import NounPiece, Nouns


def reworded_pairs(texts: Sequence[str], nouns: Nouns, seed: int = 0) -> list[tuple[str, str]]:
    """Each text with itself told of something else: for each noun one of its tag is drawn from all texts, the
    likelier the more frequent.

    A noun that comes twice in a text is replaced by the same one both times, also where its number differs,
    so that grammar may break. The same seed gives the same pairs.
    """
    chance = random.Random(seed)
    read = [nouns.pieces(" ".join(text.split())) for text in texts]
    stock: dict[str, list[str]] = {}
    for piece in (piece for pieces in read for piece in pieces if piece.tag):
        stock.setdefault(piece.tag, []).append(piece.text)
    return [
        ("".join(piece.text + piece.space for piece in pieces), _told_of_others(pieces, stock, chance))
        for pieces in read
    ]


def _told_of_others(
    pieces: Sequence[NounPiece], stock: Mapping[str, Sequence[str]], chance: random.Random
) -> str:
    dealt: dict[str, str] = {}
    told = []
    for piece in pieces:
        if piece.tag and piece.lemma not in dealt:
            dealt[piece.lemma] = chance.choice(stock[piece.tag])
        told.append((dealt[piece.lemma] if piece.tag else piece.text) + piece.space)
    return "".join(told)
