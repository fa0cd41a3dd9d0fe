"""SPARQL statements: what they change, what they may not say, the dialect's own ones, and a graph on a real
SPARQL server.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import product

import pytest
from support.every import every
from support.waiting import AMPLE

from kgot_lab.errors import QueryFailed
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import MutableGraph
from kgot_lab.sandbox import open_sandbox
from kgot_lab.sandbox.python.helpers import helpers
from kgot_lab.sandbox.python.tracking_graph import TrackedGraph, track
from kgot_lab.sandbox.python.worker import apply_changes
from kgot_lab.sandbox.replies import encode_element, parse_changes
from kgot_lab.sandbox.sparql.rdf import DOUBLE, Literal, iri_of, literal_of, read_contents, value_of
from kgot_lab.stores.sparql.dialect import SPARQL
from kgot_lab.stores.sparql.triples import format_term, to_triples
from kgot_lab.types import Edge, Node, Triple

pytest.importorskip("pyoxigraph")
from kgot_lab.sandbox.sparql.worker import SparqlGraph

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")

WON = "rdf:subject :Marie_Curie ; rdf:predicate :won ; rdf:object :Nobel_Prize"
GRAPH = f"""INSERT DATA {{
  :Marie_Curie a :Person ; :born 1867 ; :won :Nobel_Prize ; :knows :Pierre .
  :Nobel_Prize a :Prize . [] {WON} ; :year 1903 .
}}"""


class Here:
    """A graph whose statements run in this process, without a sandbox; what they change is kept."""

    def __init__(self, nodes=(), edges=()):
        self.holder, self.truth = SparqlGraph(), MutableGraph(nodes, edges)
        self.holder.put(map(encode_element, nodes), map(encode_element, edges))

    def write(self, statement):
        answer = self.holder.answer("write", statement)
        if "error" in answer:
            raise QueryFailed(statement, answer["error"])
        diff = self.truth.difference(*parse_changes(json.dumps(answer).encode(), ""))
        self.truth.apply(diff)
        self.holder.put(answer["nodes"], answer["edges"])
        return diff

    def read(self, statement):
        answer = self.holder.answer("read", statement)
        if "error" in answer:
            raise QueryFailed(statement, answer["error"])
        return answer["rows"]

    def triples(self):
        return set(map(plain, map(self.holder._triple, self.holder.store)))


def plain(triple):
    """A triple with its double as the mapping writes it: Oxigraph writes 1.0 as 1."""
    subject, predicate, object = triple
    double = isinstance(object, Literal) and object.datatype == DOUBLE
    return subject, predicate, literal_of(value_of(object)) if double else object


@pytest.fixture
def here():
    graph = Here()
    graph.write(GRAPH)
    return graph


@pytest.fixture(scope="module")
def opened():
    with open_sandbox(language="sparql", seconds=AMPLE) as sandbox:
        yield sandbox


@pytest.fixture
def namespace(request):
    return request.node.name


# -----------------------------------------------------------------------------------------------


def test_a_statement_in_plain_sparql_becomes_nodes_and_edges(here):
    assert here.truth.nodes["Marie Curie"] == Node("Marie Curie", ("Person",), {"born": 1867})
    assert here.truth.nodes["Pierre"] == Node("Pierre")
    won = Edge("Marie Curie", "won", "Nobel Prize", {"year": 1903})
    assert set(here.truth.edges.values()) == {won, Edge("Marie Curie", "knows", "Pierre")}
    assert not here.write(GRAPH)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("INSERT DATA { :Marie_Curie :born 1867 }", "nothing changed"),
        ("INSERT DATA { :Marie_Curie :born 1868 }", "~1 node"),
        ("INSERT DATA { :Marie%20Curie a <urn:kgot:Person> ; rdfs:label 'M' }", "~1 node"),
        ("INSERT DATA { [] a :Person ; :name 'Eve' ; :knows :Pierre }", "+1 node, +1 edge"),
        (f"INSERT DATA {{ [] {WON} ; :year 1903 }}", "nothing changed"),
        (f"INSERT DATA {{ [] {WON} ; :place 'Stockholm' }}", "~1 edge"),
        (f"INSERT DATA {{ [] {WON} ; :year 1911 }}", "+1 edge"),
        ("INSERT { ?fact :sure true } WHERE { ?fact rdf:object :Nobel_Prize }", "~1 edge"),
        ("DELETE { ?fact :year ?year } WHERE { ?fact :year ?year }", "~1 edge"),
        ("DELETE WHERE { ?fact rdf:object :Nobel_Prize ; ?p ?o }", "~1 edge"),
        ("DELETE DATA { :Marie_Curie :won :Nobel_Prize }", "-1 edge"),
        ("DELETE DATA { :Marie_Curie :knows :Pierre }", "-1 edge"),
        ("DELETE WHERE { :Pierre ?p ?o }", "nothing changed"),
        ("DELETE WHERE { ?s ?p :Pierre }", "-1 edge"),
        ("DELETE { ?s ?p :Pierre . :Pierre ?q ?o } WHERE { ?s ?p :Pierre . :Pierre ?q ?o }", "-1 node, -1 edge"),
        ("DELETE WHERE { :Marie_Curie ?p ?o }", "-1 node, -2 edges"),
        ("DELETE { ?x a :Person } INSERT { ?x a :Scientist } WHERE { ?x a :Person }", "~1 node"),
        ("DELETE { ?x :knows ?y } INSERT { ?x :met ?y } WHERE { ?x :knows ?y }", "+1 edge, -1 edge"),
        ("INSERT DATA { :a :b :c } ; DELETE DATA { :a :b :c } ; INSERT DATA { :d a :e }", "+1 node"),
        ("CLEAR ALL", "-3 nodes, -2 edges"),
        ("DROP SILENT DEFAULT", "-3 nodes, -2 edges"),
    ],
    ids=str,
)  # fmt: skip
def test_every_kind_of_update_gives_its_exact_diff(here, statement, told):
    assert str(here.write(statement)) == told
    contents = read_contents(here.triples())
    assert set(contents.nodes) == set(here.truth.nodes) and set(contents.edges) == set(here.truth.edges)


def test_what_was_written_in_other_spellings_is_found_in_any(here):
    properties = "<urn:kgot:lives%20in> :St%2E_Ives ; :height 1.80"
    here.write(f"INSERT DATA {{:J.R.R._Tolkien rdfs:label 'Tolkien' ; {properties}}}")
    for query in (
        "SELECT ?x { ?x :label 'Tolkien' ; :lives_in :St._Ives }",
        "PREFIX k: <urn:kgot:> SELECT ?x { ?x rdfs:label ?l ; k:lives%20in <urn:kgot:St%2E_Ives> FILTER(?l = 'Tolkien') }",
        "PREFIX : <urn:kgot:> BASE <http://x.org/> SELECT ?x { ?x :height ?h FILTER(?h > 1.7 && ?x = :J.R.R._Tolkien) }",
    ):
        assert here.read(query) == [{"x": "J.R.R. Tolkien"}]


def test_a_quote_in_a_name_is_part_of_it_where_nothing_else_makes_sense(here):
    eve = ":Eve :quotes \"it's :O'Hara\", 'no'"
    here.write(f"INSERT DATA {{:O'Hara :says 'yes' ; :lives_in :King's_Cross . {eve} .}}")
    assert here.truth.nodes["O'Hara"].properties == {"says": "yes"}
    assert here.truth.nodes["Eve"].properties == {"quotes": ["it's :O'Hara", "no"]}
    assert here.read("SELECT ?x { :O'Hara :lives_in ?x }") == [{"x": "King's Cross"}]
    assert here.read("SELECT ?x { ?x :says'yes' }") == [{"x": "O'Hara"}]


def test_rows_are_json_in_one_order_whatever_the_engine_does(here):
    assert here.read("ASK { :Marie_Curie a :Person }") == [True]
    assert here.read("SELECT ?x ?o { ?x :born ?b OPTIONAL { ?x :died ?o } }") == [{"x": "Marie Curie"}]
    assert here.read("SELECT (MAX(?y) AS ?m) { ?x :nothing ?y }") == []
    types = [row["t"] for row in here.read("SELECT ?t { ?x a ?t }")]
    assert types == ["Person", "Prize", "rdf:Statement", "rdfs:Resource"]
    query = "SELECT ?t { ?x a ?t FILTER(STRSTARTS(STR(?t), 'urn:')) } ORDER BY DESC(?t)"
    assert here.read(query) == [{"t": "Prize"}, {"t": "Person"}]
    assert here.read("SELECT (AVG(?y) AS ?mean) { VALUES ?y { 1 2 } }") == [{"mean": 1.5}]
    row = {"subject": "Marie Curie", "relation": "rdf:type", "object": "Person"}
    assert row in here.read("DESCRIBE :Marie_Curie")
    assert here.read("CONSTRUCT { ?y :known_by ?x } WHERE { ?x :knows ?y }") == [
        {"subject": "Pierre", "relation": "known by", "object": "Marie Curie"}
    ]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("INSERT DATA { : a :X }", "node must not be blank"), ("INSERT DATA { :_ a :X }", "node must not be blank"),
        ("INSERT DATA { :x : :y }", "relation must not be blank"), ("INSERT DATA { :x a : }", "label must not be blank"),
        ("INSERT DATA { [] rdf:subject :x }", "rdf:subject, rdf:predicate and rdf:object"),
        ("INSERT DATA { :x rdf:subject :y ; rdf:predicate :p ; rdf:object 'text' }", "between two things"),
        ("INSERT DATA { :x :y :z ", "error at 1:.*near .*:x :y :z"), ("INSERT DATA { <relative> :y :z }", "error at 1:"),
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_no_graph_is_refused_and_changes_nothing(here, statement, why):
    before = here.triples()
    with pytest.raises(QueryFailed, match=why):
        here.write(statement)
    assert here.triples() == before


def random_statement(chance, names):
    """An update of a few triples, spelled in different ways."""

    def name():
        return format_term(iri_of(chance.choice(names)), abbreviate=chance.random() < 0.7)

    def value():
        values = ["1", "2.5", "'x'", "'y'", "true", '"[2,1]"^^rdf:JSON', "'b', 'a'", "('l' 1)", "1e0"]
        return chance.choice(values)

    def triples():
        ends = f"rdf:subject {name()} ; rdf:predicate {name()} ; rdf:object {name()}"
        blank = chance.choice(["[]", "_:x", name()])
        kinds = [
            f"{name()} a {name()} .", f"{name()} {name()} {value()} .", f"{name()} {name()} {name()} .", f"{name()} {name()} {name()} .",
            f"[] {ends} ; :year {chance.choice([1903, 1911])} .", f"{blank} {name()} {name()} .", f"[] a {name()} ; rdfs:label 'N' .",
        ]  # fmt: skip
        return " ".join(chance.choice(kinds) for _ in range(chance.randint(1, 4)))

    x, p, y = name(), name(), name()
    return chance.choice(
        [
            f"INSERT DATA {{ {triples()} }}",
            f"INSERT DATA {{ {triples()} }} ; INSERT DATA {{ {triples()} }}",
            f"DELETE WHERE {{ {x} ?p ?o }}",
            f"DELETE WHERE {{ ?s ?p {x} }}",
            f"DELETE WHERE {{ {x} {p} ?o }}",
            f"DELETE {{ {x} ?p ?o }} INSERT {{ {triples()} }} WHERE {{ {x} ?p ?o }}",
            f"DELETE {{ ?s {p} ?o }} INSERT {{ ?s {y} ?o }} WHERE {{ ?s {p} ?o }}",
            "DELETE { ?f :year ?y } WHERE { ?f :year ?y }",
            f"INSERT {{ ?f :sure true }} WHERE {{ ?f rdf:subject {x} }}",
            f"DELETE WHERE {{ ?f rdf:subject {x} ; ?p ?o }}",
        ]
    )


@every("seed", range(12))
def test_the_graph_stays_as_the_mapping_spells_it_whatever_is_written(seed):
    chance = random.Random(seed)
    names = ["Ada", "born_in", "won", "O'Hara", "http://example.org/x", "label", "year", "J.R.R. Tolkien"]
    here, refused = Here(), 0
    for _ in range(60):
        statement, before = random_statement(chance, names), here.triples()
        try:
            here.write(statement)
        except QueryFailed as error:
            refused += 1
            reasons = ("rdf:subject, rdf:predicate and rdf:object", "shared by multiple blocks")
            assert any(why in str(error) for why in reasons), statement
            assert here.triples() == before
        assert here.triples() == set(to_triples(here.truth.nodes.values(), here.truth.edges.values())), (
            statement
        )
    assert refused < 15


def test_blank_nodes_get_the_same_names_in_every_run():
    statement = "INSERT { [ a :Visit ; :guest ?x ] :in [ a :Visit ; :year 1900 ] } WHERE { ?x a :Person }"
    runs = []
    for _ in range(3):
        here = Here(tuple(Node(f"p{n}", ("Person",)) for n in range(4)))
        here.write(statement)
        runs.append((here.triples(), here.read("SELECT ?v { ?v a :Visit }")[0]))
    assert runs[0] == runs[1] == runs[2] and runs[0][1] == {"v": "Visit 1"}


def test_a_hub_is_no_obstacle():
    hub = [Node("hub"), *(Node(f"n{n}") for n in range(3000))]
    here = Here(hub, [Edge("hub", "r", node.id, {"n": 1}) for node in hub[1:]])
    statement = " ".join(
        f"[] rdf:subject :hub ; rdf:predicate :r ; rdf:object :n{n} ; :m 2 ." for n in range(300)
    )
    assert str(here.write(f"INSERT DATA {{ {statement} }}")) == "~300 edges"


# ------------------------------------------------------------------------------------------

NOT_A_READ = [
    "INSERT DATA { :a :b :c }",
    "SELECT * { ?s ?p ?o } ; DROP ALL",
    "DELETE WHERE { ?s ?p ?o }",
    "LOAD <file:///etc/passwd>",
    "CLEAR ALL",
    "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
    "SELECT * { SERVICE SILENT ?x { ?s ?p ?o } }",
    "SELECT * { seRvice<http://x>{} }",
    "SELECT * { # comment\n SERVICE # comment\n <http://x> { ?s ?p ?o } }",
    "\\u0053ELECT * { ?s ?p ?o }",
    "SELECT * { S\\u0045RVICE <http://x> {} }",
    'SELECT * { ?s ?p "\\u0022 . SERVICE <http://x> { ?a ?b ?c } # " }',
    'SELECT * { ?s ?p "\\U00000022 } ; DROP ALL #" }',
    "SELECT * { ?s ?p '\\u000A' . SERVICE <http://x> { } #' }",
    "SELECT * { ?s ?p <urn:\\u003e> . GRAPH <urn:g> { ?a ?b ?c } }",
    "SELECT * FROM <urn:g> { ?s ?p ?o }",
    "SELECT * FROM NAMED <urn:g> { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } }",
    "PREFIX ex: <urn:x> SELECT * { GRAPHex:g { ?s ?p ?o } }",
    "PREFIX graph: <urn:x> SELECT * { graph:g { ?s ?p ?o } }",
    "SERVICE",
    "SELECT (<http://x/f>(?o) AS ?x) { ?s ?p ?o }",
    "SELECT (:f(?o) AS ?x) { ?s ?p ?o }",
    "SELECT * { FILTER(java:java.lang.System(1)) }",
    "SELECT * { ?s ?p ?o FILTER(?o<1)SERVICE<http://x>{?a?b?c} }",
    "SELECT * { << ?s ?p ?o >> ?q ?r }",
    "EXPLAIN SELECT * { ?s ?p ?o }",
    "SELECT * { ?s ?p 'not closed }",
    "There are two persons.",
    "",
    "# SELECT",
    "'SELECT'",
    "SELECT * { ?s ?p ?o } CALL db.drop()",
    "SELECT * { LATERAL { SELECT * { ?s ?p ?o } } }",
    "WITH <urn:g> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "SELECT * { \\u }",
    "SELECT \\uD800 {}",
    "SELECT * " + "{" * 5000 + "}" * 5000,
    "SELECT * { FILTER(" + "(" * 5000 + "1" + ")" * 5000 + ") }",
]
NOT_A_WRITE = [
    "SELECT * { ?s ?p ?o }",
    "ASK {}",
    "DESCRIBE :a",
    "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
    "LOAD <http://127.0.0.1:1/x.ttl>",
    "LOAD SILENT <file:///etc/passwd> INTO GRAPH <urn:g>",
    "INSERT DATA { GRAPH <urn:g> { :a :b :c } }",
    "CREATE GRAPH <urn:g>",
    "COPY DEFAULT TO <urn:g>",
    "MOVE <urn:g> TO DEFAULT",
    "ADD <urn:g> TO DEFAULT",
    "CLEAR GRAPH <urn:g>",
    "DROP NAMED",
    "WITH <urn:g> INSERT { :a :b :c } WHERE {}",
    "INSERT { :a :b :c } USING <urn:g> WHERE { ?s ?p ?o }",
    "INSERT { ?s ?p ?o } WHERE { SERVICE <http://x> { ?s ?p ?o } }",
    "INSERT DATA { :a :b 'x' } ; \\u004cOAD <http://x>",
    "INSERT DATA { :a :b '\\u0027 } ; LOAD <http://x> #' }",
    "INSERT DATA { << :a :b :c >> :d 1 }",
    "INSERT DATA { :a :b :c {| :d 1 |} }",
    "INSERT DATA { ex:a :b :c }",
    "INSERT DATA { :Salman_O'Neill a :Person ; :says 'no }",
    "INSERT DATA { :a :b :c'd ; LOAD <http://x> }",
    "INSERT DATA { :a :b St_Ives }",
    "INSERT",
]


@every("statement", NOT_A_READ, ids=lambda text: text[:60])
def test_a_read_that_is_more_than_a_read_is_refused(here, statement):
    before = here.triples()
    with pytest.raises(QueryFailed) as caught:
        here.read(statement)
    assert len(str(caught.value)) > 20 and here.triples() == before


@pytest.mark.parametrize("statement", NOT_A_WRITE, ids=lambda text: text[:60])
def test_a_write_that_is_more_than_a_write_or_none_is_refused(here, statement):
    before = here.triples()
    with pytest.raises(QueryFailed) as caught:
        here.write(statement)
    assert len(str(caught.value)) > 20 and here.triples() == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * { ?s ?p 'SERVICE <http://x> { }' }",
        "SELECT * { ?s :SERVICE ?o } # LOAD <x>",
        "SELECT ?load { ?load ?INSERT ?o }",
        'SELECT * { ?s ?p """DROP " ALL""" FILTER(?s < ?p && ?p > ?s) }',
        "SELECT * { <http://x/LOAD#GRAPH> ?p ?o }",
        "SELECT (xsd:integer('1') AS ?x) (COUNT(*) AS ?n) {}",
        "SELECT * { ?s :café|^:b/:c*|!(:d|a) 'caf\\u00e9' }",
        "select distinct ?s where { ?s ?p ?o minus { ?s a :X } filter not exists { ?s :y ?z } } group by ?s having (count(*) > 1) limit 3",
        "SELECT * { ?s :O\\'Hara ?o ; :a%2Fb -1 , +2.5e-3 , .5 , 'y'^^<urn:t> . _:b ?q [ ] }",
        "ASK\t{}\r\n",
    ],
)
def test_what_only_looks_like_more_is_allowed(here, statement):
    here.read(statement)


