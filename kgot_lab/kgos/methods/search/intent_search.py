"""Combined search: classify the intent of a query, fuse the retrievers, and invoke further methods (KG-OS,
method 1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.vectors import StoredVectors
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.compose_for import compose_for
from kgot_lab.kgos.methods.dimensions import select_rows, validate_filters
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.goals import can_it, limitations_by_row, want_to
from kgot_lab.kgos.methods.impact_analysis import impact_analysis
from kgot_lab.kgos.methods.index import BoolColumn, GraphIndex, Reals, graph_index
from kgot_lab.kgos.methods.intents import Intents, classify_intent
from kgot_lab.kgos.methods.ranking import similar_to
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.multi_graph import MergedHit, MultiGraph, merge_hits
from kgot_lab.kgos.methods.search.results import (
    MethodCall,
    NeighbourNode,
    ReachedBy,
    ScoredNode,
    SearchResult,
)
from kgot_lab.kgos.methods.search.retrievers import GraphWalk, SearchRequest, dense_retriever, rank_nodes
from kgot_lab.kgos.methods.traversal import explore_smart
from kgot_lab.retrieval.fusion import scale_by_maximum
from kgot_lab.text.cleaning import checked_text, format_count
from kgot_lab.text.words import searched_words
from kgot_lab.types import Edge, Ranking

# Expand the first nodes of a search, with the edges between all nodes in the result.

_MAX_NEIGHBOURS = 20  # neighbours listed of one node; in a dense graph it has hundreds


def expand_hits(
    index: GraphIndex, hits: Sequence[Sequence[int]], config: RetrievalConfig, passing: BoolColumn
) -> tuple[tuple[NeighbourNode, ...], tuple[Edge, ...], list[MethodCall]]:
    """Return the neighbours of the first hits, the edges to them and between hits, and the trace.

    A hit has several rows if nodes were merged into it. At most twenty neighbours of each node are returned,
    those with most links first. Neighbours that the filters would exclude are marked.
    """
    rows = [row for hit in hits for row in hit]
    around: dict[int, int] = {}
    left = 0
    level = [row for hit in hits[: config.expanded] for row in hit]
    for _ in range(config.expand_depth):
        found: dict[int, int] = {}
        for row in level:
            near, more = _new_neighbours(index, row, {*rows, *around, *found})
            found |= near
            left += more
        around |= found
        level = list(found)
    links = {row: index.links.path([step]) for row, step in around.items()}
    neighbours = tuple(NeighbourNode(*index.identity(row), links[row], bool(passing[row])) for row in around)
    leading = (int(index.links.edge_rows[step]) for step in around.values())
    numbers = dict.fromkeys([*_edge_rows_between(index, rows), *leading])
    outside = sum(not neighbour.within for neighbour in neighbours)
    rest = (f", {outside} outside the filters" if outside else "") + (
        f", {left:,} more left out" if left else ""
    )
    summary = format_count(len(neighbours), "neighbour") + rest
    why = f"the first {format_count(min(config.expanded, len(hits)), 'node')}, {config.expand_depth} deep"
    trace = [MethodCall("neighbours", why, summary)] if config.expand_depth and level else []
    return neighbours, tuple(map(index.edge, numbers)), trace


def _new_neighbours(index: GraphIndex, row: int, known: set[int]) -> tuple[dict[int, int], int]:
    """Return the new neighbours of a row, each with its first step, and how many more there are.

    Those with most links come first.
    """
    first, last = int(index.links.ends.indptr[row]), int(index.links.ends.indptr[row + 1])
    ends = index.links.ends.indices[first:last]
    steps: dict[int, int] = {}
    for step, end in enumerate(ends.tolist(), start=first):
        if end not in known:
            steps.setdefault(end, step)
    order = sorted(steps, key=lambda s: (-int(index.degrees[s]), int(index.name_order[s])))[:_MAX_NEIGHBOURS]
    return {end: steps[end] for end in order}, len(steps) - len(order)


def _edge_rows_between(index: GraphIndex, rows: Sequence[int]) -> Iterator[int]:
    """Yield the rows of the edges between some nodes, in the order of the nodes."""
    some = np.array(rows, np.int32)
    is_selected = np.zeros(len(index.graph), bool)
    is_selected[some] = True
    steps, _ = index.steps_from(some, index.edge_type_weights(against=0.0))
    return iter(index.links.edge_rows[steps[is_selected[index.links.ends.indices[steps]]]].tolist())


# The methods that a search invokes by the purpose of the query.

_MethodsBeforeRanking = tuple[dict[str, MethodResult], dict[str, float], list[MethodCall]]
# by purpose: the method of the best node, and its name
_METHODS_OF_BEST: Mapping[str, tuple[str, Callable[..., MethodResult]]] = {
    "impact": ("impact_analysis", partial(impact_analysis, direction="forward", follow="dependants")),
    "comparison": ("similar_to", similar_to),
    "exploration": ("explore_smart", explore_smart),
}


def run_methods_before_ranking(
    graph: PropertyGraph,
    query: str,
    intents: Intents,
    boost_types: Collection[str] | None,
    embedder: Embedder | None = None,
) -> _MethodsBeforeRanking:
    """Run the method for a goal, a capability or a composition.

    Returns its answer, the node scores for the intent retriever, and the trace.
    """
    why = f"the purpose is {intents.purpose}"
    if intents.purpose == "goal":
        goal = want_to(graph, query, boost_types=boost_types)
        called = MethodCall("want_to", why, format_count(len(goal.nodes), "node"))
        return {"want_to": goal}, goal.scores, [called]
    if intents.purpose == "capability":
        verdict = can_it(graph, query, embedder=embedder)
        found = {verdict.node: 1.0} if verdict.node else {}
        summary = f"{verdict.status}, {verdict.node or verdict.why[0]}"
        return {"can_it": verdict}, found, [MethodCall("can_it", why, summary)]
    if intents.purpose == "composition":
        plan = compose_for(graph, query)
        summary = " → ".join(plan.tools) or "no step"
        called = MethodCall("compose_for", why, summary)
        return {"compose_for": plan}, dict.fromkeys(plan.tools, 1.0), [called]
    return {}, {}, []


def run_methods_after_ranking(
    graph: PropertyGraph, best: str, intents: Intents
) -> tuple[dict[str, MethodResult], list[MethodCall]]:
    """Run the method for an impact, a comparison or an exploration on the best node (KG-OS, lesson 6)."""
    if not best or intents.purpose not in _METHODS_OF_BEST:
        return {}, []
    name, method = _METHODS_OF_BEST[intents.purpose]
    found = method(graph, best)
    return {name: found}, [
        MethodCall(name, f"the purpose is {intents.purpose}, of the best node", found.title)
    ]


# by retriever: what it adds to each row, and the paths by id
_ScoreParts = Mapping[str, tuple[Reals, Mapping[str, str]]]


@check_arguments
def intent_search(
    graph: PropertyGraph | MultiGraph,
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
    times its confidence, or if a goal mapping matches. Graph: what the ten best by
    dense and lexical retrieval are linked to. The purpose of the query selects further methods: want_to,
    can_it and compose_for, whose nodes go into the intent retriever, or impact_analysis, similar_to and
    explore_smart on the best node. Raises BadInput and UnknownName.
    """
    checked_text(query, "the query")
    config = config or RetrievalConfig()
    several = graph if isinstance(graph, MultiGraph) else None
    index = graph_index(graph.graph if isinstance(graph, MultiGraph) else graph)
    intents = classify_intent(query, threshold=config.intent_threshold)
    dense = dense_retriever(index, embedder, vectors) if "embedding" in config.retrievers else None
    summary = f"{intents.best.name if intents.best else 'no intent'}, purpose {intents.purpose}"
    trace = [MethodCall("classify_intent", "every query", summary)]
    passing = np.ones(len(index.graph), bool)
    if config.dimension_filters:
        passing, left_out = select_rows(index, validate_filters(config.dimension_filters))
        trace.append(MethodCall("dimension_filter", "the configuration has filters", "; ".join(left_out)))
    word, mapping = config.goal_mapping_for(query) or ("", None)
    if mapping:
        follows = f"follows {', '.join(mapping.boost_types) or 'all edges'}"
        trace.append(MethodCall("goal mapping", f"the query says {word!r}", follows))
    answers, found, chat_history = run_methods_before_ranking(
        index.graph, query, intents, (mapping and mapping.boost_types) or None, embedder
    )
    ranking, weights, reasons, walked = rank_nodes(
        index, SearchRequest(query, intents, mapping, passing, found), config, dense
    )
    trace += [*chat_history, *reasons]
    hits = merge_hits(several, index, ranking, config.limit)
    rows = [index.graph.row(id) for id, *_ in hits]
    parts = {
        retriever.system: (_score_contributions(index, weight, retriever), retriever.paths)
        for weight, retriever in ranking.inputs
    }
    nodes = tuple(_scored_node(index, row, hit, parts) for row, hit in zip(rows, hits, strict=True))
    cited = [[index.graph.row(id) for id in sources] for *_, sources in hits]
    neighbours, edges, told_expansion = expand_hits(index, cited, config, passing)
    limitations = limitations_by_row(
        index,
        [
            *(row for each in cited for row in each),
            *(index.graph.row(neighbour.id) for neighbour in neighbours),
        ],
    )
    later, told_after = run_methods_after_ranking(index.graph, nodes[0].id if nodes else "", intents)
    trace += [*told_expansion, *told_after]
    if not nodes:
        trace.append(MethodCall("result", "nothing was found", _explain_no_result(query, config)))
    return SearchResult(
        intents=intents,
        nodes=nodes,
        neighbours=neighbours,
        edges=edges,
        limitations={
            index.graph.ids[row]: found_limitations for row, found_limitations in limitations.items()
        },
        answers=answers | later,
        weights=weights,
        trace=tuple(trace),
        ranking=ranking,
        graph=index.graph,
        seeds=tuple(index.graph.ids[row] for row in walked.seeds),
        followed=_reached_by(index, walked, rows),
    )


