"""The configurations of the KG-OS benchmark, both readings of "two" and "seven", and beside them controls and
a learned fusion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import combinations

import numpy as np

from benchmarks.kgos.learned_fusion import LearnedFusion, learned
from kgot_lab.benchmark.recall.systems import shuffle_targets
from kgot_lab.embedding.embedders import embedder
from kgot_lab.embedding.vectors import InMemoryVectors
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import GraphIndex, graph_index
from kgot_lab.kgos.methods.intents import INTENTS, classify_intent
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.search.retrievers import intent_scores
from kgot_lab.kgos.methods.traversal import trace_path
from kgot_lab.kgos.schemas.dimensions import within_bounds
from kgot_lab.retrieval.dense import dense
from kgot_lab.retrieval.fusion import hybrid, rrf, weighted
from kgot_lab.retrieval.lexical import INTENT_VERBS, bm25, ranked_by_score
from kgot_lab.retrieval.neighbours import boosted_neighbours, jaccard
from kgot_lab.retrieval.stage import Stage, best
from kgot_lab.types import Ranking

THREE_WEIGHTS, FOUR_WEIGHTS, LEARNED_FUSION = "3-weight hybrid", "4-weight with intent", "learned fusion"
_ENDS, _LONGEST = 5, 4  # keyword matches between which paths are looked for, and edges of a path


def kgos_systems(
    graph: PropertyGraph, vectors: InMemoryVectors, fusion: LearnedFusion | None = None
) -> Mapping[str, Callable[[], Stage]]:
    """What builds each system, by name; the learned fusion is there once it has been learnt.

    Seeds of the graph boost alone, of Jaccard and of paths are keyword matches; those of a
    hybrid are the ten best by meaning and words. "rrf of seven" joins the seven mechanisms of the document's
    section 4; in "paths" path retrieval takes the place of LIKE, as in its lesson 1. "two, weighted"
    is the other reading of "two strategies": meaning and words without the graph.
    """
    lanes = KgosLanes(graph, vectors)
    made: dict[str, Callable[[], Stage]] = {
        "embedding only": lambda: lanes.meaning,
        "bm25 only": lambda: lanes.index.bm25,
        "fts5 only": lambda: lanes.index.fts5,
        "graph boost only": lambda: lanes.around,
        THREE_WEIGHTS: lambda: lanes.three,
        "rrf of seven": lambda: rrf(*lanes.seven.values()),
        "rrf of seven, paths": lambda: rrf(*lanes.seven_with_paths.values()),
        FOUR_WEIGHTS: lambda: lanes.searched("default", "hybrid", "intent"),
        "4-weight, intent off": lambda: lanes.searched("default", "hybrid"),
        "goal preset": lambda: lanes.searched("goal-oriented", "hybrid", "intent"),
        "two, weighted": lambda: weighted((0.40, lanes.meaning), (0.45, lanes.index.text), scale="maximum"),
        "two, rrf": lambda: rrf(lanes.meaning, lanes.index.text),
        "rrf of three": lambda: rrf(lanes.meaning, lanes.index.text, lanes.boosted),
        "seven, weighted": lambda: weighted(
            *((1 / 7, lane) for lane in lanes.seven.values()), scale="maximum"
        ),
        "goal words": lambda: bm25(lanes.index.documents, k1=1.5, b=0.75),
        "goal words, verbs x5": lambda: bm25(lanes.index.documents, k1=1.5, b=0.75, emphasis=INTENT_VERBS),
        "embedding only, static": lambda: dense(
            lanes.index.documents, embedder("wordllama"), name="embeddings(wordllama)"
        ),
        "control: edges shuffled": lambda: KgosLanes(shuffle_targets(graph), vectors).three,
    }
    if fusion is not None:
        made[LEARNED_FUSION] = lambda: learned(lanes.telling, fusion)
    return made


class KgosLanes:
    """The single lanes over a graph, each made when it is first asked for."""

    def __init__(self, graph: PropertyGraph, vectors: InMemoryVectors) -> None:
        self.graph, self.index, self._vectors = graph, graph_index(graph), vectors

    @cached_property
    def meaning(self) -> Stage:
        return self.index.dense_retriever(self._vectors)

    @cached_property
    def around(self) -> Stage:
        return boosted_neighbours(self.graph, self.index.substring_retriever)

    @cached_property
    def boosted(self) -> Stage:
        """The graph lane of the hybrid: what the ten best by meaning and words are linked to."""
        return boosted_neighbours(
            self.graph, weighted((0.40, self.meaning), (0.45, self.index.text), scale="maximum")
        )

    @cached_property
    def three(self) -> Stage:
        """Meaning, words and the graph, .40, .45 and .15: what `intent_search` ranks by these weights,
        without what else it does.
        """
        return hybrid("backward-compatible", embedding=self.meaning, text=self.index.text, graph=self.boosted)

    @cached_property
    def jaccard(self) -> Stage:
        return jaccard(self.graph, self.index.substring_retriever)

    @property
    def seven(self) -> dict[str, Stage]:
        """The seven mechanisms of the document's section 4."""
        return {
            "like": self.index.substring_retriever,
            "fts5": self.index.fts5,
            "bm25": self.index.bm25,
            "embedding": self.meaning,
            "graph boost": self.around,
            "jaccard": self.jaccard,
            "dimensions": within_intent(self.index),
        }

    @property
    def seven_with_paths(self) -> dict[str, Stage]:
        """Those of its lesson 1: paths in place of LIKE."""
        return {name: lane for name, lane in self.seven.items() if name != "like"} | {
            "paths": between_matches(self.graph)
        }

    @property
    def telling(self) -> dict[str, Stage]:
        """What a fusion is learnt from: the lanes of the hybrid, BM25 and FTS5 apart, and the intent lane."""
        return {
            "embedding": self.meaning,
            "fts5": self.index.fts5,
            "bm25": self.index.bm25,
            "graph boost": self.boosted,
            "intent": about_intent(self.index),
        }

    def searched(self, weights: str, *methods: str) -> Stage:
        """The search that combines the lanes, without the neighbours that it tells of."""
        config = RetrievalConfig(weights=weights, methods=methods, expand_depth=0, expanded=0)  # type: ignore[arg-type]

        def step(ranking: Ranking) -> Ranking:
            found = intent_search(
                self.graph, ranking.query.text, config=config, embedder=self._vectors
            ).ranking
            return Ranking(ranking.query, found.hits)

        return Stage(f"intent_search({weights}, {' + '.join(methods)})", step)


