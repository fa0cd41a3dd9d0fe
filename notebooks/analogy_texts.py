"""Texts for lessons 30 and 31: dev questions of StoryAnalogy, and short texts on processes from ParallelPARC."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import ComputedEdges, compare_texts, delta_edges
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import Skeletons, make_skeletons
from kgot_lab.benchmark.questions.sets import read_split
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import minilm
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.similarity.delta import TextPair
from kgot_lab.types import Edge, Json, Node


@dataclass(frozen=True)
class StoryQuestion:
    """A story and four choices, one of them analogous; a kind for each: "target", "noun" or "random"."""

    source: str
    choices: tuple[str, ...]
    answer: int
    kinds: tuple[str, ...]


def story_questions() -> list[StoryQuestion]:
    """Load the dev questions of StoryAnalogy."""
    rows = _dev_rows("storyanalogy-mc", "mc.jsonl.gz")
    return [
        StoryQuestion(row["source"], tuple(row["choices"]), row["answer"], tuple(row["types"]))
        for row in rows
    ]


def texts_of(questions: Iterable[StoryQuestion]) -> tuple[str, ...]:
    """List every text of some questions once, in alphabetical order."""
    return tuple(sorted({text for each in questions for text in (each.source, *each.choices)}))


def answer_by_similarity(questions: Sequence[StoryQuestion], embedder: Embedder) -> dict[str, list[int]]:
    """Choose by cosine similarity alone: the most similar text, the least similar, or the second most similar."""
    texts = texts_of(questions)
    vectors = dict(zip(texts, embedder.embed(list(texts)), strict=True))
    order = [
        np.argsort([-vectors[each.source] @ vectors[choice] for choice in each.choices], kind="stable")
        for each in questions
    ]
    ranks = {"surface": 0, "minus surface": -1, "second by surface": 1}
    return {name: [int(best[rank]) for best in order] for name, rank in ranks.items()}


def share(questions: Sequence[StoryQuestion], chosen: Sequence[int], kind: str) -> float:
    """Compute the share of the chosen texts that are of a kind; the right ones are "target"."""
    return float(
        np.mean([each.kinds[number] == kind for each, number in zip(questions, chosen, strict=True)])
    )


# a column, the edge's property
_NUMBERS = {"texts": "raw", "skeletons": "skeleton", "delta": "weight", "alignment": "alignment_score"}


@dataclass(frozen=True, repr=False)
class Processes:
    """Texts on processes as the nodes of a graph without edges, and the pairs of texts that people have
    called analogous.
    """

    graph: PropertyGraph
    known: frozenset[frozenset[str]]

    def is_known(self, edge: Edge) -> bool:
        """Whether people were shown the two texts that an edge joins, and agreed that they are analogous."""
        return frozenset(self.texts(edge)) in self.known

    def texts(self, edge: Edge) -> tuple[str, str]:
        """Return the two texts that an edge joins."""
        return self._about(edge.source, "summary"), self._about(edge.target, "summary")

    def row(self, edge: Edge) -> dict[str, Json]:
        """An edge for a table: what its texts are on, its four numbers, and whether the pair is known."""
        ends = {"one": self._about(edge.source, "name"), "other": self._about(edge.target, "name")}
        numbers = {column: round(edge.properties[key], 2) for column, key in _NUMBERS.items()}
        return ends | numbers | {"known": "yes" if self.is_known(edge) else ""}

    def known_at_top(
        self, edges: Iterable[Edge], depths: tuple[int, ...] = (10, 25, 100)
    ) -> list[dict[str, Json]]:
        """How many known pairs stand among the first edges, for each of the four numbers that one may order
        them by.
        """
        edges = list(edges)
        return [
            {"in the order of": by}
            | {f"among the first {k}": sum(map(self.is_known, best_by(by, edges)[:k])) for k in depths}
            for by in _NUMBERS
        ]

    def _about(self, id: str, what: str) -> str:
        return str(self.graph.node(id).properties[what])

    def __repr__(self) -> str:
        return f"<{len(self.graph)} texts on processes; {len(self.known)} pairs are known to be analogous>"


def processes() -> Processes:
    """The texts of ParallelPARC's dev part: for each process that a pair starts from, the first pair that
    crosses fields.

    A node's label is its field; its properties are `name`, what the text is on, and `summary`, the text.
    """
    gold = _dev_rows("parallelparc", "gold.jsonl.gz")
    first: dict[str, Json] = {}
    for row in gold:
        if row["analogy_type"] == "far":
            first.setdefault(row["source_subject"], row)
    nodes = [_node(row, side) for row in reversed(first.values()) for side in ("source", "target")]
    return Processes(
        PropertyGraph.of(nodes), frozenset(frozenset((row["source"], row["target"])) for row in gold)
    )


def skeletons_of(texts: Iterable[str]) -> Skeletons:
    """Make the skeletons of texts with the parser."""
    return make_skeletons(texts, LinguisticSkeletons(), cache=False)


def compare(one: str, other: str) -> TextPair:
    """Compare two texts by their parsed skeletons, and align them."""
    embedder = minilm()
    return compare_texts(one, other, skeletons_of([one, other]), embedder, verifier=Aligner(embedder))


def link(graph: PropertyGraph) -> ComputedEdges:
    """Compute the delta edges between the nodes' summaries, by parsed skeletons and with the verifier."""
    made = skeletons_of(str(node.properties["summary"]) for node in graph.nodes)
    embedder = minilm()
    return delta_edges(graph, made, embedder, verifier=Aligner(embedder))


def best_by(number: str, edges: Iterable[Edge]) -> list[Edge]:
    """Edges in the order of one of their numbers ("texts", "skeletons", "delta", "alignment"), the largest
    first.
    """
    return sorted(edges, key=lambda edge: (-edge.properties[_NUMBERS[number]], edge.source, edge.target))


def _node(row: Json, side: str) -> Node:
    return Node(
        f"{row['_id']} {side}",
        (row[f"{side}_domain"],),
        {"name": row[f"{side}_subject"], "summary": row[side]},
    )


def _dev_rows(folder: str, name: str) -> list[Json]:
    held_out = read_split(folder, "held_out")["held_out"]
    with gzip.open(bundled_path(f"{folder}/{name}"), "rt", encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if row["_id"] not in held_out]
