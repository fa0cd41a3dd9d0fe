"""Structural isomorphism: edges between texts whose skeletons are more similar than the texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kgot_lab.analogy import expected_precision as measured
from kgot_lab.analogy.expected_precision import PREVALENCE, BandShares, expected_precision
from kgot_lab.analogy.skeletons import Skeletons
from kgot_lab.arguments import CheckedRecord, check_arguments
from kgot_lab.embedding.embedder import Embedder, Matrix, normalise_rows
from kgot_lab.errors import BadInput, require
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.pass_through import COMPUTED, TEXT_PROPERTIES
from kgot_lab.similarity.blocks import DEFAULT_EFFORT, Effort
from kgot_lab.similarity.delta import (
    BANDS,
    DEFAULT_THRESHOLDS,
    HIGH,
    TextPair,
    Thresholds,
    VerifierVerdict,
    count_by_band,
    count_words,
    row_cosines,
)
from kgot_lab.similarity.join import MAX_PAIRS, DeltaPairs, delta_pairs
from kgot_lab.types import Edge, Json, Node

# The nodes that can have a computed edge: with a text, a skeleton, and a vector of each.


def texts_by_node(graph: PropertyGraph) -> dict[str, str]:
    """Return the texts of the nodes that have one, by id. A name alone is not a text.

    Skeletons are made from these texts.
    """
    return {node.id: text for node in graph.nodes if (text := _node_text(node))}


@dataclass(frozen=True)
class CandidateCounts:
    """The numbers of nodes that can have no edge, by reason, and of pairs compared."""

    nodes: int = 0
    without_text: int = 0
    without_skeleton: int = 0  # none was made
    failed: int = 0  # the maker failed
    short: int = 0  # the skeleton has too few words to compare
    # no word of the text or of the skeleton is known to the embedder
    wordless: int = 0
    unused: int = 0  # skeletons of texts without a node
    pairs: int = 0  # compared
    same_text: int = 0  # pairs of nodes with the same text, which have no edge and are not compared

    def __str__(self) -> str:
        kinds = (
            ("without a text", self.without_text),
            ("without a skeleton", self.without_skeleton),
            ("whose skeleton failed", self.failed),
            ("whose skeleton is too short to compare", self.short),
            ("without a word the embedder knows", self.wordless),
            ("pairs of one text", self.same_text),
            ("skeletons of other texts", self.unused),
        )
        return f"{self.nodes:,} nodes" + "".join(f", {count:,} {what}" for what, count in kinds if count)


@dataclass(frozen=True, eq=False)
class EdgeCandidates:
    """Nodes sorted by id, with their texts, skeletons and vectors of length 1.

    Nodes with the same text have the same number in `groups`.
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
    ) -> tuple[EdgeCandidates, CandidateCounts]:
        """Collect the nodes of a graph that can have a delta edge, and count those that cannot.

        A skeleton must have at least `words` words other than "something". Raises BadInput, naming the text,
        if a vector holds NaN.
        """
        texts = texts_by_node(graph)
        by_text = skeletons.by_text
        every = {id: by_text[text] for id, text in sorted(texts.items()) if by_text.get(text, "").strip()}
        made = {id: skeleton for id, skeleton in every.items() if count_words(skeleton) >= words}
        raw, skeleton = embed_texts_and_skeletons(embedder, [texts[id] for id in made], list(made.values()))
        known = np.flatnonzero(raw.any(axis=1) & skeleton.any(axis=1))
        named = list(made)
        ids = tuple(named[row] for row in known)
        failed = sum(text in skeletons.failed for id, text in texts.items() if id not in every)
        known_texts = tuple(texts[id] for id in ids)
        counts = CandidateCounts(
            nodes=len(graph),
            without_text=len(graph) - len(texts),
            without_skeleton=len(texts) - len(every) - failed,
            failed=failed,
            short=len(every) - len(made),
            wordless=len(made) - len(ids),
            unused=len(by_text.keys() - set(texts.values())),
        )
        known_skeletons = tuple(made[id] for id in ids)
        groups = _group_numbers(known_texts)
        return cls(ids, known_texts, known_skeletons, raw[known], skeleton[known], groups), counts

    def __len__(self) -> int:
        return len(self.ids)


