import networkx as nx
import numpy as np
import pytest
from support.every import every
from support.searching import Letters, const

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval import pagerank as walks
from kgot_lab.retrieval.entity_linking import NameIndex, phrase_graph, phrase_id, title_graph
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.pagerank import (
    RandomWalk,
    Seeds,
    first_hits,
    nearest_triples,
    pagerank,
    titles_in_question,
)
from kgot_lab.types import Document, Edge, Node, Query, Ranking, Triple, ranked


def by_networkx(graph: PropertyGraph, weights: np.ndarray, damping: float) -> np.ndarray:
    """networkx's PageRank of the graph without directions and loops, parallel edges as one of their number as
    weight.
    """
    plain: nx.Graph = nx.Graph()
    plain.add_nodes_from(graph.ids)
    for edge in graph.edges:
        if edge.source != edge.target:
            times = plain.get_edge_data(edge.source, edge.target, {"weight": 0})["weight"]
            plain.add_edge(edge.source, edge.target, weight=times + 1)
    seeds = dict(zip(graph.ids, weights.tolist(), strict=True))
    found = nx.pagerank(
        plain, alpha=damping, personalization=seeds, tol=1e-12, max_iter=10_000, weight="weight"
    )
    return np.array([found[id] for id in graph.ids])


def chance_graph(seed: int) -> PropertyGraph:
    """Up to 40 nodes, some alone, and edges with parallels, there-and-backs and loops."""
    chance = np.random.default_rng(seed)
    size = int(chance.integers(2, 40))
    ends = chance.integers(0, max(2, size * 3 // 4), (int(chance.integers(0, 3 * size)), 2)).tolist()
    edges = [Edge(f"n{s}", "ab"[number % 2], f"n{t}", key=str(number)) for number, (s, t) in enumerate(ends)]
    return PropertyGraph.of(
        [Node(f"n{n}", properties={"text": "x"} if n % 3 else {}) for n in range(size)], edges
    )


def chance_seeds(seed: int, size: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    weights = chance.random(size) * (chance.random(size) < 0.3)
    weights[chance.integers(size)] += 0.5
    return weights


# --- the walk ---


def shares(walk: RandomWalk, weights: np.ndarray, error: float = 1e-9) -> np.ndarray:
    """The share of time that a walk finds for each node."""
    rows, found = walk.reached_shares(np.flatnonzero(weights), weights[weights != 0], error)
    assert (np.diff(rows) > 0).all() and (found > 0).all()
    every = np.zeros(len(weights))
    every[rows] = found
    return every


@every("seed", range(15))
def test_the_walk_equals_networkx_on_graphs_of_chance(seed):
    damping = (0, 0.15, 0.5, 0.85, 0.99)[seed % 5]
    graph = chance_graph(seed)
    weights = chance_seeds(seed, len(graph))
    found = shares(RandomWalk(graph, damping), weights)
    assert np.abs(found - by_networkx(graph, weights, damping)).max() < 1e-6
    assert found.sum() == pytest.approx(1) and (found >= 0).all()


@every("seed", range(12))
def test_the_walk_solves_its_equation_to_the_ninth_digit(seed):
    graph = chance_graph(seed)
    weights, size, damping = chance_seeds(seed, len(graph)), len(graph), 0.9
    ways = np.zeros((size, size))
    for edge in graph.edges:
        if edge.source != edge.target:
            one, other = graph.row(edge.source), graph.row(edge.target)
            ways[one, other] += 1
            ways[other, one] += 1
    degrees, seeds = ways.sum(axis=0), weights / weights.sum()
    moves = np.where(degrees > 0, ways / np.maximum(degrees, 1), seeds[:, None])
    exact = np.linalg.solve(np.eye(size) - damping * moves, (1 - damping) * seeds)
    assert np.abs(shares(RandomWalk(graph, damping), weights) - exact).max() < 1e-9


@every("damping", [1, 0.995, 1.5, -0.1, float("nan"), float("inf")])
def test_a_damping_below_0_or_near_1_is_refused(damping):
    with pytest.raises(BadInput, match=r"from 0 to \.99"):
        pagerank(chance_graph(0), first_hits(5), damping=damping)


@every("weights", [[0, 0], [1, -1], [1, float("nan")], [1, float("inf")], []])
def test_weights_that_are_no_seeds_are_refused(weights):
    with pytest.raises(BadInput, match="weights of 0 or more"):
        walk = RandomWalk(PropertyGraph.of([Node("a"), Node("b")]), 0.5)
        walk.reached_shares(np.arange(len(weights)), np.array(weights, float))


# --- the walk of a large graph, which spreads from its seeds ---


@pytest.mark.parametrize("damping", [0, 0.15, 0.5, 0.85, 0.99])
@pytest.mark.parametrize("many", [0, 1 / 8, 10], ids=["all at once", "as usual", "link by link"])
def test_a_walk_that_spreads_from_its_seeds_finds_the_shares_of_one_that_is_everywhere(
    monkeypatch, many, damping
):
    for seed in range(4):
        graph = chance_graph(seed)
        weights = chance_seeds(seed, len(graph))
        walk = RandomWalk(graph, damping)
        everywhere = shares(walk, weights)
        with monkeypatch.context() as spreading:
            spreading.setattr(walks, "_PUSH_FROM_LINKS", -1)
            spreading.setattr(walks, "_MAX_FRONTIER", many)
            assert np.abs(shares(walk, weights) - everywhere).sum() < 2e-9


@pytest.mark.parametrize("error", [1e-6, 1e-3, 0.1])
def test_no_share_is_too_large_and_all_together_lack_no_more_than_was_allowed(monkeypatch, error):
    for seed in range(4):
        graph = chance_graph(seed)
        weights = chance_seeds(seed, len(graph))
        walk = RandomWalk(graph, 0.5)
        everywhere = shares(walk, weights)
        with monkeypatch.context() as spreading:
            spreading.setattr(walks, "_PUSH_FROM_LINKS", -1)
            lacking = everywhere - shares(walk, weights, error)
        assert lacking.min() > -2e-9 and lacking.sum() < error + 2e-9


@every("error", [0, 1e-10, 0.2, float("nan")])
def test_an_error_that_is_none_is_refused(error):
    with pytest.raises(BadInput, match=r"from 1e-09 to 0\.1"):
        pagerank(GRAPH, at(a=1), error=error)


# --- on real graphs ---


@pytest.fixture(scope="module")
def musique():
    return load_dataset("musique").dev


def seeds_of(seeds: list[Seeds], ranking: Ranking, graph: PropertyGraph) -> np.ndarray:
    start = np.zeros(len(graph))
    for part in seeds:
        for id, weight in part.weights(ranking).items():
            start[graph.row(id)] += weight
    return start


@pytest.mark.parametrize("kind", ["titles", pytest.param("phrases", marks=pytest.mark.extended)])
def test_the_stage_ranks_musique_by_what_networkx_finds(musique, kind):
    words = bm25(musique.documents)
    if kind == "titles":
        graph = title_graph(musique.documents)
        seeds = [first_hits(5), titles_in_question(NameIndex(musique.documents))]
    else:
        graph = phrase_graph(musique.documents, musique.triples)
        triples = [triple for some in musique.triples.values() for triple in some]
        seeds = [nearest_triples(triples, Letters()), first_hits(1000, 0.3)]
    stage = pagerank(graph, *seeds)
    for query in musique.queries[:: 30 if kind == "titles" else 60]:
        earlier = words(Ranking(query, ()))
        expected = dict(
            zip(graph.ids, by_networkx(graph, seeds_of(seeds, earlier, graph), 0.5).tolist(), strict=True)
        )
        found = stage(earlier)
        reached = {hit.id: hit.score for hit in found.hits if hit.score > 0}
        assert reached == pytest.approx({id: expected[id] for id in reached}, abs=1e-6) and len(reached) >= 5
        texts = {node.id for node in graph.nodes if node.properties.get("text")}
        assert all(expected[id] < 1e-6 for id in texts - set(reached))
        assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
        assert len(set(found.ids)) == len(found.hits) and set(found.ids) == set(reached) | set(earlier.ids)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["musique", pytest.param("2wiki", marks=pytest.mark.extended)])
def test_a_walk_that_spreads_from_its_seeds_ranks_real_passages_in_the_same_order(monkeypatch, name):
    data = load_dataset(name).dev
    seeds = [first_hits(5), titles_in_question(NameIndex(data.documents))]
    words, stage = bm25(data.documents), pagerank(title_graph(data.documents), *seeds)
    queries = data.queries[::20]
    plain = [(words >> stage).search(query) for query in queries]
    monkeypatch.setattr(walks, "_PUSH_FROM_LINKS", -1)
    for query, ranking in zip(queries, plain, strict=True):
        found = (words >> stage).search(query)
        exact = dict(ranking.hits)
        told = [id for id, score in found.hits if score > 1e-8]
        assert len(told) >= 5 and set(told) == {id for id in told if exact[id] > 9e-9}
        # Passages of equal shares may change places, as rounding has it: nothing else.
        expected = pytest.approx([score for _, score in ranking.hits[: len(told)]], abs=2e-9)
        assert [exact[id] for id in told] == expected
        assert found.ids[:10] == ranking.ids[:10] or [exact[id] for id in found.ids[:10]] == pytest.approx(
            [exact[id] for id in ranking.ids[:10]], abs=1e-15
        )


# --- the stage ---

EDGES = [Edge("a", "to", "hub"), Edge("b", "to", "hub"), Edge("x", "to", "y")]
GRAPH = PropertyGraph.of([Node(id, properties={"text": id}) for id in "abcxyz"], EDGES, dangling="add")


def at(**weights: float) -> Seeds:
    return Seeds("here", lambda ranking: weights)


def test_documents_that_are_not_reached_keep_their_order_behind_the_others():
    found = (const("earlier", z=9, c=8, b=7, y=6, other=5) >> pagerank(GRAPH, at(a=1))).search("?")
    assert found.ids == ["a", "b", "z", "c", "y", "other"]
    assert [hit.score > 0 for hit in found.hits] == [True, True, False, False, False, False]
    assert all(-1 < hit.score < 0 for hit in found.hits[2:])


def test_a_hub_without_text_is_walked_through_and_not_ranked():
    assert "hub" not in pagerank(GRAPH, at(hub=1)).search("?").ids
    assert pagerank(GRAPH, at(hub=1)).search("?").ids == ["a", "b"]


def test_a_document_that_is_only_a_title_has_no_text_to_be_ranked_by():
    graph = title_graph([Document("a", "On Bea Ray", "Ada"), Document("b", "", "Bea Ray")])
    assert pagerank(graph, at(a=1)).search("?").ids == ["a"]


def test_the_weight_of_the_same_node_in_two_seeds_adds_up():
    two = pagerank(GRAPH, at(a=1, x=1), at(x=1)).search("?")
    assert two.hits == pagerank(GRAPH, at(a=1, x=2)).search("?").hits
    assert two.ids == ["x", "y", "a", "b"]


@pytest.mark.parametrize(
    "seeds", [(at(),), (at(a=0),), (first_hits(3, 0),), (titles_in_question(NameIndex([])),)]
)
def test_a_ranking_without_seeds_stays_as_it_is(seeds):
    earlier = const("earlier", z=9, a=8)
    assert (earlier >> pagerank(GRAPH, *seeds)).search("?").hits == earlier.search("?").hits
    assert pagerank(GRAPH, *seeds).search("?").hits == ()


def test_a_hit_below_0_is_no_seed():
    assert first_hits(3).weights(ranked(Query("?"), {"a": 4, "b": 2, "c": -1})) == {"a": 1, "b": 0.5, "c": 0}
    assert first_hits(2, 3).weights(ranked(Query("?"), {"a": 4, "b": 2, "c": 1})) == {"a": 3, "b": 1.5}
    earlier = const("earlier", z=-1, a=-2)
    assert (earlier >> pagerank(GRAPH, first_hits(2))).search("?").hits == earlier.search("?").hits


def test_a_seed_that_is_no_node_is_refused_by_name():
    with pytest.raises(
        BadInput,
        match=r"3 first hits: the seed 'other' is no node of <PropertyGraph: 7 nodes.*seeds are ids of its nodes",
    ):
        (const("earlier", a=2, other=1) >> pagerank(GRAPH, first_hits(3))).search("?")


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf")])
def test_a_seed_of_no_sensible_weight_is_refused(weight):
    with pytest.raises(BadInput, match="weights of 0 or more"):
        pagerank(GRAPH, at(a=weight)).search("?")


def test_without_seeds_or_hits_to_take_there_is_no_stage():
    with pytest.raises(BadInput, match="takes the seeds"):
        pagerank(GRAPH)
    with pytest.raises(BadInput, match="1 hit or more"):
        first_hits(0)


def test_the_titles_in_a_question_are_seeds_whatever_their_letters():
    titles = NameIndex(
        [
            Document("a", "", "Ada Lovelace"),
            Document("b", "", "Ada Lovelace (film)"),
            Document("c", "", "Bob"),
        ]
    )
    found = titles_in_question(titles).weights(Ranking(Query("when was ada lovelace's film made?"), ()))
    assert found == {"a": 3, "b": 3}


def test_the_nearest_triples_give_both_their_phrases_the_larger_cosine():
    triples = [
        Triple("Tea", "is", "hot"),
        Triple("tea", "is", "wet"),
        Triple("zzz", "zz", "z"),
        Triple("Tea", "is", "hot"),
    ]
    letters = Letters()
    cosines = letters.embed(["Tea is hot", "tea is wet", "zzz zz z"]) @ letters.embed(["is tea hot"])[0]
    found = nearest_triples(triples, letters, 2).weights(Ranking(Query("is tea hot"), ()))
    assert found == pytest.approx(
        {phrase_id("tea"): cosines[0], phrase_id("hot"): cosines[0], phrase_id("wet"): cosines[1]}
    )
    assert nearest_triples(triples, letters, 9).weights(Ranking(Query("is tea hot"), ()))[
        "phrase:z"
    ] == pytest.approx(cosines[2])
    with pytest.raises(BadInput, match="needs triples"):
        nearest_triples([], letters)


def test_the_stage_names_its_damping_and_its_seeds():
    stage = const("earlier", a=1) >> pagerank(
        GRAPH, first_hits(5), titles_in_question(NameIndex([])), damping=0.85
    )
    assert repr(stage) == "<earlier >> pagerank(0.85, 5 first hits, titles in the question x3)>"
    assert repr(pagerank(GRAPH, first_hits(1000, 0.3))) == "<pagerank(0.5, 1000 first hits x0.3)>"


def test_two_runs_give_the_same_ranking_and_ties_come_out_by_id():
    star = PropertyGraph.of(
        [Node(id, properties={"text": id}) for id in "zyxm"], [Edge("m", "to", id) for id in "zyx"]
    )
    assert pagerank(star, at(m=1)).search("?").ids == ["m", "x", "y", "z"]
    assert pagerank(star, at(m=1)).search("?") == pagerank(star, at(m=1)).search("?")
