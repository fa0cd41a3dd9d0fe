"""The four retrievers of a graph search, and their fusion by the 4-weight formula (KG-OS, section 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import NamedTuple

import numpy as np

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import UnknownName, require_known
from kgot_lab.graph.property_graph import Ints
from kgot_lab.kgos.methods.index import BoolColumn, GraphIndex, Reals
from kgot_lab.kgos.methods.intents import INTENTS, IntentRule, Intents
from kgot_lab.kgos.methods.search.configuration import GoalMapping, RetrievalConfig
from kgot_lab.kgos.methods.search.results import MethodCall
from kgot_lab.kgos.schemas.dimensions import within_bounds
from kgot_lab.retrieval.fusion import Weights, normalised_weights, ranking_scores, strongest, weighted
from kgot_lab.retrieval.neighbours import BOOST_SEEDS, INCOMING_BOOST, OUTGOING_BOOST, LazyTexts
from kgot_lab.retrieval.stage import Stage, best, fixed_stage
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import stem
from kgot_lab.types import Query, Ranking

# The intent retriever: nodes that are about the intent of a query, whatever its words.

_TOPIC_SCORE, _LINKED_SCORE, _DIMENSION_SCORE = 1.0, 0.7, 0.5  # KG-OS, section 7, for cost_optimization


def intent_scores(index: GraphIndex, intent: str) -> Reals:
    """Score how much each node is about an intent, from 0 to 1.

    1 for its type or a word of the intent in its name, .7 for an edge of one of the intent's types from or to
    such a node, .5 for each dimension within its bounds. The sum is divided by the largest. Raises
    UnknownName for an unknown intent.
    """
    require_known("intent", INTENTS, intent)
    if intent not in index.of_intent:
        index.of_intent[intent] = _score_nodes(index, INTENTS[intent])
    return index.of_intent[intent]


def mean_dimensions(index: GraphIndex, names: Iterable[str]) -> tuple[Reals, list[str]]:
    """Return the mean of some dimensions for each node, and the names that no node has.

    A dimension that a node lacks counts as 0.
    """
    values, absent = [], []
    for name in names:
        try:
            values.append(np.nan_to_num(index.dimension(name).values))
        except UnknownName:
            absent.append(name)
    return np.mean(values, axis=0) if values else np.zeros(len(index.graph)), absent


def method_scores(index: GraphIndex, scores: Mapping[str, float]) -> Reals:
    """Return the scores of the nodes that the invoked methods found, over the largest."""
    found = np.zeros(len(index.graph))
    for id, score in scores.items():
        found[index.graph.row(id)] = score
    return found / (found.max(initial=0.0) or 1.0)


def _score_nodes(index: GraphIndex, rule: IntentRule) -> Reals:
    about = np.zeros(len(index.graph), bool)
    for label in rule.types:
        about[index.rows_by_label.get(label, [])] = True
    words = {stem(word) for word in rule.words}
    about |= np.fromiter((not words.isdisjoint(stems) for stems in index.name_stems), bool, len(index.graph))
    steps, _ = index.steps_from(np.flatnonzero(about).astype(np.int32), index.edge_type_weights(rule.edges))
    joined = np.zeros(len(index.graph), bool)
    joined[index.links.ends.indices[steps]] = True
    scores = _TOPIC_SCORE * about + _LINKED_SCORE * joined
    for name, bounds in (rule.dimensions or {}).items():
        try:
            scores += _DIMENSION_SCORE * within_bounds(index.dimension(name).values, bounds)
        except UnknownName:
            continue  # no node of this graph has the dimension, so none gets the bonus
    return np.asarray(scores / (scores.max(initial=0.0) or 1.0))


# The vectors of dense retrieval: computed by an embedder from node texts, or stored.


class DenseRetriever(NamedTuple):
    """The dense retriever, and the source of its vectors."""

    stage: Stage
    description: str


def dense_retriever(
    index: GraphIndex, embedder: Embedder | None, vectors: StoredVectors | None
) -> DenseRetriever | None:
    """Return the dense retriever over stored vectors, else that of an embedder, else None.

    For stored vectors without an embedder, the query is embedded with the model that they name. Raises
    BadInput if embedder and vectors do not match, and what `query_embedder` raises.
    """
    if vectors is None:
        if embedder is None:
            return None
        return DenseRetriever(index.dense_retriever(embedder), f"cosine of the vectors of {embedder.name}")
    if embedder is None:
        # brings the client of servers, which most searches do without
        from kgot_lab.embedding.embedders import query_embedder

        embedder = query_embedder(vectors)
    retriever = index.dense_retriever_from_vectors(vectors, embedder)
    lacking = len(index.graph) - sum(id in index.graph for id in vectors.ids)
    description = f"cosine of the stored vectors, {vectors.model or 'which do not say what made them'}; the query by {embedder.name}"
    return DenseRetriever(retriever, description + (f"; {lacking:,} nodes have none" if lacking else ""))


class SearchRequest(NamedTuple):
    """A query before it is searched: intents, goal mapping, the rows that pass the filters, and scores from
    methods by id.
    """

    query: str
    intents: Intents
    mapping: GoalMapping | None
    passing: BoolColumn
    method_scores: Mapping[str, float]


class GraphWalk(NamedTuple):
    """The walk of the graph retriever: its seed rows, best first, and for each row the position of the first
    step to it, or -1.
    """

    seeds: tuple[int, ...]
    first: Ints


def rank_nodes(
    index: GraphIndex, request: SearchRequest, config: RetrievalConfig, dense: DenseRetriever | None
) -> tuple[Ranking, Weights, list[MethodCall], GraphWalk]:
    """Rank nodes by the fusion of the retrievers.

    Returns the ranking, the final weights, the trace, and the walk of the graph retriever. Raises BadInput if
    no retriever has a weight.
    """
    rankings: dict[str, Ranking] = {}
    trace: list[MethodCall] = []
    walked = GraphWalk((), np.full(len(index.graph), -1, np.int32))

    def rank(name: str, reason: str, ranking: Ranking) -> None:
        rankings[name] = ranking
        trace.append(MethodCall(name, reason, format_count(len(ranking.hits), "node")))

    if "text" in config.retrievers:
        rank("text", "BM25 and FTS5, of the two the larger", _rank_by_text(index, request))
    if "embedding" in config.retrievers and dense is not None:
        found = dense.stage.search(request.query)
        ranking = _filter_ranking(index, found, request.passing, "embedding")
        if (
            not any(each.hits for each in rankings.values())
            and ranking_scores(ranking).max(initial=0.0) < config.min_cosine
        ):
            why = f"no word is found, and no cosine reaches {config.min_cosine:g}"
            trace.append(MethodCall("embedding", why, "no node"))
        else:
            rank("embedding", dense.description, ranking)
    elif "embedding" in config.retrievers:
        trace.append(
            MethodCall("embedding", "no embedder was given", "its weight goes to the other retrievers")
        )
    if "graph" in config.retrievers:
        rankings["graph"], call, walked = _rank_by_graph(index, request, config, rankings)
        trace.append(call)
    confidence = _intent_factor(request)
    if "intent" in config.retrievers and confidence:
        rankings["intent"], call = _rank_by_intent(index, request)
        trace.append(call)
    elif "intent" in config.retrievers:
        why = f"no intent reaches {config.intent_threshold:g}"
        trace.append(MethodCall("intent", why, "its weight goes to the other retrievers"))
    if _has_weight(config, rankings):
        weights = normalised_weights(config.weights, *rankings)
        weights = replace(weights, intent=weights.intent * confidence)
    else:
        # no retriever with a weight has a ranking, as in a search by intent alone for a query without one:
        # rank by text, which is better than no result
        rankings.clear()
        rank("text", "no retriever that weighs anything can be asked", _rank_by_text(index, request))
        weights = Weights(0.0, 1.0, 0.0, 0.0)
    share = asdict(weights)
    parts = [
        (share[name], fixed_stage(name, ranking)) for name, ranking in rankings.items() if share[name] > 0
    ]
    return weighted(*parts, scale="maximum").search(request.query), weights, trace, walked


def _rank_by_text(index: GraphIndex, request: SearchRequest) -> Ranking:
    """Rank by the larger of BM25 and FTS5, each over its maximum among the nodes that pass the filters."""
    searched = {stage.name: stage.search(request.query) for stage in (index.bm25, index.fts5)}
    found = {
        name: _filter_ranking(index, ranking, request.passing, name) for name, ranking in searched.items()
    }
    return strongest(*(fixed_stage(name, ranking) for name, ranking in found.items())).search(request.query)


def _rank_by_graph(
    index: GraphIndex, request: SearchRequest, config: RetrievalConfig, rankings: Mapping[str, Ranking]
) -> tuple[Ranking, MethodCall, GraphWalk]:
    """Rank what the best nodes of the other retrievers are linked to.

    Without other retrievers, the seeds are keyword matches.
    """
    share = asdict(normalised_weights(config.weights, *rankings)) if _has_weight(config, rankings) else {}
    named = [
        (share[name], fixed_stage(name, ranking)) for name, ranking in rankings.items() if share.get(name)
    ]
    start = weighted(*named, scale="maximum") if named else index.substring_retriever
    seeds = _filter_ranking(index, start.search(request.query), request.passing, "seeds")
    rows, _ = index.rows_and_scores(best(seeds, BOOST_SEEDS))
    types, why = _followed_edge_types(request, config)
    weights = index.edge_type_weights(types, along=OUTGOING_BOOST, against=INCOMING_BOOST)
    boosts, first = index.links.boosts(rows.astype(np.int32), weights)
    boosts = np.where(request.passing, boosts, 0.0)
    order = index.rows_by_score(boosts)
    ids = [index.graph.ids[row] for row in order.tolist()]
    paths = LazyTexts(ids, lambda number: index.links.path([int(first[order[number]])]))
    hits = index.hit_columns(order, boosts[order])
    ranking = Ranking(Query(request.query), hits, "graph", paths=paths)
    seed_count = format_count(len(rows), "seed")
    over = ", ".join(types or ()) or "all edges"
    summary = f"{format_count(len(order), 'node')} from {seed_count}, over {over}"
    walk = GraphWalk(tuple(rows.tolist()), first)
    return ranking, MethodCall("edge_type_boost", why, summary), walk


def _has_weight(config: RetrievalConfig, rankings: Mapping[str, Ranking]) -> bool:
    weights = asdict(normalised_weights(config.weights, *config.retrievers))
    return any(value for name, value in weights.items() if name in rankings)


def _followed_edge_types(
    request: SearchRequest, config: RetrievalConfig
) -> tuple[tuple[str, ...] | None, str]:
    """Return the edge types that the graph retriever follows, and why.

    A goal mapping takes precedence over the configuration, which takes precedence over the default.
    """
    if request.mapping and request.mapping.boost_types:
        return request.mapping.boost_types, "the goal mapping says which edges"
    if config.boost_types is not None:
        return config.boost_types, "the configuration says which edges"
    return None, "neither a goal mapping nor the configuration says which edges"


def _rank_by_intent(index: GraphIndex, request: SearchRequest) -> tuple[Ranking, MethodCall]:
    """Rank by the likeliest intent, the dimensions of a goal mapping, and the invoked methods."""
    best = request.intents.best
    scores = intent_scores(index, best.name).copy() if best else np.zeros(len(index.graph))
    reasons = [f"nodes about {best.name}"] if best else []
    if request.mapping and request.mapping.dimension_boosts:
        means, absent = mean_dimensions(index, request.mapping.dimension_boosts)
        scores += means
        present = ", ".join(name for name in request.mapping.dimension_boosts if name not in absent)
        reasons += [f"mean of {present}"] if means.any() else []
        reasons += [f"no node has {', '.join(absent)}"] if absent else []
    if request.method_scores:
        scores = np.maximum(scores, method_scores(index, request.method_scores))
        reasons.append("what the invoked methods found")
    scores = np.where(request.passing, scores, 0.0)
    order = index.rows_by_score(scores)
    ranking = Ranking(Query(request.query), index.hit_columns(order, scores[order]), "intent")
    summary = f"{format_count(len(order), 'node')}, confidence {_intent_factor(request):g}"
    return ranking, MethodCall("intent", "; ".join(reasons) or "a goal mapping", summary)


def _intent_factor(request: SearchRequest) -> float:
    """Return the factor of the intent retriever: 1 for a goal mapping, else the intent's confidence."""
    if request.mapping:
        return 1.0
    return request.intents.best.confidence if request.intents.best else 0.0


def _filter_ranking(index: GraphIndex, ranking: Ranking, passing: BoolColumn, name: str) -> Ranking:
    """Select the hits of a ranking that pass the filters, which come before scores."""
    if passing.all():
        return replace(ranking, system=name)
    rows, scores = index.rows_and_scores(ranking)
    inside = passing[rows]
    hits = index.hit_columns(rows[inside], scores[inside])
    return Ranking(ranking.query, hits, name, paths=ranking.paths)
