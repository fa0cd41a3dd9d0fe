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
from kgot_lab.loop.events import Forced, Read, Vote, Wrote
from kgot_lab.loop.evidence import carrying_edges, sentences_stating
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


def test_a_vote_that_returns_a_constant_is_no_retrieve_and_the_answer_is_a_guess():
    samples = [{"choice": "RETRIEVE", "text": "result = ['Mogadishu']"}] * 10
    told = {
        "vote": samples,
        "tools": call(),
        "write": {"statements": []},
        "forced": {"statement": "result = ['Mogadishu']"},
    }
    llm = scripted(**told, reread={"statement": "result = ['Mogadishu']"}, guess={"answer": "Mogadishu"})
    with open_store("in_memory") as store:
        events = list(think("What is the capital?", llm, store, [search(ADA, bm25(ADA))], FEW))
    assert {vote.choice for vote in of(Vote, events)} == {"INSERT"}
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
    "relations that are not named": {
        "in_memory": "result = [g['object'] for f in facts('Babbage') for g in facts(f['object']) if g['subject'] == f['object']]",
        "cypher_embedded": "MATCH ({id: 'Babbage'})-[*2..2]->(c) RETURN c.id",
        "sparql_embedded": "SELECT ?c WHERE { :Babbage ?r ?p . ?p ?s ?c }",
    },
    "a scan with a condition": {
        "in_memory": "result = [v for u, v, d in G.edges(data=True) if u == 'Ada' and d['relation'] == 'born in']",
        "cypher_embedded": "MATCH (a)-[r]->(b) WHERE a.id = 'Ada' AND type(r) = 'born in' RETURN b.id",
        "sparql_embedded": "SELECT ?b WHERE { ?a ?r ?b FILTER(?a = :Ada && ?r = :born_in) }",
    },
    "a count": {
        "in_memory": "result = [sum(d['relation'] == 'knows' for *_, d in G.edges(data=True))]",
        "cypher_embedded": "MATCH ()-[r:knows]->() RETURN count(r) AS many",
        "sparql_embedded": "SELECT (COUNT(*) AS ?many) WHERE { ?a :knows ?b }",
    },
    "yes or no": {
        "in_memory": "result = G.has_edge('London', 'England')",
        "cypher_embedded": "MATCH (a {id: 'London'}) RETURN exists((a)-[:`part of`]->({id: 'England'})) AS known",
        "sparql_embedded": "ASK { :London :part_of :England }",
    },
    "what is missing": {
        "in_memory": "result = [G.nodes[n]['age'] for n in names() if n == 'Ada' and not G.has_edge(n, 'Kent')]",
        "cypher_embedded": "MATCH (a {id: 'Ada'}) WHERE NOT (a)-[:knows]->({id: 'Victoria'}) RETURN a.age",
        "sparql_embedded": "SELECT ?x WHERE { :Ada :age ?x MINUS { :Ada :knows :Victoria } }",
    },
    "one of two": {
        "in_memory": "result = [f['object'] for f in facts('Ada', 'painted') + facts('Ada', 'born in') if f['subject'] == 'Ada']",
        "cypher_embedded": "MATCH ({id: 'Ada'})-[:painted]->(b) RETURN b.id AS x UNION MATCH ({id: 'Ada'})-[:`born in`]->(b) RETURN b.id AS x",
        "sparql_embedded": "SELECT ?x WHERE { :Ada :painted|:born_in ?x }",
    },
    "a path of any length": {
        "in_memory": "result = [nx.shortest_path(G, 'Babbage', 'Victoria')]",
        "cypher_embedded": "MATCH ({id: 'Babbage'})-[*1..4]->(q {id: 'Victoria'}) RETURN q.id",
        "sparql_embedded": "SELECT ?q WHERE { :Babbage :born_in/:part_of+/:ruled_by ?q }",
    },
    "a node": {
        "in_memory": "result = [G.nodes['Ada']['age']]",
        "cypher_embedded": "MATCH (a {id: 'Ada'}) RETURN a.age",
        "sparql_embedded": "SELECT ?age WHERE { :Ada :age ?age }",
    },
}  # fmt: skip
KNOWS = {"Ada --[knows]--> Mary", "Mary --[knows]--> Charles", "Ada --[knows]--> Charles"}
BABBAGE = {"Babbage --[born in]--> Teignmouth", "Teignmouth --[part of]--> England"}
RESTS_ON = {
    "two edges": {BORN, IN_ENGLAND},
    "three edges": {BORN, IN_ENGLAND, RULED},
    "both ends returned": {BORN, IN_ENGLAND, RULED},
    "the middle returned": {BORN, IN_ENGLAND, RULED},
    "against the edges": {BORN, IN_ENGLAND},
    "one relation twice": {"Ada --[knows]--> Mary", "Mary --[knows]--> Charles"},
    "relations that are not named": BABBAGE,
    "a scan with a condition": {BORN},
    "a count": KNOWS,
    "yes or no": {IN_ENGLAND},
    "what is missing": set(),
    "one of two": {BORN},
    "a path of any length": BABBAGE | {RULED},
    "a node": set(),
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
def test_a_row_rests_on_the_edges_without_which_it_is_not_read(travels, asked):
    kind, store = travels
    about = store.dialect.about(["Ada"], 2)
    before = store.graph(), store.read(about)
    answer = rests_on(store, CHAINS[asked][kind])
    assert set(answer.evidence) == RESTS_ON[asked] and not answer.forced
    assert (store.graph(), store.read(about)) == before


@pytest.mark.parametrize("asked", ["two edges", "three edges"])
def test_in_a_large_graph_chains_are_found_too(travels, asked, monkeypatch):
    kind, store = travels
    monkeypatch.setattr("kgot_lab.stores.provenance._MAX_EDGES", 15)
    assert set(rests_on(store, CHAINS[asked][kind]).evidence) == RESTS_ON[asked]


def test_a_store_that_runs_nothing_here_cites_the_edges_between_the_names(travels, monkeypatch):
    kind, store = travels
    monkeypatch.setattr("kgot_lab.stores.provenance._MAX_READS", 0)
    assert set(rests_on(store, CHAINS["a scan with a condition"][kind]).evidence) == {BORN}


@pytest.mark.extended
def test_of_very_many_chains_one_is_cited():
    edges = [Edge("Hub", "feeds", f"n{number}") for number in range(2000)] + [
        Edge(f"n{number}", "fills", "Sea") for number in range(2000)
    ]
    with open_store("in_memory") as many:
        many.apply(many.graph().diff(PropertyGraph.of((), edges, dangling="add")))
        read = (
            "result = [g['object'] for f in facts('Hub', 'feeds') for g in facts(f['object'], 'fills')][:1]"
        )
        evidence = rests_on(many, read).evidence
    assert len(evidence) == 2 and evidence[0].partition("--> ")[2] == evidence[1].partition(" --")[0]


# --- the facts that carry an answer ---

HALDEN = [
    ("Halden Steel", "built", "Morrow Bridge"), ("Morrow Bridge", "crosses", "Tessin"), ("Edda R.", "founded", "Halden Steel"),
    ("Halden Steel", "founded by", "Edda R."), ("Edda R.", "visited", "Rome"),
]  # fmt: skip
OSK = [
    ("Ada", "born in", "Osk"), ("Ada", "died in", "Rome"), ("Bob", "born in", "Osk"), ("Osk", "has mayor", "Odo Castrell"),
    ("Odo Castrell", "visited", "Rome"), ("Osk", "lies in", "Norway"), ("Oslo", "lies in", "Norway"),
]  # fmt: skip
AGES = [
    ("Ada", "born in", "1815"),
    ("Ada", "lived in", "Surrey"),
    ("Bob", "born in", "1820"),
    ("Carl", "born in", "1700"),
]
WORKS = [("Odo", "born in", "1800"), *(("Odo", "built", f"bridge {name}") for name in "ABCDE")]
WARD = [
    ("Transfiguration", "is the third album by", "singer M. Ward"), ("M. Ward", "is from", "Portland, Oregon"),
    ("We Move", "is the third album by", "James McMorrow"), ("M. Ward", "born in", "1973"),
]  # fmt: skip
BEER = [("Beer Company", "founded in", "1984"), ("Kathi", "resigned to", "lobby")]
STORM = [
    ("La Nina", "contributed to", "winter storm"),
    ("Arctic air", "caused", "winter storm"),
    ("La Nina", "lasted until", "May"),
]


@every(
    ("facts", "question", "answer", "carrying"),
    [
        (OSK, "Where was Ada born?", "Osk", [0]),
        (OSK, "Where did Ada die?", "Rome", [1]),
        (OSK, "Who is the mayor of Osk?", "Odo Castrell", [3]),
        (OSK, "Who is the mayor of the town where Ada was born?", "Odo Castrell", [3, 0]),
        (OSK, "In which country was Bob born?", "Norway", [5, 2]),
        (OSK, "Is it true that Osk lies in Norway?", "yes", [5]),
        (OSK, "Does Osk or Rome lie in Norway?", "Osk", [5]),
        (HALDEN, "Who founded the company that built the Morrow Bridge?", "Edda R.", [2, 0]),
        (HALDEN, "What crosses the Tessin?", "the Morrow Bridge", [1]),
        (AGES, "Who was born earlier, Ada or Bob?", "Ada", [0, 2]),
        (AGES, "When was Bob born?", "in 1820", [2]),
        (WORKS, "How many bridges were built by Odo?", "5", [1, 2, 3]),
        (WORKS, "Which bridges did Odo build?", "bridge B, bridge D", [2, 4]),
        (WORKS, "Which bridges did Odo build?", "bridge A, bridge B, bridge C, bridge D and bridge E", [1, 2, 3]),
        (WARD, "Transfiguration is the third album by a singer from what state?", "Oregon", [1, 0]),
        (WARD, "From where is M. Ward?", "Portland", [1]),
        (STORM, "Why was there a winter storm?", "Arctic air caused it, and La Nina contributed.", [0, 1, 2]),
        (BEER, "When was the company founded that Kathi joined?", "1984", [0]),
        ([("奥斯克", "市长", "李明"), ("北京", "市长", "王五")], "奥斯克的市长是谁？", "李明", [0]),
        ([("Osk", "Bürgermeister", "Ünal Öz"), ("Ulm", "Bürgermeister", "Ina Au")], "Wer ist Bürgermeister von Osk?", "Ünal Öz", [0]),
        ([], "Who?", "Ada", []),
    ],
)  # fmt: skip
def test_the_facts_that_carry_an_answer_are_few_and_linked(facts, question, answer, carrying):
    edges = [Edge(*fact) for fact in facts]
    found = carrying_edges(edges, question, answer, 3)
    assert sorted(map(edges.index, found)) == sorted(carrying)


# An answer that goes out is checked against the facts that it was read from.

CHECKED = FEW.but(forced_reads=1, arithmetic="numbers", check_answers=True)
BY_NAMES = LOCAL.but(check_answers=True)
BRIDGE = "Odo Castrell designed a bridge near Osk."
OSK = PropertyGraph.of(
    [Node("Osk", (), {"people": 4000})],
    [
        Edge("Odo Castrell", "designed", "Osk Bridge", {"source": "d1", "sentence": BRIDGE}),
        Edge("Osk Bridge", "opened in", "9 May 1911", {"source": "d1", "sentence": "It opened on 9 May 1911."}),
        Edge("Osk", "capital_of", "Tellmark"),
        *(Edge(name, "lives_in", "Osk") for name in ("Ada", "Bo", "Cy")),
        Edge("Ada", "born in", "1990"), Edge("Bo", "born in", "1985"),
    ],
    dangling="add",
)  # fmt: skip
SAYS, ALL = "supported", "result = facts()"
SILENT, UNSURE = "not in the sources", "unsure"
NOT_OF_BRASK = "no text that was read says this of Brask"
HEADS = "How many people live in Osk?"
JUDGED = [  # question, what is read (a statement, or names), answer, the reply of the check, outcome, what is missing
    ("Of what is Osk the capital?", "Osk", "Tellmark", "yes", SAYS, ""),
    ("Of what is Osk the capital?", "result = facts('Osk')", "Tellmark", "yes", SAYS, ""),
    ("Who is the mayor of Osk?", "Osk", "Odo Castrell", "no", SILENT, "no text that was read answers: Who is the mayor of Osk?"),
    ("Who is the mayor of Osk?", "Osk", "Anton Brug", "yes", UNSURE, "nothing that was read has Anton Brug"),
    ("Who is the mayor of Osk?", "Osk", "unknown", "", SILENT, "what was read does not say it"),
    ("Who is the mayor of Brask?", "Osk", "Odo Castrell", "yes", SILENT, NOT_OF_BRASK),
    ("Who designed Osk Bridge?", ALL, "Odo Castrell", "yes", SAYS, ""),
    ("When was Osk Bridge opened?", ALL, "1911-05-09", "yes", SAYS, ""),
    ("When was Osk Bridge opened?", ALL, "9 May 1912", "yes", UNSURE, "nothing that was read has 9 May 1912"),
    ("Who lives in Osk?", ALL, "Cy, Ada and Bo", "yes", SAYS, ""),
    ("Does Ada live in Osk?", ALL, "yes", "yes", SAYS, ""),
    ("Does Ada live in Osk?", ALL, "no", "no", SILENT, "no text that was read answers: Does Ada live in Osk?"),
    ("Who was born first, Ada or Bo?", ALL, "Bo", "yes", SAYS, ""),
    (HEADS, "result = [len(facts(relation='lives_in'))]", "3", "", SAYS, ""),
    (HEADS, "result = [sum(1 for f in facts('Osk') if f['relation'] == 'lives_in')]", "3", "", SAYS, ""),
    (HEADS, ALL, "3", "yes", SAYS, ""),
    (HEADS, ALL, "7", "yes", UNSURE, "nothing that was read has 7"),
    (HEADS, "result = [G.nodes['Osk']['people']]", "4,000", "yes", SAYS, ""),
    ("How many people live in Brask?", "result = [len(facts(relation='lives_in'))]", "3", "yes", SILENT, NOT_OF_BRASK),
    (HEADS, "result = []", "12", "", SILENT, ""),
]  # fmt: skip


@pytest.mark.parametrize(("question", "read", "answer", "check", "outcome", "missing"), JUDGED)
def test_an_answer_is_supported_if_the_facts_that_were_read_say_it(
    question, read, answer, check, outcome, missing
):
    by_names = "=" not in read
    reading = {"names": {"about": [read]}} if by_names else {"forced": {"statement": read}}
    asked = {"check": check, "claim": answer} if check else {}
    llm = scripted(
        **reading, reread={"statement": read}, parse={"answer": answer}, guess={"answer": answer}, **asked, **{"arithmetic?": {"needed": False}}
    )  # fmt: skip
    with open_store("in_memory") as store:
        store.apply(store.graph().diff(OSK))
        *_, final = think(question, llm, store, [], BY_NAMES if by_names else CHECKED)
    assert (final.text, final.outcome, final.missing) == (answer, outcome, missing)
    assert final.forced == (outcome != SAYS)
