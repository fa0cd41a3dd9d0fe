"""Two processes that write to one graph at the same time: what was acknowledged is there, and each reads what
it wrote.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from support import same_ids_script, writing_script

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.stores import open_store
from kgot_lab.stores.sparql.connection import VERSION_IRI, VERSIONS_GRAPH, graph_iri
from kgot_lab.types import Diff, Node

pytestmark = pytest.mark.extended

WRITES = 30
VERSION = f"<{VERSION_IRI}>"


def place(kind, request):
    """Where a graph on a server is, as options of its store."""
    if kind == "cypher_server":
        bolt = request.getfixturevalue("bolt_server")
        database = bolt.database("beside")
        return {"uri": bolt.uri, "user": bolt.user, "password": bolt.password, "database": database}
    if kind == "sparql_server":
        oxigraph = request.getfixturevalue("oxigraph_server")
        return {"query_url": oxigraph.query_url, "update_url": oxigraph.update_url}
    return {"url": request.getfixturevalue("postgres_url")}


def started(kind, where, name, script=writing_script):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(script.__file__), kind, json.dumps(where), name, str(WRITES)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=environment, **pipes)
    assert process.stdout.readline() == "ready\n"
    return process


@contextmanager
def two_stores(kind, where):
    with closing(open_store(kind, **where, wipe=True)) as one, closing(open_store(kind, **where)) as two:
        yield one, two


def ended(writers):
    """What each writer says in the end; all have opened the graph before any writes."""
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    return [json.loads(writer.communicate(timeout=300)[0]) for writer in writers]


@pytest.mark.parametrize("kind", ("cypher_server", "sparql_server", "postgres"))
def test_two_writers_of_one_namespace_lose_nothing_and_read_what_they_wrote(kind, request):
    where = place(kind, request) | {"namespace": "side by side"}
    with closing(open_store(kind, **where, wipe=True)) as store:
        store.apply(Diff(added_nodes=(Node(writing_script.HUB),)))
        writers = [started(kind, where, name) for name in ("one", "two")]
        told = ended(writers)
        graph = store.graph()
    kept = {own for each in told for own in each["kept"]}
    assert [each["missed"] for each in told] == [[], []]
    assert kept <= set(graph.ids) and {edge.source for edge in graph.edges} >= kept
    assert [each["refused"] for each in told] == [[], []] and len(kept) == 2 * WRITES
    assert len(graph.edges) == 2 * WRITES and len(graph) == 2 * WRITES + 1


# --- a Bolt server: no lock for a node that is not there yet ---


@pytest.fixture
def bolt(request):
    """Where a namespace of this test's own is."""
    return place("cypher_server", request) | {"namespace": request.node.name}


def turn_nodes(where):
    import neo4j

    login = (where["user"], where["password"])
    driver = neo4j.GraphDatabase.driver(where["uri"], auth=login)
    with driver, driver.session(database=where["database"]) as session:
        query = "MATCH (w:KgotLabWriters {of: $of}) RETURN w.written"
        return session.run(query, of=where["namespace"]).value()


@pytest.mark.parametrize("how", ("apply", "merge", "create"))
def test_writers_that_add_the_same_ids_at_the_same_moment_add_each_once(bolt, how):
    with closing(open_store("cypher_server", **bolt, wipe=True)) as store:
        told = ended([started(how, bolt, name, same_ids_script) for name in ("one", "two", "three")])
        graph = store.graph()
        again = store.write("MATCH (n) SET n.seen = true")
    same = {f"same {number}" for number in range(WRITES)}
    kept = {own for each in told for own in each["kept"]}
    assert set(graph.ids) == kept and len(graph) == 4 * WRITES and same <= set(graph.ids)
    assert len(again.changed_nodes) == len(graph)
    made = sorted(id for each in told for id in each["made"])
    assert made == sorted(graph.ids)  # each by one writer, to which it was acknowledged as new
    refused = [reason for each in told for reason in each["refused"]]
    assert len(refused) == (2 * WRITES if how == "apply" else 0)
    assert all("is already there" in reason for reason in refused)


def test_no_change_of_one_value_is_lost_between_two_writers(bolt):
    with closing(open_store("cypher_server", **bolt, wipe=True)) as store:
        store.apply(Diff(added_nodes=(Node("same"),)))
        told = ended([started("count", bolt, name, same_ids_script) for name in ("one", "two")])
        assert [each["refused"] for each in told] == [[], []]
        assert store.graph().node("same").properties == {"count": 2 * WRITES}


def test_stores_of_one_process_that_made_what_they_take_turns_by_at_once_take_turns_all_the_same(bolt):
    with two_stores("cypher_server", bolt) as (one, two):
        one.apply(Diff(added_nodes=(Node("first"),)))
        with one._link.write_transaction() as transaction:
            transaction.run("CREATE (:KgotLabWriters {of: $of, written: 7})", of=bolt["namespace"]).consume()
        before, added, refused = turn_nodes(bolt), list[int](), list[str]()

        def write(store):
            for number in range(WRITES):
                try:
                    store.apply(Diff(added_nodes=(Node(str(number)),)))
                    added.append(number)
                except BadInput as error:
                    refused.append(str(error))

        with ThreadPoolExecutor() as pool:
            list(pool.map(write, (one, two)))
        assert sorted(added) == list(range(WRITES))
        assert len(refused) == WRITES and len(one.graph()) == 1 + WRITES
        assert len(before) == 2
        assert all(now > then for now, then in zip(sorted(turn_nodes(bolt)), sorted(before), strict=True))
        type(one).delete_namespace(**bolt)
        assert turn_nodes(bolt) == []


