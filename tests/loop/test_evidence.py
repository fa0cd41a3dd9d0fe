"""What an answer rests on: rows that were read, the facts they speak of, and the sentences that say them;
near misses are planted.
"""

from __future__ import annotations

import pytest
from support.every import every
from support.loop_script import ADA, FEW, call, of, scripted, votes

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, support_properties, supports_of
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Ballot, Forced, Read, Wrote
from kgot_lab.loop.evidence import sentences_stating
from kgot_lab.loop.limits import LOCAL
from kgot_lab.loop.replay.replay import verify
from kgot_lab.loop.run_context import constant_rows
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.types import Document, Edge, Node, Triple

LANGUAGES = ("in_memory", "cypher_embedded", "sparql_embedded")
CONSTANT = {  # statements that say their rows themselves
    "in_memory": [
        "result = ['Mogadishu']", "result = [{'city': 'Mogadishu'}]", "result = 'Mogadishu' if G is not None else ''", "result = 42",
    ],
    "cypher_embedded": [
        "MATCH (n) RETURN 'London' AS city;", "MATCH (n) RETURN 'London' AS city // all",
        "MATCH (n) WITH 'London' AS city RETURN city", "MATCH (n) RETURN coalesce(n.none, '') AS x",
        "RETURN 'Mogadishu' AS city", "MATCH (n) RETURN 'Mogadishu' AS city", "UNWIND ['Mogadishu'] AS city RETURN city",
    ],
    "sparql_embedded": [
        'SELECT ("Mogadishu" AS ?a) WHERE {}', 'SELECT ?a WHERE { BIND("Mogadishu" AS ?a) }',
        'SELECT ?a WHERE { VALUES ?a { "Mogadishu" } }',
        'SELECT ("Mogadishu" AS ?a) WHERE { ?s ?p ?o }', "SELECT (:London AS ?a) WHERE { ?s ?p ?o }",
    ],
}  # fmt: skip
READ = {  # statements whose rows come from the graph
    "in_memory": [
        "result = facts('Ada')", "result = [len(G)]", "result = [n for n in G.nodes if n == 'London']",
        "result = [G.nodes['Ada'].get('id', 'Ada')]",
        "result = sum(1 for fact in facts('Ada'))", "result = 'yes' if G.has_edge('Ada', 'London') else 'no'",
        "result = {'count': len(facts('Ada')), 'hops': 1}",
    ],
    "cypher_embedded": [
        "MATCH (a {id: 'Ada'})-[r]->(b) RETURN b.id AS thing", "MATCH (n) RETURN count(n) AS many",
        "MATCH (n {id: 'London'}) RETURN n.id AS id", "MATCH (n {id: 'Ada'}) RETURN count(n) AS n LIMIT 1",
        "MATCH (n {id: 'Ada'}) RETURN n.id AS x // RETURN 'Ada'",
    ],
    "sparql_embedded": [
        "SELECT ?x WHERE { :Ada ?p ?x }", "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }", "SELECT ?x WHERE { ?x ?p :London }",
    ],
}  # fmt: skip


@pytest.fixture(scope="module", params=LANGUAGES)
def filled(request):
    """A store that holds one fact about Ada and one about Mogadishu's rival."""
    with open_store(request.param) as store:
        facts = [(("Ada", "born in", "London"), {}), (("Nairobi", "capital of", "Kenya"), {})]
        store.write(store.dialect.add([(Triple(*ends), properties) for ends, properties in facts]))
        yield request.param, store


def test_rows_that_the_statement_says_itself_are_constants(filled):
    kind, store = filled
    for statement in CONSTANT[kind]:
        rows = store.read(statement)
        assert rows and constant_rows(store, statement, rows) == tuple(range(len(rows))), statement


def test_rows_that_were_read_or_counted_are_not(filled):
    kind, store = filled
    for statement in READ[kind]:
        rows = store.read(statement)
        assert rows and constant_rows(store, statement, rows) == (), statement


@pytest.mark.parametrize("filled", ["cypher_embedded"], indirect=True)
def test_of_a_union_the_branch_that_reads_counts(filled):
    _, store = filled
    statement = "MATCH (n {id: 'Ada'}) RETURN n.id AS x UNION RETURN 'Return' AS x"
    assert constant_rows(store, statement, store.read(statement)) == (1,)


def test_nothing_is_read_from_an_empty_graph():
    with open_store("in_memory") as store:
        assert constant_rows(store, "result = [len(G)]", (0,)) == (0,)


