"""The mapping between property graphs and RDF: lossless from a graph and back, and sensible for triples of
any other origin.
"""

from __future__ import annotations

import json
import random

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.sandbox.sparql.rdf import (
    NAMESPACE,
    PREFIXES,
    RDF,
    RDFS,
    XSD,
    Literal,
    iri_of,
    literal_of,
    name_blank_nodes,
    name_of,
    read_contents,
)
from kgot_lab.sandbox.sparql.statements import check_statement
from kgot_lab.sandbox.sparql.statements import respell_names as canonical
from kgot_lab.stores.files import read_graph, write_graph
from kgot_lab.stores.sparql.triples import (
    convert_triple,
    format_term,
    graph_from_triples,
    to_triples,
)
from kgot_lab.types import Edge, Node

ox = pytest.importorskip("pyoxigraph")

NAMES = [
    "Marie Curie", "born_in", "_hypernym", " lead", "trail ", "a.b", "J.R.R. Tolkien", ".a", "a.", "-a", "a-", "O'Hara", 'the "x"', "a#b",
    "C:\\U0001F600\\u0041", "50%", "%41", "é", "e\u0301", "中文、", "🧪", "\u202e", "a\nb\tc", "\x00", "a\u3000", "\ufffe", "ﷺ", "x" * 5000,
    "label", "type", "a", "true", "1", "http://example.org/é?a=b#c", "urn:isbn:1", "http://a b", "http://x:y/", "http://[::1]/", "//x",
    "mailto:a@b", "Re:Zero", "10:30", "note:", "urn:kgot:x", "urn:kgot-meta:key", f"{RDF}type", f"{RDF}subject", f"{RDFS}label",
    f"{RDFS}Resource", "_:b1", "<x>", "?x", "SELECT * {}",
]  # fmt: skip
VALUES = [
    "", "text", 'q"\'\\\n\r\t\x00\x7f\\u0041 🧪 e\u0301', "true", "1", "2020-01-01", '{"a": 1}', 0, 1, -1, 2**63, -(10**40), 1.0, 0.1, -0.0,
    1e308, 5e-324, 1e-7, True, False, None, [], {}, ["a"], ["b", "a"], ["a", "b"], ["a", "a"], [2, 1], [1, 2.5, 10**30], [1, 1.0, True],
    [True, 1, "a"], [[1], {"x": None}], {"b": {"a": [1.0, "é", None]}, "": ""}, [None], ["é", "a", "z"], [0.0, -0.0],
]  # fmt: skip


def exact(value):
    """A value as a text that keeps 1, 1.0 and True apart."""
    return json.dumps(value, sort_keys=True)


def nasty_graph(seed, nodes=12, edges=25):
    """A graph of few names, so that edges are parallel, loop, and share names with nodes, labels and
    properties.
    """
    chance = random.Random(seed)
    names = chance.sample(NAMES, nodes)

    def some():
        return {
            chance.choice(["", *NAMES]): chance.choice(VALUES) for _ in range(chance.choice([0, 0, 1, 3]))
        }

    made = [Node(name, tuple(chance.sample(NAMES, chance.randint(0, 3))), some()) for name in names]
    few = names[:6]
    ends = [(chance.choice(few), chance.choice(names[:3]), chance.choice(few)) for _ in range(edges)]
    keyed = {(*end, chance.choice(["", "", "2", "k\n"])): some() for end in ends}
    return PropertyGraph.of(made, (Edge(s, r, o, values, key) for (s, r, o, key), values in keyed.items()))


def through_engine(triples):
    """The triples as an engine gives them back: in another order, each once."""
    store = ox.Store()
    store.update(
        "INSERT DATA {"
        + ".".join(" ".join(format_term(term, abbreviate=False) for term in triple) for triple in triples)
        + "}"
    )
    return [convert_triple(quad) for quad in store]


def turtle(text):
    """The triples of some Turtle."""
    head = "".join(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items())
    return [convert_triple(quad) for quad in ox.parse(input=head + text, format=ox.RdfFormat.TURTLE)]


# --------------------------------------------------------------------------------------


@every("name", NAMES, ids=ascii)
def test_every_name_is_a_valid_iri_and_comes_back(name):
    iri = iri_of(name)
    assert name_of(iri) == name and name_of(iri_of(name)) == name
    assert ox.NamedNode(iri).value == iri
    pieces = check_statement("read", f"SELECT ({format_term(iri)} AS ?x) {{}}")
    assert [piece.text for piece in pieces if piece.kind in ("name", "iri")] == [format_term(iri)]
    (row,) = ox.Store().query(canonical(pieces), prefixes=PREFIXES)
    assert row["x"].value == iri


