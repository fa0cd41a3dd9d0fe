"""Vectors of chance that are as similar to each other as those of texts: what joins of all pairs are measured
on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kgot_lab.io.files import bundled_path

Floats = NDArray[np.float32]


def clustered(
    count: int, dimension: int, seed: int, common: float = 0.25, topic: float = 0.4, event: float = 0.5
) -> Floats:
    """Vectors of length 1 with a share of what is common to all, to a topic and to an event."""
    chance = np.random.default_rng(seed)
    spectrum = np.arange(1, dimension + 1) ** -0.4
    spectrum = (spectrum / np.linalg.norm(spectrum)).astype(np.float32)

    def some(rows: int) -> Floats:
        return chance.standard_normal((rows, dimension), dtype=np.float32) * spectrum

    events = event * some(max(1, count // 20))
    events += (
        topic * some(max(1, round(count**0.5)))[chance.integers(0, max(1, round(count**0.5)), len(events))]
    )
    vectors = events[chance.integers(0, len(events), count)]
    vectors += (1 - common**2 - topic**2 - event**2) ** 0.5 * some(count)
    vectors += common * some(1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def skeleton_vectors(count: int, dimension: int, alike: bool) -> Floats:
    """Vectors for skeletons: as clustered as texts, or (alike) with much in common, as short abstract
    sentences have it.
    """
    return clustered(count, dimension, 2, *((0.5, 0.35, 0.4) if alike else (0.25, 0.4, 0.5)))


def _described(vectors: Floats) -> dict[str, float]:
    """How similar vectors are: all pairs of a sample with all others, and the first, tenth and fiftieth
    neighbour.
    """
    sample = vectors[:500]
    cosines = sample @ vectors.T
    cosines[np.arange(len(sample)), np.arange(len(sample))] = np.nan
    lists = -np.sort(-np.nan_to_num(cosines, nan=-1), axis=1)
    told = {
        "mean": np.nanmean(cosines),
        "sd": np.nanstd(cosines),
        "share >= .45": np.nanmean(cosines >= 0.45),
    }
    told |= {f"neighbour {place}": np.median(lists[:, place - 1]) for place in (1, 10, 50)}
    return {name: round(float(value), 4) for name, value in told.items()}


def vectors_used() -> dict[str, dict[str, float]]:
    """How similar the vectors of chance are, and the real ones they stand for."""
    real = np.load(bundled_path("2wiki-fastgraphrag-101/vectors.npz"))["matrix"].astype(np.float32)
    real /= np.linalg.norm(real, axis=1, keepdims=True)
    made = {
        "texts": clustered(6119, 384, 0),
        "skeletons, few alike": skeleton_vectors(6119, 384, False),
        "skeletons, many alike": skeleton_vectors(6119, 384, True),
    }
    return {
        name: _described(vectors)
        for name, vectors in {"MiniLM, 2wiki-fastgraphrag-101": real, **made}.items()
    }
