"""A server lists what it holds in an order of its own: an honest run in it verifies, a changed trace does not."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from support.loop_script import ADA, FEW, call, of, scripted, votes

import kgot_lab as lab
from kgot_lab.errors import UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Read, Started, Wrote
from kgot_lab.loop.limits import LOCAL
from kgot_lab.loop.replay.replay import Resources, resume, verify
from kgot_lab.loop.trace import load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import open_for
from kgot_lab.stores.protocol import Store
from kgot_lab.tools.search import search
from kgot_lab.types import Diff, Edge, Node, Rows

QUESTION = "Where was Ada Lovelace born?"
TOOL = search(ADA, bm25(ADA), k=2)


class ListsBackwards:
    """A store that lists what it holds, changed and read the other way round, as another server might."""

    def __init__(self, store: Store):
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def write(self, statement: str) -> Diff:
        diff = self._store.write(statement)
        return Diff(*(part[::-1] for part in (
            diff.added_nodes, diff.removed_nodes, diff.changed_nodes,
            diff.added_edges, diff.removed_edges, diff.changed_edges,
        )))  # fmt: skip

    def read(self, statement: str) -> Rows:
        rows = self._store.read(statement)
        return rows if "ORDER BY" in statement else rows[::-1]

    def graph(self) -> PropertyGraph:
        graph = self._store.graph()
        return PropertyGraph.of(list(graph.nodes)[::-1], list(graph.edges)[::-1])


CYPHER = (
    [
        "MERGE (a:Person {id: 'Ada'}) MERGE (c:Person {id: 'Charles'}) MERGE (l:City {id: 'London'}) "
        "MERGE (a)-[:knows]->(c) MERGE (a)-[r:born]->(l) SET r.year = 1815",
        "MATCH (n:Person) SET n.seen = true",
        "MATCH (c {id: 'Charles'}) DETACH DELETE c CREATE (:City {id: 'Paris'})-[:near]->(:City {id: 'Calais'})",
    ],
    "MATCH (a)-[r]->(b) RETURN a.id AS one, b.id AS other",
)
SPARQL = (
    [
        "INSERT DATA { :Ada :knows :Charles ; :born :London . :Charles :age 24 ; :born :Paris }",
        "DELETE { ?who :born ?where } INSERT { ?who :lived ?where } WHERE { ?who :born ?where }",
    ],
    "SELECT ?one ?other WHERE { ?one :lived ?other }",
)
PYTHON = (
    [
        "add('Ada', 'knows', 'Charles'); add('Ada', 'born', 'London', year=1815); add('Charles', 'saw', 'Paris')"
    ],
    "result = sorted(fact['object'] for fact in facts())",
)
LANGUAGES = {"Cypher": CYPHER, "SPARQL": SPARQL, "Python (NetworkX)": PYTHON}


def statements_run(store, writes, read, answer="London"):
    """A run that writes in one turn and reads in the next."""
    llm = scripted(
        vote=[*votes(*"III"), {"choice": "RETRIEVE", "text": read}], tools=call(),
        merge={"reason": "more"}, write={"statements": writes}, parse={"answer": answer},
    )  # fmt: skip
    return list(think(QUESTION, llm, store, [TOOL], FEW))


@pytest.fixture(scope="module", params=LANGUAGES)
def events(request):
    with closing(open_for(request.param)) as store:
        writes, read = LANGUAGES[request.param]
        backwards = ListsBackwards(store) if request.param != "Python (NetworkX)" else store
        found = statements_run(backwards, writes, read)
    assert len(of(Wrote, found)) == len(writes) and len(of(Read, found)[-1].rows) > 1
    return found


def test_an_honest_run_on_a_server_with_an_order_of_its_own_verifies(events):
    assert verify(events) is None


def test_a_diff_is_a_set(events):
    """Also where the recorded one lists its elements otherwise than the language would."""
    at = events.index(of(Wrote, events)[0])
    diff = events[at].diff
    other = replace(diff, added_nodes=diff.added_nodes[::-1], added_edges=diff.added_edges[::-1])
    assert other != diff
    assert verify([*events[:at], replace(events[at], diff=other), *events[at + 1 :]]) is None


CHANGED = {
    "a node is missing": lambda diff: replace(diff, added_nodes=diff.added_nodes[1:]),
    "a node is another": lambda diff: replace(diff, added_nodes=(Node("Eve"), *diff.added_nodes[1:])),
    "a property is another": lambda diff: replace(
        diff, added_nodes=(replace(diff.added_nodes[0], properties={"age": 1}), *diff.added_nodes[1:])
    ),
    "an edge more": lambda diff: replace(diff, added_edges=(*diff.added_edges, Edge("Ada", "is", "Ada"))),
    "an edge turned round": lambda diff: replace(
        diff, added_edges=tuple(replace(e, source=e.target, target=e.source) for e in diff.added_edges)
    ),
    "added became removed": lambda diff: replace(diff, added_edges=(), removed_edges=diff.added_edges),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_diff_with_other_elements_differs(events, change):
    at = events.index(of(Wrote, events)[0])
    other = replace(events[at], diff=change(events[at].diff))
    assert f"event {at} (Wrote) differs" in str(verify([*events[:at], other, *events[at + 1 :]]))


ROWS = {
    "a row twice": lambda rows: (*rows, rows[0]),
    "a row less": lambda rows: rows[1:],
    "another row": lambda rows: ("Atlantis", *rows[1:]),
    "one row instead of another": lambda rows: (rows[0], *rows[:-1]),
}


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_other_rows_differ(events, change):
    at = events.index(of(Read, events)[-1])
    other = replace(events[at], rows=change(events[at].rows))
    assert f"event {at} (Read) differs" in str(verify([*events[:at], other, *events[at + 1 :]]))


@pytest.mark.parametrize(
    ("read", "ordered"),
    [
        ("MATCH (a)-[r]->(b) RETURN b.id AS thing", False),
        ("MATCH (a)-[r]->(b) WITH b ORDER BY b.id RETURN b.id AS thing", False),  # of what is used, not given
        ("MATCH (a)-[r]->(b) RETURN b.id AS thing ORDER BY thing", True),
        ("MATCH (a)-[r]->(b) RETURN b.id AS thing order by thing DESC LIMIT 5", True),
    ],
)
def test_rows_have_an_order_only_where_the_statement_gives_one(read, ordered):
    with closing(open_for("Cypher")) as store:
        events = statements_run(store, CYPHER[0], read)
    at = events.index(of(Read, events)[-1])
    turned = replace(events[at], rows=events[at].rows[::-1])
    assert (verify([*events[:at], turned, *events[at + 1 :]]) is not None) == ordered


@pytest.mark.parametrize(("read", "same"), [("collect(b.id)", True), ("[b.id, a.id]", False)])
def test_a_list_in_a_row_has_an_order_unless_it_was_collected(read, same):
    with closing(open_for("Cypher")) as store:
        events = statements_run(store, CYPHER[0], f"MATCH (a)-[r]->(b) RETURN {read} AS things")
    at = events.index(of(Read, events)[-1])
    rows = tuple({"things": row["things"][::-1]} for row in events[at].rows)
    difference = verify([*events[:at], replace(events[at], rows=rows), *events[at + 1 :]])
    assert ("(Read)" not in str(difference)) == same


@pytest.mark.extended
def test_an_honest_run_on_a_real_bolt_server_verifies_there_and_here(bolt_server):
    login = {"user": bolt_server.user, "password": bolt_server.password}
    where = {"uri": bolt_server.uri, "database": bolt_server.database("honest"), **login}
    with closing(lab.open_store("cypher_server", **where, namespace="run")) as store:
        events = statements_run(store, *CYPHER)
    with closing(lab.open_store("cypher_server", **where, namespace="again")) as store:
        assert verify(events, store) is None
    assert verify(events) is None


def test_an_answer_with_its_words_turned_round_differs():
    """Only where the order is that of the graph it may be another."""
    with closing(open_for("Cypher")) as store:
        events = statements_run(store, *CYPHER, answer="London, not Paris")
    final = replace(events[-1], text="Paris, not London")
    assert "(Answered) differs in text" in str(verify([*events[:-1], final]))


def test_what_python_computed_has_the_order_that_it_gave():
    with closing(open_for("Python (NetworkX)")) as store:
        events = statements_run(store, *PYTHON)
    at = events.index(of(Read, events)[-1])
    turned = replace(events[at], rows=events[at].rows[::-1])
    assert "(Read) differs" in str(verify([*events[:at], turned, *events[at + 1 :]]))


def operations_model():
    look = {"answer": "London", "choice": "RETRIEVE", "about": ["Ada Lovelace"], "missing": ""}
    facts = "Ada Lovelace | born in | London\nAda Lovelace | worked with | Charles Babbage"
    return scripted(
        extract=facts, look=[{**look, "answer": "unknown"}, look], next={"about": []}, tools=call(),
        names={"about": ["London"]}, parse={"answer": "London"}, choose={"number": 1}, guess={"answer": "?"},
    )  # fmt: skip


def test_prompts_that_list_the_graph_in_another_order_are_the_same(tmp_path):
    """In the mode for small models every prompt shows facts, and what was not looked up yet."""
    limits, path = LOCAL.but(unpolled=1, votes=1, parses=1), tmp_path / "run.jsonl"
    with closing(open_for("Cypher")) as store:
        list(record(think(QUESTION, operations_model(), ListsBackwards(store), [TOOL], limits), path))
    assert verify(load_run(path)) is None
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-4]))
    with closing(open_for("Cypher")) as store:  # it lists the graph otherwise than the one that was stopped
        resumed = list(resume(path, store, Resources([TOOL], operations_model())))
    assert resumed[-1].text == "London" and verify(load_run(path)) is None


def test_a_run_in_a_language_that_nobody_here_speaks_is_verified_in_its_own_store(tmp_path):
    """A store of one's own may have a query language of its own; the message says how to go on."""

    class Gremlin:
        def __init__(self) -> None:
            self._store = lab.open_store("in_memory")
            self.dialect = replace(self._store.dialect, name="Gremlin")

        def __getattr__(self, name: str) -> object:
            return getattr(self._store, name)

    events = statements_run(Gremlin(), *PYTHON)
    assert of(Started, events)[0].dialect == "Gremlin"
    with pytest.raises(
        UnknownName,
        match=r"unknown query language 'Gremlin'.*its own empty store, as in verify\(run, store\)",
    ):
        verify(events)
    assert verify(events, Gremlin()) is None
