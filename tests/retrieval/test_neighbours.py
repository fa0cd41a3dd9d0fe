import pickle
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from support.every import every
from support.searching import const
from support.work import calls

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.fusion import ranking_scores, scale_by_range, weighted
from kgot_lab.retrieval.neighbours import boost, boosted_neighbours, jaccard
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Edge, Node, Query, Triple

GRAPH = PropertyGraph.from_triples(
    [
        Triple("cache", "enables", "savings"),
        Triple("cache", "requires", "memory"),
        Triple("batching", "enables", "savings"),
        Triple("savings", "part of", "budget"),
    ]
)


def chance_graph(seed: int, nodes: int = 40, edges: int = 160) -> PropertyGraph:
    chance = np.random.default_rng(seed)
    ends = chance.integers(0, nodes, (edges, 2)).tolist()
    types = chance.choice(["a", "b", "c"], edges).tolist()
    # loops and parallel edges among them
    made = {(f"n{s}", str(t), f"n{o}") for (s, o), t in zip(ends, types, strict=True)}
    return PropertyGraph.of(
        [Node(f"n{i}") for i in range(nodes)], [Edge(*identity) for identity in sorted(made)]
    )


def chance_hits(graph: PropertyGraph, seed: int, count: int = 12) -> Stage:
    chance = np.random.default_rng(seed + 100)
    ids = chance.choice(graph.ids, count, replace=False).tolist()
    return const("hits", **dict(zip(ids, chance.integers(1, 6, count).tolist(), strict=True)))  # with ties


def brute_boosts(graph: PropertyGraph, seeds: list[str], types: set[str] | None = None) -> dict[str, float]:
    scores: dict[str, float] = defaultdict(float)
    for source, target, type in nx.MultiDiGraph(
        [(e.source, e.target, {"type": e.type}) for e in graph.edges]
    ).edges(data="type"):
        if source != target and (types is None or type in types):
            scores[target] += 0.5 * (source in seeds)
            scores[source] += 0.3 * (target in seeds)
    return {id: score / max(scores.values()) for id, score in scores.items() if score > 0}


# --- boost ---


@every("seed", range(6))
@every("types", [None, {"a"}, {"a", "c"}])
def test_boosts_equal_those_of_a_walk_over_all_edges(seed, types):
    graph = chance_graph(seed)
    hits = chance_hits(graph, seed)
    found = boosted_neighbours(graph, hits, types=types).search("?")
    assert dict(found.hits) == pytest.approx(brute_boosts(graph, hits.search("?").ids[:10], types))
    ranking = hits.search("?")
    earlier = dict(zip(ranking.ids, scale_by_range(ranking_scores(ranking)).tolist(), strict=True))
    boosted = dict((hits >> boost(graph, 0.2, types=types)).search("?").hits)
    assert boosted == pytest.approx(
        {id: earlier.get(id, 0) + 0.2 * dict(found.hits).get(id, 0) for id in {*earlier, *found.ids}}
    )


def test_only_chosen_edge_types_are_followed_and_unknown_ones_among_them_do_no_harm():
    seeds = const("seeds", cache=1)
    assert boosted_neighbours(GRAPH, seeds, types=["enables"]).search("?").ids == ["savings"]
    assert boosted_neighbours(GRAPH, seeds, types=["enables", "optimizes"]).search("?").ids == ["savings"]
    assert boosted_neighbours(GRAPH, seeds, types=[]).search("?").ids == []


def test_equal_boosts_are_ordered_by_id_whatever_the_order_of_their_edges():
    edges = [
        Edge("s1", "x", "b"),
        Edge("b", "x", "s2"),
        Edge("b", "y", "s2"),
        Edge("a", "x", "s1"),
        Edge("a", "y", "s1"),
        Edge("s2", "x", "a"),
    ]
    for order in (edges, edges[::-1]):
        found = boosted_neighbours(
            PropertyGraph.of((), order, dangling="add"), const("seeds", s1=2, s2=1)
        ).search("?")
        assert found.hits == (("a", 1.0), ("b", 1.0))


def test_a_boosted_pipeline_prints_itself():
    words, meaning = const("bm25", a=1), const("embeddings", a=1)
    pipe = weighted((0.7, words), (0.3, meaning)) >> boost(GRAPH, 0.2) % 100
    assert repr(pipe) == "<weighted(0.7 bm25, 0.3 embeddings) >> boost(0.2) % 100>"
    types = ["requires", "enables"]
    assert repr(boost(GRAPH, 0.2, types=types, seeds=5)) == "<boost(0.2, enables, requires, seeds=5)>"
    assert repr(boosted_neighbours(GRAPH, words)) == "<around(bm25)>"
    assert repr(jaccard(GRAPH, words)) == "<jaccard(bm25)>"


def test_a_boosted_hit_says_which_retriever_gave_what_and_over_which_edge():
    pipe = weighted((0.7, const("bm25", cache=3)), (0.3, const("embeddings", cache=3, budget=1))) >> boost(
        GRAPH, 0.2, seeds=1
    )
    (reason,) = pipe.search("?").why("memory")
    expected = ("boost", 0.2, 1.0, "cache --[requires]--> memory")
    assert (reason.retriever, reason.weight, reason.score, reason.path) == expected