def _reached_by(index: GraphIndex, walked: GraphWalk, rows: Sequence[int]) -> dict[str, ReachedBy]:
    """Return the seed and the edge by which the graph retriever reached each of some rows."""
    links, ids = index.links, index.graph.ids
    steps = {row: int(walked.first[row]) for row in rows if walked.first[row] >= 0}
    edges = {row: (links.origins[step], index.edge(links.edge_rows[step])) for row, step in steps.items()}
    return {ids[row]: ReachedBy(ids[origin], edge) for row, (origin, edge) in edges.items()}


def _explain_no_result(query: str, config: RetrievalConfig) -> str:
    """Explain why a search has no result, by its words and filters."""
    words = ", ".join(dict.fromkeys(searched_words(query)))
    within = " within the filters" if config.dimension_filters else ""
    reason = f"words looked for: {words}" if words else "the query has no word but stop words"
    return f"no retriever found a node{within}; {reason}"


def _score_contributions(index: GraphIndex, weight: float, retriever: Ranking) -> Reals:
    """Return what a retriever adds to each node: its weight times the score over the largest."""
    rows, scores = index.rows_and_scores(retriever)
    added = np.zeros(len(index.graph))
    added[rows] = weight * scale_by_maximum(scores)
    return added


def _scored_node(index: GraphIndex, row: int, hit: MergedHit, parts: _ScoreParts) -> ScoredNode:
    id, score, sources = hit
    added = {retriever: float(found[row]) for retriever, (found, _) in parts.items()}
    method = "+".join(retriever for retriever, value in added.items() if value > 0)
    path = next((paths[id] for _, paths in parts.values() if id in paths), "")
    meaning, text, graph, intent = (
        added.get(retriever, 0.0) for retriever in ("embedding", "text", "graph", "intent")
    )
    return ScoredNode(*index.identity(row), score, method, meaning, text, graph, intent, path, sources)
