"""The benchmark of delta edges on graphs of stories: who asks, what is walked, and figures that follow from
the values of the queries.
"""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.delta import graphs as delta_graphs
from benchmarks.delta import walks as delta_recall
from benchmarks.recall.growth import SyntheticVectors
from benchmarks.structure.analogies import items
from benchmarks.structure.analogy_pairs import pairs
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import DELTA_EDGE
from kgot_lab.analogy.linguistic import LinguisticSkeletons
from kgot_lab.analogy.skeletons import Skeletons
from kgot_lab.embedding.embedder import normalise_rows
from kgot_lab.evaluation.dataset import content_id
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Edge, Node, Query, ranked

ROOT = Path(__file__).parents[2]
TEXTS = {
    "a": "The guard locked the gate.",
    "b": "The clerk sealed the envelope.",
    "c": "A gate stood on the hill.",
    "d": "Rain fell.",
}


@pytest.fixture(scope="module")
def scripts():
    """What the two modules and the two commands define, by name."""
    commands = [
        runpy.run_path(str(ROOT / name))
        for name in ("data/make/delta_edges.py", "benchmarks/delta/delta_recall.py")
    ]
    return {**vars(delta_graphs), **commands[0], **commands[1], **vars(delta_recall)}


def texts():
    return PropertyGraph.of(Node(id, ("Text",), {"text": text}) for id, text in TEXTS.items())


def nouns(text):
    return frozenset({"gate", "hill", "guard", "envelope", "rain"} & set(text.lower().strip(".").split()))


def test_texts_are_joined_by_a_bare_hub_for_each_noun_that_a_few_share(scripts):
    graph = scripts["noun_graph"](texts(), nouns)
    assert [node.id for node in graph.nodes if node.id not in TEXTS] == ["noun:gate"]
    assert {(edge.source, edge.target) for edge in graph.edges} == {("a", "noun:gate"), ("c", "noun:gate")}
    every = scripts["noun_graph"](
        PropertyGraph.of(Node(f"{row}", (), {"text": f"{row}"}) for row in range(11)), lambda text: {"all"}
    )
    assert not every.edges  # what more than ten share says little


@pytest.mark.parametrize("name", ["storyanalogy-mc", "parallelparc", "analobench S1"])
def test_dev_sources_ask_for_dev_analogues_and_no_others(scripts, name):
    whole = pairs(f"{name} pairs")
    asked = scripts["questions"](name, "develop", whole.dev)
    assert {q.id for q in asked.queries} == {content_id("", i.source) for i in items(name) if not i.held_out}
    ends = {end for both in whole.test_ids for end in both}
    for query in asked.queries:
        assert asked.qrels[query.id] and query.id not in asked.qrels[query.id]
        out = scripts["unasked"](query.id, whole.dev)
        assert query.id in out and not out & set(asked.qrels[query.id])
    analogous = {id for grades in asked.qrels.values() for id in grades}
    # where a text of one part may be a choice of the other
    assert not analogous & ends or name == "storyanalogy-mc"


def test_a_walk_with_delta_edges_reaches_what_nouns_do_not_join_and_never_shows_its_own_start(
    scripts, monkeypatch
):
    order = {"a": 1.0, "c": 0.5, "d": 0.3, "b": 0.1}
    entry = Stage("fixed", lambda ranking: ranked(ranking.query, order))
    part = scripts["Dataset"]("toy", (Document("b", TEXTS["b"]),), (Query(TEXTS["a"], "a"),), {"a": {"b": 1}})
    case = scripts["StoryCase"](
        None,
        {"develop": part},
        texts(),
        scripts["noun_graph"](texts(), nouns),
        entry,
        {"a": frozenset({"a"})},
    )
    monkeypatch.setattr(delta_recall, "WALK", replace(delta_recall.WALK, entry=1))
    joined = [Edge("a", DELTA_EDGE, "b")]
    walk = dict(
        scripts["delta_stages"](case, {scripts["DELTA_ALONE"]: joined, scripts["CHOSEN"]: joined}, joined)
    )
    shown = {
        system: scripts["leaving_out"](stages[0], case.dropped).search(part.queries[0]).ids
        for system, stages in walk.items()
    }
    assert shown["entry only"] == shown["traverse"] == ["c", "d", "b"]
    # c by similarity before b, each reached in one way
    assert shown[scripts["CHOSEN"]] == shown["ceiling"] == ["c", "b", "d"]
    assert shown[scripts["DELTA_ALONE"]] == ["b", "c", "d"]  # the nouns are not walked


