"""Multi-hop retriever: the question finds a first passage, and a learned scorer chooses each next one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder, argsort_descending, normalise_rows
from kgot_lab.errors import BadInput, require_count
from kgot_lab.retrieval.dense import SIGN_BITS_FROM, dense
from kgot_lab.retrieval.entity_linking import name_words
from kgot_lab.retrieval.fusion import fused_ranking, rows_and_scores, weighted
from kgot_lab.retrieval.lexical import bm25, word_scores
from kgot_lab.retrieval.multihop.features import (
    FEATURES,
    NAME_FEATURES,
    CandidateEdges,
    Mentions,
    MultihopIndex,
    QuestionFeatures,
)
from kgot_lab.retrieval.neighbours import LazyTexts
from kgot_lab.retrieval.stage import Stage, best, fixed_stage
from kgot_lab.text.analysis import analyzer
from kgot_lab.types import Document, HitColumns, Json, Ranking, checked_documents, full_text, main_text

# The learned scorer: a small network whose weights are shipped in a file.

_Floats = NDArray[np.float64]
LEARNED_WEIGHTS = "weights.json"  # next to this file; written by benchmarks/standard_sets/fit_trail.py
# control: trained in the same way without the name features
WITHOUT_LINKS = "weights_without_links.json"
_WEIGHTS = ("straight", "inner", "bias", "bent")


@dataclass(frozen=True, eq=False)
class Scorer:
    """A network that scores the next passage: straight . x + bent . tanh(x inner + bias).

    Shapes, for n features and u units: straight (n,), inner (n, u), bias (u,), bent (u,). Raises BadInput for
    other shapes and for weights that are not finite.
    """

    straight: _Floats
    inner: _Floats
    bias: _Floats
    bent: _Floats

    def __post_init__(self) -> None:
        count, units = len(FEATURES), len(self.bias)
        shapes = [part.shape for part in (self.straight, self.inner, self.bias, self.bent)]
        if shapes != [(count,), (count, units), (units,), (units,)]:
            problem = f"a scorer of {count} features has other shapes than {shapes}"
            raise BadInput(f"{problem}; fit it again with benchmarks/standard_sets/fit_trail.py")
        if not all(np.isfinite(part).all() for part in (self.straight, self.inner, self.bias, self.bent)):
            raise BadInput("the weights of a scorer are finite numbers")

    def __call__(self, table: NDArray[np.floating[Any]]) -> _Floats:
        """Score each row of features, shape (rows, FEATURES).

        Computed in 32 bits, which takes a third of the time.
        """
        parts = (self.straight, self.inner, self.bias, self.bent)
        straight, inner, bias, bent = (part.astype(np.float32) for part in parts)
        table = table.astype(np.float32, copy=False)
        bends = table @ inner
        bends += bias
        return np.asarray(table @ straight + np.tanh(bends, out=bends) @ bent, np.float64)

    @staticmethod
    def linear(weights: Mapping[str, float]) -> Scorer:
        """Build a linear scorer, without hidden units, from the weight of each feature.

        Features that are not named get weight 0.
        """
        straight = np.array([weights.get(feature, 0.0) for feature in FEATURES])
        return Scorer(straight, np.zeros((len(FEATURES), 0)), np.zeros(0), np.zeros(0))

    @property
    def fingerprint(self) -> str:
        """A short SHA-256 of the weights, which makes searches with different weights distinct by name."""
        return hashlib.sha256(json.dumps(self.as_json()).encode()).hexdigest()[:8]

    def as_json(self) -> dict[str, Json]:
        """Return the weights as JSON values, with the names of the features."""
        weights = {name: getattr(self, name).astype(np.float64) for name in _WEIGHTS}
        numbers = {name: np.round(part, 5).tolist() for name, part in weights.items()}
        # "clues" is what the files of weights call the features
        return {"clues": list(FEATURES), **numbers}

    @staticmethod
    def of_json(values: Json) -> Scorer:
        """Build a scorer from the values that `as_json` returned.

        Raises BadInput for anything else, and for weights of other features.
        """
        if not isinstance(values, dict) or values.get("clues") != list(FEATURES):
            problem = "these weights are of other features than there are now"
            raise BadInput(f"{problem}; fit them again with benchmarks/standard_sets/fit_trail.py")
        try:
            return Scorer(*(np.array(values[name], np.float64) for name in _WEIGHTS))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"these are no weights of a scorer ({error!r})") from None


@cache
def load_scorer(weights: str = LEARNED_WEIGHTS) -> Scorer:
    """Load a scorer that is shipped with the package.

    It was trained on the dev split of the bundled sets that docs/recall.md names.
    """
    file = resources.files(__package__).joinpath(weights)
    return Scorer.of_json(json.loads(file.read_text(encoding="utf-8")))


_HOPS = 5
POOL_ABOVE = 20_000  # passages; as many or fewer are all compared
# passages of each kind to compare in a larger collection, the last of the earlier ranking, and the first whose
# names are followed: chosen on the dev splits of 2wiki and musique
_POOL, _LAST, _LINKED_FROM = 1_000, 200, 20
_KEPT = 2_000  # documents of each retriever that are fused in a collection of SIGN_BITS_FROM or more
MARGIN = 0.5  # chosen on the dev splits of single-hop and multi-hop sets that docs/recall.md names
_K1, _B = 1.2, 0.75  # of BM25, as everywhere
_SHOWN_NAMES = ("to its title, likely", "from its text, likely", "shared")
_SHOWN_FEATURES = [NAME_FEATURES.index(kind) for kind in _SHOWN_NAMES]
_ARROWS = (
    "--[holds]--> ({}) <--[is called]--",
    "--[is called]--> ({}) <--[holds]--",
    "--[holds]--> ({}) <--[holds]--",
)


def multihop(
    documents: Iterable[Document], embedder: Embedder, scorer: Scorer | None = None, *, hops: int = _HOPS
) -> Stage:
    """Choose `hops` passages one by one, each the one with the highest learned score given those before.

    The features are those of FEATURES: similarity, words, and the names that link chosen passages to others,
    weighted by the similarity of the sentence around a name to the question, and by which words of the
    question are still unanswered. The chosen passages come first in their order, 1 point apart, then all
    others by their score. A passage without a title is named after the subject of its first sentence. A
    question without a word finds nothing. Names are runs of capitalised words, so in scripts without capitals
    only titles link passages.

    As a re-ranker, `earlier >> multihop(…)`, it chooses the best passage left of the earlier ranking unless
    it scores another one higher by more than MARGIN times the passages chosen before (at least one): the
    further from the question, the surer. An earlier ranking of a question without a word is unchanged. Of more
    than POOL_ABOVE passages it compares some thousands (`_pool`), and the rest follow in the earlier order.
    Raises BadInput for `hops` below 1, and for earlier hits that are unknown or occur twice.
    """
    require_count(hops, 1, "hops", "it is how many passages are chosen one after the other")
    documents = sorted(checked_documents(documents), key=lambda document: document.id)
    score = scorer or load_scorer()
    ids = [document.id for document in documents]
    words_of = analyzer(map(main_text, documents))
    whole = build_index(documents, embedder)
    subjects = (next(iter(names), "") for names in whole.mentions.named)
    labels = [d.title or name or d.id for d, name in zip(documents, subjects, strict=True)]

    def step(ranking: Ranking) -> Ranking:
        question = ranking.query.text
        if not name_words(question):
            return ranking
        earlier, earlier_scores = rows_and_scores(ranking, ids, whole.mentions.row_of)
        vector = normalise_rows(embedder.embed([question]), embedder.name)[0]
        words = words_of(question)
        large = len(ids) > POOL_ABOVE and earlier.size > 0
        index = whole.subset(_pool(whole.mentions, earlier, question), words) if large else whole
        features = QuestionFeatures(index, question, vector, words)
        following = np.searchsorted(index.rows, earlier[:hops]).tolist()
        chosen: list[int] = []
        best = _StrongestLinks(index)
        for hop in range(min(hops, index.size)):
            left = score(features.table())
            left[chosen] = -np.inf
            row = int(np.argmax(left))
            after = next((row for row in following if row not in chosen), row)
            chosen.append(row if left[row] - left[after] > MARGIN * max(hop, 1) else after)
            row = chosen[-1]
            best.update(chosen, features.choose(row))
        scores = score(features.table())
        scores[chosen] = scores.max() + np.arange(len(chosen), 0, -1)
        order = argsort_descending(scores)  # ids ascend, so ties are by id
        outside = np.ones(len(ids), bool)
        outside[index.rows] = False
        rest = np.flatnonzero(outside[earlier])
        below = earlier_scores[rest] - earlier_scores.max(initial=0.0) + scores.min() - 1
        rows = np.concatenate([index.rows[order], earlier[rest]])
        hits = HitColumns(ids, rows, np.concatenate([scores[order], below]))
        inputs = [ranking] * bool(earlier.size) + [best.ranking(ranking, ids, labels)]
        return Ranking(ranking.query, hits, inputs=tuple((1.0, each) for each in inputs))

    options = ([f"{hops} hops"] if hops != _HOPS else []) + [f"weights {score.fingerprint}"]
    return Stage(f"trail({', '.join(options)})", step)


def hybrid_multihop(documents: Iterable[Document], embedder: Embedder) -> Stage:
    """Build the default search: .7 embeddings + .3 BM25, re-ranked by `multihop`."""
    documents = checked_documents(documents)
    linked = multihop(documents, embedder)  # first, since it embeds passages and sentences at once
    return convex_hybrid(documents, embedder) >> linked


def convex_hybrid(documents: Iterable[Document], embedder: Embedder, name: str = "embeddings") -> Stage:
    """Build the hybrid retriever: .7 embeddings, by `name`, + .3 BM25.

    From SIGN_BITS_FROM documents on, it ranks the best _KEPT documents of each of the two, by both scores.
    """
    documents = checked_documents(documents)
    large = len(documents) >= SIGN_BITS_FROM
    by_vector = dense(documents, embedder, keep=_KEPT if large else None, name=name)
    by_words = bm25(documents)
    whole = weighted((0.7, by_vector), (0.3, by_words))

    def best_of_both(ranking: Ranking) -> Ranking:
        words = by_words(ranking)
        near = by_vector(best(words, _KEPT))
        if not isinstance(near.hits, HitColumns) or not words.hits:
            return near
        rows, scores = rows_and_scores(words, near.hits.ids)
        chosen = np.isin(rows, near.hits.rows)
        chosen[-1] = True  # the lower end of the scores
        words = replace(words, hits=HitColumns(near.hits.ids, rows[chosen], scores[chosen]))
        pairs = (0.7, fixed_stage(by_vector.name, near)), (0.3, fixed_stage(by_words.name, words))
        return weighted(*pairs)(ranking)

    return Stage(whole.name, best_of_both, inputs=whole.inputs) if large else whole


def build_index(documents: list[Document], embedder: Embedder) -> MultihopIndex:
    """Build the index of the multi-hop retriever over documents in the order of their ids.

    Embeds the sentences as well as the whole documents.
    """
    mentions = Mentions(documents)
    sentences = [full_text(replace(documents[row], text=sentence)) for row, sentence in mentions.sentences]
    texts = [full_text(document) for document in documents]
    vectors = normalise_rows(embedder.embed([*texts, *sentences]), embedder.name)
    words = word_scores(list(map(analyzer(map(main_text, documents)), texts)), _K1, _B)
    rows = np.arange(len(texts), dtype=np.int32)
    return MultihopIndex(mentions, vectors[: len(texts)], vectors[len(texts) :], words, rows)


def _pool(mentions: Mentions, earlier: NDArray[np.int64], question: str) -> NDArray[np.int32]:
    """Return the rows, in ascending order, of the passages that are re-ranked in a large collection.

    They are the first of the earlier ranking, what names link to the very first and to the question in two
    steps, and the last and a fixed sample, so that the ranges of the features are about those of all passages.
    """
    names, near = mentions.names_in_question(question), earlier[:_LINKED_FROM].astype(np.int32)
    sample = np.random.default_rng(0).integers(len(mentions.row_of), size=_POOL)
    linked = mentions.linked_passages(near, names, _POOL)
    further = mentions.linked_passages(linked, names, _POOL)
    own = np.concatenate([earlier[:_POOL], earlier[-_LAST:], sample])
    return np.unique(np.concatenate([own.astype(np.int32), linked, further]))


class _StrongestLinks:
    """The strongest link to each passage."""

    def __init__(self, index: MultihopIndex) -> None:
        self._names, self._rows = index.mentions.names, index.rows
        self._strength = np.zeros(index.size)
        self._from, self._name, self._kind = (np.full(index.size, -1, np.int32) for _ in range(3))

    def update(self, chosen: list[int], edges: CandidateEdges) -> None:
        """Keep the links from the last chosen passage that are stronger than earlier ones.

        Passages that are already chosen get none.
        """
        new = ~np.isin(edges.rows, chosen)
        for kind, link in enumerate(_SHOWN_FEATURES):
            strength = edges.strengths[link] * new
            # ascending, so that the strongest link is written last
            order = np.argsort(strength, kind="stable")
            order = order[strength[order] > self._strength[edges.rows[order]]]
            rows = edges.rows[order]
            self._strength[rows], self._from[rows] = strength[order], chosen[-1]
            self._name[rows], self._kind[rows] = edges.names[order], kind

    def ranking(self, earlier: Ranking, ids: list[str], shown: list[str]) -> Ranking:
        """Rank the passages that were reached, with the path to each."""
        reached = np.flatnonzero(self._strength)
        found = [ids[row] for row in self._rows[reached].tolist()]

        def describe(number: int) -> str:
            row = reached[number]
            arrow = _ARROWS[self._kind[row]].format(self._names[self._name[row]])
            return f"{shown[self._rows[self._from[row]]]} {arrow} {shown[self._rows[row]]}"

        linked = fused_ranking(earlier.query, found, self._strength[reached], ())
        return replace(linked, system="linked", paths=LazyTexts(found, describe))
