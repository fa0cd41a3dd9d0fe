"""Paths, impact, exploration, boosts and similarity have the same answers as plain NetworkX on graphs by
chance.
"""

from collections import defaultdict
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from support.every import every
from support.method_graphs import TYPES, as_networkx, chance_graph, linked

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.impact_analysis import SOURCE_DEPENDS, TARGET_DEPENDS, impact_analysis
from kgot_lab.kgos.methods.ranking import edge_type_boost, similar_to
from kgot_lab.kgos.methods.traversal import explore_smart, trace_path
from kgot_lab.types import Edge, Node

SEEDS = range(12)
SIZES = [(30, 70), (60, 60), (12, 200)]  # ordinary, sparse with many components, dense
CASES = [(seed, *size) for seed in SEEDS for size in SIZES]


# --- trace_path


@every(("seed", "nodes", "edges"), CASES)
@every("directed", [False, True])
def test_a_path_is_as_long_as_networkx_says_and_every_step_is_an_edge(seed, nodes, edges, directed):
    graph = chance_graph(seed, nodes, edges)
    plain = as_networkx(graph) if directed else as_networkx(graph).to_undirected()
    last_edges = {edge.identity for edge in graph.edges}
    for a, b in np.random.default_rng(seed).choice(graph.ids, (15, 2)).tolist():
        path = trace_path(graph, a, b, max_depth=4, directed=directed)
        length = nx.shortest_path_length(plain, a, b) if nx.has_path(plain, a, b) else 99
        assert path.found == (length <= 4), (a, b, length, path)
        if path.found:
            assert path.length == length and path.ids[0] == a and path.ids[-1] == b
            for (one, other), step in zip(pairwise(path.ids), path.steps, strict=True):
                ends = (one, other) if step.direction == "forward" else (other, one)
                assert (step.edge.source, step.edge.target) == ends and step.edge.identity in last_edges
                assert step.direction == "forward" or not directed


@every("seed", SEEDS)
def test_a_path_over_some_types_takes_no_other_edge(seed):
    graph = chance_graph(seed)
    kept = [(u, v) for u, v, type in as_networkx(graph).edges(data="type") if type in TYPES[:2]]
    plain = nx.Graph([*kept, *((id, id) for id in graph.ids)])
    for a, b in np.random.default_rng(seed).choice(graph.ids, (15, 2)).tolist():
        path = trace_path(graph, a, b, max_depth=9, types=TYPES[:2])
        assert path.found == nx.has_path(plain, a, b)
        assert {step.edge.type for step in path.steps} <= set(TYPES[:2])


def test_of_parallel_edges_a_path_names_one_that_goes_forward_and_a_loop_is_no_step():
    graph = linked("b old a, a new b, a newer b, a old a")
    for types, edges in ((None, [("new", "forward")]), (["old"], [("old", "backward")])):
        steps = trace_path(graph, "a", "b", types=types).steps
        assert [(step.edge.type, step.direction) for step in steps] == edges
    path = trace_path(graph, "a", "a")
    assert path.found and path.length == 0 and path.ids == ["a"]


def test_where_there_is_no_path_it_is_said_whether_the_depth_is_why():
    chain = linked(", ".join(f"n{i} leads_to n{i + 1}" for i in range(9)) + ", x leads_to y")
    assert "no path within max_depth=3" in trace_path(chain, "n0", "n9", max_depth=3).why[0]
    assert "join x with 1 other node only" in trace_path(chain, "n0", "x", max_depth=9).why[0]
    assert "in the direction of the arrows" in trace_path(chain, "n9", "n0", directed=True).why[0]


# --- impact_analysis


def plain_impact(graph, root, direction, depth, follow):
    """Levels, risks, and the best product of risks that ends at a leaf, without arrays."""
    steps = defaultdict(list)
    for u, v, data in as_networkx(graph).edges(data=True):
        along = follow == "arrows" or data["type"] in TARGET_DEPENDS
        against = follow == "dependants" and data["type"] in SOURCE_DEPENDS
        for source, target, forward in ((u, v, along), (v, u, against)):
            if (along or against) and direction in ("both", "forward" if forward else "backward"):
                steps[source].append((target, data["weight"], data["type"]))
    undirected = nx.Graph([(u, v) for u, v in as_networkx(graph).edges()])
    undirected.add_nodes_from(graph.ids)
    centrality = nx.degree_centrality(undirected)
    depths, products, risks, types = {root: 0}, {root: 1.0}, {}, set()
    level = [root]
    for d in range(1, depth + 1):
        found = defaultdict(list)
        for parent in level:
            for child, weight, type in steps[parent]:
                if child not in depths:
                    found[child].append((parent, weight))
                    types.add(type)
        for child, ways in found.items():
            depths[child] = d
            risks[child] = centrality[child] / d * max(weight for _, weight in ways)
            products[child] = max(products[p] * centrality[child] * weight / d for p, weight in ways)
        level = list(found)
    return {id: d for id, d in depths.items() if d}, risks, tuple(sorted(types)), products


