"""The loop in every language, embedded: written, read, repaired, read whole, and asked in three languages at
once.
"""

from __future__ import annotations

import pytest
from support.loop_script import ADA, FEW, call, of, scripted, votes

from kgot_lab.errors import QueryFailed
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Read, Refused, Repaired, Started, Wrote
from kgot_lab.loop.limits import LOCAL
from kgot_lab.loop.replay.replay import fork, verify
from kgot_lab.loop.trace import record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import open_for, open_fused
from kgot_lab.stores.provenance import flatten_facts
from kgot_lab.tools.search import search
from kgot_lab.types import Diff, Edge, Node

QUESTION = "In which year was Ada Lovelace born?"
LANGUAGES = {
    "Python (NetworkX)": (
        "add('Ada Lovelace', 'born in', 'London', subject_label='Person', object_label='City', year=1815)",
        "result = [fact['year'] for fact in facts('Ada Lovelace', 'born in')]",
    ),
    "Cypher": (
        "MERGE (a:Person {id: 'Ada Lovelace'}) MERGE (b:City {id: 'London'}) MERGE (a)-[r:`born in`]->(b) SET r.year = 1815",
        "MATCH (:Person {id: 'Ada Lovelace'})-[r:`born in`]->() RETURN r.year AS year",
    ),
    "SPARQL": (
        "INSERT DATA { :Ada_Lovelace a :Person ; :born_in :London . :London a :City . "
        "[] a rdf:Statement ; rdf:subject :Ada_Lovelace ; rdf:predicate :born_in ; rdf:object :London ; :year 1815 }",
        "SELECT ?year WHERE { [] rdf:subject :Ada_Lovelace ; rdf:predicate :born_in ; :year ?year }",
    ),
}
BORN = Edge("Ada Lovelace", "born in", "London", {"year": 1815})
ANSWER = {
    "parse": {"answer": "1815"},
    "choose": {"number": 1},
    "guess": {"answer": "a guess"},
    "tools": call(),
    "merge": {"reason": "more"},
}


@pytest.fixture(scope="module")
def stores():
    opened = {name: open_for(name) for name in LANGUAGES}
    yield opened
    for store in opened.values():
        store.close()


@pytest.fixture(params=LANGUAGES)
def language(request):
    return request.param


@pytest.fixture
def store(language, stores):
    empty(stores[language])
    return stores[language]


def empty(store):
    graph = store.graph()
    store.apply(Diff(removed_nodes=tuple(graph.nodes), removed_edges=tuple(graph.edges)))


@pytest.fixture(scope="module")
def tool():
    return search(ADA, bm25(ADA), k=2)


def samples(read):
    return [*votes(*"III"), {"choice": "RETRIEVE", "text": read}]


def test_a_graph_grows_and_is_read_in_each_language(language, store, tool):
    write, read = LANGUAGES[language]
    llm = scripted(vote=samples(read), write={"statements": [write]}, **ANSWER)
    events = list(think(QUESTION, llm, store, [tool], FEW))
    (wrote,) = of(Wrote, events)
    assert wrote.diff.added_edges == (BORN,) and len(wrote.diff.added_nodes) == 2
    assert all(row == 1815 or row == {"year": 1815} for row in of(Read, events)[-1].rows)
    assert events[0].dialect == language
    assert (events[-1].text, events[-1].forced) == ("1815", False)


def test_the_prompts_show_the_graph_as_the_language_spells_it(language, store, tool):
    write, read = LANGUAGES[language]
    llm = scripted(vote=samples(read), write={"statements": [write]}, **ANSWER)
    asked = [
        event
        for event in think(QUESTION, llm, store, [tool], FEW)
        if isinstance(event, Asked) and event.role == "vote"
    ]
    shown = asked[-1].prompt.messages[-1].text
    spelled = {
        "Python (NetworkX)": "--[born in]-->",
        "Cypher": "-[:`born in` {year: 1815}]->",
        "SPARQL": ":born_in",
    }
    assert spelled[language] in shown
    assert shown.index("2 nodes (City 1, Person 1), 1 edges (born in 1)") < shown.index(spelled[language])


def test_a_repair_prompt_shows_the_engines_own_message(language, store, tool):
    write, read = LANGUAGES[language]
    broken = write[:-8]
    llm = scripted(vote=samples(read), write={"statements": [broken]}, mend={"statement": write}, **ANSWER)
    events = list(think(QUESTION, llm, store, [tool], FEW))
    (repaired, *_), mend = (
        of(Repaired, events),
        next(event for event in of(Asked, events) if event.role == "mend"),
    )
    with pytest.raises(QueryFailed) as refused:
        store.write(broken)
    assert repaired.error == refused.value.reason and refused.value.reason in mend.prompt.messages[-1].text
    assert of(Wrote, events)[0].statement == write