def embed_texts_and_skeletons(
    embedder: Embedder, texts: Sequence[str], skeletons: Sequence[str]
) -> tuple[Matrix, Matrix]:
    """Encode texts and their skeletons, each distinct one once.

    Raises BadInput for NaN or infinity.
    """
    row_of = {text: row for row, text in enumerate(dict.fromkeys([*texts, *skeletons]))}
    if not row_of:
        # avoids asking a server for its dimension
        return np.zeros((0, 1), np.float32), np.zeros((0, 1), np.float32)
    matrix = np.asarray(embedder.embed(list(row_of)), np.float32)
    if matrix.shape != (len(row_of), embedder.dimension):
        raise BadInput(
            f"{embedder.name} gave numbers of shape {matrix.shape} for {len(row_of)} texts of {embedder.dimension} each"
        )
    if bad := [text for text, row in row_of.items() if not np.isfinite(matrix[row]).all()]:
        problem = f"{embedder.name}: {len(bad)} of {len(row_of)} vectors hold NaN or infinity"
        raise BadInput(f"{problem}; the first is that of {bad[0][:80]!r}")
    matrix = normalise_rows(matrix, embedder.name)
    return matrix[_row_indices(row_of, texts)], matrix[_row_indices(row_of, skeletons)]


def _row_indices(row_of: Mapping[str, int], texts: Sequence[str]) -> NDArray[np.int64]:
    return np.array([row_of[text] for text in texts], np.int64)


def _group_numbers(texts: Sequence[str]) -> NDArray[np.int64]:
    number = {text: row for row, text in enumerate(dict.fromkeys(map(str.strip, texts)))}
    return _row_indices(number, list(map(str.strip, texts)))


def _node_text(node: Node) -> str:
    texts = (str(node.properties.get(key) or "") for key in TEXT_PROPERTIES)
    return next((text for text in texts if text.strip()), "")


_Rows = NDArray[np.int64]
DELTA_EDGE = "structural_isomorphism"


class Verifier(Protocol):
    """Anything that aligns two texts and may veto an edge."""

    def align(self, a: str, b: str, /) -> VerifierVerdict: ...


@runtime_checkable
class BatchVerifier(Verifier, Protocol):
    """A verifier that gets all texts in advance, to process them in one batch."""

    def prepare(self, texts: Sequence[str], /) -> object: ...


@dataclass(frozen=True, repr=False)
class ComputedEdges:
    """Delta edges, one for each pair, from the lower id to the higher. They are symmetric.

    Vetoed pairs are not edges of the graph, and their `veto` is the reason. `candidates` counts, by the band
    of their delta, all compared pairs whose skeletons are similar enough.
    """

    edges: tuple[Edge, ...]
    vetoed: tuple[Edge, ...] = ()
    candidates: Mapping[str, int] = field(default_factory=dict, hash=False)
    counts: CandidateCounts = field(default_factory=CandidateCounts)
    rule: str = ""
    shares: BandShares | None = field(default=None, hash=False)  # measured for this rule, if available

    @property
    def counts_by_band(self) -> dict[str, int]:
        """The number of edges in each band."""
        return count_by_band(edge.properties["band"] for edge in self.edges if "band" in edge.properties)

    def expected(self, prevalence: float = PREVALENCE) -> dict[str, float]:
        """Estimate the precision of the edges of each band for a prevalence of analogous pairs.

        See `expected_precision`.
        """
        bands, pairs = self.counts_by_band, self.counts.pairs
        return expected_precision(bands, pairs, prevalence=prevalence, shares=self.shares)

    def _format_expected_precision(self, name: str, share: float) -> str:
        """Format an expected precision with one digit, since only its order of magnitude held up.

        In the band middle not even that did.
        """
        digit = f"{float(f'{100 * share:.1g}'):g}%"
        if self.shares is None:
            return f"{name} at most {digit}"
        if name == HIGH:
            return f"{name} about {digit}"
        return f"{name} not known: too few pairs of that band were measured"

    def __iter__(self) -> Iterator[Edge]:
        return iter(self.edges)

    def __len__(self) -> int:
        return len(self.edges)

    def __repr__(self) -> str:
        found = f"<{len(self):,} {DELTA_EDGE} edge{'s' * (len(self) != 1)}, {len(self.vetoed):,} vetoed; {self.counts.pairs:,} pairs looked at>"
        bands = (self.counts_by_band, self.candidates)
        made, alike = (", ".join(f"{count:,} {name}" for name, count in each.items()) for each in bands)
        counts = f"  edges: {made}; pairs looked at that are alike in skeleton: {alike}"
        lines = [found, f"  {self.rule}", counts]
        if self.edges:
            expected = ", ".join(self._format_expected_precision(*i) for i in self.expected().items())
            prevalence = f"{PREVALENCE:.0%} of all pairs are analogous"
            lines.append(f"  expected to be right, if {prevalence}: {expected}")
        return "\n".join([*lines, f"  {self.counts}"])


