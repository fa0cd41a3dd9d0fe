"""The graph that every analysis reads, compared with NetworkX and scipy on random graphs."""

import random
from dataclasses import FrozenInstanceError, replace

import networkx as nx
import numpy as np
import pytest
from support.every import every

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import as_graph
from kgot_lab.types import Diff, Edge, Node, Triple

ADA = Node("ada", ("Person",), {"name": "Ada Lovelace", "born": 1815})
LONDON = Node("london", ("City", "Capital"), {"label": "a property called label", "label_": "and one more"})
BORN_IN = Edge("ada", "born_in", "london", {"relation": "a property called relation"})
TWICE = (
    Edge("ada", "visited", "london", {"year": 1833}, "1"),
    Edge("ada", "visited", "london", {"year": 1843}, "2"),
)
SMALL = PropertyGraph.of([ADA, LONDON, Node("bare")], [BORN_IN, *TWICE, Edge("london", "part_of", "london")])

NAMES = ["label", "labels", "relation", "id", "type", "key", "source", "text", "x", "y"]
VALUES = ["", "text", "ü\u2028", 0, 1, 1.0, True, None, 2.5, [1, "a"], {"deep": [1]}]


def random_graph(seed: int, size: int = 12, edges: int = 40) -> PropertyGraph:
    """A small graph with loops, parallel edges, odd property names and every kind of JSON value."""
    chance = random.Random(seed)
    properties = lambda: {name: chance.choice(VALUES) for name in chance.sample(NAMES, chance.randrange(4))}  # noqa: E731
    ids = [f"n{i}" for i in range(size)]
    nodes = [Node(id, tuple(chance.sample("ABC", chance.randrange(4))), properties()) for id in ids]
    made: dict[tuple[str, ...], Edge] = {}
    for _ in range(edges):
        source, type, target = chance.choice(ids), chance.choice("pqr"), chance.choice(ids)
        edge = Edge(source, type, target, properties(), chance.choice(["", "1", "k"]))
        made[edge.identity] = edge
    return PropertyGraph.of(nodes, made.values())


RANDOM = [random_graph(seed) for seed in range(8)]
GRAPHS = [SMALL, PropertyGraph.of(), *RANDOM]


# --- building ---


def test_nodes_and_edges_come_back_as_they_were_given():
    assert list(SMALL.nodes) == [ADA, LONDON, Node("bare")]
    assert list(SMALL.edges) == [BORN_IN, *TWICE, Edge("london", "part_of", "london")]
    assert SMALL.edges[-1].type == "part_of"
    assert SMALL.nodes[1:] == (LONDON, Node("bare"))
    assert SMALL.node("ada") == ADA
    with pytest.raises(IndexError):
        SMALL.nodes[3]


def test_an_edge_to_nowhere_is_refused_unless_a_bare_node_may_be_added():
    with pytest.raises(BadInput, match=r"no node 'b'.*dangling='add'"):
        PropertyGraph.of([Node("a")], [Edge("a", "likes", "b")])
    graph = PropertyGraph.of([Node("a")], [Edge("a", "likes", "b")], dangling="add")
    assert list(graph.nodes) == [Node("a"), Node("b")]


def test_the_same_node_or_edge_twice_counts_once_and_a_different_one_is_refused():
    graph = PropertyGraph.of([ADA, ADA, LONDON], [BORN_IN, BORN_IN])
    assert graph == PropertyGraph.of([ADA, LONDON], [BORN_IN])
    with pytest.raises(BadInput, match="two different nodes"):
        PropertyGraph.of([ADA, Node("ada")])
    with pytest.raises(BadInput, match="two different edges"):
        PropertyGraph.of([ADA, LONDON], [BORN_IN, replace(BORN_IN, properties={"sure": False})])


def test_triples_go_in_and_come_out():
    triples = (Triple("Ada", "born in", "London"), Triple("London", "in", "England"))
    assert PropertyGraph.from_triples([*triples, triples[0]]).to_triples() == triples


def test_nothing_a_caller_holds_can_change_the_graph():
    properties = {"a": 1}
    graph = PropertyGraph.of([Node("n", (), properties), Node("bare")], [Edge("n", "to", "bare")])
    properties["a"] = 2
    graph.node("n").properties["a"] = 3
    graph.node("bare").properties["a"] = 3
    graph.edges[0].properties["a"] = 3
    graph.subgraph(["n"]).node("n").properties["a"] = 3
    assert graph.node("n").properties == {"a": 1}
    assert graph.node("bare").properties == {}
    assert graph.edges[0].properties == {}
    with pytest.raises(FrozenInstanceError):
        graph.ids = ()
    for column in (graph.sources, graph.targets, graph.type_codes, *graph.out_csr, *graph.in_csr):
        with pytest.raises(ValueError, match="read-only"):
            column[:] = 0