def test_a_writer_that_is_always_overtaken_says_so_and_changes_nothing(bolt, monkeypatch):
    monkeypatch.setattr("kgot_lab.stores.cypher.connection._MAX_TRIES", 3)
    with two_stores("cypher_server", bolt) as (one, two):
        ask_in, numbers = one._transaction_query, iter(range(100))

        def overtaken(transaction):
            two.apply(Diff(added_nodes=(Node(f"two {next(numbers)}"),)))
            return ask_in(transaction)

        monkeypatch.setattr(one, "_transaction_query", overtaken)
        reason = r"another writer of .* was faster 3 times; nothing was changed, so try again later"
        with pytest.raises(StoreUnavailable, match=reason):
            one.apply(Diff(added_nodes=(Node("one"),)))
        assert set(one.graph().ids) == {"two 0", "two 1", "two 2"}


def test_a_refusal_that_comes_of_what_another_writer_did_meanwhile_is_not_believed(bolt, monkeypatch):
    """The node is there when it is looked for, in a transaction that began before and so cannot be kept."""
    with two_stores("cypher_server", bolt) as (one, two):
        ask_in = one._transaction_query
        diffs = [Diff(added_nodes=(Node("a"),)), Diff(removed_nodes=(Node("a"),))]

        def overtaken(transaction):
            if diffs:
                two.apply(diffs.pop(0))
            return ask_in(transaction)

        monkeypatch.setattr(one, "_transaction_query", overtaken)
        one.apply(Diff(added_nodes=(Node("a", ("Own",)),)))
        assert list(one.graph().nodes) == [Node("a", ("Own",))] and not diffs


def test_a_writer_whose_namespace_is_deleted_again_and_again_goes_on(bolt):
    with closing(open_store("cypher_server", **bolt, wipe=True)) as store:
        writers = [started(how, bolt, how, same_ids_script) for how in ("merge", "delete", "delete")]
        told = ended(writers)
        assert [each["refused"] for each in told] == [[], [], []]
        assert {f"merge {number}" for number in range(WRITES)} >= {
            id for id in store.graph().ids if not id.startswith("same")
        }
        type(store).delete_namespace(**bolt)
        assert turn_nodes(bolt) == []


def test_a_server_that_gives_no_turn_is_waited_for_as_long_as_it_takes_another_writer_and_no_longer(
    bolt, bolt_server, monkeypatch
):
    with closing(open_store("cypher_server", **bolt, wipe=True)) as store:
        store.apply(Diff(added_nodes=(Node("a"),)))
        monkeypatch.setattr("kgot_lab.stores.cypher.apply._LOCK_TIMEOUT", 0.5)
        said = r"did not let us write .* for 0\.5 s: another writer keeps it"
        with pytest.raises(StoreUnavailable, match=said), store._link.write_transaction() as transaction:
            transaction.run("RETURN 1").consume()
            bolt_server.process.send_signal(signal.SIGSTOP)
            # until all its threads stand still: one may be answering
            os.waitpid(bolt_server.process.pid, os.WUNTRACED)
            try:
                store._write_lock._set_lock(transaction)
            finally:
                bolt_server.process.send_signal(signal.SIGCONT)
        store.apply(Diff(added_nodes=(Node("b"),)))
        assert store.graph().ids == ("a", "b")


# --- a SPARQL server: two writes of one moment ---


def test_two_writes_that_a_server_ran_at_the_same_moment_are_both_taken_for_made(oxigraph_server):
    """As Oxigraph does now and then: it leaves the marks of both writes, where each meant to put its own in
    the place of the old one.
    """
    namespace = "the same moment"
    graph = graph_iri(namespace)
    urls = {"query_url": oxigraph_server.query_url, "update_url": oxigraph_server.update_url}
    where = urls | {"namespace": namespace}
    with two_stores("sparql_server", where) as (one, two):
        for number in range(6):  # the other mark comes before or after the own one in the alphabet
            one.apply(Diff(added_nodes=(Node(f"one {number}"),)))
            oxigraph_server.update(
                f'INSERT DATA {{ GRAPH <{VERSIONS_GRAPH}> {{ <{graph}> {VERSION} "{number:x}0f" }} '
                f"GRAPH <{graph}> {{ <{graph_iri('x')}> a <{graph_iri('y')}{number}> }} }}"
            )
            two.apply(Diff(added_nodes=(Node(f"two {number}"),)))
            assert {f"{name} {number}" for name in ("one", "two")} <= set(one.graph().ids)
            assert len(one._server_version()) == 1 and one.schema() == two.schema()
        sizes = type(one).namespaces(where["query_url"], where["update_url"])
        assert sizes[namespace].nodes == one.schema().nodes