def test_the_whole_graph_can_be_read_directly_in_each_language(language, store, tool):
    write, _ = LANGUAGES[language]
    llm = scripted(
        vote=[*votes(*"III"), {"choice": "RETRIEVE", "text": "1815"}], write={"statements": [write]}, **ANSWER
    )
    events = list(think(QUESTION, llm, store, [tool], FEW.but(reading="whole graph")))
    (read,) = of(Read, events)
    assert read.rows == (
        {"subject": "Ada Lovelace", "relation": "born in", "object": "London", "year": 1815},
    )
    assert events[-1].text == "1815"


def test_operations_are_spelled_in_each_language(language, store, tool):
    look = {"answer": "London", "choice": "RETRIEVE", "about": ["Ada Lovelace"], "missing": ""}
    llm = scripted(
        extract="Ada Lovelace | born in | London", look=[{**look, "answer": "unknown"}, look], next={"about": []},
        names={"about": ["London"]},
        **{**ANSWER, "parse": {"answer": "London"}},
    )  # fmt: skip
    limits = LOCAL.but(unpolled=1, votes=1, parses=1)
    events = list(think("Where was Ada Lovelace born?", llm, store, [tool], limits))
    (edge,) = store.graph().edges
    assert edge.properties == {"source": "d1", "sentence": "Ada Lovelace was born in London in 1815."}
    (fact,) = flatten_facts(of(Read, events)[-1].rows)
    assert fact == {"subject": "Ada Lovelace", "relation": "born in", "object": "London", **edge.properties}
    assert events[-1].passages == ("d1",)


# --- three languages at once ---


@pytest.fixture(scope="module")
def three():
    with open_fused() as store:
        yield store


def in_three(**changed):
    def reading(prompt):
        name = next(name for name in LANGUAGES if f"Write {name} that reads" in prompt.messages[-1].text)
        return {"statement": changed.get(name, LANGUAGES[name][1])}

    write, read = LANGUAGES["Python (NetworkX)"]
    answers = iter(["eighteen fifteen", "1815", "1815", *["1815"] * 9])
    parse = lambda prompt: {"answer": next(answers)}  # noqa: E731
    return scripted(
        vote=samples(read), write={"statements": [write]}, **{"read in": reading, **ANSWER, "parse": parse}
    )


@pytest.mark.extended
def test_candidates_of_three_languages_are_fused(three, tool):
    empty(three)
    events = list(think(QUESTION, in_three(), three, [tool], FEW.but(pool=False)))
    (begun,) = of(Started, events)
    assert (begun.dialect, begun.readers) == ("Python (NetworkX)", ("Cypher", "SPARQL"))
    assert {event.dialect for event in of(Read, events)} == {"", "Cypher", "SPARQL"}
    assert (isinstance(events[-1], Answered) and events[-1].text == "eighteen fifteen") or events[
        -1
    ].text == "1815"


@pytest.mark.extended
def test_a_language_whose_statement_fails_leaves_the_answer_to_the_others(three, tool):
    empty(three)
    llm = in_three(SPARQL="SELECT nonsense")
    llm = scripted_with(
        llm, mend={"statement": "SELECT more nonsense"}, reread={"statement": "SELECT again nonsense"}
    )
    events = list(think(QUESTION, llm, three, [tool], FEW.but(rereads=0, repairs=1)))
    (refused,) = of(Refused, events)
    assert refused.dialect == "SPARQL"
    assert events[-1].forced is False


def scripted_with(llm, **more):
    """The same script with replies for more roles."""
    extra = scripted(**more)

    class Both:
        name = llm.name

        def __call__(self, prompt):
            try:
                return llm(prompt)
            except AssertionError:
                return extra(prompt)

    return Both()


def test_a_run_in_three_languages_is_verified_and_forked(three, tool, tmp_path):
    empty(three)
    events = list(record(think(QUESTION, in_three(), three, [tool], FEW), tmp_path / "run.jsonl"))
    empty(three)
    assert verify(events, three) is None
    empty(three)
    at = next(i for i, event in enumerate(events) if isinstance(event, Read) and event.dialect == "Cypher")
    made = fork(events, at, "MATCH (n:City) RETURN n.id AS city", three)
    assert next(
        event for event in made.events if isinstance(event, Read) and event.dialect == "Cypher"
    ).rows == ({"city": "London"},)


def test_a_write_that_one_of_the_mirrors_cannot_hold_is_taken_back_everywhere(three):
    empty(three)
    three.apply(Diff(added_nodes=(Node("a"),)))
    three.readers[1].apply(Diff(added_nodes=(Node("b"),)))
    with pytest.raises(QueryFailed, match="already there"):
        three.write("node('b', 'Thing')")
    three.readers[1].apply(Diff(removed_nodes=(Node("b"),)))
    assert three.graph().ids == ("a",) and all(len(reader.graph()) == 1 for reader in three.readers)