# --- looking ---


def test_an_unknown_node_is_named_together_with_near_ones():
    with pytest.raises(UnknownName, match="did you mean 'london'"):
        SMALL.node("londn")
    big = PropertyGraph.of(Node(f"node {i}") for i in range(5000))
    with pytest.raises(UnknownName) as error:
        big.neighbours("x")
    assert len(str(error.value)) < 500
    assert "ada" in SMALL and "eve" not in SMALL


def test_labels_and_types_are_counted_most_used_first():
    assert list(SMALL.types().items()) == [("visited", 2), ("born_in", 1), ("part_of", 1)]
    assert SMALL.labels() == {"Capital": 1, "City": 1, "Person": 1}
    assert SMALL.texts == ("Ada Lovelace", "london", "bare")
    assert SMALL.subgraph(["bare"]).types() == {}


@every("graph", RANDOM, ids=str)
def test_neighbours_and_degrees_are_those_of_networkx(graph):
    theirs = graph.to_networkx()
    for id in graph.ids:
        out = sorted(edge.target for edge in graph.neighbours(id))
        into = sorted(edge.source for edge in graph.neighbours(id, "in"))
        assert out == sorted(target for _, target in theirs.out_edges(id))
        assert into == sorted(source for source, _ in theirs.in_edges(id))
        assert (graph.degree(id), graph.degree(id, "out"), graph.degree(id, "in")) == (
            theirs.degree(id), theirs.out_degree(id), theirs.in_degree(id),
        )  # fmt: skip
        both = {edge for edge in graph.edges if id in (edge.source, edge.target)}
        assert set(graph.neighbours(id, "both")) == both and len(graph.neighbours(id, "both")) == len(both)
        assert set(graph.neighbours(id, "both", types=["p", "q"])) == {e for e in both if e.type in "pq"}


@every("graph", GRAPHS, ids=str)
def test_sparse_rows_are_those_of_scipy(graph):
    csr_array = pytest.importorskip("scipy.sparse").csr_array
    size = (len(graph), len(graph))
    dense = np.zeros(size)
    np.add.at(dense, (graph.sources, graph.targets), 1)
    for (indptr, indices, edges), wanted in ((graph.out_csr, dense), (graph.in_csr, dense.T)):
        if len(graph):
            assert (csr_array((np.ones(len(indices)), indices, indptr), shape=size).toarray() == wanted).all()
        assert sorted(edges.tolist()) == list(range(len(graph.edges)))
    assert (graph.targets[graph.out_csr.edges] == graph.out_csr.indices).all()
    assert (graph.sources[graph.in_csr.edges] == graph.in_csr.indices).all()
    assert graph.out_csr.indices.dtype == graph.sources.dtype == np.int32


# --- smaller graphs ---


@every("graph", RANDOM, ids=str)
def test_subgraphs_and_neighbourhoods_are_those_of_networkx(graph):
    theirs = graph.to_networkx()
    some = ["n3", "n1", "n7"]
    assert graph.subgraph(some) == PropertyGraph.from_networkx(theirs.subgraph(some))
    assert graph.subgraph(some).ids == ("n1", "n3", "n7")
    for hops in range(4):
        near = set(nx.ego_graph(theirs.to_undirected(), "n0", radius=hops)) | set(
            nx.ego_graph(theirs.to_undirected(), "n1", radius=hops)
        )
        assert set(graph.neighbourhood(["n0", "n1"], hops).ids) == near
    with pytest.raises(UnknownName):
        graph.subgraph(["nobody"])


# --- differences ---


@every("seed", range(7))
def test_applying_a_difference_gives_the_other_graph(seed):
    one, other = RANDOM[seed], RANDOM[seed + 1]
    assert one.apply(one.diff(other)) == other
    assert other.apply(other.diff(one)) == one
    assert not one.diff(one) and one.diff(other)


def test_a_difference_says_exactly_what_changed():
    older = replace(ADA, properties={"name": "Ada Lovelace", "born": 1815.0})
    before = PropertyGraph.of([ADA, LONDON], [BORN_IN])
    after = PropertyGraph.of([older, Node("paris")], [])
    assert before.diff(after) == Diff((Node("paris"),), (LONDON,), ((ADA, older),), (), (BORN_IN,), ())


def test_values_that_python_calls_equal_still_differ():
    values = [1, 1.0, True, None, "1", [1], [1.0]]
    graphs = [PropertyGraph.of([Node("n", (), {"x": value})]) for value in values]
    assert all((a == b) == (i == j) for i, a in enumerate(graphs) for j, b in enumerate(graphs))
    one = PropertyGraph.of([Node("n", (), {"x": None, "y": (1, 2)})])
    other = PropertyGraph.of([Node("n", (), {"y": [1, 2], "x": None})])
    assert one == other and hash(one) == hash(other)