@check_arguments
def delta_edges(
    graph: PropertyGraph,
    skeletons: Skeletons,
    embedder: Embedder,
    *,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    verifier: Verifier | None = None,
    most: int = MAX_PAIRS,
    effort: Effort = DEFAULT_EFFORT,
) -> ComputedEdges:
    """Compute an edge for each two nodes whose skeletons are similar, and more similar than their texts.

    delta = cosine of the skeletons - cosine of the texts, the weight of the edge. A verifier may veto an
    edge. Nodes without a text, a skeleton or a word known to the embedder have no edge, nor have two nodes
    with the same text. All are counted. A pair equal to a threshold passes. `effort` is that of
    `join.delta_pairs`. Raises BadInput if a vector holds NaN, if the memory is too small, and if more than
    `most` pairs pass, so that no edge is dropped silently.
    """
    material, counts = EdgeCandidates.of(graph, skeletons, embedder, words=thresholds.words)
    return _EdgeRule(skeletons, embedder, thresholds, verifier).find_edges(material, counts, most, effort)


@check_arguments
def compare_texts(
    a: str, b: str, skeletons: Skeletons, embedder: Embedder, *, verifier: Verifier | None = None
) -> TextPair:
    """Compare two texts: both similarities, the delta, its band and the verifier's verdict.

    Thresholds are ignored. Raises as `compare_pairs` does.
    """
    return compare_pairs([(a, b)], skeletons, embedder, verifier=verifier)[0]


