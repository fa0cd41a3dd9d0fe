"""The systems of the benchmark: each answers, the controls lose, and nothing runs without its input."""

import math
from collections import Counter

import pytest
from support.tiny_collection import TRIPLES, tiny

from benchmarks.recall.claims import PUBLISHED_CLAIMS
from benchmarks.recall.growth import SyntheticVectors
from benchmarks.recall.recall import selection_decisions
from kgot_lab.analogy.delta_edges import DELTA_EDGE
from kgot_lab.benchmark.recall.bench import DEFAULT_PLAN
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import file_name
from kgot_lab.benchmark.recall.systems import (
    BASELINE,
    mean_score,
    shuffle_targets,
    systems,
)
from kgot_lab.embedding.vectors import InMemoryVectors, minilm
from kgot_lab.retrieval.entity_linking import name_graph, title_graph
from kgot_lab.types import Edge

VECTORS = SyntheticVectors(64)
WITH_TRIPLES = {"pagerank, triples", "follow, triples"}
WITH_DELTA = {"neighbours, turns + delta", "pagerank, titles + delta", "control: delta shuffled"}
ISOMORPHIC = (
    Edge("d01", DELTA_EDGE, "d08", {"weight": 0.3}),
    Edge("d03", DELTA_EDGE, "d09", {"weight": 0.2}),
)
MAY_FIND_NOTHING = {"jaccard", "graph boost only"}  # where no passage names another


def small(name: str, questions: int = 4, others: int = 100):
    """A few dev questions of a bundled set with their passages and some others."""
    dev = load_dataset(name).dev
    part = dev.only([query.id for query in dev.queries[:questions]])
    gold = {id for grades in part.qrels.values() for id in grades}
    kept = [document for row, document in enumerate(part.documents) if document.id in gold or row < others]
    triples = {document.id: part.triples[document.id] for document in kept if document.id in part.triples}
    ids = {document.id for document in kept}
    joined = tuple(edge for edge in part.isomorphic if edge.source in ids and edge.target in ids)
    return type(part)(name, tuple(kept), part.queries, part.qrels, triples=triples, isomorphic=joined)


def test_the_baseline_the_expected_best_and_all_systems_of_the_claims_are_there():
    names = set(systems(tiny(), VECTORS))
    assert {BASELINE, DEFAULT_PLAN.baseline, DEFAULT_PLAN.expected} <= names
    assert {name for claim in PUBLISHED_CLAIMS for name in (claim.better, claim.worse)} <= names


def test_delta_edges_are_all_that_the_walk_with_them_has_more():
    made = systems(tiny(isomorphic=ISOMORPHIC), VECTORS)
    plain, delta, mixed = (
        made[name]() for name in ("neighbours, turns", "neighbours, turns + delta", "control: delta shuffled")
    )
    for stage, joined in ((plain, 0), (delta, 2), (mixed, 2)):
        paths = [path for query in tiny().queries for path in stage.search(query).paths.values()]
        assert (sum(DELTA_EDGE in path for path in paths) > 0) is (joined > 0)
    ends = [(edge.source, edge.target) for edge in ISOMORPHIC]
    for query in tiny().queries:
        hits = delta.search(query)
        for id, path in hits.paths.items():
            if DELTA_EDGE in path:
                assert any(id in pair and all(end in hits.ids for end in pair) for pair in ends)


@pytest.mark.parametrize("name", [pytest.param("hotpotqa", marks=pytest.mark.extended), "musique"])
def test_every_system_ranks_real_passages_each_once_with_finite_scores_best_first(name):
    data = small(name)
    known = {document.id for document in data.documents}
    made = systems(data, VECTORS)
    for system in made if name == "hotpotqa" else WITH_TRIPLES | WITH_DELTA:
        stage = made[system]()
        for query in data.queries[:3]:
            ranking = stage.search(query)
            scores = [hit.score for hit in ranking.hits]
            assert len(set(ranking.ids)) == len(ranking.ids) and set(ranking.ids) <= known, system
            assert ranking.ids or system in MAY_FIND_NOTHING, system
            assert all(map(math.isfinite, scores)) and scores == sorted(scores, reverse=True), system
            assert stage.search(query).ids == ranking.ids, system


