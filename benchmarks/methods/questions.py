"""What the methods are asked about the graph of KG-OS, what of each answer others give too, and the targets."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.methods.kgos_graph import AskedNodes
from benchmarks.methods.libraries import GraphLibrary
from benchmarks.methods.paired import PutToAll
from benchmarks.methods.sql import InSql, plain_intents
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.compose_for import compose_for
from kgot_lab.kgos.methods.dimensions import dimension_filter
from kgot_lab.kgos.methods.goals import can_it, want_to
from kgot_lab.kgos.methods.impact_analysis import Impact, impact_analysis
from kgot_lab.kgos.methods.intents import classify_intent
from kgot_lab.kgos.methods.ranking import edge_type_boost, keyword_match, similar_to
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.kgos.methods.traversal import explore_smart, trace_path
from kgot_lab.kgos.schemas.foreign_files import read_foreign

FILTERS = {
    "pricing_tier": {"max": 0.3},
    "batch_suitability": {"min": 0.7},
    "rate_limit_sensitivity": {"max": 0.5},
}
QUESTION = "how do I reduce the cost of a search agent"
LOAD = 2_000  # milliseconds in which the SQLite file is to be loaded


def kgos_questions(
    graph: PropertyGraph, asked: AskedNodes, libraries: Mapping[str, GraphLibrary]
) -> list[PutToAll]:
    """Each method with those who answer the same; the targets are for the graph as large as the document's."""
    everything, sql = len(graph), InSql(graph)

    def each(act: Callable[[GraphLibrary], Any]) -> dict[str, Callable[[], Any]]:
        return {name: partial(act, library) for name, library in libraries.items()}

    def levels(found: Impact) -> dict[str, tuple[int, float]]:
        return {node.id: (node.depth, node.risk) for node in found.nodes}

    def whole(found: Impact) -> tuple[Any, ...]:
        return levels(found), found.edge_types, found.critical_risk

    return [
        PutToAll(
            "classify_intent", lambda: classify_intent(QUESTION, most=14), {"plain Python": lambda: plain_intents(QUESTION)},
            lambda found: {intent.name: intent.score for intent in found.intents}, 0.2,
        ),
        PutToAll(
            "trace_path, its length", lambda: trace_path(graph, asked.start, asked.end, max_depth=9),
            each(lambda library: library.path(asked.start, asked.end)), lambda found: found.length, 10,
        ),
        PutToAll(
            "impact_analysis, 3 deep, levels", lambda: impact_analysis(graph, asked.start),
            each(lambda library: library.impact(asked.start)), levels, 10,
        ),
        PutToAll(
            "impact_analysis, 3 deep, with the riskiest chain", lambda: impact_analysis(graph, asked.start),
            each(lambda library: library.whole_impact(asked.start)), whole, 10,
        ),
        PutToAll(
            "impact_analysis of a hub, levels", lambda: impact_analysis(graph, asked.end),
            each(lambda library: library.impact(asked.end)), levels, 10,
        ),
        PutToAll(
            "explore_smart, 2 deep", lambda: explore_smart(graph, asked.end), each(lambda library: library.explore(asked.end)),
            lambda found: {node.id: (node.depth, node.importance, node.is_hub) for node in found.nodes}, 10,
        ),
        PutToAll(
            "dimension_filter", lambda: dimension_filter(graph, FILTERS, limit=everything),
            each(lambda library: library.within(FILTERS)) | {sql.name: lambda: sql.within(FILTERS)}, lambda found: found.ids, 10,
        ),
        PutToAll(
            "similar_to, all nodes", lambda: similar_to(graph, asked.end, k=everything),
            each(lambda library: library.similar(asked.end)), lambda found: {node.id: node.score for node in found.nodes}, 50,
        ),
        PutToAll(
            "edge_type_boost, 10 seeds", lambda: edge_type_boost(graph, asked.seeds), each(lambda library: library.boost(asked.seeds)),
            lambda found: found.scores,
        ),
        PutToAll(
            "keyword_match", lambda: keyword_match(graph, QUESTION), {sql.name: lambda: sql.keywords(QUESTION)},
            lambda found: found.scores,
        ),
        PutToAll("want_to", lambda: want_to(graph, QUESTION)),
        PutToAll("can_it", lambda: can_it(graph, "stream tokens")),
        PutToAll("compose_for", lambda: compose_for(graph, "parse the graph, then rank the tokens")),
        PutToAll("intent_search", lambda: intent_search(graph, QUESTION), target=60),
    ]  # fmt: skip


def loading(path: Path, there: Mapping[str, type[GraphLibrary]]) -> PutToAll:
    """The SQLite file read into a graph with its types and properties, by each."""
    makers = {"NetworkX": _networkx, "rustworkx": _rustworkx, "igraph": _igraph}

    def counted(graph: PropertyGraph) -> tuple[int, int]:
        return len(graph), len(graph.sources)

    others = {name: partial(_from_rows, make, path) for name, make in makers.items() if name in there}
    return PutToAll("load of the SQLite file", lambda: read_foreign(path).graph, others, counted, LOAD)


def _from_rows(make: Callable[[list[Any], list[Any]], tuple[int, int]], path: Path) -> tuple[int, int]:
    return make(*_rows(path))


def _rows(path: Path) -> tuple[list[Any], list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        nodes = connection.execute("SELECT node_id, name, type, properties FROM unified_nodes").fetchall()
        return nodes, connection.execute(
            "SELECT source_node_id, target_node_id, edge_type FROM unified_edges"
        ).fetchall()


def _properties(nodes: list[Any]) -> list[dict[str, Any]]:
    return [{"name": name, "type": type, **json.loads(properties)} for _, name, type, properties in nodes]


def _networkx(nodes: list[Any], edges: list[Any]) -> tuple[int, int]:
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph.add_nodes_from((row[0], known) for row, known in zip(nodes, _properties(nodes), strict=True))
    graph.add_edges_from((source, target, {"type": type}) for source, target, type in edges)
    return graph.number_of_nodes(), graph.number_of_edges()


def _rustworkx(nodes: list[Any], edges: list[Any]) -> tuple[int, int]:
    import rustworkx as rx

    graph = rx.PyDiGraph()
    row_of = dict(zip((row[0] for row in nodes), graph.add_nodes_from(_properties(nodes)), strict=True))
    graph.add_edges_from([(row_of[source], row_of[target], type) for source, target, type in edges])
    return graph.num_nodes(), graph.num_edges()


def _igraph(nodes: list[Any], edges: list[Any]) -> tuple[int, int]:
    import igraph as ig

    row_of = {row[0]: number for number, row in enumerate(nodes)}
    graph = ig.Graph(
        n=len(nodes), edges=[(row_of[source], row_of[target]) for source, target, _ in edges], directed=True
    )
    known = _properties(nodes)
    for name in known[0]:
        graph.vs[name] = [each[name] for each in known]
    graph.es["type"] = [type for _, _, type in edges]
    return graph.vcount(), graph.ecount()
