"""Controls of a benchmark of structure: systems that use what lies on the surface as cleverly as one can, and
know of no structure.

A structural system that does not beat them has shown nothing, however high its number is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from benchmarks.structure.analogies import SEED, hashed
from benchmarks.structure.nouns import NounsOf
from benchmarks.structure.systems import Surface, System
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import Numbers

_T = TypeVar("_T")

_WORD = re.compile(r"\w+")
_FAR_BELOW = 4.0  # more than any cosine, or a cosine and a half, can make up for


class MinusSurface:
    """The less alike the texts look, the better."""

    kind = "control"

    def __init__(self, surface: Surface, name: str = "minus surface") -> None:
        self.name, self._surface = name, surface

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts."""
        self._surface.prepare(texts)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """The cosines with their sign turned."""
        return -self._surface.scores(source, candidates)


class SecondBySurface:
    """The candidate second nearest in surface is best, then the third and so on; the nearest, taken for a
    trap, comes last.
    """

    kind = "control"

    def __init__(self, surface: Surface, name: str = "second by surface") -> None:
        self.name, self._surface = name, surface

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts."""
        self._surface.prepare(texts)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """Places counted downwards from 0; of equally near candidates the first in the alphabet comes first."""
        near = self._surface.scores(source, candidates)
        order = sorted(range(len(candidates)), key=lambda place: (-near[place], candidates[place]))
        found = np.zeros(len(candidates))
        found[[*order[1:], *order[:1]]] = -np.arange(len(candidates))
        return found


class NounVeto:
    """Near in surface is good, but a candidate that shares a noun with the source comes after all that do
    not.

    With `masked`, which takes the nouns out of a text, "near" is the cosine of the masked texts plus half
    that of the texts themselves.
    """

    kind = "control"

    def __init__(
        self,
        surface: Surface,
        nouns: NounsOf,
        *,
        masked: tuple[Surface, Callable[[str], str]] | None = None,
        name: str = "",
    ) -> None:
        self.name = name or ("noun veto, masked" if masked else "noun veto")
        self._surface, self._nouns, self._masked = surface, nouns, masked

    def prepare(self, texts: Sequence[str]) -> None:
        """Embed the texts, and where it is asked for also without their nouns."""
        self._surface.prepare(texts)
        if self._masked:
            surface, mask = self._masked
            surface.prepare([mask(text) for text in texts])

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """How near each candidate is, less 4 where it shares a noun."""
        near = self._surface.scores(source, candidates)
        if self._masked:
            surface, mask = self._masked
            near = surface.scores(mask(source), [mask(text) for text in candidates]) + near / 2
        own = self._nouns(source)
        return near - _FAR_BELOW * np.array([bool(own & self._nouns(text)) for text in candidates])


class RandomSkeleton(Generic[_T]):
    """A structural system given the skeleton of another text of like length: what is left of its success is
    not structure.

    `make` builds the system around a function from a text to its skeleton.
    """

    kind = "control"

    def __init__(
        self,
        make: Callable[[Callable[[str], _T]], System],
        skeleton_of: Callable[[str], _T],
        name: str = "random skeleton",
    ) -> None:
        self.name, self._make, self._skeleton_of = name, make, skeleton_of
        self._system: System | None = None

    def prepare(self, texts: Sequence[str]) -> None:
        """Deal the skeletons out again and prepare the system with them."""
        stranger = strangers(texts)
        self._system = self._make(lambda text: self._skeleton_of(stranger[text]))
        self._system.prepare(texts)

    def scores(self, source: str, candidates: Sequence[str]) -> Numbers:
        """What the system says with the wrong skeletons; raises BadInput before prepare()."""
        if self._system is None:
            raise BadInput(f"{self.name} has prepared no texts; call prepare() with all texts first")
        return self._system.scores(source, candidates)


def strangers(texts: Sequence[str], *, bin_size: int = 10, seed: int = SEED) -> dict[str, str]:
    """For each text another one of like length: in runs of `bin_size` texts by length, each gets the one
    after it in a drawn order.

    Every text is given away once and none keeps its own, whatever order they come in. Raises BadInput for
    fewer than two texts.
    """
    distinct = sorted(
        set(texts), key=lambda text: (len(_WORD.findall(text)), hashed("length", text, seed=seed))
    )
    if len(distinct) < 2 or bin_size < 2:
        raise BadInput(
            f"to give texts the skeletons of others takes two texts or more in a bin; there are {len(distinct)} texts"
        )
    bins = [distinct[start : start + bin_size] for start in range(0, len(distinct), bin_size)]
    if len(bins[-1]) == 1:
        bins[-2:] = [bins[-2] + bins[-1]]
    drawn = [sorted(some, key=lambda text: hashed("stranger", text, seed=seed)) for some in bins]
    return {text: some[(place + 1) % len(some)] for some in drawn for place, text in enumerate(some)}