def test_a_ballot_that_returns_a_constant_is_no_retrieve_and_the_answer_is_a_guess():
    ballots = [{"choice": "RETRIEVE", "text": "result = ['Mogadishu']"}] * 10
    told = {
        "vote": ballots,
        "tools": call(),
        "write": {"statements": []},
        "forced": {"statement": "result = ['Mogadishu']"},
    }
    llm = scripted(**told, reread={"statement": "result = ['Mogadishu']"}, guess={"answer": "Mogadishu"})
    with open_store("in_memory") as store:
        events = list(think("What is the capital?", llm, store, [search(ADA, bm25(ADA))], FEW))
    assert {ballot.choice for ballot in of(Ballot, events)} == {"INSERT"}
    assert {(read.constant, read.grounded) for read in of(Read, events)} == {((0,), ())}
    assert [forced.what for forced in of(Forced, events)] == ["read", "answer"]
    assert (events[-1].text, events[-1].forced, events[-1].evidence) == ("Mogadishu", True, ())


AFRICA = [
    Document("n", "Niger borders Nigeria. Niger has Niamey as its capital.", "Niger"),
    Document("g", "Nigeria has Abuja as its capital. Nigeria borders Benin.", "Nigeria"),
    Document("x", "Abuja and Nigeria are in a song. The capital of song is Benin City.", "A song"),
]


def answered(statements, read, documents=AFRICA, question="What is the capital of Nigeria?", **limits):
    told = {
        "vote": [*votes(*"III"), *[{"choice": "RETRIEVE", "text": read}] * 3],
        "tools": call("Nigeria capital Niger Benin song"),
    }
    llm = scripted(**told, write={"statements": statements}, parse={"answer": "Abuja"})
    with open_store("in_memory") as store:
        events = list(
            think(question, llm, store, [search(documents, bm25(documents), k=3)], FEW.but(**limits))
        )
    assert verify(events) is None
    return events[-1]


WRITTEN = [
    "add('Niger', 'capital', 'Niamey')", "add('Nigeria', 'capital', 'Abuja')", "add('Niger', 'borders', 'Nigeria')",
    "add('Nigeria', 'borders', 'Benin')", "add('Abuja', 'sung of in', 'Nigeria')",
]  # fmt: skip


def test_reading_nigeria_does_not_cite_niger():
    answer = answered(
        WRITTEN,
        "result = [v for u, v, d in G.edges(data=True) if u == 'Nigeria' and d['relation'] == 'capital']",
    )
    assert answer.evidence == ("Nigeria --[capital]--> Abuja",)


def test_a_fact_cites_the_sentence_that_says_it_and_not_every_passage_of_its_call():
    answer = answered(WRITTEN, "result = facts('Nigeria', 'capital')")
    assert answer.supports == ((Support("g", "Nigeria has Abuja as its capital."),),)
    assert answer.passages == ("g",)


def test_a_fact_that_no_sentence_says_cites_none():
    answer = answered(["add('Nigeria', 'capital', 'Lagos')"], "result = facts('Nigeria')")
    assert answer.evidence == ("Nigeria --[capital]--> Lagos",)
    assert answer.supports == ((),)
    assert answer.passages == ()


@every(
    ("edge", "text", "found"),
    [
        (Edge("Niger", "capital", "Niamey"), "Nigeria has no capital Niamey.", False),
        (Edge("Ada", "born in", "London"), "She was born in London.", True),  # under the title Ada
        (Edge("Ada", "born in", "London"), "Babbage was born in Londonderry.", False),
        (Edge("Marie_Curie", "WON", "Nobel Prize"), "Marie Curie won the Nobel Prize.", True),
        (Edge("Marie Curie", "BORN_IN", "Paris"), "Marie Curie died near Paris in 1934.", False),
        (Edge("Marie Curie", "diedIn", "Paris"), "Marie Curie left Paris.", False),
        (Edge("Marie Curie", "diedIn", "Paris"), "Marie Curie died in Paris.", True),
    ],
)
def test_a_sentence_says_a_fact_when_it_names_both_ends(edge, text, found):
    assert bool(sentences_stating(edge, [Document("d", text, "Ada")])) is found


def test_of_the_sentences_that_name_both_ends_those_with_the_relation_are_cited():
    (support,) = sentences_stating(Edge("Nigeria", "has capital", "Abuja"), AFRICA)
    assert support == Support("g", "Nigeria has Abuja as its capital.")


