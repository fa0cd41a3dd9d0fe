from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from support.every import every
from support.searching import const

from benchmarks.pass_through.measuring import remove_texts
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.pass_through import Walk, has_text, traverse
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Edge, Node

OFF = 5  # hits of the chance graphs


def graph_of(texts: str, bare: str, *edges: tuple[str, str, str]) -> PropertyGraph:
    nodes = [Node(id, properties={"text": f"about {id}"}) for id in texts.split()] + [
        Node(id) for id in bare.split()
    ]
    return PropertyGraph.of(nodes, [Edge(*edge) for edge in edges])


HUB = graph_of(
    "ada byron engine",
    "london",
    ("ada", "lived in", "london"),
    ("byron", "born in", "london"),
    ("engine", "shown in", "london"),
)
NEAR = const("embeddings", ada=0.9, byron=0.2, engine=0.4)
FIRST = Walk(entry=1)


def chance_graph(seed: int, nodes: int = 40, edges: int = 70) -> PropertyGraph:
    chance = np.random.default_rng(seed)
    ends = chance.integers(0, nodes, (edges, 2)).tolist()
    types = chance.choice(["a", "b", "similarity"], edges).tolist()
    made = {(f"n{s}", str(t), f"n{o}") for (s, o), t in zip(ends, types, strict=True)}
    bare = chance.random(nodes) < 0.4
    return PropertyGraph.of(
        [Node(f"n{i}", properties={} if bare[i] else {"text": "x"}) for i in range(nodes)],
        [Edge(*e) for e in sorted(made)],
    )


def brute(graph: PropertyGraph, scores: dict[str, float], depth: int, types: set[str]) -> list[str]:
    """The list, found by following every simple path."""
    text = {node.id for node in graph.nodes if has_text(node)}
    plain = nx.Graph([(e.source, e.target) for e in graph.edges if e.type in types and e.source != e.target])
    plain.add_nodes_from(graph.ids)
    hits = sorted(scores, key=lambda id: (-scores[id], id))[:OFF]
    reached = {}
    for id in text - set(hits):
        ways = set()
        by = set()
        for hit in hits:
            for path in nx.all_simple_paths(plain, hit, id, cutoff=depth + 1):
                if not text & set(path[1:-1]):
                    by.add(hit)
                    ways.add(path[-2] if len(path) > 2 else "an edge")
        if by:
            reached[id] = (-len(by), -len(ways), -scores[id], id)
    return hits + sorted(reached, key=reached.__getitem__)


# --- what is reached ---


def test_the_original_retrieval_drops_a_hub_without_text_and_pass_through_goes_on():
    assert traverse(HUB, NEAR, through_hubs=False, walk=FIRST).search("?").ids == ["ada"]
    assert traverse(HUB, NEAR, walk=FIRST).search("?").ids == ["ada", "engine", "byron"]


def test_the_path_shows_the_hub_in_brackets_and_the_way_of_each_arrow():
    paths = traverse(HUB, NEAR, walk=FIRST).search("?").paths
    assert paths == {
        "engine": "ada --[lived in]--> (london) <--[shown in]-- engine",
        "byron": "ada --[lived in]--> (london) <--[born in]-- byron",
    }


def test_depth_is_how_many_bare_hubs_in_a_row_one_may_go_through():
    chain = graph_of(
        "a b c", "h1 h2", ("a", "r", "h1"), ("h1", "r", "b"), ("h1", "r", "h2"), ("h2", "r", "c")
    )
    near = const("e", a=3, b=2, c=1)
    assert traverse(chain, near, walk=FIRST).search("?").ids == ["a", "b"]
    deeper = traverse(chain, near, walk=Walk(entry=1, depth=2)).search("?")
    assert deeper.ids == ["a", "b", "c"] and deeper.paths["c"] == "a --[r]--> (h1) --[r]--> (h2) --[r]--> c"


def test_computed_edges_are_not_walked_unless_told():
    graph = graph_of("a b", "", ("a", "structural_isomorphism", "b"))
    near = const("e", a=2, b=1)
    assert traverse(graph, near, walk=FIRST).search("?").ids == ["a"]
    walk = Walk(entry=1, types=["structural_isomorphism"])
    assert traverse(graph, near, walk=walk).search("?").ids == ["a", "b"]
    assert traverse(graph, near, walk=Walk(entry=1, computed=["similarity"])).search("?").ids == ["a"]


def test_computed_edges_may_be_walked_beside_the_curated_ones():
    graph = graph_of("a b c", "", ("a", "structural_isomorphism", "b"), ("a", "cites", "c"))
    both = traverse(graph, const("e", a=2, b=1, c=1), walk=Walk(entry=1, computed=["structural_isomorphism"]))
    assert both.search("?").ids == ["a", "b", "c"]
    assert repr(both) == "<pass-through(e, with structural_isomorphism, entry=1)>"


def test_a_bare_node_is_never_a_hit():
    expected = ["ada", "byron", "engine"]
    assert traverse(HUB, const("e", london=9, ada=1), walk=FIRST).search("?").ids == expected


# --- in which order ---


def test_more_hits_come_before_more_hubs_and_more_hubs_before_similarity():
    edges = [("h1", "r", x) for x in ("g1", "g2", "g3")] + [
        ("h2", "r", "g4"),
        ("g4", "r", "two_hits"),
        ("g1", "r", "two_hits"),
    ]
    edges += [("g2", "r", "two_hubs"), ("g3", "r", "two_hubs"), ("g2", "r", "similar")]
    graph = graph_of("h1 h2 two_hits two_hubs similar", "g1 g2 g3 g4", *edges)
    near = const("e", h1=9, h2=8, similar=3, two_hubs=2, two_hits=1)
    expected = ["h1", "h2", "two_hits", "two_hubs", "similar"]
    assert traverse(graph, near, walk=Walk(entry=2)).search("?").ids == expected
    alike = traverse(graph, near, walk=Walk(entry=2, convergence=False))
    assert alike.search("?").ids == ["h1", "h2", "similar", "two_hubs", "two_hits"]
    assert repr(alike) == "<pass-through(e, entry=2, by similarity)>"


