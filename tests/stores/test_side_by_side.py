"""Two processes that write to one graph at the same time: what was acknowledged is there, and each reads what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing

import pytest
from support import writing_script

from kgot_lab.stores import open_store
from kgot_lab.stores.sparql.namespaces import VERSION_IRI, VERSIONS_GRAPH, graph_iri
from kgot_lab.types import Diff, Node

WRITES = 30
VERSION = f"<{VERSION_IRI}>"


def place(kind, request):
    """Where a graph on a server is, as options of its store."""
    if kind == "cypher_server":
        bolt = request.getfixturevalue("bolt_server")
        return {"uri": bolt.uri, "user": bolt.user, "password": bolt.password, "database": bolt.database("beside")}
    if kind == "sparql_server":
        oxigraph = request.getfixturevalue("oxigraph_server")
        return {"query_url": oxigraph.query_url, "update_url": oxigraph.update_url}
    return {"url": request.getfixturevalue("postgres_url")}


def started(kind, where, name):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(writing_script.__file__), kind, json.dumps(where), name, str(WRITES)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("kind", ("cypher_server", "sparql_server", "postgres"))
def test_two_writers_of_one_namespace_lose_nothing_and_read_what_they_wrote(kind, request):
    where = place(kind, request) | {"namespace": "side by side"}
    with closing(open_store(kind, **where, wipe=True)) as store:
        store.apply(Diff(added_nodes=(Node(writing_script.HUB),)))
        writers = [started(kind, where, name) for name in ("one", "two")]
        for writer in writers:  # both have opened the graph before either writes
            writer.stdin.write("go\n")
            writer.stdin.flush()
        told = [json.loads(writer.communicate(timeout=300)[0]) for writer in writers]
        graph = store.graph()
    kept = {own for each in told for own in each["kept"]}
    assert [each["missed"] for each in told] == [[], []]
    assert kept <= set(graph.ids) and {edge.source for edge in graph.edges} >= kept
    assert [each["refused"] for each in told] == [[], []] and len(kept) == 2 * WRITES
    assert len(graph.edges) == 2 * WRITES and len(graph) == 2 * WRITES + 1


def test_two_writes_that_a_server_ran_at_the_same_moment_are_both_taken_for_made(oxigraph_server):
    """As Oxigraph does now and then: it leaves the marks of both writes, where each meant to put its own in the place of the old one."""
    namespace = "the same moment"
    graph = graph_iri(namespace)
    where = {"query_url": oxigraph_server.query_url, "update_url": oxigraph_server.update_url, "namespace": namespace}
    with closing(open_store("sparql_server", **where, wipe=True)) as one, closing(open_store("sparql_server", **where)) as two:
        for number in range(6):  # the other mark comes before or after the own one in the alphabet
            one.apply(Diff(added_nodes=(Node(f"one {number}"),)))
            oxigraph_server.update(
                f'INSERT DATA {{ GRAPH <{VERSIONS_GRAPH}> {{ <{graph}> {VERSION} "{number:x}0f" }} '
                f"GRAPH <{graph}> {{ <{graph_iri('x')}> a <{graph_iri('y')}{number}> }} }}"
            )
            two.apply(Diff(added_nodes=(Node(f"two {number}"),)))
            assert {f"{name} {number}" for name in ("one", "two")} <= set(one.graph().ids)
            assert len(one._marked()) == 1 and one.schema() == two.schema()
        assert type(one).namespaces(where["query_url"], where["update_url"])[namespace].nodes == one.schema().nodes