@every(
    "diff",
    [
        Diff(added_nodes=(ADA,)),
        Diff(added_edges=(BORN_IN,)),
        Diff(added_edges=(Edge("ada", "likes", "nobody"),)),
        Diff(removed_nodes=(LONDON,)),  # its edges would dangle
        Diff(removed_nodes=(Node("eve"),)),
        Diff(removed_nodes=(Node("bare", ("Thing",)),)),
        Diff(removed_edges=(replace(BORN_IN, properties={}),)),
        Diff(changed_nodes=((Node("ada"), ADA),)),
        Diff(changed_nodes=((ADA, Node("eva")),)),
    ],
    ids=str,
)
def test_a_difference_that_does_not_fit_is_refused(diff):
    with pytest.raises(BadInput):
        SMALL.apply(diff)


# --- NetworkX and pandas ---


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


@every("graph", GRAPHS, ids=str)
def test_networkx_gives_the_same_graph_back(graph):
    again = PropertyGraph.from_networkx(graph.to_networkx())
    assert again == graph and again.ids == graph.ids


def test_networkx_sees_label_relation_and_key():
    theirs = SMALL.to_networkx()
    assert theirs.nodes["ada"] == {"label": "Person", "name": "Ada Lovelace", "born": 1815}
    assert theirs.nodes["london"]["label"] == "City"
    assert theirs.nodes["london"]["labels"] == ["City", "Capital"]
    assert theirs.edges["ada", "london", "visited#2"] == {"relation": "visited", "year": 1843}
    assert "label" not in theirs.nodes["bare"]


def test_any_networkx_graph_can_be_read():
    theirs = nx.DiGraph()
    theirs.add_node(1, label="Country", labels=None, capital="Hanoi")
    theirs.add_edge(1, 2, relationship="contains", label="kept", weight=2)
    theirs.add_edge(2, 3)
    graph = PropertyGraph.from_networkx(theirs)
    assert list(graph.nodes) == [Node("1", ("Country",), {"capital": "Hanoi"}), Node("2"), Node("3")]
    contains = Edge("1", "contains", "2", {"label": "kept", "weight": 2})
    assert list(graph.edges) == [contains, Edge("2", "related_to", "3")]
    triples = (Triple("0", "related_to", "1"), Triple("1", "related_to", "2"))
    assert PropertyGraph.from_networkx(nx.path_graph(3)).to_triples() == triples


def test_parallel_networkx_edges_keep_apart_and_get_keys_only_where_needed():
    theirs = nx.MultiDiGraph()
    for relation in ("edited", "reviewed", "edited", "edited"):
        theirs.add_edge("ann", "book", relation=relation)
    theirs.add_edge("ann", "book", key="edited", relation="edited")
    theirs.add_edge("ann", "book", key="3", relation="edited", late=True)
    theirs.add_edge("ann", "book", key="owns")
    identities = [(edge.type, edge.key) for edge in PropertyGraph.from_networkx(theirs).edges]
    assert len(set(identities)) == 7
    assert identities[:3] == [("edited", ""), ("reviewed", ""), ("edited", "2")]
    assert identities[-1] == ("owns", "")


def test_networkx_ids_with_one_text_are_refused():
    with pytest.raises(BadInput, match="same text"):
        PropertyGraph.from_networkx(nx.Graph([(1, "1")]))


def test_networkx_edges_that_would_share_a_key_are_refused():
    with pytest.raises(BadInput, match="a#b"):
        PropertyGraph.of([Node("n")], [Edge("n", "a", "n", {}, "b"), Edge("n", "a#b", "n")]).to_networkx()


@every("graph", GRAPHS, ids=str)
def test_pandas_gives_the_same_graph_back(pd, graph):
    again = PropertyGraph.from_pandas(*graph.to_pandas())
    assert again == graph and again.ids == graph.ids


def test_a_plain_data_frame_can_be_read(pd):
    nodes = pd.DataFrame({"id": [1, 2], "label": ["Person", None], "age": [36, float("nan")]})
    edges = pd.DataFrame({"source": [1], "target": [2], "relation": ["knows"], "since": [1833]})
    graph = PropertyGraph.from_pandas(nodes, edges)
    assert list(graph.nodes) == [Node("1", ("Person",), {"age": 36.0}), Node("2")]
    assert list(graph.edges) == [Edge("1", "knows", "2", {"since": 1833})]
    assert type(graph.edges[0].properties["since"]) is int