def test_a_path_against_the_arrow_is_drawn_against_it_and_uses_names():
    graph = PropertyGraph.of(
        [Node("p1", properties={"name": "Ada"}), Node("p2", properties={"title": "Engine"})],
        [Edge("p2", "by", "p1")],
    )
    assert boosted_neighbours(graph, const("seeds", p1=1)).search("?").paths == {"p2": "Ada <--[by]-- Engine"}


def test_paths_start_at_the_best_seed():
    found = boosted_neighbours(GRAPH, const("seeds", batching=1, cache=2)).search("?").paths["savings"]
    assert found == "cache --[enables]--> savings"


def test_a_ranking_with_paths_can_be_sent_to_another_process():
    found = boosted_neighbours(GRAPH, const("seeds", cache=1)).search("?")
    assert pickle.loads(pickle.dumps(found)).paths == dict(found.paths)


def test_without_hits_nothing_is_boosted():
    assert (const("none") >> boost(GRAPH, 0.2)).search("?").hits == ()
    assert (
        boosted_neighbours(GRAPH, const("none")).search("?").hits
        == jaccard(GRAPH, const("none")).search("?").hits
        == ()
    )


# --- jaccard ---


def test_nodes_with_the_same_neighbours_are_found_the_pair_itself_left_out():
    found = jaccard(GRAPH, const("seeds", cache=1)).search("?")
    assert found.hits == (("batching", 0.5), ("budget", 0.5))
    assert found.paths["batching"] == "shares 1 of 2 neighbours with cache"


@every("seed", range(6))
@every("types", [None, {"b"}])
def test_jaccard_equals_that_of_networkx_on_the_graph_without_the_pair(seed, types):
    graph = chance_graph(seed)
    hits = chance_hits(graph, seed)
    plain = nx.Graph(
        [
            (e.source, e.target)
            for e in graph.edges
            if e.source != e.target and (types is None or e.type in types)
        ]
    )
    plain.add_nodes_from(graph.ids)
    expected: dict[str, float] = defaultdict(float)
    for s in hits.search("?").ids[:10]:
        for id in graph.ids:
            mine, other = set(plain[s]) - {id}, set(plain[id]) - {s}
            if id != s and mine & other:
                expected[id] = max(expected[id], len(mine & other) / len(mine | other))
    assert dict(jaccard(graph, hits, types=types).search("?").hits) == pytest.approx(expected)


# --- bad input, speed ---


@pytest.mark.parametrize(
    "make",
    [lambda g: boost(g, 0.2), lambda g: boosted_neighbours(g, const("s")), lambda g: jaccard(g, const("s"))],
)
def test_an_empty_graph_is_refused(make):
    with pytest.raises(BadInput, match="graph is empty"):
        make(PropertyGraph.of())


def test_a_hit_that_is_no_node_is_named():
    for stage in (
        const("s", elsewhere=1) >> boost(GRAPH, 0.2),
        boosted_neighbours(GRAPH, const("s", elsewhere=1)),
        jaccard(GRAPH, const("s", elsewhere=1)),
    ):
        with pytest.raises(BadInput, match="'elsewhere' was found but is no node"):
            stage.search(Query("?"))


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_a_weight_that_is_no_weight_is_refused(weight):
    with pytest.raises(BadInput, match="weight of a boost"):
        boost(GRAPH, weight)


def test_seeds_and_types_that_make_no_sense_are_refused():
    with pytest.raises(BadInput, match="1 seed or more"):
        boost(GRAPH, 0.2, seeds=0)
    with pytest.raises(UnknownName, match="did you mean 'enables'"):
        boost(GRAPH, 0.2, types=["enabels"])
    with pytest.raises(BadInput, match="not a str"):
        jaccard(GRAPH, const("s"), types="enables")


def test_a_query_on_thousands_of_nodes_calls_python_for_what_it_finds_and_not_for_each_edge():
    """The work grows in arrays, not in Python; benchmarks/speed/speed.py has the milliseconds."""
    made: dict[str, list[int]] = {}
    for nodes, edges in ((300, 3_000), (3_000, 30_000)):
        graph = chance_graph(1, nodes=nodes, edges=edges)
        hits = const(
            "hits", **dict(zip(graph.ids, np.random.default_rng(0).random(len(graph)).tolist(), strict=True))
        ).search("?")
        base = Stage("hits", lambda ranking, hits=hits: hits)
        for stage in (base >> boost(graph, 0.2), boosted_neighbours(graph, base), jaccard(graph, base)):
            stage.search("?")
            made.setdefault(stage.name, []).append(calls(lambda stage=stage: stage.search("?")))
    assert made.keys() == {"hits >> boost(0.2)", "around(hits)", "jaccard(hits)"}
    assert made["hits >> boost(0.2)"][1] < 3 * 3_000 < 30_000  # its ranking holds every node
    assert all(large < 1.2 * small + 100 for name, (small, large) in made.items() if "boost" not in name), (
        made
    )