# ----------------------------------------------------------------------------------------------------------


def test_facts_of_any_text_are_added_and_told_again_they_are_renewed():
    texts = [
        "a'b",
        'the "x"',
        "C:\\Users\\U0001F600",
        "line\nbreak",
        "é 🧪",
        "http://x.org/?q=1#2",
        "50%",
        "J.R.R.",
        "}",
        "# SERVICE",
    ]
    pairs = product(texts, repeat=2)
    facts = [
        (Triple(one, f"is {other}", other), {"source": one, other: [one, other]}) for one, other in pairs
    ]
    here = Here()
    here.write(SPARQL.add(facts))
    assert {edge.identity: edge.properties for edge in here.truth.edges.values()} == {
        (t.subject, t.relation, t.object, ""): {
            **p,
            t.object: p[t.object] if t.subject != t.object else [t.subject] * 2,
        }
        for t, p in facts
    }
    assert not here.write(SPARQL.add(facts))
    assert str(here.write(SPARQL.add([(facts[0][0], {"source": "other"})]))) == "~1 edge"
    assert here.truth.edges[(texts[0], f"is {texts[0]}", texts[0], "")].properties["source"] == "other"


def facts_in_python(graph):
    """The helper `facts` of the Python dialect, over the same graph."""
    journal = track(TrackedGraph())
    apply_changes(journal, map(encode_element, graph.nodes), map(encode_element, graph.edges))
    return helpers(journal.graph)["facts"]