def test_names_read_as_people_write_them():
    assert [iri_of(name).removeprefix(NAMESPACE) for name in ("Marie Curie", "St. Ives", "U.S.", "Zürich", "born_in")] == [
        "Marie_Curie", "St._Ives", "U.S%2E", "Zürich", "born%5Fin",
    ]  # fmt: skip
    assert iri_of("http://example.org/x") == "http://example.org/x"
    assert name_of(f"{NAMESPACE}Marie%20Curie") == "Marie Curie"
    assert name_of(f"{NAMESPACE}%FF") == f"{NAMESPACE}%FF"


def test_different_names_have_different_iris():
    assert len({iri_of(name) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_two_hundred_nasty_graphs_come_back_exactly(start):
    for seed in range(start, start + 50):
        graph = nasty_graph(seed)
        triples = to_triples(graph.nodes, graph.edges)
        again = graph_from_triples(through_engine(triples))
        assert again == graph, (seed, str(graph.diff(again)))
        assert set(to_triples(again.nodes, again.edges)) == set(triples)


def test_the_order_of_labels_and_of_lists_is_kept():
    node = Node("n", ("b", "a"), {"tags": ["z", "a"]})
    (again,) = graph_from_triples(to_triples([node], [])).nodes
    assert (again.labels, again.properties["tags"]) == (("b", "a"), ["z", "a"])


NOT_JSON = [{"p": float("nan")}, {"p": [float("inf")]}, {"p": {1, 2}}, {"p": "\ud800"}, {"\ud800": 1}]


@pytest.mark.parametrize("properties", NOT_JSON, ids=ascii)
def test_what_rdf_cannot_hold_is_refused_by_name(properties):
    with pytest.raises(BadInput, match=r"node 'n'.* (is not JSON|half a surrogate)"):
        to_triples([Node("n", (), properties)], [])
    with pytest.raises(BadInput, match=r"edge .* (is not JSON|half a surrogate)"):
        to_triples([], [Edge("a", "r", "b", properties)])


# ------------------------------------------------------------------------------------------------


@every(
    ("text", "value"),
    [
        ('"x"@en', "x"), ('"x", "x"@en', "x"), ('"b", "a"', ["a", "b"]), ("2, 10, 1", [1, 2, 10]), ("1.50", 1.5), ("3.0", 3), ("1e0", 1.0),
        ("true", True), ('"1"^^xsd:boolean', True), ('"7"^^xsd:unsignedByte', 7), ('"x"^^xsd:integer', "x"), ('"1_0"^^xsd:integer', "1_0"),
        ('"NaN"^^xsd:double', "NaN"), ('"2020-01-01"^^xsd:date', "2020-01-01"), ('"?"^^<urn:own>', "?"), ('"[1, {}]"^^rdf:JSON', [1, {}]),
        ('"[1"^^rdf:JSON', "[1"), ('"[NaN]"^^rdf:JSON', "[NaN]"), ("()", []), ('(2 "a" true)', [2, "a", True]),
        ('"[2,1]"^^rdf:JSON, 3', [1, 2, 3]),
    ],
    ids=str,
)  # fmt: skip
def test_literals_of_any_kind_become_values(text, value):
    (node,) = graph_from_triples(turtle(f":n :p {text} .")).nodes
    assert repr(node) == repr(Node("n", (), {"p": value}))


def test_the_rules_for_triples_of_any_origin():
    graph = graph_from_triples(
        turtle("""
        :Ada a :Person, "Author" ; rdfs:label "Ada" ; :knows :Bob, <http://example.org/eve> .
        :Marie%20Curie :won :Prize .
        [ rdf:subject :Ada ; rdf:predicate :met ; rdf:object :Bob ; :source :Wikipedia ; a :Claim, rdf:Statement ; :year 1833 ] .
        """)
    )
    assert graph.node("Ada") == Node("Ada", ("Author", "Person"), {"label": "Ada"})
    assert set(graph.ids) == {"Ada", "Bob", "http://example.org/eve", "Marie Curie", "Prize"}
    assert Edge("Ada", "met", "Bob", {"source": "Wikipedia", "type": "Claim", "year": 1833}) in graph.edges
    assert graph.types() == {"knows": 2, "met": 1, "won": 1}


def test_a_fact_described_twice_is_one_edge_or_two():
    fact = "rdf:subject :M ; rdf:predicate :won ; rdf:object :P"
    agree = graph_from_triples(turtle(f"[] {fact} ; :year 1903 . [] {fact} ; :place 'Stockholm' ."))
    assert [dict(edge.properties) for edge in agree.edges] == [{"place": "Stockholm", "year": 1903}]
    differ = graph_from_triples(turtle(f"[] {fact} ; :year 1911 . [] {fact} ; :year 1903 ."))
    assert {(edge.key, edge.properties["year"]) for edge in differ.edges} == {("", 1903), ("2", 1911)}


IN_PARTS = [
    "[] rdf:subject :a ; rdf:object :b .",
    "[] rdf:subject :a ; rdf:predicate :p ; rdf:object 'b' .",
    "[] rdf:subject :a, :c ; rdf:predicate :p ; rdf:object :b .",
    "[] rdf:subject :a ; rdf:predicate rdf:type ; rdf:object :b .",
]


@pytest.mark.parametrize("text", IN_PARTS)
def test_a_fact_described_in_parts_is_refused(text):
    with pytest.raises(BadInput, match="rdf:subject, rdf:predicate and rdf:object"):
        graph_from_triples(turtle(text))


def test_blank_nodes_have_names_that_do_not_depend_on_their_labels():
    text = "[] a :Person ; :name 'Eve' ; :knows [ a :Person ; :age 3 ], [ a :Person ; :age 4 ] . :Eve :x [] ."
    text += "[] :next [ :next [ :next :end ] ] ."
    first, second = graph_from_triples(turtle(text)), graph_from_triples(reversed(turtle(text)))
    assert first == second
    assert {"Eve", "Eve (Person)", "Person 1", "Person 2", "node 1", "end"} <= set(first.ids)
    assert len(first) == 9


def test_a_long_chain_and_a_ring_of_blank_nodes_end():
    chain = "".join(f"_:b{n} :next _:b{n + 1} ." for n in range(300))
    assert len(graph_from_triples(turtle(chain))) == 301
    assert len(graph_from_triples(turtle(f"{chain} _:b300 :next _:b0 ."))) == 301
    rings = "_:a rdf:first 1 ; rdf:rest _:b . _:b rdf:first 2 ; rdf:rest _:a ."
    ring = name_blank_nodes(turtle(f"{rings} _:c rdf:first 3 ; rdf:rest _:a ."))
    assert len(read_contents(ring).nodes) == 3


def test_names_taken_elsewhere_are_left_alone():
    named = name_blank_nodes(turtle("[] :name 'Ada' ."), lambda name: name in ("Ada", "Ada (node)"))
    assert set(read_contents(named).nodes) == {"Ada 2"}


# ----------------------------------------------------------------------------------------------------------------


def test_turtle_of_any_origin_is_read_relative_names_included(tmp_path):
    path = tmp_path / "some file.ttl"
    prefix = "@prefix foaf: <http://xmlns.com/foaf/0.1/> ."
    path.write_text(f"{prefix} <#me> foaf:knows <#you> ; foaf:name 'Me'@en .")
    graph = read_graph(path)
    assert graph.ids == ("file:///some%20file.ttl#me", "file:///some%20file.ttl#you")
    assert graph.nodes[0].properties == {"http://xmlns.com/foaf/0.1/name": "Me"}
    assert str(tmp_path) not in repr(graph.nodes[0])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@prefix : <urn:x> .\n:a :b :c .\n:a :b oops .", r"graph\.ttl, line 3: not RDF: .*oops"),
        (f"[] <{RDF}subject> <urn:a> .", r"graph\.ttl: .*rdf:subject"),
    ],
)
def test_a_bad_file_is_named_with_its_line(text, why, tmp_path):
    (tmp_path / "graph.ttl").write_text(text)
    with pytest.raises(BadInput, match=why):
        read_graph(tmp_path / "graph.ttl")


def test_a_file_that_is_not_there_or_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(BadInput, match=r"none\.ttl: cannot be read"):
        read_graph(tmp_path / "none.ttl")
    with pytest.raises(BadInput):
        write_graph(PropertyGraph.of([Node("n", (), {"p": float("nan")})]), tmp_path / "graph.ttl")
    assert not list(tmp_path.iterdir())


def test_datatypes_are_those_of_the_standard():
    assert literal_of(3) == Literal("3", f"{XSD}integer") and literal_of([1]).datatype == f"{RDF}JSON"