def within_intent(index: GraphIndex) -> Stage:
    """The dimension filter as a lane (ours; the document does not say how a filter ranks): nodes within the
    bounds of the query's likeliest intent, those first that lie farthest towards the wanted ends. Nothing is
    found without an intent whose bounds the graph knows.
    """
    ids, rated = sorted(index.graph.ids), {name for known in index.graph.node_properties for name in known}

    def step(ranking: Ranking) -> Ranking:
        best_intent = classify_intent(ranking.query.text).best
        wanted = (INTENTS[best_intent.name].dimensions or {}) if best_intent else {}
        bounds = {name: ends for name, ends in wanted.items() if name in rated}
        if not bounds:
            return Ranking(ranking.query, ())
        kept, towards = np.ones(len(ids), bool), np.zeros(len(ids))
        for name, (low, high) in bounds.items():
            values = index.dimension(name).values
            kept &= within_bounds(values, (low, high))
            # one at the very end is found too
            towards += np.nan_to_num(values if high is None else 1 - values) + 1e-9
        scores = np.where(kept, towards, 0.0)
        return ranked_by_score(ranking.query, ids, scores[[index.graph.row(id) for id in ids]])

    return Stage("dimensions of the intent", step)


def about_intent(index: GraphIndex) -> Stage:
    """The intent lane alone: how far a node is about the query's likeliest intent, times the confidence in
    that.
    """

    def step(ranking: Ranking) -> Ranking:
        best_intent = classify_intent(ranking.query.text).best
        if best_intent is None:
            return Ranking(ranking.query, ())
        ids = sorted(index.graph.ids)
        scores = best_intent.confidence * intent_scores(index, best_intent.name)
        return ranked_by_score(ranking.query, ids, scores[[index.graph.row(id) for id in ids]])

    return Stage("intent", step)


def between_matches(graph: PropertyGraph) -> Stage:
    """Path retrieval (ours; the document names it only): nodes on a shortest path between two of the five
    best keyword matches.

    score(d) = on how many of these paths it lies; a path has four edges at most.
    """
    index = graph_index(graph)

    def step(ranking: Ranking) -> Ranking:
        ends = best(index.substring_retriever(ranking), _ENDS).ids
        counts = dict.fromkeys(sorted(graph.ids), 0)
        for one, other in combinations(ends, 2):
            for id in trace_path(graph, one, other, max_depth=_LONGEST).ids:
                counts[id] += 1
        return ranked_by_score(ranking.query, list(counts), np.array(list(counts.values()), np.float64))

    return Stage("paths", step)
