"""Structural systems: likeness of skeletons, delta edges, an alignment of the texts, and delta edges that an
alignment may veto.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.structure.systems import Surface
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.significance import Numbers
from kgot_lab.similarity.delta import DEFAULT_THRESHOLDS, Thresholds

# the skeletons of some texts; a text without one is left out
SkeletonsOf = Callable[[Sequence[str]], Mapping[str, str]]
_FIRST = 10.0  # more than any similarity or delta: what puts one lot of candidates before another


class Skeleton:
    """How alike the skeletons of two texts are: the cosine of their embeddings; 0 where a text has none."""

    kind = "structure"

    def __init__(self, name: str, skeletons_of: SkeletonsOf, embedder: Embedder) -> None:
        self.name, self._skeletons_of, self._surface = name, skeletons_of, Surface(embedder)
        self._skeletons: Mapping[str, str] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Have the skeletons made, and embed them."""
        self._skeletons = self._skeletons_of(texts)
        self._surface.prepare(sorted(set(self._skeletons.values())))

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The cosine of the source's skeleton with that of each candidate."""
        known = [place for place, text in enumerate(candidates) if text in self._skeletons]
        found = np.zeros(len(candidates))
        if source in self._skeletons and known:
            found[known] = self._surface.scores(
                self._skeletons[source], [self._skeletons[candidates[place]] for place in known]
            )
        return found


class Delta:
    """Delta edges as a ranking: the candidates that would get an edge come first, each lot by its delta."""

    kind = "structure"

    def __init__(
        self, name: str, surface: Surface, skeleton: Skeleton, thresholds: Thresholds = DEFAULT_THRESHOLDS
    ) -> None:
        self.name, self._surface, self._skeleton, self._thresholds = name, surface, skeleton, thresholds

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts and their skeletons."""
        self._surface.prepare(texts)
        self._skeleton.prepare(texts)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """delta = similarity of the skeletons - similarity of the texts, with FIRST added where both
        thresholds are reached.
        """
        return self.deltas(source, candidates) + _FIRST * self.admitted(source, candidates)

    def deltas(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The delta of each candidate."""
        return self._skeleton.scores(source, candidates) - self._surface.scores(source, candidates)

    def admitted(self, source: str, candidates: Sequence[str]) -> Numbers:
        """1 for a candidate that would get an edge, else 0."""
        skeleton = self._skeleton.scores(source, candidates)
        return self._thresholds.are_reached(skeleton, self.deltas(source, candidates)).astype(float)


class Aligned:
    """How well the telling of one text runs along that of the other; with a veto, those it refuses come last."""

    kind = "structure"

    def __init__(self, name: str, aligner: Aligner, *, veto: bool = False) -> None:
        self.name, self._aligner, self._veto = name, aligner, veto

    def prepare(self, texts: Sequence[str]) -> None:
        """Read and embed the texts."""
        self._aligner.prepare(texts)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The score of the alignment with each candidate, less FIRST where an edge would be vetoed."""
        found = np.asarray(self._aligner.similarity(source, candidates), np.float64)
        return found - _FIRST * self.vetoed(source, candidates) if self._veto else found

    def vetoed(self, source: str, candidates: Sequence[str]) -> Numbers:
        """1 for a candidate to which an edge would be vetoed, else 0."""
        return np.array([bool(self._aligner.align(source, text).veto) for text in candidates], float)


class DeltaVerified:
    """Delta edges with a verifier: candidates with an edge that stands come first, those that are vetoed
    last, each lot by alignment.
    """

    kind = "structure"

    def __init__(self, name: str, delta: Delta, aligned: Aligned) -> None:
        self.name, self._delta, self._aligned = name, delta, aligned

    def prepare(self, texts: Sequence[str]) -> None:
        """Prepare both."""
        self._delta.prepare(texts)
        self._aligned.prepare(texts)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The score of the alignment, with FIRST added for an edge and taken away for a veto."""
        edges = self._delta.admitted(source, candidates)
        vetoes = self._aligned.vetoed(source, candidates)
        return self._aligned.scores(source, candidates) + _FIRST * (edges * (1 - vetoes) - vetoes)