@pytest.mark.extended
@every(("seed", "nodes", "edges"), CASES)
@every("direction", ["forward", "backward", "both"])
@every("follow", ["arrows", "dependants"])
def test_an_impact_has_the_levels_risks_and_riskiest_chain_of_a_walk(seed, nodes, edges, direction, follow):
    graph = chance_graph(seed, nodes, edges, weights=True)
    root = f"n{seed}"
    depths, risks, types, products = plain_impact(graph, root, direction, 3, follow)
    found = impact_analysis(graph, root, direction=direction, follow=follow)
    assert {node.id: node.depth for node in found.nodes} == depths
    assert {node.id: node.risk for node in found.nodes} == pytest.approx(risks)
    assert all(node.distance_risk == 1 / node.depth for node in found.nodes)
    assert found.edge_types == types and found.total_impacted == len(depths)
    after = nx.DiGraph([(node.parent, node.id) for node in found.nodes])
    for here, following in pairwise(found.critical_path):
        onward = [id for id in after[here] if after[id]] or list(after[here])
        assert following == min(onward, key=lambda id: (-round(risks[id], 12), id))
    if depths:
        assert found.critical_path[0] == root and not after[found.critical_path[-1]]
        assert found.critical_risk == pytest.approx(products[found.critical_path[-1]])


def test_the_documents_example_has_the_risks_by_distance_and_a_chain_that_ends_where_nothing_follows():
    graph = linked(
        "authentication_module feeds_into api_router, authentication_module feeds_into session_handler, "
        "api_router feeds_into user_endpoint, session_handler feeds_into admin_endpoint, "
        "admin_endpoint feeds_into frontend_auth"
    )
    found = impact_analysis(graph, "authentication_module", direction="forward")
    levels = {depth: [node.distance_risk for node in nodes] for depth, nodes in found.risk_by_depth.items()}
    assert levels == {1: [1.0, 1.0], 2: [0.5, 0.5], 3: [pytest.approx(1 / 3)]}
    assert found.critical_path == ("authentication_module", "api_router", "user_endpoint")


def test_a_short_dead_end_is_no_critical_path():
    graph = linked("auth feeds_into router, auth feeds_into session, router feeds_into endpoint")
    assert impact_analysis(graph, "auth", direction="forward").critical_path == ("auth", "router", "endpoint")


def test_what_requires_a_node_depends_on_it_though_the_arrow_points_the_other_way():
    graph = linked("app requires library, library enables speed, app relates_to other")
    ids = lambda **asked: {node.id for node in impact_analysis(graph, "library", **asked).nodes}  # noqa: E731
    assert ids(direction="forward") == {"speed"}
    assert ids(direction="forward", follow="dependants") == {"app", "speed"}
    assert ids(direction="backward", follow="dependants") == set()


@every("weight", [0, -1, "heavy", True])
def test_a_weight_that_is_not_above_0_is_named_with_its_edge(weight):
    graph = PropertyGraph.of([Node("a"), Node("b")], [Edge("a", "requires", "b", {"weight": weight})])
    with pytest.raises(BadInput, match=r"'a' --\[requires\]--> 'b' is .*above 0.*weight=None"):
        impact_analysis(graph, "a")
    assert impact_analysis(graph, "a", weight=None).total_impacted == 1


# --- explore_smart


@every(("seed", "nodes", "edges"), CASES)
def test_an_exploration_has_the_levels_importance_and_hubs_of_the_plain_walk(seed, nodes, edges):
    graph = chance_graph(seed, nodes, edges)
    plain = as_networkx(graph)
    simple = nx.Graph(plain)
    root = f"n{seed}"
    central = nx.degree_centrality(simple)
    both = {id: [*plain.in_edges(id, data="type"), *plain.out_edges(id, data="type")] for id in graph.ids}
    of_node = {id: {type for *_, type in edges} for id, edges in both.items()}
    importance = {id: 0.6 * central[id] + 0.4 * len(of_node[id]) / len(graph.types()) for id in graph.ids}
    distance = nx.single_source_shortest_path_length(simple, root, cutoff=2)
    found = explore_smart(graph, root)
    for depth, level in enumerate(found.levels):
        ids = [id for id, d in distance.items() if d == depth]
        expected = sorted((round(importance[id], 9) for id in ids), reverse=True)
        assert [round(node.importance, 9) for node in level] == expected
        assert {node.id for node in level} == set(ids)
        mean = sum(simple.degree(id) for id in ids) / len(ids)
        for node in level if depth else ():
            assert node.degree == simple.degree(node.id) and node.is_hub == (node.degree > 2 * mean)
            parents = [id for id in simple[node.id] if distance.get(id) == depth - 1]
            assert importance[node.parent] == pytest.approx(max(importance[id] for id in parents))
            between = [*plain.edges(parents, data="type"), *plain.edges([node.id], data="type")]
            types = {t for u, v, t in between if {u, v} & {node.id} and {u, v} & set(parents)}
            assert node.edge_types == tuple(sorted(types))
    assert sum(map(len, found.levels)) == len(distance)


