"""Links that no name makes: a sentence and the passage whose sentences it is nearest to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.loop.modes.paths.mentions import PlacedSentence

NEAR = 0.6  # the least cosine of two sentences that are linked


def near_titles(
    new: Sequence[PlacedSentence],
    known: Iterable[PlacedSentence],
    embedder: Embedder | None,
    least: float = NEAR,
) -> dict[str, str]:
    """For each new sentence, by its node, the other title that says the sentence with the largest cosine,
    where that is `least` or more.

    Without an embedder there are none.
    """
    if embedder is None or not new:
        return {}
    others = [*new, *(each for each in known if each.place not in {fresh.place for fresh in new})]
    vectors = embedder.embed([each.text for each in others])
    cosines = vectors[: len(new)] @ vectors.T
    titles = np.array([each.title for each in others])
    cosines[titles[: len(new), None] == titles[None, :]] = -1.0
    best = cosines.argmax(axis=1)
    return {
        each.place: str(titles[place])
        for row, (each, place) in enumerate(zip(new, best, strict=True))
        if cosines[row, place] >= least
    }