def test_similarity_edges_are_the_pairs_whose_texts_are_alike():
    embedder = SyntheticVectors(32)
    graph = texts()
    edges = {
        (e.source, e.target): e.properties["weight"]
        for e in delta_graphs.similarity_edges(graph, embedder, -1)
    }
    assert len(edges) == 6
    rows = normalise_rows(embedder.embed(list(TEXTS.values())), "the texts")
    vectors = dict(zip(TEXTS, rows, strict=True))
    assert edges == pytest.approx({(a, b): float(vectors[a] @ vectors[b]) for a, b in edges}, abs=1e-5)
    least = sorted(edges.values())[3]
    assert len(delta_graphs.similarity_edges(graph, embedder, least)) == 3


def test_there_are_as_many_edges_of_strangers_and_of_the_most_alike(scripts):
    embedder = SyntheticVectors(32)
    made = Skeletons(
        dict(zip(TEXTS.values(), LinguisticSkeletons()(list(TEXTS.values())), strict=True)), "linguistic"
    )
    verdicts = scripts["KeptVerdicts"](Aligner(embedder))
    alike = scripts["most_alike"](texts(), embedder, 4)
    weights = [edge.properties["weight"] for edge in alike]
    assert len(alike) == 4 and weights == sorted(weights, reverse=True)
    assert alike[:2] == scripts["most_alike"](texts(), embedder, 2)
    standing = scripts["most_alike"](texts(), embedder, 6, verdicts)
    assert standing
    assert not any(verdicts.align(TEXTS[edge.source], TEXTS[edge.target]).veto for edge in standing)
    strange = scripts["of_strangers"](
        texts(), made, embedder, scripts["Thresholds"](0.9, -2.0), verdicts, len(standing)
    )
    # all that can stand
    expected = {(edge.source, edge.target) for edge in standing}
    assert {(edge.source, edge.target) for edge in strange} == expected


def test_a_passage_keeps_its_heaviest_edges_where_the_other_end_does_too(scripts):
    weights = {("a", "b"): 0.9, ("a", "c"): 0.8, ("a", "d"): 0.7, ("c", "d"): 0.6, ("b", "d"): 0.5}
    edges = [Edge(*pair[:1], DELTA_EDGE, pair[1], {"weight": weight}) for pair, weight in weights.items()]
    kept = [(edge.source, edge.target) for edge in scripts["own_best"](edges, 2)]
    assert kept == [("a", "b"), ("a", "c"), ("c", "d")]  # a-d is the third of a, b-d the third of d
    assert scripts["own_best"](edges, 3) == sorted(edges, key=lambda edge: (edge.source, edge.target))


def test_the_figures_follow_from_the_values_of_the_queries(scripts):
    result = json.loads(scripts["RESULT"].read_text(encoding="utf-8"))
    kept = {
        part: [row for row in result[part] if row["measure"] == "recall@10"]
        for part in ("systems", "differences", "primary")
    }
    rows, gaps = scripts["delta_figures"](kept["systems"])
    assert json.loads(json.dumps([rows, gaps, scripts["delta_primary"](gaps)])) == list(kept.values())
    assert [gap["dataset"] for gap in result["primary"]][:3] == list(scripts["DELTA_SETS"])
    assert scripts["delta_table"](result).count("\n") > len(result["primary"])


def test_where_the_test_part_is_there_it_stands_apart_and_with_the_others(scripts):
    def row(part, system, *values):
        told = {"dataset": "toy", "part": part, "system": system, "measure": "recall@10"}
        return {**told, "questions": list(values)}

    systems = [scripts[name] for name in ("TRAVERSE", "ENTRY_ONLY", "CHOSEN", "DELTA_ALONE")] + [
        *scripts["CONTROLS"]
    ]
    rows = [
        row(part, system, 0.0, float(system == scripts["CHOSEN"]))
        for part in ("develop", "locked")
        for system in systems
    ]
    _, gaps = scripts["delta_figures"](rows)
    found = {gap["part"]: gap for gap in scripts["delta_primary"](gaps)}
    assert {part: (gap["n"], gap["mean"], gap["wins"]) for part, gap in found.items()} == {
        "develop": (2, 0.5, 1), "locked": (2, 0.5, 1), "all": (4, 0.5, 2),
    }  # fmt: skip