def test_parts_are_built_once_for_all_systems(monkeypatch):
    built = Counter()
    original = VECTORS.embed

    class Counting(SyntheticVectors):
        def embed(self, texts):
            built[len(texts)] += 1
            return original(texts)

    made = systems(tiny(), Counting(64))
    for name in (BASELINE, "rrf", "kg-os hybrid", "pagerank, titles", "neighbours", "pass-through"):
        made[name]()
    assert built[12] == 1  # the twelve passages


@pytest.mark.parametrize("graph_of", [title_graph, name_graph])
def test_a_shuffled_graph_keeps_nodes_types_and_degrees_and_moves_most_edges(graph_of):
    graph = graph_of(load_dataset("hotpotqa").documents)
    mixed = shuffle_targets(graph)
    assert [node.id for node in mixed.nodes] == [node.id for node in graph.nodes]
    for ends in (lambda edge: (edge.type, edge.source), lambda edge: (edge.type, edge.target)):
        assert Counter(map(ends, mixed.edges)) == Counter(map(ends, graph.edges))
    before, after = ({(e.source, e.type, e.target) for e in some.edges} for some in (graph, mixed))
    assert len(before & after) < 0.2 * len(before)
    same, other = ([edge.target for edge in shuffle_targets(graph, seed).edges] for seed in (0, 1))
    assert [edge.target for edge in mixed.edges] == same != other


@pytest.mark.extended
def test_following_names_finds_far_more_than_following_shuffled_ones():
    data = load_dataset("hotpotqa").dev
    embedder = InMemoryVectors(minilm())
    embedder.add_texts([query.text for query in data.queries])
    made, reached = systems(data, embedder), mean_score(data, "recall@5")
    own, control = reached(made["follow"]()), reached(made["control: names shuffled"]())
    none, convex = reached(made["control: no links"]()), reached(made[BASELINE]())
    assert own - control > 0.1 and own - none > 0.05 and own - convex > 0.05
    assert control < convex + 0.05  # what the links say of nothing is worth nothing
    titles, mixed = reached(made["pagerank, titles"]()), reached(made["control: titles shuffled"]())
    assert titles - mixed > 0.05


def test_the_gate_says_for_each_half_and_for_both_what_it_admits():
    decided = selection_decisions(tiny(), VECTORS)
    assert [(each["fusion"], each["tuned on"]) for each in decided] == [
        (fusion, part)
        for fusion in ("equal weights", "rrf")
        for part in ("one half", "the other half", "both")
    ]
    for each in decided:
        kept = {trial["retriever"] for trial in each["trials"] if trial["verdict"] != "refused"}
        assert len(each["trials"]) == 8 and set(each["admitted"]) == kept != set()


TUNED = {"convex, tuned", "gate", "gate, rrf"}


def test_names_are_unique_as_names_of_files():
    names = list(systems(tiny(triples=TRIPLES, isomorphic=ISOMORPHIC), VECTORS))
    assert set(names) > WITH_TRIPLES | WITH_DELTA
    assert len({file_name(name).lower() for name in names}) == len(names) and all(map(file_name, names))


def test_nothing_is_tuned_on_fewer_than_four_dev_queries():
    few = tiny(test_ids=frozenset({"q0", "q1", "q2", "q3", "q4"}))
    assert set(systems(tiny(), VECTORS)) - set(systems(few, VECTORS)) == TUNED


def test_systems_that_need_delta_edges_are_there_only_with_delta_edges():
    without, given = set(systems(tiny(), VECTORS)), set(systems(tiny(isomorphic=ISOMORPHIC), VECTORS))
    assert given - without == WITH_DELTA and without < given


def test_systems_that_need_triples_are_there_only_with_triples():
    without, given = set(systems(tiny(), VECTORS)), set(systems(tiny(triples=TRIPLES), VECTORS))
    assert given - without == WITH_TRIPLES and without < given


def test_no_index_is_built_before_a_system_is_asked_for():
    class Never(SyntheticVectors):
        def embed(self, texts):
            raise AssertionError("embedded")

    made = systems(tiny(triples=TRIPLES), Never(64))
    assert "embeddings" in made
    with pytest.raises(AssertionError, match="embedded"):
        made["embeddings"]()
