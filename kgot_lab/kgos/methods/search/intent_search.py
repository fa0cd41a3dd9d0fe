"""Combined search: classify the intent of a query, fuse the retrievers, and invoke further methods (KG-OS,
method 1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.errors import BadInput, require
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.compose_for import compose_for
from kgot_lab.kgos.methods.dimensions import bounds_of, rows_within
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.goals import can_it, limitations_of, want_to
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.index import BoolColumn, GraphIndex, index_of
from kgot_lab.kgos.methods.intents import Intents, classify_intent
from kgot_lab.kgos.methods.ranking import similar_to
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.multi_graph import MergedHit, SeveralGraphs, merged_hits
from kgot_lab.kgos.methods.search.results import Followed, Invoked, NearNode, ScoredNode, SearchResult
from kgot_lab.kgos.methods.search.retrievers import SearchRequest, Walked, lane_of_meaning, ranked_by_lanes
from kgot_lab.kgos.methods.traversal import explore_smart
from kgot_lab.retrieval.fusion import ranking_scores, scale_by_maximum
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import searched_words
from kgot_lab.types import Edge, Ranking

# Expand the first nodes of a search, with the edges between all nodes in the result.

_MOST = 20  # neighbours listed of one node; in a dense graph it has hundreds


def expanded(
    index: GraphIndex, hits: Sequence[Sequence[int]], config: RetrievalConfig, kept: BoolColumn
) -> tuple[tuple[NearNode, ...], tuple[Edge, ...], list[Invoked]]:
    """Return the neighbours of the first hits, the edges to them and between hits, and the trace.

    A hit has several rows if nodes were merged into it. At most twenty neighbours of each node are returned,
    those with most links first. Neighbours that the filters would exclude are marked (decision C-O2).
    """
    rows = [row for hit in hits for row in hit]
    around: dict[int, int] = {}
    left = 0
    level = [row for hit in hits[: config.expanded] for row in hit]
    for _ in range(config.expand_depth):
        found: dict[int, int] = {}
        for row in level:
            near, more = _nearest(index, row, {*rows, *around, *found})
            found |= near
            left += more
        around |= found
        level = list(found)
    neighbours = tuple(
        NearNode(*index.identity(row), index.links.path([place]), bool(kept[row]))
        for row, place in around.items()
    )
    leading = (int(index.links.edge_rows[place]) for place in around.values())
    numbers = dict.fromkeys([*_between(index, rows), *leading])
    outside = sum(not each.within for each in neighbours)
    told = (
        format_count(len(neighbours), "neighbour")
        + f", {outside} outside the filters" * bool(outside)
        + f", {left:,} more left out" * bool(left)
    )
    why = f"the first {format_count(min(config.expanded, len(hits)), 'node')}, {config.expand_depth} deep"
    trace = [Invoked("neighbours", why, told)] if config.expand_depth and level else []
    return neighbours, tuple(map(index.edge, numbers)), trace


def _nearest(index: GraphIndex, row: int, known: set[int]) -> tuple[dict[int, int], int]:
    """Return the new neighbours of a row, each with its first step, and how many more there are.

    Those with most links come first.
    """
    first, last = int(index.links.ends.indptr[row]), int(index.links.ends.indptr[row + 1])
    ends = index.links.ends.indices[first:last]
    steps: dict[int, int] = {}
    for place, end in enumerate(ends.tolist(), start=first):
        if end not in known:
            steps.setdefault(end, place)
    order = sorted(steps, key=lambda end: (-int(index.degrees[end]), int(index.name_order[end])))[:_MOST]
    return {end: steps[end] for end in order}, len(steps) - len(order)


def _between(index: GraphIndex, rows: Sequence[int]) -> Iterator[int]:
    """Yield the rows of the edges between some nodes, in the order of the nodes."""
    some = np.array(rows, np.int32)
    told = np.zeros(len(index.graph), bool)
    told[some] = True
    places, _ = index.places(some, index.ways_of(against=0.0))
    return iter(index.links.edge_rows[places[told[index.links.ends.indices[places]]]].tolist())


# The methods that a search invokes by the purpose of the query.

_Before = tuple[dict[str, MethodResult], dict[str, float], list[Invoked]]
_After = tuple[dict[str, MethodResult], list[Invoked]]


def before_ranking(
    graph: PropertyGraph, query: str, intents: Intents, boost_types: Collection[str] | None
) -> _Before:
    """Run the method for a goal, a capability or a composition.

    Returns its answer, the node scores for the intent retriever, and the trace.
    """
    why = f"the purpose is {intents.purpose}"
    if intents.purpose == "goal":
        goal = want_to(graph, query, boost_types=boost_types)
        return (
            {"want_to": goal},
            goal.scores,
            [Invoked("want_to", why, format_count(len(goal.nodes), "node"))],
        )
    if intents.purpose == "capability":
        verdict = can_it(graph, query)
        found = {verdict.node: 1.0} if verdict.node else {}
        told = f"{verdict.status}, {verdict.node or verdict.why[0]}"
        return {"can_it": verdict}, found, [Invoked("can_it", why, told)]
    if intents.purpose == "composition":
        plan = compose_for(graph, query)
        told = " → ".join(plan.tools) or "no step"
        return {"compose_for": plan}, dict.fromkeys(plan.tools, 1.0), [Invoked("compose_for", why, told)]
    return {}, {}, []


def after_ranking(graph: PropertyGraph, best: str, intents: Intents) -> _After:
    """Run the method for an impact, a comparison or an exploration on the best node (KG-OS, lesson 6)."""
    why = f"the purpose is {intents.purpose}, of the best node"
    if not best:
        return {}, []
    if intents.purpose == "impact":
        impact = impact_analysis(graph, best, direction="forward", follow="dependants")
        return {"impact_analysis": impact}, [Invoked("impact_analysis", why, impact.title)]
    if intents.purpose == "comparison":
        alike = similar_to(graph, best)
        return {"similar_to": alike}, [Invoked("similar_to", why, alike.title)]
    if intents.purpose == "exploration":
        around = explore_smart(graph, best)
        return {"explore_smart": around}, [Invoked("explore_smart", why, around.title)]
    return {}, []


# by retriever: what it adds to each node, and the paths
_Parts = Mapping[str, tuple[dict[str, float], Mapping[str, str]]]


def intent_search(
    graph: PropertyGraph | SeveralGraphs,
    query: str,
    *,
    config: RetrievalConfig | None = None,
    embedder: Embedder | None = None,
    vectors: StoredVectors | None = None,
) -> SearchResult:
    """Search a graph: score = alpha * embedding + beta * text + gamma * graph + delta * intent.

    Each retriever is divided by its maximum. Without an embedder and stored vectors, the weights of the other
    retrievers grow in proportion. With vectors of the nodes, by their ids, the query is embedded with the
    model that these name. The intent retriever counts only if an intent reaches the threshold, with delta
    times its confidence (decisions C-O4, C-O6), or if a goal mapping matches. Graph: what the ten best by
    dense and lexical retrieval are linked to. The purpose of the query selects further methods: want_to,
    can_it and compose_for, whose nodes go into the intent retriever, or impact_analysis, similar_to and
    explore_smart on the best node. Raises BadInput and UnknownName.
    """
    require(query, str, "a query is a text")
    if not query.strip():
        raise BadInput("the query is blank; ask something")
    config = config or RetrievalConfig()
    require(config, RetrievalConfig, "config is a RetrievalConfig")
    several = graph if isinstance(graph, SeveralGraphs) else None
    index = index_of(graph.graph if isinstance(graph, SeveralGraphs) else graph)
    intents = classify_intent(query, threshold=config.intent_threshold)
    meant = lane_of_meaning(index, embedder, vectors) if "embedding" in config.lanes else None
    told = f"{intents.best.name if intents.best else 'no intent'}, purpose {intents.purpose}"
    trace = [Invoked("classify_intent", "every query", told)]
    kept = np.ones(len(index.graph), bool)
    if config.dimension_filters:
        kept, left_out = rows_within(index, bounds_of(config.dimension_filters))
        trace.append(Invoked("dimension_filter", "the configuration has filters", "; ".join(left_out)))
    word, mapping = config.mapping_for(query) or ("", None)
    if mapping:
        follows = f"follows {', '.join(mapping.boost_types) or 'all edges'}"
        trace.append(Invoked("goal mapping", f"the query says {word!r}", follows))
    answers, found, chat_history = before_ranking(
        index.graph, query, intents, (mapping and mapping.boost_types) or None
    )
    ranking, weights, told_lanes, walked = ranked_by_lanes(
        index, SearchRequest(query, intents, mapping, kept, found), config, meant
    )
    trace += [*chat_history, *told_lanes]
    hits = merged_hits(several, index, ranking, config.limit)
    rows = [index.graph.row(id) for id, *_ in hits]
    parts = {lane.system: (_added(weight, lane), lane.paths) for weight, lane in ranking.lanes}
    nodes = tuple(
        _scored(index.names[row], index.kinds[row], hit, parts) for row, hit in zip(rows, hits, strict=True)
    )
    cited = [[index.graph.row(id) for id in sources] for *_, sources in hits]
    neighbours, edges, told_expansion = expanded(index, cited, config, kept)
    limitations = limitations_of(
        index, [*(row for each in cited for row in each), *(index.graph.row(each.id) for each in neighbours)]
    )
    later, told_after = after_ranking(index.graph, nodes[0].id if nodes else "", intents)
    trace += [*told_expansion, *told_after]
    if not nodes:
        trace.append(Invoked("result", "nothing was found", _nothing(query, config)))
    return SearchResult(
        intents=intents,
        nodes=nodes,
        neighbours=neighbours,
        edges=edges,
        limitations={index.graph.ids[row]: those for row, those in limitations.items()},
        answers=answers | later,
        weights=weights,
        trace=tuple(trace),
        ranking=ranking,
        graph=index.graph,
        seeds=tuple(index.graph.ids[row] for row in walked.seeds),
        followed=_followed(index, walked, rows),
    )


def _followed(index: GraphIndex, walked: Walked, rows: Sequence[int]) -> dict[str, Followed]:
    """Return the seed and the edge by which the graph retriever reached each of some rows."""
    ids, places = index.graph.ids, {row: int(walked.first[row]) for row in rows if walked.first[row] >= 0}
    return {
        ids[row]: Followed(ids[index.links.origins[place]], index.edge(index.links.edge_rows[place]))
        for row, place in places.items()
    }


def _nothing(query: str, config: RetrievalConfig) -> str:
    """Explain why a search has no result, by its words and filters."""
    words = ", ".join(dict.fromkeys(searched_words(query)))
    within = " within the filters" * bool(config.dimension_filters)
    return f"no lane found a node{within}; " + (
        f"words looked for: {words}" if words else "the query has no word but stop words"
    )


def _added(weight: float, lane: Ranking) -> dict[str, float]:
    """Return what a retriever adds to each node: its weight times the score over the largest."""
    return dict(zip(lane.ids, (weight * scale_by_maximum(ranking_scores(lane))).tolist(), strict=True))


def _scored(name: str, kind: str, hit: MergedHit, parts: _Parts) -> ScoredNode:
    id, score, sources = hit
    added = {lane: found.get(id, 0.0) for lane, (found, _) in parts.items()}
    method = "+".join(lane for lane, value in added.items() if value > 0)
    path = next((paths[id] for _, paths in parts.values() if id in paths), "")
    meaning, text, graph, intent = (added.get(lane, 0.0) for lane in ("embedding", "text", "graph", "intent"))
    return ScoredNode(id, name, kind, score, method, meaning, text, graph, intent, path, sources)
