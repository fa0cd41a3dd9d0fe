"""A fact that a second source says gains a support and loses none: in every language, in every way of
writing.
"""

from __future__ import annotations

import pytest
from support.every import every
from support.loop_script import FEW, call, of, scripted, votes
from support.store_kinds import KINDS, SQL, opened

from kgot_lab.graph.changes import Support, support_properties, supports_of
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered
from kgot_lab.loop.insert import write_statement
from kgot_lab.loop.limits import LOCAL
from kgot_lab.loop.modes.paths.mentions import mention_facts, new_sentences
from kgot_lab.loop.replay.replay import verify
from kgot_lab.loop.trace import graph_after
from kgot_lab.memory.extraction import SourcedSentence, grounded_facts
from kgot_lab.sandbox.python.helpers import SAYS_SENTENCE
from kgot_lab.stores import open_store
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Document, Prompt, Triple

pytestmark = pytest.mark.extended

QUESTION = "Where was Ada Lovelace born?"
LANGUAGES = ("in_memory", "cypher_embedded", "sparql_embedded", "fused")
ONE = Document("d1", "Ada Lovelace was born in London in 1815.", "Ada Lovelace")
OTHER = Document("d2", "In 1815 Ada Lovelace was born in London, as the Peerage has it.", "Peerage")
BOTH = {Support(ONE.id, ONE.text), Support(OTHER.id, OTHER.text)}
LOOKS = (("unknown", "INSERT"), ("London", "RETRIEVE"))
FACT = ("Ada Lovelace", "born in", "London")


def told(query: str) -> Result:
    found = ONE if query == "Ada Lovelace" else OTHER
    return Result(found.text, (found,))


LOOK = TextTool("search", "Finds.", {"query": "words"}, told, finds="query")


def adding(kind: str, document: Document | None = None) -> str:
    """The statement by which a model writes the fact, perhaps with where it has it from, in a language."""
    if kind == "cypher_embedded":
        noting = (
            "" if document is None else f" SET r.source = '{document.id}', r.sentence = '{document.text}'"
        )
        return f"MERGE (a {{id: 'Ada Lovelace'}}) MERGE (b {{id: 'London'}}) MERGE (a)-[r:`born in`]->(b){noting}"
    if kind == "sparql_embedded":
        parts = ":Ada_Lovelace ; rdf:predicate :born_in ; rdf:object :London"
        noting = (
            ""
            if document is None
            else f" . [] rdf:subject {parts} ; :source '{document.id}' ; :sentence '{document.text}'"
        )
        return f"INSERT DATA {{ :Ada_Lovelace :born_in :London{noting} }}"
    noting = "" if document is None else f", source={document.id!r}, sentence={document.text!r}"
    return f"add('Ada Lovelace', 'born in', 'London'{noting})"


def reading(kind: str) -> str:
    return {
        "cypher_embedded": "MATCH (a {id: 'Ada Lovelace'})-[r]->(b) RETURN b.id AS place",
        "sparql_embedded": "SELECT ?place WHERE { :Ada_Lovelace :born_in ?place }",
    }.get(kind, "result = facts('Ada Lovelace')")


def _other_reading(prompt: Prompt) -> dict[str, str]:
    """The statement that a mirror in another language is asked with."""
    return {
        "statement": reading(
            "sparql_embedded" if "Begin with SELECT" in prompt.messages[-1].text else "cypher_embedded"
        )
    }


@every("noting", [True, False], ids=["the model notes its source", "the model notes nothing"])
@every("kind", LANGUAGES)
def test_a_fact_that_two_statements_write_rests_on_both_sources(kind, noting):
    retrieve = {"choice": "RETRIEVE", "text": reading(kind)}
    statements = [{"statements": [adding(kind, document if noting else None)]} for document in (ONE, OTHER)]
    model = scripted(
        vote=[*votes(*"IIIIII"), retrieve, retrieve, retrieve], tools=[call(), call("Peerage")], write=statements,
        parse={"answer": "London"}, **{"read in": _other_reading},
    )  # fmt: skip
    store = open_store(kind)
    events = list(think(QUESTION, model, store, [LOOK], FEW.but(steps=3)))
    kept = {
        s for edge in store.graph().edges if edge.identity[:3] == FACT for s in supports_of(edge.properties)
    }
    store.close()
    (final,) = of(Answered, events)
    # in RDF two descriptions are two edges
    assert set().union(*final.supports) == BOTH and set(final.passages) == {"d1", "d2"}
    assert kept == (BOTH if noting else set()) and verify(events) is None


@pytest.mark.parametrize("kind", LANGUAGES)
def test_a_fact_that_is_read_from_two_documents_notes_both(kind):
    limits = LOCAL.but(open_with_question=False, unpolled=0, votes=1)
    store = open_store(kind)
    runs = [
        list(think(QUESTION, _searching(query), store, [LOOK], limits))
        for query in ("Ada Lovelace", "Peerage")
    ]
    store.close()
    kept = [
        set(supports_of(edge.properties)) for edge in graph_after(runs[-1]).edges if edge.identity[:3] == FACT
    ]
    assert kept == [BOTH] and [verify(events) for events in runs] == [None, None]


def _searching(query: str):
    """A model in the mode of operations that looks one thing up before it answers."""
    looks = [
        {"answer": answer, "choice": choice, "about": ["Ada Lovelace"], "missing": ""}
        for answer, choice in LOOKS
    ]
    said = "Ada Lovelace | born in | London"
    names = {"about": ["Ada Lovelace"]}
    return scripted(
        look=looks,
        tools=call(query),
        next={"about": [query]},
        names=names,
        extract=said,
        parse={"answer": "London"},
    )


@pytest.mark.parametrize("kind", LANGUAGES)
def test_a_sentence_that_two_documents_say_keeps_both_and_so_does_the_fact_in_it(kind):
    same = Document("d9", ONE.text, ONE.title)
    store = open_store(kind)
    for document in (ONE, same, OTHER, ONE):
        if new := new_sentences([document], store):
            write_statement(store, store.dialect.add(mention_facts(new, [document.title])))
        read = SourcedSentence(document.text, document.title, document.id, 0)
        write_statement(store, store.dialect.add(grounded_facts([(Triple(*FACT), read)], store)))
    edges = store.graph().edges
    store.close()
    every = {*BOTH, Support("d9", ONE.text)}
    assert {s for edge in edges if edge.type == SAYS_SENTENCE for s in supports_of(edge.properties)} == every
    assert [set(supports_of(edge.properties)) for edge in edges if edge.identity[:3] == FACT] == [every]


# --- every store to which a model writes, servers too ---


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.statements is not SQL], ids=str)
def test_no_store_loses_a_support_that_a_statement_writes_over(kind, tmp_path, request):
    with opened(kind.open(tmp_path, request)) as store:
        for document in (ONE, OTHER, ONE):
            diff = write_statement(
                store,
                store.dialect.add(
                    [(Triple(*FACT), support_properties([Support(document.id, document.text)]))]
                ),
            )
        assert not diff, "what is known is learnt again and changes nothing"
        (edge,) = [edge for edge in store.neighbours("Ada Lovelace") if edge.identity[:3] == FACT]
        assert set(supports_of(edge.properties)) == BOTH