def test_the_facts_about_a_name_are_those_that_python_finds():
    chance = random.Random(3)
    ids = [
        "Ada Lovelace",
        "ada-lovelace's aunt",
        "London",
        "London Bridge",
        "St. Ives",
        "Zürich",
        "born_in",
        "_x",
        "http://example.org/Ada",
    ]
    edges = {}
    for _ in range(14):
        ends = chance.choice(ids), chance.choice(["born in", "knows_of", "label"]), chance.choice(ids)
        edges[ends] = Edge(*ends, {"n": 1, "s": "ä"} if chance.random() < 0.5 else {})
    nodes = (Node(id, ("Thing",) if chance.random() < 0.5 else ()) for id in ids)
    graph = PropertyGraph.of(nodes, edges.values())
    here, facts = Here(tuple(graph.nodes), tuple(graph.edges)), facts_in_python(graph)
    names = ("ADA LOVELACE", "ada", "london", "London Bridge", "st. ives", "zürich")
    asked = (*names, "BORN IN", "born-in", "nobody", "", "x")
    for names in ([], ["London Bridge", "x"], *([name] for name in asked)):
        for hops in (1, 2, 3):
            assert told(here.read(SPARQL.about(names, hops))) == told(facts(names, hops=hops)), names


def told(rows):
    """Rows in one order, to be compared."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_nodes_and_edges_are_spelled_for_prompts_as_statements_spell_them():
    node = Node("Marie Curie", ("Person",), {"born": 1867, "note": 'a "b"'})
    edge = Edge("Marie Curie", "won", "Prize", {"year": 1903}, "k")
    assert SPARQL.node(node) == ':Marie_Curie a :Person ; :born 1867 ; :note "a \\"b\\"" .'
    assert SPARQL.edge(Edge("a", "r", "b")) == ":a :r :b ."
    here = Here()
    here.write(f"INSERT DATA {{ {SPARQL.node(node)} {SPARQL.edge(edge)} }}")
    assert here.truth.nodes["Marie Curie"] == node
    assert list(here.truth.edges.values()) == [Edge("Marie Curie", "won", "Prize", {"year": 1903})]


# -------------------------------------------------------------------------------------------------------


def test_statements_run_in_the_sandbox(opened):
    opened.reset((Node("Ada", ("Person",), {"age": 36}),), ())
    where = "{?x :age ?a BIND(?a + 1 AS ?b)}"
    diff = opened.write(f"DELETE {{?x :age ?a}} INSERT {{?x :age ?b ; :knows :Bob}} WHERE {where}")
    assert str(diff) == "+1 node, ~1 node, +1 edge"
    opened.apply(diff)
    assert opened.read("SELECT ?b ?a { ?x :knows ?b ; :age ?a FILTER(REGEX(STR(?x), 'ADA', 'i')) }") == (
        {"b": "Bob", "a": 37},
    )


MUCH = "?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l"


def test_a_runaway_query_ends_and_the_next_one_works(opened):
    opened.reset(tuple(Node(f"n{n}", ("X",), {"p": n}) for n in range(400)), ())
    opened.seconds = 1
    for runaway in (f"SELECT (COUNT(*) AS ?n) {{ {MUCH} }}", f"SELECT * {{ {MUCH} }}"):
        reason = r"took longer than 1 seconds|returned more than|more than 100,000|more memory"
        with pytest.raises(QueryFailed, match=reason):
            opened.read(runaway)
    with pytest.raises(QueryFailed, match="took longer than 1 seconds"):
        opened.write(f"INSERT {{ :x :y ?n }} WHERE {{ SELECT (COUNT(*) AS ?n) {{ {MUCH} }} }}")
    opened.seconds = AMPLE
    assert opened.read("SELECT (COUNT(*) AS ?n) { ?x a :X }") == ({"n": 400},)


def test_the_engine_itself_reaches_no_network_and_no_file_in_the_sandbox(opened):
    with pytest.raises(QueryFailed, match="computes nothing"):
        opened.compute("open('/etc/passwd').read()")
    with pytest.raises(QueryFailed, match="LOAD would fetch"):
        opened.write("LOAD <file:///etc/hostname>")


def test_a_number_with_a_point_is_found_as_it_was_written(here):
    here.write("INSERT DATA { :Ada :height 1.5 }")
    assert here.read("SELECT ?x WHERE { ?x :height 1.5 }") == [{"x": "Ada"}]
    here.write("DELETE DATA { :Ada :height 1.5 } ; INSERT DATA { :Ada :height 3.5 }")
    assert here.read("SELECT ?h WHERE { :Ada :height ?h FILTER(?h > 3.25) }") == [{"h": 3.5}]
