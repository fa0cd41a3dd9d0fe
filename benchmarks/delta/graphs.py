"""Graphs of stories for the benchmark of delta edges: texts, the nouns they share, who asks for what, and the
edges each system walks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, islice

import numpy as np

from benchmarks.structure.analogies import SEED, items
from benchmarks.structure.analogy_pairs import AnalogyPairs, pair, pairs
from benchmarks.structure.calibration import CalibratedThresholds, CalibrationObjective, calibrate_thresholds
from benchmarks.structure.controls import strangers
from benchmarks.structure.nouns import NounsOf
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import (
    ComputedEdges,
    EdgeCandidates,
    delta_edges,
    embed_texts_and_skeletons,
    texts_by_node,
)
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import Skeletons, make_skeletons
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.dataset import Dataset, content_id
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.stage import Stage
from kgot_lab.similarity.delta import DEFAULT_THRESHOLDS, DIGITS, TextPair, Thresholds
from kgot_lab.similarity.join import similar_pairs
from kgot_lab.types import Edge, Node, Query, Ranking, ranked

DELTA_SETS = ("storyanalogy-mc", "parallelparc", "analobench S1")
CHOSEN, DELTA_ALONE = "traverse + delta, calibrated, verified", "delta alone, calibrated, verified"
CONTROLS = SHUFFLED, AS_MANY_ALIKE, STRANGE, ALIKE_VERIFIED = (
    "control: delta shuffled",
    "control: as many similarity edges",
    "control: skeletons of others",
    "control: as many similarity edges, verified",
)
SIMILARITY_EDGE = "similarity"
_COMMON = 10  # texts that may share a noun, for it to be a hub
_OTHERS = 100_000  # pairs that are not analogous, drawn to calibrate on
_STEPS = 200  # thresholds tried: of 1,000 pairs one or two are analogous, so coarser steps would leave out all that matter


@dataclass(frozen=True)
class StoryCase:
    """A graph of texts and the nouns they share, who asks and what is relevant, and the entry stage."""

    pairs: AnalogyPairs
    parts: Mapping[str, Dataset]
    texts: PropertyGraph
    graph: PropertyGraph
    entry: Stage
    dropped: Mapping[str, frozenset[str]]  # by query: what its ranking leaves out


# --- cases ---


def story_case(name: str, parts: Sequence[str], embedder: Embedder, nouns: NounsOf) -> StoryCase:
    """The graph of a set, and the queries of some of its parts."""
    whole = pairs(f"{name} pairs")
    judged = {"develop": whole.dev, "locked": whole.held_out}
    asked = {part: questions(name, part, judged[part]) for part in parts}
    texts = PropertyGraph.of(
        Node(document.id, ("Text",), {"text": document.text}) for document in whole.documents
    )
    out = {
        query.id: unasked(query.id, judged[part]) for part, data in asked.items() for query in data.queries
    }
    return StoryCase(whole, asked, texts, noun_graph(texts, nouns), by_meaning(texts, embedder), out)


def questions(name: str, part: str, judged: AnalogyPairs) -> Dataset:
    """Each source of the part asks for its analogues."""
    near: dict[str, dict[str, int]] = {}
    for first, second in sorted(judged.analogous):
        near.setdefault(first, {})[second] = 1
        near.setdefault(second, {})[first] = 1
    asked = {
        content_id("", item.source): item.source
        for item in items(name)
        if item.held_out is (part == "locked")
    }
    queries = tuple(Query(text, id) for id, text in sorted(asked.items()))
    return Dataset(
        f"{name}, {part}", judged.documents, queries, {query.id: near[query.id] for query in queries}
    )


def unasked(id: str, judged: AnalogyPairs) -> frozenset[str]:
    """A text itself, and those of which nobody said whether they are analogous to it."""
    return frozenset({id, *(end for both in judged.left_out if id in both for end in both)})


def noun_graph(texts: PropertyGraph, nouns: NounsOf) -> PropertyGraph:
    """The texts, with an edge to each noun that they share with 1 to 9 others; a noun is a bare node."""
    held = {node.id: sorted(nouns(node.text)) for node in texts.nodes}
    uses: dict[str, int] = {}
    for some in held.values():
        for noun in some:
            uses[noun] = uses.get(noun, 0) + 1
    hubs = [
        Node(f"noun:{noun}", (), {"name": noun})
        for noun, count in sorted(uses.items())
        if 2 <= count <= _COMMON
    ]
    edges = [
        Edge(id, "names", f"noun:{noun}")
        for id, some in held.items()
        for noun in some
        if 2 <= uses[noun] <= _COMMON
    ]
    return PropertyGraph.of([*texts.nodes, *hubs], edges)


def by_meaning(texts: PropertyGraph, embedder: Embedder) -> Stage:
    """All texts by their cosine with the query, each query ranked once."""
    matrix = embedder.embed([node.text for node in texts.nodes])

    @cache
    def found(query: Query) -> Ranking:
        return ranked(
            query,
            dict(zip(texts.ids, (matrix @ matrix[texts.row(query.id)]).astype(float).tolist(), strict=True)),
        )

    return Stage("embeddings", lambda ranking: found(ranking.query))


# --- edges ---


def calibration(part: AnalogyPairs, made: Skeletons, embedder: Embedder) -> CalibratedThresholds:
    """The thresholds with the highest F1 on pairs of dev texts, at the share of analogous pairs that
    these have.

    All analogous pairs count, and at most _OTHERS of the rest, drawn at random.
    """
    text_of = {document.id: document.text for document in part.documents if document.id in part.dev_ends}
    ids = [id for id, text in sorted(text_of.items()) if text in made.by_text]
    texts = [text_of[id] for id in ids]
    raw, skeleton = (
        np.round(some.astype(float) @ some.T, DIGITS)
        for some in embed_texts_and_skeletons(embedder, texts, [made[text] for text in texts])
    )
    judged = [(i, j) for i, j in combinations(range(len(ids)), 2) if part.judges(ids[i], ids[j])]
    right = [both for both in judged if pair(ids[both[0]], ids[both[1]]) in part.analogous]
    others = sorted(set(judged) - set(right))
    drawn = np.random.default_rng(SEED).choice(len(others), min(_OTHERS, len(others)), replace=False)
    chosen = [*right, *(others[row] for row in sorted(drawn.tolist()))]
    measured = [TextPair(ids[i], ids[j], float(raw[i, j]), float(skeleton[i, j])) for i, j in chosen]
    labels = [place < len(right) for place in range(len(chosen))]
    aim = CalibrationObjective(prevalence=len(right) / len(judged))
    return calibrate_thresholds(
        measured, labels, embedder=embedder.name, maker=made.maker, aim=aim, steps=_STEPS
    )


@dataclass(frozen=True, slots=True)
class KeptVerdict:
    """What is kept of an alignment."""

    score: float
    veto: str

    def __str__(self) -> str:
        return self.veto or "the edge stands"


class KeptVerdicts:
    """A verifier that aligns two texts once, however many graphs ask."""

    def __init__(self, aligner: Aligner) -> None:
        self.prepare = aligner.prepare
        self._aligner = aligner
        self._known: dict[tuple[str, str], KeptVerdict] = {}

    def align(self, a: str, b: str) -> KeptVerdict:
        if (a, b) not in self._known:
            said = self._aligner.align(a, b)
            self._known[a, b] = KeptVerdict(said.score, said.veto)
        return self._known[a, b]


def edge_sets(one: StoryCase, embedder: Embedder) -> tuple[dict[str, Sequence[Edge]], dict[str, object]]:
    """The edges that each system walks beside the nouns, by its name, and how they were made."""
    made = make_skeletons([node.text for node in one.texts.nodes], LinguisticSkeletons())
    # as measured before short skeletons were refused
    own = replace(calibration(one.pairs.dev, made, embedder), words=0)
    verifier = KeptVerdicts(Aligner(embedder))
    found: dict[str, ComputedEdges] = {}
    for said, thresholds in (("specified", replace(DEFAULT_THRESHOLDS, words=0)), ("calibrated", own)):
        found[f"traverse + delta, {said}"] = delta_edges(one.texts, made, embedder, thresholds=thresholds)
        found[f"traverse + delta, {said}, verified"] = delta_edges(
            one.texts, made, embedder, thresholds=thresholds, verifier=verifier
        )
    count = len(found[CHOSEN])
    chosen: dict[str, Sequence[Edge]] = {system: edges.edges for system, edges in found.items()}
    # these two differ in how they are walked
    chosen |= {DELTA_ALONE: found[CHOSEN].edges, SHUFFLED: found[CHOSEN].edges}
    chosen |= {
        AS_MANY_ALIKE: most_alike(one.texts, embedder, count),
        ALIKE_VERIFIED: most_alike(one.texts, embedder, count, verifier),
    }
    chosen[STRANGE] = of_strangers(one.texts, made, embedder, own, verifier, count)
    told = {system: str(edges).splitlines()[0] for system, edges in found.items()}
    return chosen, {"skeletons": repr(made), "calibrated": str(own), "found": told}


def similarity_edges(graph: PropertyGraph, embedder: Embedder, threshold: float) -> list[Edge]:
    """An edge for each two nodes whose texts have a cosine of at least the threshold, which is the weight."""
    same = Skeletons({text: text for text in texts_by_node(graph).values()}, "the texts themselves")
    material, _ = EdgeCandidates.of(graph, same, embedder)
    found = similar_pairs(material.raw, threshold)
    assert not found.dropped
    rows = zip(found.rows.tolist(), found.columns.tolist(), found.similarity.tolist(), strict=True)
    made = [
        Edge(material.ids[i], SIMILARITY_EDGE, material.ids[j], {"weight": cosine}) for i, j, cosine in rows
    ]
    return sorted(made, key=lambda edge: (edge.source, edge.target))


def most_alike(
    texts: PropertyGraph, embedder: Embedder, count: int, verifier: KeptVerdicts | None = None
) -> list[Edge]:
    """The edges between the texts that are most alike, ties by id; with a verifier, only those that it lets
    stand.
    """
    text_of = {node.id: node.text for node in texts.nodes}
    found = next(
        edges
        for least in (0.3, -1.0)
        if len(edges := similarity_edges(texts, embedder, least)) > 3 * count or least < 0
    )
    best = sorted(found, key=lambda edge: (-float(edge.properties["weight"]), edge.source, edge.target))
    standing = (
        edge
        for edge in best
        if verifier is None or not verifier.align(text_of[edge.source], text_of[edge.target]).veto
    )
    return list(islice(standing, count))


def of_strangers(
    texts: PropertyGraph,
    made: Skeletons,
    embedder: Embedder,
    thresholds: Thresholds,
    verifier: KeptVerdicts,
    count: int,
) -> list[Edge]:
    """As many edges where each text has the skeleton of another: the threshold of the skeletons is lowered
    until there are.
    """
    stranger = strangers(list(made))
    others = Skeletons({text: made[stranger[text]] for text in made}, f"{made.maker}, of others")
    for lower in np.arange(0, 2, 0.03):
        least = Thresholds(max(-1.0, thresholds.skeleton - float(lower)), thresholds.delta, words=0)
        found = delta_edges(texts, others, embedder, thresholds=least, verifier=verifier)
        if len(found) >= count or least.skeleton == -1:
            break
    return sorted(found, key=lambda edge: (-float(edge.properties["skeleton"]), edge.source, edge.target))[
        :count
    ]
