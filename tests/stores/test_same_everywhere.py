"""What one store makes of a graph or of a statement, every other store makes of it, too."""

from __future__ import annotations

import pytest
from support.store_kinds import CYPHER, KINDS, opened, write

from kgot_lab.errors import QueryFailed
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Diff, Edge, Node

names = ("label", "labels", "relation", "label_", "relation__", "type", "key", "id", "_key", "source")
TAKEN = {name: f"a value of {name}" for name in names}
ADA, LONDON = Node("Ada", ("Person",), {**TAKEN}), Node("London", ("City", "Big"), {**TAKEN})
BORN = Edge("Ada", "born in", "London", {**TAKEN})
ALIKE = (  # two of these must never be taken for one edge
    *(
        Edge("Ada", "k", "London", {"n": 1}, "1"),
        Edge("Ada", "k#1", "London", {"n": 2}),
        Edge("Ada", "k%231", "London", {"n": 3}),
    ),
    *(
        Edge("Ada", "k#", "London", {"n": 4}, "1"),
        Edge("Ada", "k", "London", {"n": 5}, "#1"),
        Edge("Ada", "k##1", "London", {"n": 6}),
    ),
    *(
        Edge("Ada", "k%25231", "London", {"n": 7}),
        Edge("Ada", "k", "London", {"n": 8}),
        Edge("Ada", "k#", "London", {"n": 9}),
    ),
)


def same(store, *parts):
    nodes = tuple(part for part in parts if isinstance(part, Node))
    edges = [part for part in parts if isinstance(part, Edge)]
    difference = PropertyGraph.of(nodes, edges).diff(store.graph())
    assert not difference, difference
    return True


@pytest.fixture
def store(kind, tmp_path, request):
    with opened(kind.open(tmp_path, request)) as store:
        yield store


def test_a_property_of_any_name_outlasts_the_next_writes(store, kind):
    store.apply(Diff(added_nodes=(ADA, LONDON, Node("Charles")), added_edges=(BORN,)))
    write(store, kind.statements.know)
    write(store, kind.statements.change)
    graph = store.graph()
    assert graph.node("Ada").properties == {**TAKEN, "age": 36}
    assert graph.node("London").properties == TAKEN
    assert [edge.properties for edge in graph.edges if edge.type == "born in"] == [TAKEN]
    assert graph.node("London").labels == ("City", "Big")


def test_edges_whose_types_and_keys_look_alike_stay_apart(store, kind):
    store.apply(Diff(added_nodes=(ADA, LONDON), added_edges=(*ALIKE, BORN)))
    assert same(store, ADA, LONDON, *ALIKE, BORN)
    write(store, kind.statements.forget)
    assert same(store, ADA, LONDON, *ALIKE)
    store.apply(Diff(removed_edges=ALIKE[:3]))
    write(store, kind.statements.remove)
    assert same(store, LONDON)


def test_an_edge_of_any_type_is_found_by_the_next_statement_in_python(store, kind):
    if kind.name != "in_memory":
        pytest.skip("the names of edges in NetworkX")
    store.apply(Diff(added_nodes=(ADA, LONDON), added_edges=ALIKE))
    store.write("for ends in list(G.edges(keys=True)):\n    G.edges[ends]['n'] += 10")
    assert {edge.identity: edge.properties["n"] for edge in store.graph().edges} == {
        edge.identity: edge.properties["n"] + 10 for edge in ALIKE
    }


# --- statements in Cypher, embedded and on a server ---