@check_arguments
def compare_pairs(
    pairs: Sequence[tuple[str, str]],
    skeletons: Skeletons,
    embedder: Embedder,
    *,
    verifier: Verifier | None = None,
) -> tuple[TextPair, ...]:
    """Compare pairs of texts, embedding all texts together.

    Raises BadInput for a text without a skeleton, for a text or skeleton without a word known to the
    embedder, and for NaN.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    for text in texts:
        require(text, str, "texts are compared")
    if missing := [text for text in texts if not skeletons.by_text.get(text, "").strip()]:
        reason = skeletons.failed.get(missing[0], "none was made")
        problem = f"{len(missing)} of {len(texts)} texts have no skeleton"
        raise BadInput(f"{problem}; the first is {missing[0][:80]!r}: {reason}")
    raw, skeleton = embed_texts_and_skeletons(embedder, texts, [skeletons.by_text[text] for text in texts])
    known = raw.any(axis=1) & skeleton.any(axis=1)
    if not known.all():
        problem = f"{embedder.name} knows no word of {texts[int(np.argmin(known))][:80]!r} or of its skeleton"
        raise BadInput(f"{problem}; leave that text out")
    row_of = {text: row for row, text in enumerate(texts)}
    first, second = (np.array([row_of[pair[end]] for pair in pairs], np.int64) for end in (0, 1))
    raw_cosines = row_cosines(raw[first], raw[second]).tolist()
    skeleton_cosines = row_cosines(skeleton[first], skeleton[second]).tolist()
    return tuple(
        TextPair(
            a,
            b,
            near,
            alike,
            (skeletons.by_text[a], skeletons.by_text[b]),
            verifier.align(a, b) if verifier is not None else None,
        )
        for (a, b), near, alike in zip(pairs, raw_cosines, skeleton_cosines, strict=True)
    )


# --- edges of a graph ---


def replace_computed_edges(
    graph: PropertyGraph, edges: Iterable[Edge], type: str = DELTA_EDGE
) -> PropertyGraph:
    """Return the graph with its computed edges of one type replaced. Curated edges are unchanged.

    Raises BadInput for edges of another type, for a type that is not computed, and for an edge that ends at
    an unknown node.
    """
    edges = tuple(edges)
    if type not in COMPUTED:
        problem = f"{type!r} edges may be somebody's own"
        raise BadInput(f"{problem}; only {' and '.join(sorted(COMPUTED))} edges are replaced")
    if others := {edge.type for edge in edges} - {type}:
        raise BadInput(f"these are to be {type} edges; some are of type {sorted(others)[0]!r}")
    return PropertyGraph.of(graph.nodes, [*(edge for edge in graph.edges if edge.type != type), *edges])


# --- rules ---


@dataclass(frozen=True)
class _EdgeRule(CheckedRecord):
    """The settings that determine delta edges."""

    skeletons: Skeletons
    embedder: Embedder
    thresholds: Thresholds
    verifier: Verifier | None

    def find_edges(
        self, material: EdgeCandidates, counts: CandidateCounts, most: int, effort: Effort
    ) -> ComputedEdges:
        """Find the edges between the candidates."""
        parts = (material.raw, material.skeleton, self.thresholds)
        found = _refuse_dropped(delta_pairs(*parts, groups=material.groups, most=most, effort=effort))
        columns = found.rows.tolist(), found.columns.tolist(), found.raw.tolist(), found.skeleton.tolist()
        self._prepare_verifier(material.texts[i] for i in dict.fromkeys([*columns[0], *columns[1]]))
        pairs = [self._build_pair(material, *numbers) for numbers in zip(*columns, strict=True)]
        accepted = _sort_edges(self._build_edge(pair) for pair in pairs if not pair.veto)
        vetoed = _sort_edges(self._build_edge(pair) for pair in pairs if pair.veto)
        return ComputedEdges(
            accepted,
            vetoed,
            candidates=dict(zip(BANDS, found.candidates, strict=True)),
            counts=_count_compared(counts, material),
            rule=self.thresholds.describe(self.embedder),
            shares=self._measured_shares,
        )

    @property
    def _measured_shares(self) -> BandShares | None:
        """The measured shares for this rule, if any."""
        embedder, maker = measured.MEASURED_CONFIGURATION
        if not self.embedder.name.startswith(embedder) or self.skeletons.maker != maker:
            return None
        has_verifier = self.verifier is not None
        # an Aligner with default settings
        usual = not has_verifier or getattr(self.verifier, "usual", False) is True
        usual = usual and self.thresholds == DEFAULT_THRESHOLDS
        return measured.MEASURED_SHARES[has_verifier] if usual else None

    @property
    def _rule_properties(self) -> dict[str, Json]:
        limits = self.thresholds
        thresholds = {"skeleton": limits.skeleton, "delta": limits.delta, "words": limits.words}
        embedder = {"embedder": self.embedder.name, "embedder_digest": self.embedder.digest[:16]}
        return {**embedder, "maker": self.skeletons.maker, "thresholds": thresholds}

    def _prepare_verifier(self, texts: Iterable[str]) -> None:
        if isinstance(self.verifier, BatchVerifier):
            self.verifier.prepare(list(texts))

    def _build_pair(self, material: EdgeCandidates, i: int, j: int, raw: float, alike: float) -> TextPair:
        ids, texts, skeletons = (
            (column[i], column[j]) for column in (material.ids, material.texts, material.skeletons)
        )
        alignment = self.verifier.align(*texts) if self.verifier is not None else None
        return TextPair(*ids, raw, alike, skeletons, alignment)

    def _build_edge(self, pair: TextPair) -> Edge:
        return Edge(pair.source, DELTA_EDGE, pair.target, {**pair.properties(), **self._rule_properties})


def _count_compared(counts: CandidateCounts, material: EdgeCandidates) -> CandidateCounts:
    """Return the counts with the number of pairs compared, and of those of one text, which are not."""
    sizes = np.bincount(material.groups)
    same = int((sizes * (sizes - 1) // 2).sum())
    pairs = len(material) * (len(material) - 1) // 2
    return replace(counts, pairs=pairs - same, same_text=same)


def _sort_edges(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted(edges, key=lambda edge: (edge.source, edge.target)))


def _refuse_dropped(found: DeltaPairs) -> DeltaPairs:
    """Return the result if nothing was dropped.

    Raises BadInput otherwise, since a part of the edges would depend on the other pairs.
    """
    if found.dropped:
        passed = f"{len(found) + found.dropped:,} pairs pass, and most={len(found):,} are allowed"
        raise BadInput(f"{passed}: raise the thresholds, calibrate them, or allow more")
    return found
