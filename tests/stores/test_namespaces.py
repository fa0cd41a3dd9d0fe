"""Runs on one server: each has a namespace of its own, which others neither see nor touch, and which can be
kept, wiped and deleted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pytest
from support.cypher_statements import HOSTILE, STATEMENTS
from support.loop_script import ADA, FEW, call, scripted, votes
from support.store_kinds import CYPHER, NEIGHBOUR, NUMBERS, SPARQL, Statements

from kgot_lab.errors import BadInput, QueryFailed, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Wrote
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import delete_namespace, empty_store, namespaces, open_store, reopen_store
from kgot_lab.stores.protocol import Schema
from kgot_lab.stores.sparql.connection import graph_iri
from kgot_lab.tools.search import search
from kgot_lab.types import Diff, Edge, Node

BORN = Edge("Ada", "born in", "London", {"year": 1815})


@dataclass(frozen=True)
class Place:
    """A server that runs share."""

    kind: str
    at: str
    said: Statements

    def begin(self, **how):
        return empty_store(self.kind, self.at, **how)


more = {"neo4j": "KGOT_NEO4J_URI", "rdf4j": "KGOT_SPARQL_QUERY"}
KINDS = ("cypher_server", "sparql_server", *(kind for kind, name in more.items() if os.environ.get(name)))


@pytest.fixture(params=KINDS)
def place(request, monkeypatch) -> Iterator[Place]:
    if request.param == "cypher_server":
        server = request.getfixturevalue("bolt_server")
        monkeypatch.setenv("KGOT_NEO4J_USER", server.user)
        monkeypatch.setenv("KGOT_NEO4J_PASSWORD", server.password)
        monkeypatch.setenv("KGOT_NEO4J_DATABASE", server.database("runs"))
        yield Place("cypher_server", server.uri, CYPHER)
    elif request.param == "neo4j":
        yield Place("cypher_server", os.environ["KGOT_NEO4J_URI"], CYPHER)
    elif request.param == "rdf4j":
        yield Place("sparql_server", os.environ["KGOT_SPARQL_QUERY"], SPARQL)
    else:
        yield Place("sparql_server", request.getfixturevalue("oxigraph_server").query_url, SPARQL)


@pytest.fixture
def name() -> str:
    """A namespace that no other test has."""
    return f"run {os.getpid()} {next(NUMBERS)} é/'\"`"


def asked(place, store):
    """A scripted run in a store: one fact is looked up, written and read."""
    samples = [*votes("I", "I", "I"), {"choice": "RETRIEVE", "text": place.said.where}]
    answer = {"parse": {"answer": "London"}, "choose": {"number": 1}, "guess": {"answer": "a guess"}}
    answer["merge"] = {"reason": "more"}
    llm = scripted(vote=samples, write={"statements": [place.said.add]}, tools=call(), **answer)
    return list(think("Where was Ada born?", llm, store, [search(ADA, bm25(ADA), k=2)], FEW))


# --- runs ---


def test_a_second_question_on_a_server_works_and_each_has_its_graph(place):
    stores = []
    for _ in range(2):
        with closing(place.begin()) as store:
            events = asked(place, store)
            last = events[-1]
            assert isinstance(last, Answered) and (last.text, last.forced) == ("London", False)
            assert [event.diff.added_edges for event in events if isinstance(event, Wrote)] == [(BORN,)]
            stores.append(store.namespace)
    assert len(set(stores)) == 2
    assert all(namespaces(place.kind, place.at)[store] == (2, 1) for store in stores)


def test_two_stores_that_were_opened_while_both_were_empty_never_meet(place):
    with closing(place.begin()) as one, closing(place.begin()) as other:
        assert one.namespace != other.namespace
        assert one.write(place.said.add).added_edges == (BORN,)
        assert other.read(place.said.where) == () and other.schema().nodes == 0 and len(other.graph()) == 0
        other.apply(NEIGHBOUR)
        assert len(one.read(place.said.where)) == 1 and one.schema().nodes == 2
        assert one.search("fog") == () and one.neighbours("Nobody") == ()
        assert str(one.write(place.said.change)) == "~1 node"
        assert other.graph() == PropertyGraph.of().apply(NEIGHBOUR)
        assert Edge("Ada", "knows", "Nobody") in other.write(place.said.remove).removed_edges
        assert len(one.read(place.said.where)) == 1 and len(one.graph().edges) == 1


def test_runs_side_by_side_in_threads_do_not_see_each_other(place):
    answers, errors = [], []

    def run(number):
        try:
            with closing(place.begin()) as store:
                store.apply(Diff(added_nodes=(Node("only mine", (), {"number": number}),)))
                for step in range(6):
                    took = Edge("only mine", "took", f"step {step}", {"n": number})
                    store.apply(Diff(added_nodes=(Node(took.target),), added_edges=(took,)))
                events = asked(place, store)
                graph = store.graph()
                answers.append(events[-1].text)
                assert len(graph) == 9 and len(graph.edges) == 7, graph
                assert {edge.properties.get("n") for edge in graph.edges if edge.type == "took"} == {number}
                assert graph.node("only mine").properties == {"number": number}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and answers == ["London"] * 3


HOSTILE_SPARQL = """
SELECT * { ?s ?p ?o }
SELECT * { GRAPH ?g { ?s ?p ?o } }
SELECT ?g (COUNT(*) AS ?n) { graph ?g { ?s ?p ?o } } GROUP BY ?g
SELECT * FROM <GRAPH> { ?s ?p ?o }
SELECT * FROM NAMED <GRAPH> { GRAPH <GRAPH> { ?s ?p ?o } }
SELECT * { GR\\u0041PH ?g { ?s ?p ?o } }
PREFIX GRAPHx: <urn:x:> SELECT * { GRAPHx:y { ?s ?p ?o } }
SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }
SELECT * { ?s (:a|!:a)* ?o }
SELECT * { ?s ?p ?o MINUS { GRAPH ?g { ?s ?p ?o } } }
CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }
DESCRIBE :Ada
DESCRIBE <GRAPH>
ASK { ?s :secret ?o }
DELETE WHERE { ?s ?p ?o }
DELETE { GRAPH <GRAPH> { ?s ?p ?o } } WHERE { GRAPH <GRAPH> { ?s ?p ?o } }
WITH <GRAPH> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }
DELETE { ?s ?p ?o } USING <GRAPH> WHERE { ?s ?p ?o }
INSERT { :x :y ?o } USING NAMED <GRAPH> WHERE { GRAPH <GRAPH> { ?s ?p ?o } }
INSERT DATA { GRAPH <GRAPH> { :x :y :z } }
CLEAR ALL
CLEAR DEFAULT
CLEAR NAMED
CLEAR GRAPH <GRAPH>
DROP ALL
DROP SILENT GRAPH <GRAPH>
DROP GRAPH <urn:kgot-meta:versions>
LOAD <file:///etc/passwd>
LOAD <http://127.0.0.1:1/x> INTO GRAPH <GRAPH>
COPY <GRAPH> TO DEFAULT
MOVE <GRAPH> TO DEFAULT
ADD <GRAPH> TO DEFAULT
CREATE GRAPH <urn:evil>
INSERT DATA { :x :y :z } ; CLEAR ALL
""".strip().splitlines()


def test_no_statement_shows_or_changes_what_others_have(place, name):
    secret = f"secret {next(NUMBERS)}"
    theirs = (*NEIGHBOUR.added_nodes, Node(secret, ("Person",), {"secret": secret}))
    graph = PropertyGraph.of(theirs, (*NEIGHBOUR.added_edges, Edge("Ada", "knows", secret)))
    begun = (place.begin(namespace=f"{name} theirs"), place.begin(namespace=name))
    with closing(begun[0]) as other, closing(begun[1]) as store:
        other.apply(graph.of().diff(graph))
        of_theirs = graph_iri(f"{name} theirs")
        sparql = [each.replace("<GRAPH>", f"<{of_theirs}>") for each in HOSTILE_SPARQL]
        statements = sparql if place.said is SPARQL else HOSTILE + STATEMENTS
        for statement in statements:
            for act in (store.read, store.write):
                try:
                    assert secret not in repr(act(statement)), statement
                except QueryFailed as refused:
                    assert len(refused.reason) > 10 and secret not in refused.reason, statement
            if place.said is CYPHER:
                schema = Schema(graph.labels(), graph.types(), len(graph), len(graph.edges))
                assert other.schema() == schema, statement
            if not store.schema().nodes:
                store.write(place.said.add)
        assert secret not in str([*store.graph().nodes, *store.graph().edges])
        assert other.graph() == graph


# --- one that is named: kept, wiped, deleted ---


def test_a_graph_that_is_there_is_refused_with_what_to_do_kept_or_wiped(place, name):
    with closing(place.begin(namespace=name)) as store:
        store.write(place.said.add)
    with pytest.raises(BadInput, match=r"already holds a graph of 2 nodes.*--namespace NAME.*--keep.*--wipe"):
        place.begin(namespace=name)
    with closing(place.begin(namespace=name, keep=True)) as store:
        assert store.namespace == name and store.graph().edges[0] == BORN
        assert len(store.write(place.said.know).added_edges) == 1
    with closing(place.begin(namespace=f"{name} other")) as other:
        other.write(place.said.know)
    with closing(place.begin(namespace=name, wipe=True)) as store:
        assert len(store.graph()) == 0 and store.schema().nodes == 0 and store.read(place.said.where) == ()
    assert namespaces(place.kind, place.at)[f"{name} other"] == (2, 1)


def test_a_run_that_goes_on_finds_what_is_in_its_namespace_or_a_new_one(place, name):
    with closing(place.begin(namespace=name)) as store:
        store.write(place.said.add)
        grown = store.graph()
    with closing(reopen_store(place.kind, place.at, namespace=name)) as store:
        assert store.graph() == grown
    with closing(reopen_store(place.kind, place.at)) as store:
        assert len(store.graph()) == 0 and store.namespace != name


def test_namespaces_are_listed_with_what_they_hold_and_deleted_one_by_one(place, name):
    sizes = {f"{name} {number}": number for number in range(1, 4)}
    again = Edge("n0", "r", "n0", {"a": 1}, "2")
    parallel = (Edge("n0", "r", "n0"), again, Edge("n0", "s", "n0", {"b": [1, 2]}))
    for each, nodes in sizes.items():
        with closing(place.begin(namespace=each)) as store:
            added = tuple(Node(f"n{number}") for number in range(nodes))
            store.apply(Diff(added_nodes=added, added_edges=parallel))
    there = namespaces(place.kind, place.at)
    assert {size: there[size] for size in sizes} == {each: (nodes, 3) for each, nodes in sizes.items()}
    delete_namespace(place.kind, place.at, namespace=f"{name} 2")
    left = {each: size for each, size in there.items() if each != f"{name} 2"}
    assert namespaces(place.kind, place.at) == left
    with pytest.raises(UnknownName, match="unknown namespace"):
        delete_namespace(place.kind, place.at, namespace=f"{name} 2")
    with closing(open_store(place.kind, at=place.at, namespace=f"{name} 3", **login())) as store:
        assert len(store.graph()) == 3


def login():
    keys = {"user": "KGOT_NEO4J_USER", "password": "KGOT_NEO4J_PASSWORD", "database": "KGOT_NEO4J_DATABASE"}
    return {option: os.environ[key] for option, key in keys.items() if key in os.environ}


@pytest.mark.parametrize(
    "how",
    [{"keep": True}, {"wipe": True}, {"keep": True, "wipe": True, "namespace": "n"}, {"namespace": "  "}],
)
def test_what_does_not_say_which_graph_is_refused(place, how):
    with pytest.raises(BadInput, match=r"namespace=NAME|give one of both|namespace"):
        place.begin(**how)


# --- what is no server ---


def test_a_file_is_kept_or_wiped_and_has_no_namespaces(tmp_path):
    path = tmp_path / "graph.log"
    with closing(empty_store(path)) as store:
        store.apply(Diff(added_nodes=(Node("a"),)))
    with pytest.raises(BadInput, match=r"graph\.log already holds a graph of 1 node"):
        empty_store(path)
    with closing(empty_store(path, keep=True)) as store:
        assert store.graph().ids == ("a",)
    with closing(empty_store(path, wipe=True)) as store:
        assert len(store.graph()) == 0
    with closing(empty_store(path)) as store:
        assert len(store.graph()) == 0
    refused = (empty_store, delete_namespace)
    acts = [partial(act, path, namespace="n") for act in refused]
    for act in (*acts, partial(namespaces, path)):
        with pytest.raises(BadInput, match="only a server has namespaces"):
            act()
    for act in (lambda: namespaces("cypher_server"), lambda: namespaces("sparql_server")):
        with pytest.raises(BadInput, match="at=URL"):
            act()