def test_a_fact_keeps_all_its_supports_and_says_no_prompt_of_them_twice():
    documents = [
        Document("a", "Ada was born in London.", "Ada"),
        Document("b", "Ada was born in London in 1815.", "Ada (again)"),
    ]
    look = {"answer": "London", "choice": "RETRIEVE", "about": ["Ada"], "missing": ""}
    llm = scripted(
        extract="Ada | born in | London",
        look=look,
        names={"about": ["Ada"]},
        next={"about": []},
        parse={"answer": "London"},
        tools=call("Ada"),
    )
    tool = search(documents, bm25(documents), k=2)
    with open_store("in_memory") as store:
        events = list(
            think("Where was Ada born?", llm, store, [tool], LOCAL.but(tool_tokens=400, unpolled=1))
        )
        (edge,) = store.graph().edges
    assert {support.source for support in supports_of(edge.properties)} == {"a", "b"}
    assert set(events[-1].supports[0]) == {
        Support("a", "Ada was born in London."),
        Support("b", "Ada was born in London in 1815."),
    }
    assert of(Wrote, events) and verify(events) is None


@pytest.mark.parametrize("kind", LANGUAGES)
def test_several_supports_come_back_from_a_store_in_each_language(kind):
    supports = (Support("a", "One says it."), Support("b", "Two 'say' it."))
    with open_store(kind) as store:
        store.write(store.dialect.add([(Triple("Ada", "born in", "London"), support_properties(supports))]))
        (edge,) = store.graph().edges
    assert supports_of(edge.properties) == supports


def test_one_support_is_noted_as_plain_texts_and_an_odd_note_is_no_error():
    assert support_properties([Support("a", "s"), Support("a", "s")]) == {"source": "a", "sentence": "s"}
    assert supports_of({"source": ["d1"], "sentence": None}) == (Support("d1", ""),) and supports_of({}) == ()


# --- chains of several edges ---

TRAVELS = [  # Ada --born in--> London --part of--> England --ruled by--> Victoria, and what stands near it
    ("Ada", "born in", "London"), ("London", "part of", "England"), ("England", "ruled by", "Victoria"),
    ("Ada", "died in", "Marylebone"), ("Marylebone", "part of", "England"),  # the same ends over another relation
    ("Ada", "lived in", "Surrey"), ("Surrey", "in part of", "England"),  # whose name holds the one that is asked for
    ("Babbage", "born in", "Teignmouth"), ("Teignmouth", "part of", "England"),
    ("Ada", "visited", "England"), ("Ada", "wrote to", "Victoria"),  # straight edges that nobody asked about
    ("Kent", "part of", "Ada"), ("Kent", "born in", "England"),  # the same relations in the other order
    ("Ada", "knows", "Mary"), ("Mary", "knows", "Charles"), ("Ada", "knows", "Charles"),
]  # fmt: skip
BORN = "Ada --[born in]--> London"
IN_ENGLAND = "London --[part of]--> England"
RULED = "England --[ruled by]--> Victoria"
CHAINS = {
    "two edges": {
        "in_memory": "result = [g['object'] for f in facts('Ada', 'born in') for g in facts(f['object'], 'part of')]",
        "cypher_embedded": "MATCH ({id: 'Ada'})-[:`born in`]->()-[:`part of`]->(c) RETURN c.id AS country",
        "sparql_embedded": "SELECT ?c WHERE { :Ada :born_in/:part_of ?c }",
    },
    "three edges": {
        "in_memory": (
            "result = [h['object'] for f in facts('Ada', 'born in') for g in facts(f['object'], 'part of') "
            "for h in facts(g['object'], 'ruled by')]"
        ),
        "cypher_embedded": "MATCH ({id: 'Ada'})-[:`born in`]->()-[:`part of`]->()-[:`ruled by`]->(q) RETURN q.id",
        "sparql_embedded": "SELECT ?q WHERE { :Ada :born_in ?p . ?p :part_of ?c . ?c :ruled_by ?q }",
    },
    "both ends returned": {
        "in_memory": (
            "result = [{'who': f['subject'], 'queen': h['object']} for f in facts('London', 'born in') "
            "for g in facts(f['object'], 'part of') for h in facts(g['object'], 'ruled by') if f['subject'] == 'Ada']"
        ),
        "cypher_embedded": (
            "MATCH (a)-[:`born in`]->({name: 'big'})-[:`part of`]->()-[:`ruled by`]->(q) RETURN a.id, q.id"
        ),
        "sparql_embedded": "SELECT ?a ?q WHERE { ?a :born_in ?p . ?p :part_of ?c . ?c :ruled_by ?q . ?p :name \"big\" }",
    },
    "the middle returned": {
        "in_memory": (
            "result = [[f['object'], g['object']] for f in facts('Ada', 'born in') if f['subject'] == 'Ada' "
            "for g in facts(f['object'], 'part of') for h in facts(g['object'], 'ruled by')]"
        ),
        "cypher_embedded": "MATCH ({id: 'Ada'})-[:`born in`]->(b)-[:`part of`]->(c)-[:`ruled by`]->() RETURN b.id, c.id",
        "sparql_embedded": "SELECT ?b ?c WHERE { :Ada :born_in ?b . ?b :part_of ?c . ?c :ruled_by ?q }",
    },
    "against the edges": {
        "in_memory": (
            "result = [f['subject'] for g in facts('England', 'part of') for f in facts(g['subject'], 'born in') if f['subject'] == 'Ada']"
        ),
        "cypher_embedded": "MATCH ({id: 'England'})<-[:`part of`]-()<-[:`born in`]-(who {age: 36}) RETURN who.id",
        "sparql_embedded": "SELECT ?who WHERE { ?p :part_of :England . ?who :born_in ?p ; :age 36 }",
    },
    "one relation twice": {
        "in_memory": (
            "result = [g['object'] for f in facts('Ada', 'knows') if f['subject'] == 'Ada' for g in facts(f['object'], 'knows') "
            "if g['subject'] == f['object']]"
        ),
        "cypher_embedded": "MATCH ({id: 'Ada'})-[:knows]->()-[:knows]->(c) RETURN c.id",
        "sparql_embedded": "SELECT ?c WHERE { :Ada :knows/:knows ?c }",
    },
}  # fmt: skip
RESTS_ON = {
    "two edges": {BORN, IN_ENGLAND},
    "three edges": {BORN, IN_ENGLAND, RULED},
    "both ends returned": {BORN, IN_ENGLAND, RULED},
    "the middle returned": {BORN, IN_ENGLAND},
    "against the edges": {BORN, IN_ENGLAND},
    "one relation twice": {"Ada --[knows]--> Mary", "Mary --[knows]--> Charles"},
}


