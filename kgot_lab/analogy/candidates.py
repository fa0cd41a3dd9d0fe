"""The nodes of a graph that can have a computed edge: those with a text, a skeleton, and a vector of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.analogy.skeletons import Skeletons
from kgot_lab.embedding.embedder import Embedder, Matrix, unit
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.pass_through import TEXTS
from kgot_lab.similarity.delta import count_words
from kgot_lab.types import Node


def described(graph: PropertyGraph) -> dict[str, str]:
    """The texts of the nodes that have one, by id: what skeletons are to be made of. A name alone is no text."""
    return {node.id: text for node in graph.nodes if (text := _text(node))}


@dataclass(frozen=True)
class Counts:
    """Which nodes could have no edge, and which pairs were looked at."""

    nodes: int = 0
    without_text: int = 0
    without_skeleton: int = 0  # nobody made one
    failed: int = 0  # the maker could not
    short: int = 0  # too little is left in the skeleton to compare
    wordless: int = (
        0  # the embedder knows no word of the text or of the skeleton: a vector of zeros is like nothing
    )
    leaking: int = 0  # nodes that may have edges, though their skeletons hold words of the text
    unused: int = 0  # skeletons of texts that no node has
    pairs: int = 0  # looked at
    same_text: int = 0  # pairs of two nodes with one text, which have no edge; not among those looked at

    def __str__(self) -> str:
        nodes = [
            ("without a text", self.without_text),
            ("without a skeleton", self.without_skeleton),
            ("whose skeleton failed", self.failed),
        ]
        nodes += [("whose skeleton is too short to compare", self.short)]
        nodes += [
            ("without a word the embedder knows", self.wordless),
            ("whose skeleton leaks", self.leaking),
        ]
        others = [("pairs of one text", self.same_text), ("skeletons of other texts", self.unused)]
        return ", ".join(
            [f"{self.nodes:,} nodes", *(f"{count:,} {what}" for what, count in nodes + others if count)]
        )


@dataclass(frozen=True, eq=False)
class Material:
    """Nodes sorted by id, with their texts, skeletons and vectors of length 1; nodes of one text have one
    number in `groups`.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    skeletons: tuple[str, ...]
    raw: Matrix
    skeleton: Matrix
    groups: NDArray[np.int64]

    @classmethod
    def of(
        cls, graph: PropertyGraph, skeletons: Skeletons, embedder: Embedder, *, words: int = 0
    ) -> tuple[Material, Counts]:
        """What of a graph can have a delta edge, and the count of what cannot; a skeleton must hold so many
        words beside "something".

        Raises BadInput for NaN in a vector, naming its text.
        """
        texts = described(graph)
        every = {
            id: skeletons.by_text[text]
            for id, text in sorted(texts.items())
            if skeletons.by_text.get(text, "").strip()
        }
        made = {id: skeleton for id, skeleton in every.items() if count_words(skeleton) >= words}
        raw, skeleton = vectors(embedder, [texts[id] for id in made], list(made.values()))
        known = np.flatnonzero(raw.any(axis=1) & skeleton.any(axis=1))
        named = list(made)
        ids = tuple(named[row] for row in known)
        failed = sum(text in skeletons.failed for id, text in texts.items() if id not in every)
        held = tuple(texts[id] for id in ids)
        counts = Counts(
            nodes=len(graph),
            without_text=len(graph) - len(texts),
            without_skeleton=len(texts) - len(every) - failed,
            failed=failed,
            short=len(every) - len(made),
            wordless=len(made) - len(ids),
            leaking=sum(text in skeletons.leaks for text in held),
            unused=len(skeletons.by_text.keys() - set(texts.values())),
        )
        return cls(
            ids, held, tuple(made[id] for id in ids), raw[known], skeleton[known], _groups(held)
        ), counts

    def __len__(self) -> int:
        return len(self.ids)


def vectors(embedder: Embedder, texts: Sequence[str], skeletons: Sequence[str]) -> tuple[Matrix, Matrix]:
    """The vectors of some texts and of their skeletons, each different one embedded once. Raises BadInput for
    NaN or infinity.
    """
    place = {text: row for row, text in enumerate(dict.fromkeys([*texts, *skeletons]))}
    if not place:
        # a server need not be asked how long its vectors are
        return np.zeros((0, 1), np.float32), np.zeros((0, 1), np.float32)
    matrix = np.asarray(embedder.embed(list(place)), np.float32)
    if matrix.shape != (len(place), embedder.dimension):
        raise BadInput(
            f"{embedder.name} gave numbers of shape {matrix.shape} for {len(place)} texts of {embedder.dimension} each"
        )
    if bad := [text for text, row in place.items() if not np.isfinite(matrix[row]).all()]:
        raise BadInput(
            f"{embedder.name}: {len(bad)} of {len(place)} vectors hold NaN or infinity; the first is that of {bad[0][:80]!r}"
        )
    matrix = unit(matrix, embedder.name)
    return matrix[_rows(place, texts)], matrix[_rows(place, skeletons)]


def _rows(place: Mapping[str, int], texts: Sequence[str]) -> NDArray[np.int64]:
    return np.array([place[text] for text in texts], np.int64)


def _groups(texts: Sequence[str]) -> NDArray[np.int64]:
    number = {text: row for row, text in enumerate(dict.fromkeys(map(str.strip, texts)))}
    return _rows(number, list(map(str.strip, texts)))


def _text(node: Node) -> str:
    return next(
        (str(node.properties[key]) for key in TEXTS if str(node.properties.get(key) or "").strip()), ""
    )