def test_a_whole_number_is_the_same_id_in_a_column_with_a_gap_that_pandas_made_floats(pd):
    table = pd.DataFrame({"from": [1.0, 2.5], "to": [2**53 + 1, 3]})
    triples = (Triple("1", "related_to", str(2**53 + 1)), Triple("2.5", "related_to", "3"))
    assert as_graph(table).to_triples() == triples
    edges = pd.DataFrame({"source": [1, 2, 3], "target": [2.0, 3.0, 1.0]})
    assert PropertyGraph.from_pandas(pd.DataFrame({"id": [1, 2, 3]}), edges).degree("2") == 2


def test_two_columns_of_one_name_are_refused(pd):
    nodes = pd.DataFrame({"id": ["a", "b"]})
    twice = pd.DataFrame([["a", "b", "b"]], columns=["source", "target", "target"])
    for read in (as_graph, lambda edges: PropertyGraph.from_pandas(nodes, edges)):
        reason = "two columns of the data frame of edges are called 'target'; rename or drop one"
        with pytest.raises(BadInput, match=reason):
            read(twice)


def test_a_data_frame_without_ids_is_refused(pd):
    with pytest.raises(BadInput, match="no column id; it has name"):
        PropertyGraph.from_pandas(pd.DataFrame({"name": ["Ada"]}), pd.DataFrame({"source": [], "target": []}))
    with pytest.raises(BadInput, match="has no id"):
        PropertyGraph.from_pandas(pd.DataFrame({"id": [None]}), pd.DataFrame({"source": [], "target": []}))


def test_a_graph_prints_its_counts_what_is_used_most_and_its_first_facts():
    printed = repr(SMALL).splitlines()
    assert printed[1].startswith("  labels: ")
    assert printed[2].startswith("  relations: ")
    assert "part_of 1" in printed[2]
    assert printed[3:] == [f"  {edge.source} --[{edge.type}]--> {edge.target}" for edge in SMALL.edges]
    many = PropertyGraph.from_triples(Triple("hub", f"to {n}", f"leaf {n}") for n in range(1200))
    assert repr(many).splitlines()[-1] == "  … and 1,195 more"
    assert "… and 1,195 more" in repr(many).splitlines()[1]
    assert len(repr(PropertyGraph.of())) < 80


def test_no_text_of_a_graph_begins_a_line_or_commands_a_terminal_when_it_is_printed():
    evil = "a\nb\x1b[2J\u202e" * 60
    printed = repr(PropertyGraph.of([Node(evil, (evil,))], [Edge(evil, evil, evil)]))
    assert printed.count("\n") == 3
    assert all(line.isprintable() for line in printed.split("\n"))
    assert len(printed) < 600


# --- the gate ---


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Node(5), "'id' is a text"),
        (lambda: Node(True), "'id' is a text"),
        (lambda: Node("a", "Person"), "'labels' is a list"),  # not taken letter by letter
        (lambda: Node("a", (1,)), "'labels' is a list"),
        (lambda: Node("a", ("P", "Q", "P")), "has a label twice"),
        (lambda: Node("a", (), [("k", 1)]), "'properties' is a dictionary"),
        (lambda: Edge("a", None, "b"), "'type' is a text"),
        (lambda: Edge("a", "r", "b", None), "'properties' is a dictionary"),
        (lambda: Edge("a", "r", "b", {}, None), "'key' is a text"),
    ],
)
def test_a_node_or_edge_with_a_part_of_another_type_is_refused_when_it_is_made(make, what):
    with pytest.raises(BadInput, match=what):
        make()


def test_a_caller_who_changes_what_was_given_or_got_changes_no_graph():
    inside = {"list": [1, {"deep": [2]}]}
    graph = PropertyGraph.of([Node("a", (), inside)], [Edge("a", "r", "a", inside)])
    digest = graph.digest
    inside["list"][1]["deep"].append(3)
    inside["more"] = 1
    for element in (graph.node("a"), *graph.edges, *graph.neighbours("a")):
        element.properties["list"][1]["deep"].append(4)
        element.properties["more"] = 1
    assert PropertyGraph.of(graph.nodes, graph.edges).digest == digest
    assert graph.node("a").properties == {"list": [1, {"deep": [2]}]}


def test_an_unknown_direction_is_refused():
    with pytest.raises(UnknownName, match="direction"):
        SMALL.neighbours("ada", "sideways")


def test_graphs_are_equal_whatever_the_order_and_unequal_to_anything_else():
    backwards = PropertyGraph.of(reversed(SMALL.nodes), reversed(SMALL.edges))
    assert backwards == SMALL and hash(backwards) == hash(SMALL) and backwards.ids != SMALL.ids
    assert SMALL != 1 and SMALL.subgraph(["ada", "london"]) != SMALL


def test_a_label_set_by_code_replaces_the_first_of_several():
    theirs = SMALL.to_networkx()
    theirs.nodes["london"]["label"] = "Metropolis"
    assert PropertyGraph.from_networkx(theirs).node("london").labels == ("Metropolis", "Capital")