def test_twice_the_mean_of_its_level_is_no_hub_and_more_than_that_is():
    ends = {"a": 3, "b": 0, "c": 0}  # neighbours besides the start: 4, 1 and 1, whose mean is 2
    text = ", ".join(f"start has {name}" for name in ends)
    text += "".join(f", {name} has {name}{i}" for name, count in ends.items() for i in range(count))
    assert not explore_smart(linked(text), "start", depth=1).hubs
    (hub,) = explore_smart(linked(f"{text}, a has a9"), "start", depth=1).hubs
    assert hub.id == "a"


def test_of_equally_important_nodes_the_first_by_id_comes_first():
    found = explore_smart(linked("hub has c, hub has a, hub has b"), "hub")
    assert [node.id for node in found.levels[1]] == ["a", "b", "c"]


# --- edge_type_boost


@every(("seed", "nodes", "edges"), CASES)
@every("types", [None, TYPES[:1], TYPES[1:3]])
def test_boosts_are_those_of_counting_edges(seed, nodes, edges, types):
    graph = chance_graph(seed, nodes, edges)
    seeds = [f"n{i}" for i in range(5)]
    counted = defaultdict(float)
    for u, v, type in as_networkx(graph).edges(data="type"):
        if types is None or type in types:
            counted[v] += 0.5 * (u in seeds)
            counted[u] += 0.3 * (v in seeds)
    most = max(counted.values(), default=0)
    expected = {id: value / most for id, value in counted.items() if value}
    assert edge_type_boost(graph, seeds, types).scores == pytest.approx(expected)


def test_types_may_count_unlike_and_a_weight_of_0_is_refused():
    graph = linked("a enables b, a relates_to c, a likes d")
    assert edge_type_boost(graph, ["a"], {"enables": 1, "relates_to": 0.5}).scores == {"b": 1.0, "c": 0.5}
    for weight in (0, -1, "much"):
        with pytest.raises(BadInput, match="weight of enables must be a number, more than 0"):
            edge_type_boost(graph, ["a"], {"enables": weight})


def test_types_that_no_edge_has_are_refused_and_some_of_them_said():
    graph = linked("a enables b, b requires c")
    asks = [lambda types: trace_path(graph, "a", "c", types=types)]
    asks.append(lambda types: edge_type_boost(graph, ["a"], types))
    for ask in asks:
        with pytest.raises(UnknownName, match="did you mean 'enables'"):
            ask(["enable"])
        assert "no edge of the graph has the type likes" in ask(["enables", "likes"]).why
    assert trace_path(graph, "a", "b", types=["enables", "likes"]).found


def test_an_impact_by_a_weight_that_no_edge_has_is_refused_unless_it_is_the_usual_one():
    graph = PropertyGraph.of([Node("a"), Node("b")], [Edge("a", "enables", "b", {"strength": 0.5})])
    usual, strong = (impact_analysis(graph, "a", weight=name).nodes[0] for name in ("weight", "strength"))
    assert usual.risk == 2 * strong.risk
    with pytest.raises(UnknownName, match="did you mean 'strength'"):
        impact_analysis(graph, "a", weight="strengh")
    with pytest.raises(BadInput, match="'weight' is a text or None"):
        impact_analysis(graph, "a", weight=5)  # type: ignore[arg-type]


# --- similar_to


@every(("seed", "nodes", "edges"), CASES)
def test_similarity_is_that_of_sets(seed, nodes, edges):
    graph = chance_graph(seed, nodes, edges)
    simple = nx.Graph(as_networkx(graph))
    target = f"n{seed}"
    words = {node.id: set(node.properties["name"].split()) for node in graph.nodes}
    labels = {node.id: set(node.labels) for node in graph.nodes}
    expected = {}
    for id in graph.ids:
        mine, theirs = set(simple[target]) - {id}, set(simple[id]) - {target}
        jaccard = len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0
        name = len(words[id] & words[target]) / len(words[id] | words[target])
        if id != target and (score := 0.7 * jaccard + 0.2 * bool(labels[id] & labels[target]) + 0.1 * name):
            expected[id] = score
    found = similar_to(graph, target, k=1000)
    assert {node.id: node.score for node in found.nodes} == pytest.approx(expected)
    scores = [(-round(node.score, 12), node.id) for node in found.nodes]
    assert [score for score, _ in scores] == sorted(score for score, _ in scores)


def test_a_node_alone_is_like_others_by_type_and_name_only():
    graph = PropertyGraph.of(
        [Node("a", ("tool",), {"name": "disk cache"}), Node("b", ("tool",), {"name": "web cache"}), Node("c")]
    )
    (only,) = similar_to(graph, "a").nodes
    assert (only.id, only.jaccard, only.score) == ("b", 0.0, pytest.approx(0.2 + 0.1 / 3))
    assert "no other node shares" in similar_to(graph, "c").why[-1]