@pytest.fixture(scope="module", params=LANGUAGES)
def travels(request):
    """A store that holds chains of edges, and others that end at the same nodes."""
    graph = PropertyGraph.of(
        [Node("Ada", (), {"age": 36}), Node("London", (), {"name": "big"})],
        [Edge(*triple) for triple in TRAVELS],
        dangling="add",
    )
    with open_store(request.param) as store:
        store.apply(store.graph().diff(graph))
        yield request.param, store


def rests_on(store, statement):
    llm = scripted(forced={"statement": statement}, parse={"answer": "so"})
    *_, answer = think("Who or what is it?", llm, store, [], FEW.but(forced_reads=1))
    return answer


@pytest.mark.parametrize("asked", CHAINS)
def test_a_row_at_the_end_of_a_chain_rests_on_its_edges_and_on_no_other_chain(travels, asked):
    kind, store = travels
    answer = rests_on(store, CHAINS[asked][kind])
    assert set(answer.evidence) == RESTS_ON[asked] and not answer.forced


@pytest.mark.parametrize("asked", ["two edges", "three edges"])
def test_in_a_large_graph_chains_are_found_too(travels, asked, monkeypatch):
    kind, store = travels
    monkeypatch.setattr("kgot_lab.loop.evidence._MAX_INDEXED", 0)
    assert set(rests_on(store, CHAINS[asked][kind]).evidence) == RESTS_ON[asked]


def test_a_chain_whose_relations_are_not_named_is_not_cited(travels):
    kind, store = travels
    anywhere = {
        "in_memory": "result = [g['object'] for f in facts('Babbage') for g in facts(f['object']) if g['subject'] == f['object']]",
        "cypher_embedded": "MATCH ({id: 'Babbage'})-[*2..2]->(c) RETURN c.id",
        "sparql_embedded": "SELECT ?c WHERE { :Babbage ?r ?p . ?p ?s ?c }",
    }
    assert rests_on(store, anywhere[kind]).evidence == ()


@pytest.mark.extended
def test_of_very_many_chains_that_over_the_named_node_is_cited_or_else_a_few():
    edges = [Edge("Hub", "feeds", f"n{number}") for number in range(2000)] + [
        Edge(f"n{number}", "fills", "Sea") for number in range(2000)
    ]
    with open_store("in_memory") as many:
        many.apply(many.graph().diff(PropertyGraph.of((), edges, dangling="add")))
        named = rests_on(
            many, "near = facts('Hub', 'feeds')\nresult = [g['object'] for g in facts('n1900', 'fills')]"
        )
        any_of_them = rests_on(
            many,
            "near = facts('Hub', 'feeds')\nresult = [g['object'] for g in facts(near[0]['object'], 'fills')]",
        )
    assert set(named.evidence) == {"Hub --[feeds]--> n1900", "n1900 --[fills]--> Sea"}
    assert len(any_of_them.evidence) == 6
    assert {fact.split("--")[1] for fact in any_of_them.evidence} == {"[feeds]", "[fills]"}
