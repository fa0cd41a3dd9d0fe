"""Questions about the structure of a graph: centralities as NetworkX has them, and small graphs whose answer
one sees.
"""

import networkx as nx
import numpy as np
import pytest
from support.every import every
from support.method_graphs import edges_of, linked

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.centrality import (
    METRICS,
    articulation_points,
    betweenness,
    critical_components,
    pagerank,
)
from kgot_lab.kgos.methods.overview import (
    find_clusters,
    find_gaps,
    measure_coverage,
    overview,
    pattern_to_code,
    starting_points,
)
from kgot_lab.kgos.methods.selection import (
    find_alternatives,
    list_changes,
    list_related_nodes,
    select_nodes,
)
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Edge, Node

COOKBOOK = cookbook()
CODE = PropertyGraph.of(
    [
        Node("shop", ("module",), {"name": "shop", "file": "shop.py", "description": "A shop."}),
        Node("shop.buy", ("function",), {"name": "buy", "file": "shop.py", "line": 3}),
        Node("tests.test_shop", ("module",), {"name": "test_shop", "file": "tests/test_shop.py"}),
        Node("pattern:strategy", ("design_pattern",), {"name": "strategy", "description": "Ways."}),
        Node("pattern:visitor", ("design_pattern",), {"name": "visitor", "description": "A method each."}),
        Node("slow", ("limitation",), {"name": "slow", "description": "It is slow."}),
        Node("alone", ("concept",), {"name": "alone"}),
    ],
    [
        *edges_of("shop contains shop.buy, tests.test_shop calls shop.buy"),
        Edge("shop.buy", "pattern_instance_of", "pattern:strategy", {"why": "two classes do it"}),
        *edges_of("shop.buy has_limitation slow"),
    ],
)


@every("seed", range(12))
def test_centralities_are_those_of_networkx(seed):
    random = nx.relabel_nodes(nx.gnm_random_graph(40, 30 + 8 * seed, seed=seed, directed=True), str)
    graph = PropertyGraph.from_networkx(random)
    wanted = nx.betweenness_centrality(random)
    assert np.allclose([wanted[id] for id in graph.ids], betweenness(graph))
    wanted = nx.pagerank(random, tol=1e-12, max_iter=500)
    assert np.allclose([wanted[id] for id in graph.ids], pagerank(graph), atol=1e-8)
    both = nx.Graph(random.to_undirected())
    cuts = articulation_points(graph)
    assert {graph.ids[row] for row in cuts} == set(nx.articulation_points(both))
    for row, number in cuts.items():
        rest = both.subgraph(nx.node_connected_component(both, graph.ids[row]) - {graph.ids[row]})
        sizes = sorted(map(len, nx.connected_components(rest)))
        assert number == sum(sizes[:-1])


def test_sampled_betweenness_is_near_the_exact_one():
    exact, sampled = betweenness(COOKBOOK), betweenness(COOKBOOK, 200)
    assert np.corrcoef(exact, sampled)[0, 1] > 0.95


@every("metric", METRICS)
def test_the_first_by_a_measure_have_the_largest(metric):
    found = critical_components(COOKBOOK, metric=metric, top_k=5)
    values = [row[found.COLUMNS.index(metric)] for row in found.rows()]
    assert values == sorted(values, reverse=True) and values[0] > 0 and len(found.ids) == len(values)


def test_only_nodes_of_a_type_are_told_and_a_strange_one_is_refused():
    found = critical_components(COOKBOOK, types=["goal"])
    assert {row[2] for row in found.rows()} == {"goal"}
    with pytest.raises(UnknownName, match="goal"):
        critical_components(COOKBOOK, types=["goals"])
    with pytest.raises(UnknownName, match="pagerank"):
        critical_components(COOKBOOK, metric="page rank")


@every(
    "ask",
    [
        overview,
        starting_points,
        find_clusters,
        find_gaps,
        measure_coverage,
        pattern_to_code,
        critical_components,
    ],
)
def test_a_graph_without_edges_has_an_answer_and_an_empty_one_is_refused(ask):
    assert repr(ask(PropertyGraph.of([Node("a", ("x",), {})])))
    with pytest.raises(BadInput, match="empty"):
        ask(PropertyGraph.of())


def test_gaps_name_what_is_missing():
    found = {(row[0], row[3]) for row in find_gaps(CODE).rows()}
    pattern = ("pattern:visitor", "a pattern that nothing follows")
    assert {("alone", "no edge"), ("slow", "a limitation without a workaround"), pattern} <= found
    assert ("shop.buy", "nothing is known to call it") not in found


def test_coverage_tells_what_tests_run():
    (row,) = [row for row in measure_coverage(CODE).rows() if row[0] == "function"]
    assert row == ("function", 1, 0.0, 0.0, 1.0, 1.0)


def test_a_pattern_leads_to_its_code_and_a_strange_one_is_refused():
    (row,) = pattern_to_code(CODE).rows()
    assert row == ("pattern:strategy", "strategy", "shop.buy", "function", "shop.py:3", "two classes do it")
    assert pattern_to_code(CODE, "Strategy", source_file="other.py").rows() == ()
    with pytest.raises(UnknownName, match="strategy"):
        pattern_to_code(CODE, "singleton")


def test_nodes_are_selected_by_all_that_is_asked():
    for filters, ids in (
        ({"types": ["function"], "edge_types": ["calls"], "min_edges": 4}, ["shop.buy"]),
        ({"properties": {"name": "BUY"}}, ["shop.buy"]),
        ({"has_property": ["line"]}, ["shop.buy"]),
        ({"max_edges": 0}, ["pattern:visitor", "alone"]),
    ):
        assert select_nodes(CODE, **filters).ids == ids
    assert select_nodes(CODE, sample=3, seed=2).ids == select_nodes(CODE, sample=3, seed=2).ids
    for wrong in ({"types": ["klass"]}, {"edge_types": ["call"]}, {"has_property": ["lines"]}):
        with pytest.raises(UnknownName):
            select_nodes(CODE, **wrong)
    with pytest.raises(BadInput, match="max_edges"):
        select_nodes(CODE, min_edges=3, max_edges=1)


def test_related_nodes_say_over_which_edge():
    row = ("slow", "slow", "limitation", "-has_limitation->", "")
    assert row in list_related_nodes(CODE, "shop.buy").rows()
    assert ("shop", "shop", "module", "<-contains-", "") in list_related_nodes(CODE, "shop.buy").rows()


def test_an_alternative_is_what_an_edge_says_or_what_does_the_same():
    tools = (Node(id, ("tool",)) for id in "abc")
    graph = linked("a alternative_to c, a enables g, b enables g", *tools, Node("g", ("goal",)))
    found = [(row[0], row[4]) for row in find_alternatives(graph, "a").rows()]
    assert found == [("c", "alternative_to"), ("b", "the same edges")]


def test_what_changed_is_told_both_ways():
    later = PropertyGraph.of([*list(CODE.nodes)[:-1], Node("new", ("concept",), {})], list(CODE.edges)[1:])
    found = {(row[0], row[2]) for row in list_changes(later, CODE).rows()}
    assert found == {("added", "new"), ("removed", "alone"), ("removed", "shop -contains-> shop.buy")}
    assert list_changes(CODE, CODE).rows() == ()
