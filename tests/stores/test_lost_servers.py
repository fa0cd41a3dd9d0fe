"""A statement over which a server went away is sent once: not again by the store, not by the run, and not by
the run that is resumed.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from functools import partial

import pytest
from support.deadly_word import DeadlyWord
from support.loop_script import ADA, FEW, call, of, scripted, votes
from support.store_kinds import CYPHER, NUMBERS, SPARQL

from kgot_lab.errors import QueryFailed, ServerLost, StoreUnavailable
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Refused
from kgot_lab.loop.replay.replay import Resources, resume
from kgot_lab.loop.trace import record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores import open_store
from kgot_lab.stores.sparql.server import SparqlServer
from kgot_lab.tools.search import search

pytestmark = pytest.mark.extended

WORD = "deadlyword"
READS = {"cypher_server": "MATCH (n {id: 'deadlyword'}) RETURN n.id"}
READS["sparql_server"] = "SELECT ?p {:deadlyword ?p ?o}"


@pytest.fixture(params=READS)
def kind(request):
    return request.param


@pytest.fixture
def line(kind, request):
    server = request.getfixturevalue("bolt_server" if kind == "cypher_server" else "oxigraph_server")
    with DeadlyWord(server.port, WORD) as line:
        yield line


@pytest.fixture
def open_it(kind, line, request):
    name = f"lost {next(NUMBERS)}"
    if kind == "cypher_server":
        server = request.getfixturevalue("bolt_server")
        login = {"user": server.user, "password": server.password, "database": server.database("lost")}
        return partial(open_store, kind, at=f"bolt://127.0.0.1:{line.port}", namespace=name, **login)
    return partial(open_store, kind, at=f"http://127.0.0.1:{line.port}/query", namespace=name)


def test_a_store_sends_it_once_and_says_what_became_of_it(kind, line, open_it):
    with closing(open_it()) as store:
        for _ in range(2):
            with pytest.raises(
                ServerLost, match="went away while it answered this statement, which is not sent again"
            ) as caught:
                store.read(READS[kind])
            assert caught.value.statement == READS[kind] and isinstance(caught.value, QueryFailed)
        with pytest.raises(StoreUnavailable):
            store.schema()
        line.back()
        with pytest.raises(ServerLost):
            store.read(READS[kind])
        assert store.schema().nodes == 0 and line.heard == 1


def test_a_write_that_a_cypher_server_went_away_over_was_not_made_and_is_not_sent_again(line, open_it, kind):
    if kind != "cypher_server":
        pytest.skip("a write in SPARQL runs in the sandbox, and only what it changed is sent")
    with closing(open_it()) as store:
        store.write("CREATE ({id: 'before'})")
        for _ in range(2):
            with pytest.raises(ServerLost):
                store.write("CREATE ({id: 'deadlyword'})")
            line.back()
        assert store.graph().ids == ("before",) and line.heard == 1


@pytest.fixture
def written_over(oxigraph_server):
    """What becomes of a write over which the line to a SPARQL server breaks, the store that made it, and the
    server's own graph.
    """

    @contextmanager
    def written(**how):
        name = f"lost {next(NUMBERS)}"
        with DeadlyWord(oxigraph_server.port, WORD, **how) as line:
            with SparqlServer(f"http://127.0.0.1:{line.port}/query", namespace=name) as store:
                yield partial(store.write, "INSERT DATA { :deadlyword a :Word }"), store, line
            assert line.heard == 1
        with SparqlServer(oxigraph_server.query_url, namespace=name) as other:
            assert other.graph().ids == (("deadlyword",) if how.get("too_late") else ())

    return written


def test_a_change_whose_reply_was_lost_counts_as_made_if_the_server_has_it(written_over):
    with written_over(too_late=True, briefly=True) as (write, store, _):
        assert [node.id for node in write().added_nodes] == ["deadlyword"]
        assert store.schema().nodes == 1


def test_a_change_that_did_not_reach_the_server_is_not_there_and_the_store_says_so(written_over):
    with written_over(briefly=True) as (write, store, _):
        with pytest.raises(StoreUnavailable, match=r"has not taken a change: .*went away while"):
            write()
        assert store.schema().nodes == 0


@pytest.mark.parametrize("too_late", [True, False])
def test_a_change_is_not_known_to_be_made_where_nobody_answers_any_more(written_over, too_late):
    with written_over(too_late=too_late) as (write, store, line):
        reason = r"went away while it was keeping a change .*may be there or not"
        with pytest.raises(StoreUnavailable, match=reason):
            write()
        line.back()
        assert store.schema().nodes == too_late


def test_a_run_records_it_as_refused_and_the_resumed_run_goes_past_it(kind, line, open_it, tmp_path):
    said = CYPHER if kind == "cypher_server" else SPARQL
    deadly, fine = ({"choice": "RETRIEVE", "text": text} for text in (READS[kind], said.where))
    answer = {"parse": {"answer": "London"}, "choose": {"number": 1}, "guess": {"answer": "a guess"}}
    answer["merge"] = {"reason": "more"}
    llm = scripted(
        vote=[*votes("I", "I", "I"), deadly, deadly, deadly, fine],
        write={"statements": [said.add]},
        tools=call(),
        mend={"statement": READS[kind]},
        reread=[{"statement": READS[kind]}, {"statement": said.where}],
        **answer,
    )
    tools = [search(ADA, bm25(ADA), k=2)]
    path = tmp_path / "run.jsonl"
    with closing(open_it()) as store, pytest.raises(StoreUnavailable):
        for _ in record(think("Where was Ada born?", llm, store, tools, FEW), path):
            pass
    line.back()
    with closing(open_it()) as store:
        store.apply(store.graph().diff(store.graph().of()))
        events = list(resume(path, store, Resources(tools, llm)))
    assert [event.statement for event in of(Refused, events)][:1] == [READS[kind]]
    assert events[-1].text == "London" and line.heard == 1