A, B = Node("a", ("P",), {"x": 1}), Node("b", ("P",))
LINK = Edge("a", "R", "b", {"y": 1})
BECOMES = {
    "a key": ("MATCH ()-[r]->() SET r._key = 'x'", (A, B, Edge("a", "R", "b", {"y": 1}, "x"))),
    "no key": ("MATCH ()-[r]->() REMOVE r._key", (A, B, LINK)),
    "a number as a key": ("MATCH ()-[r]->() SET r._key = 5", (A, B, Edge("a", "R", "b", {"y": 1}, "5"))),
    "one id twice": ("CREATE ({id: 'dup'}), ({id: 'dup'})", (A, B, LINK, Node("dup"))),
    "one id twice, with more": (
        "CREATE (:Y {id: 'dup', p: 1}), (:X {id: 'dup', q: 2})", (A, B, LINK, Node("dup", ("X", "Y"), {"p": 1, "q": 2})),
    ),
    "an id that is there": ("CREATE (:A {id: 'a', z: 1})", (Node("a", ("P", "A"), {"x": 1, "z": 1}), B, LINK)),
    "an id that is there, with another value": ("CREATE (:P {id: 'a', x: 2})", (Node("a", ("P",), {"x": 2}), B, LINK)),
    "an id that is there, with an edge": (
        "CREATE ({id: 'a'})-[:S {n: 1}]->({id: 'c'})-[:T]->({id: 'b'})",
        (A, B, LINK, Node("c"), Edge("a", "S", "c", {"n": 1}), Edge("c", "T", "b")),
    ),
    "an edge that is there": ("CREATE ({id: 'a'})-[:R {z: 2}]->({id: 'b'})", (A, B, Edge("a", "R", "b", {"y": 1, "z": 2}))),
    "an edge beside one": (
        "MATCH (a {id: 'a'}), (b {id: 'b'}) CREATE (a)-[:R {z: 2}]->(b)", (A, B, LINK, Edge("a", "R", "b", {"z": 2}, "2")),
    ),
    "edges beside one": (
        "MATCH (a {id: 'a'}), (b {id: 'b'}) CREATE (a)-[:R {z: 2}]->(b), (a)-[:R {z: 1}]->(b)",
        (A, B, LINK, Edge("a", "R", "b", {"z": 1}, "2"), Edge("a", "R", "b", {"z": 2}, "3")),
    ),
    "no id": ("MATCH (a {id: 'a'}) SET a.id = null", (A, B, LINK)),
    "a number as an id": ("MATCH (a {id: 'a'}) SET a.id = 7", (Node("7", ("P",), {"x": 1}), B, Edge("7", "R", "b", {"y": 1}))),
    "a number as a new id": ("CREATE ({id: 7})", (A, B, LINK, Node("7"))),
    "another id": ("MATCH (a {id: 'a'}) SET a.id = 'c'", (Node("c", ("P",), {"x": 1}), B, Edge("c", "R", "b", {"y": 1}))),
    "nodes without ids": (
        "CREATE (:N {z: 2}), (:N {z: 1})-[:S]->(:N {z: 3})",
        (A, B, LINK, *(Node(f"N {number}", ("N",), {"z": number}) for number in (1, 2, 3)), Edge("N 1", "S", "N 3")),
    ),
    "reserved names": (
        "MATCH (a {id: 'a'}) SET a.label = 'l', a.labels = 'm' WITH a MATCH (a)-[r]->() SET r.relation = 'q', r.type = 't'",
        (Node("a", ("P",), {"x": 1, "label": "l", "labels": "m"}), B, Edge("a", "R", "b", {"y": 1, "relation": "q", "type": "t"})),
    ),
}  # fmt: skip
REFUSED = {
    "the id of another node": "MATCH (a {id: 'a'}) SET a.id = 'b'",
    "true as an id": "MATCH (a {id: 'a'}) SET a.id = true",
    "true as a new id": "CREATE ({id: true})",
    "one id twice, with two values": "CREATE ({id: 'dup', p: 1}), ({id: 'dup', p: 2})",
}


@pytest.fixture(scope="module", params=[kind for kind in KINDS if kind.statements is CYPHER], ids=str)
def warm(request, tmp_path_factory):
    """One store of each kind for all statements: an engine takes a second to start."""
    with opened(request.param.open(tmp_path_factory.mktemp("store"), request)) as store:
        yield store


@pytest.fixture
def cypher(warm):
    warm.apply(warm.graph().diff(PropertyGraph.of((A, B), [LINK])))
    return warm


@pytest.mark.parametrize(("statement", "becomes"), BECOMES.values(), ids=BECOMES)
def test_a_statement_in_cypher_leads_to_one_graph_wherever_it_runs(cypher, statement, becomes):
    before = cypher.graph()
    diff = cypher.write(statement)
    assert same(cypher, *becomes)
    assert before.apply(diff) == cypher.graph()
    cypher.write("CREATE (:Later {id: 'later'})")
    assert same(cypher, *becomes, Node("later", ("Later",)))


@pytest.mark.parametrize("statement", REFUSED.values(), ids=REFUSED)
def test_a_statement_in_cypher_that_makes_no_graph_is_refused_wherever_it_runs(cypher, statement):
    with pytest.raises(QueryFailed, match=r"id|'dup'"):
        cypher.write(statement)
    assert same(cypher, A, B, LINK)