def test_each_converging_hit_has_its_path():
    graph = graph_of("a b c", "h g", ("a", "r", "h"), ("b", "s", "g"), ("h", "r", "c"), ("g", "r", "c"))
    found = traverse(graph, const("e", a=3, b=2, c=1), walk=Walk(entry=2)).search("?")
    assert found.paths["c"] == "a --[r]--> (h) --[r]--> c; b --[s]--> (g) --[r]--> c"


def test_a_second_stage_may_judge_the_similarity():
    found = traverse(HUB, const("e", ada=1), const("judge", byron=2, engine=1), walk=FIRST).search("?")
    assert found.ids == ["ada", "byron", "engine"]


def test_interleaved_hits_and_finds_take_turns():
    graph = graph_of("a b c d", "", ("a", "r", "c"), ("b", "r", "d"))
    near = const("e", a=4, b=3, c=2, d=1)
    assert traverse(graph, near, walk=Walk(entry=2, interleaved=True)).search("?").ids == ["a", "c", "b", "d"]


def test_the_rest_follows_by_similarity_and_leaves_out_what_is_bare():
    graph = graph_of("a b c d", "h", ("a", "r", "d"))
    found = traverse(graph, const("e", a=4, h=3.5, b=3, c=2, d=1), walk=Walk(entry=1, rest=True)).search("?")
    assert found.ids == ["a", "d", "b", "c"]


def test_scores_fall_with_the_place_so_that_sorting_by_score_keeps_the_order():
    found = traverse(HUB, NEAR, walk=FIRST).search("?")
    assert [hit.score for hit in found.hits] == [1, 1 / 2, 1 / 3]


def test_a_hit_tells_its_similarity_and_its_path():
    similarity, walked = traverse(HUB, NEAR, walk=FIRST).search("?").why("byron")
    assert (similarity.retriever, similarity.score, similarity.rank) == ("embeddings", 0.2, 3)
    expected = ("walk", 2, "ada --[lived in]--> (london) <--[born in]-- byron")
    assert (walked.retriever, walked.rank, walked.path) == expected


def test_the_query_is_put_to_the_entry_stage_once():
    asked = []
    entry = Stage("e", lambda ranking: asked.append(ranking.query.text) or NEAR(ranking))
    traverse(HUB, entry).search("who?")
    assert asked == ["who?"]


@every("seed", range(8))
@every("depth", [0, 1, 2, 3])
def test_the_list_equals_that_of_following_every_path(seed, depth):
    graph = chance_graph(seed)
    chance = np.random.default_rng(seed)
    scores = {node.id: float(chance.integers(0, 9)) for node in graph.nodes if has_text(node)}
    stage = traverse(graph, const("e", **scores), through_hubs=depth > 0, walk=Walk(depth=max(depth, 1)))
    assert stage.search("?").ids == brute(graph, scores, depth, {"a", "b"})


# --- names, ablation, bad input ---


def test_a_traversal_prints_itself():
    assert repr(traverse(HUB, NEAR)) == "<pass-through(embeddings)>"
    assert repr(traverse(HUB, NEAR, through_hubs=False)) == "<neighbours(embeddings)>"
    walk = Walk(entry=3, depth=2, types=["lived in"], interleaved=True)
    expected = "<pass-through(embeddings, lived in, entry=3, depth=2, interleaved)>"
    assert repr(traverse(HUB, NEAR, walk=walk)) == expected


@pytest.mark.parametrize("properties", [{}, {"name": "London"}, {"text": "  "}, {"description": None}])
def test_a_node_with_a_name_alone_is_bare(properties):
    assert not has_text(Node("london", properties=properties))
    assert has_text(Node("london", properties={**properties, "summary": "a city"}))


def test_what_counts_as_described_is_a_choice():
    named = replace(FIRST, described=lambda node: node.id == "london" or has_text(node))
    assert traverse(HUB, NEAR, walk=named).search("?").ids == ["ada", "london"]


def test_hubs_can_lose_their_text_and_nothing_else():
    graph = PropertyGraph.of(
        [Node("a", ("City",), {"text": "x", "name": "A"}), Node("b", (), {"text": "y"})],
        [Edge("a", "r", "b")],
    )
    bare = remove_texts(graph, ["a"])
    assert bare.node("a") == Node("a", ("City",), {"name": "A"})
    assert bare.node("b") == graph.node("b")
    assert bare.edges[0] == graph.edges[0]
    assert graph.node("a").properties == {"text": "x", "name": "A"}
    with pytest.raises(UnknownName, match="'c'"):
        remove_texts(graph, ["c"])


def test_bad_input_is_named():
    with pytest.raises(BadInput, match="graph is empty"):
        traverse(PropertyGraph.of(), NEAR)
    with pytest.raises(BadInput, match="'paris' was found but is no node"):
        traverse(HUB, const("e", paris=1)).search("?")
    with pytest.raises(BadInput, match="1 or more"):
        traverse(HUB, NEAR, walk=Walk(depth=0))
    with pytest.raises(BadInput, match="1 or more"):
        traverse(HUB, NEAR, walk=Walk(entry=0))
    with pytest.raises(UnknownName, match="edge type"):
        traverse(HUB, NEAR, walk=Walk(types=["eats"]))
