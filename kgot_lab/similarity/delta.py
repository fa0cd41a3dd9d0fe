"""The delta of a pair of texts, its band, and the thresholds of an edge."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import CheckedRecord, bounded
from kgot_lab.embedding.embedder import Embedder, Matrix
from kgot_lab.errors import BadInput
from kgot_lab.types import Json

DIGITS = 6  # decimals of a similarity: 32-bit vectors are not more precise
NEGATIVE, LOW, MIDDLE, HIGH = BANDS = ("negative", "low", "middle", "high")
BAND_BOUNDARIES = (0.0, 0.05, 0.15)  # boundaries of the bands; a boundary belongs to the upper band
# unrelated sentences with fewer words get an edge more often: benchmarks/structure/short_texts.py
MIN_SKELETON_WORDS = 3
# the model of 3072 dimensions that the default thresholds were set for
THRESHOLDS_MODEL = "text-embedding-3-large"

_WORD, _PLACEHOLDER = re.compile(r"\w+"), "something"  # the replacement of a noun phrase in a skeleton

Cosines = NDArray[np.float64]


def band(delta: float) -> str:
    """Return the band of a delta: negative < 0 <= low < .05 <= middle < .15 <= high.

    The delta is first rounded to six decimals, so that .3 - .25 is in the band of .05 in spite of binary
    fractions. Raises BadInput if it is not finite.
    """
    if not math.isfinite(delta):
        raise BadInput(f"a delta is a finite number, not {delta}")
    return BANDS[sum(round(delta, DIGITS) >= step for step in BAND_BOUNDARIES)]


def count_words(skeleton: str) -> int:
    """Count the words of a skeleton other than "something"."""
    return sum(word != _PLACEHOLDER for word in _WORD.findall(skeleton.casefold()))


def _format_word_count(words: float) -> str:
    return f"{words:g} word{'s' * (words != 1)} left of a skeleton"


def row_cosines(first: Matrix, second: Matrix) -> Cosines:
    """Compute the cosine of each row with the corresponding row, rounded to six decimals.

    Rows must have length 1. Summed in 64 bits row by row, so that it depends neither on other rows nor on the
    order of the two.
    """
    # + 0.0 turns -0 into 0
    return np.asarray(np.round((first.astype(np.float64) * second).sum(axis=1), DIGITS) + 0.0)


@dataclass(frozen=True)
class Thresholds(CheckedRecord):
    """The minimum skeleton similarity and delta of an edge. A value equal to a threshold passes.

    Similarities are rounded to six decimals, as are their difference and the thresholds, so that the printed
    values decide. The default skeleton and delta were set for a model of 3072 dimensions. A skeleton with
    fewer than `words` words other than "something" is too short to compare: its text gets no edge and is
    counted. With 0 none is too short. Raises BadInput outside -1..1 (skeleton), -2..2 (delta) and below 0
    (words).
    """

    skeleton: float = bounded(0.45, -1, 1)
    delta: float = bounded(0.08, -2, 2)
    words: int = MIN_SKELETON_WORDS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("skeleton", "delta"):
            object.__setattr__(self, name, round(float(getattr(self, name)), DIGITS))

    def explain_short_skeletons(self, pair: TextPair) -> str:
        """Explain why two skeletons have too few words to compare.

        Empty if they have enough or are not known.
        """
        return (
            f"too short to compare: {_format_word_count(pair.shorter_word_count)}, and an edge takes {self.words}"
            if pair.shorter_word_count < self.words
            else ""
        )

    def are_reached(self, skeleton: Cosines | float, delta: Cosines | float) -> NDArray[np.bool_]:
        """Return whether both thresholds are reached, for one pair or many."""
        return (np.round(skeleton, DIGITS) >= self.skeleton) & (np.round(delta, DIGITS) >= self.delta)

    def describe(self, embedder: Embedder) -> str:
        """Format the thresholds, with a warning if they are defaults that were set for another embedder."""
        line = f"skeleton >= {self.skeleton:g} and delta >= {self.delta:g}"
        if (self.skeleton, self.delta) != (Thresholds.skeleton, Thresholds.delta):
            return line
        # a server may shorten its vectors
        if THRESHOLDS_MODEL in embedder.name and embedder.dimension == 3072:
            return f"{line}, the defaults"
        return f"{line}: the defaults, set for a 3072-dimensional model; {embedder.name} has {embedder.dimension}, so calibrate them"


DEFAULT_THRESHOLDS = Thresholds()  # the default


class VerifierVerdict(Protocol):
    """A verifier's verdict on two texts: how well they align, and why they are not a pair, or ""."""

    @property
    def score(self) -> float: ...
    @property
    def veto(self) -> str: ...


@dataclass(frozen=True, repr=False)
class TextPair:
    """Two texts (or nodes, by id), with the similarity of the texts and that of their skeletons."""

    source: str
    target: str
    raw: float  # cosines, rounded to six decimals
    skeleton: float
    skeletons: tuple[str, str] = ("", "")
    alignment: VerifierVerdict | None = None

    @property
    def delta(self) -> float:
        """The similarity of the skeletons minus that of the texts."""
        return round(self.skeleton - self.raw, DIGITS) + 0.0

    @property
    def band(self) -> str:
        """The band of the delta."""
        return band(self.delta)

    @property
    def veto(self) -> str:
        """Why a verifier rejects the pair. Empty if it does not, or if there was no verifier."""
        return self.alignment.veto if self.alignment is not None else ""

    @property
    def shorter_word_count(self) -> float:
        """The number of words in the shorter skeleton other than "something", or infinity if unknown."""
        return min(map(count_words, self.skeletons)) if all(self.skeletons) else math.inf

    def properties(self) -> dict[str, Json]:
        """Return the edge properties of the pair. The delta is the weight."""
        edge_properties: dict[str, Json] = {"weight": self.delta, "raw": self.raw, "skeleton": self.skeleton}
        source, target = self.skeletons
        edge_properties |= {"band": self.band, "source_skeleton": source, "target_skeleton": target}
        if self.alignment is not None:
            edge_properties["alignment"] = str(self.alignment)
            edge_properties |= {"alignment_score": self.alignment.score, "veto": self.veto}
        return edge_properties

    def __str__(self) -> str:
        cosines = f"skeletons {self.skeleton:.3f} - texts {self.raw:.3f}"
        short = self.shorter_word_count < MIN_SKELETON_WORDS
        words = f"; only {_format_word_count(self.shorter_word_count)}" * short
        vetoed = f"; vetoed: {self.veto}" if self.veto else ""
        return f"{cosines} = delta {self.delta:+.3f}, {self.band}{words}{vetoed}"

    def __repr__(self) -> str:
        texts = zip((self.source, self.target), self.skeletons, strict=True)
        ends = (f"\n  {text}\n    {skeleton}" for text, skeleton in texts)
        return f"<{self}{''.join(ends)}>"


def count_by_band(bands: Iterable[str]) -> dict[str, int]:
    """Count the items in each band, from negative to high."""
    counted = Counter(bands)
    return {name: counted[name] for name in BANDS}
