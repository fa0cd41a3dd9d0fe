"""What an answer rests on: rows that were read, the facts they speak of, and the sentences that say them; near misses are planted."""

from __future__ import annotations

import pytest
from support.loop_script import ADA, FEW, call, of, scripted, votes

from kgot_lab.loop.again.replay import verify
from kgot_lab.loop.events import Ballot, Forced, Read, Wrote
from kgot_lab.loop.evidence import saying
from kgot_lab.loop.grounding import constants
from kgot_lab.loop.limits import LOCAL
from kgot_lab.loop.supports import Support, note, noted
from kgot_lab.loop.walk import think
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.types import Document, Edge, Triple

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
        assert rows and constants(store, statement, rows) == tuple(range(len(rows))), statement


def test_rows_that_were_read_or_counted_are_not(filled):
    kind, store = filled
    for statement in READ[kind]:
        rows = store.read(statement)
        assert rows and constants(store, statement, rows) == (), statement


def test_of_a_union_the_branch_that_reads_counts(filled):
    kind, store = filled
    if kind == "cypher_embedded":
        statement = "MATCH (n {id: 'Ada'}) RETURN n.id AS x UNION RETURN 'Return' AS x"
        assert constants(store, statement, store.read(statement)) == (1,)


def test_nothing_is_read_from_an_empty_graph():
    with open_store("in_memory") as store:
        assert constants(store, "result = [len(G)]", (0,)) == (0,)


def test_a_ballot_that_returns_a_constant_is_no_retrieve_and_the_answer_is_a_guess():
    ballots = [{"choice": "RETRIEVE", "text": "result = ['Mogadishu']"}] * 10
    told = {"vote": ballots, "tools": call(), "write": {"statements": []}, "forced": {"statement": "result = ['Mogadishu']"}}
    llm = scripted(**told, reread={"statement": "result = ['Mogadishu']"}, guess={"answer": "Mogadishu"})
    with open_store("in_memory") as store:
        events = list(think("What is the capital?", llm, store, [search(ADA, bm25(ADA))], FEW))
    assert {ballot.choice for ballot in of(Ballot, events)} == {"INSERT"}
    assert all(read.constant == (0,) and read.grounded == () for read in of(Read, events))
    assert [forced.what for forced in of(Forced, events)] == ["read", "answer"]
    assert (events[-1].text, events[-1].forced, events[-1].evidence) == ("Mogadishu", True, ())


AFRICA = [
    Document("n", "Niger borders Nigeria. Niger has Niamey as its capital.", "Niger"),
    Document("g", "Nigeria has Abuja as its capital. Nigeria borders Benin.", "Nigeria"),
    Document("x", "Abuja and Nigeria are in a song. The capital of song is Benin City.", "A song"),
]


def answered(statements, read, documents=AFRICA, question="What is the capital of Nigeria?", **limits):
    told = {"vote": [*votes("I", "I", "I"), *[{"choice": "RETRIEVE", "text": read}] * 3], "tools": call("Nigeria capital Niger Benin song")}
    llm = scripted(**told, write={"statements": statements}, parse={"answer": "Abuja"})
    with open_store("in_memory") as store:
        events = list(think(question, llm, store, [search(documents, bm25(documents), k=3)], FEW.but(**limits)))
    assert verify(events) is None
    return events[-1]


WRITTEN = [
    "add('Niger', 'capital', 'Niamey')", "add('Nigeria', 'capital', 'Abuja')", "add('Niger', 'borders', 'Nigeria')",
    "add('Nigeria', 'borders', 'Benin')", "add('Abuja', 'sung of in', 'Nigeria')",
]  # fmt: skip


def test_reading_nigeria_does_not_cite_niger():
    answer = answered(WRITTEN, "result = [v for u, v, d in G.edges(data=True) if u == 'Nigeria' and d['relation'] == 'capital']")
    assert answer.evidence == ("Nigeria --[capital]--> Abuja",)


def test_a_fact_cites_the_sentence_that_says_it_and_not_every_passage_of_its_call():
    answer = answered(WRITTEN, "result = facts('Nigeria', 'capital')")
    assert answer.supports == ((Support("g", "Nigeria has Abuja as its capital."),),) and answer.passages == ("g",)


def test_a_fact_that_no_sentence_says_cites_none():
    answer = answered(["add('Nigeria', 'capital', 'Lagos')"], "result = facts('Nigeria')")
    assert answer.evidence == ("Nigeria --[capital]--> Lagos",) and answer.supports == ((),) and answer.passages == ()


@pytest.mark.parametrize(
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
    assert bool(saying(edge, [Document("d", text, "Ada")])) is found


def test_of_the_sentences_that_name_both_ends_those_with_the_relation_are_cited():
    (support,) = saying(Edge("Nigeria", "has capital", "Abuja"), AFRICA)
    assert support == Support("g", "Nigeria has Abuja as its capital.")


def test_a_fact_keeps_all_its_supports_and_says_no_prompt_of_them_twice():
    documents = [Document("a", "Ada was born in London.", "Ada"), Document("b", "Ada was born in London in 1815.", "Ada (again)")]
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
        events = list(think("Where was Ada born?", llm, store, [tool], LOCAL.but(tool_tokens=400, unpolled=1)))
        (edge,) = store.graph().edges
    assert {support.source for support in noted(edge.properties)} == {"a", "b"}
    assert set(events[-1].supports[0]) == {Support("a", "Ada was born in London."), Support("b", "Ada was born in London in 1815.")}
    assert of(Wrote, events) and verify(events) is None


@pytest.mark.parametrize("kind", LANGUAGES)
def test_several_supports_come_back_from_a_store_in_each_language(kind):
    supports = (Support("a", "One says it."), Support("b", "Two 'say' it."))
    with open_store(kind) as store:
        store.write(store.dialect.add([(Triple("Ada", "born in", "London"), note(supports))]))
        (edge,) = store.graph().edges
    assert noted(edge.properties) == supports


def test_one_support_is_noted_as_plain_texts_and_an_odd_note_is_no_error():
    assert note([Support("a", "s"), Support("a", "s")]) == {"source": "a", "sentence": "s"}
    assert noted({"source": ["d1"], "sentence": None}) == (Support("d1", ""),) and noted({}) == ()
