"""Hostile statements in every language: each is refused or has no effect, and the next statement is right."""

from __future__ import annotations

import sys

import pytest
from support import attacks
from support.bolt_server import BoltServer
from support.hostile import SECRET
from support.loopback import started
from support.oxigraph_server import OxigraphServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox that is tested here needs Linux")


def _where(kind, request, folder):
    if kind == "cypher_server":
        server = request.getfixturevalue("attacked_bolt")
        database = server.database("attacked")
        return {"uri": server.uri, "user": server.user, "password": server.password, "database": database}
    if kind == "sparql_server":
        server = request.getfixturevalue("attacked_oxigraph")
        return {"query_url": server.query_url, "update_url": server.update_url, "namespace": "attacked"}
    if kind == "postgres":
        return {"url": request.getfixturevalue("postgres_url"), "namespace": "attacked"}
    return {"path": folder / "graph.db"} if kind == "sqlite" else {}


@pytest.fixture(scope="module")
def attacked_bolt(tmp_path_factory):
    """A server for attacks alone: it goes on computing what the store has given up, so it is killed and
    shared with nobody.
    """
    server = started("a Bolt server", lambda: BoltServer(tmp_path_factory.mktemp("attacked_bolt")))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def attacked_oxigraph(tmp_path_factory):
    """The same for SPARQL."""
    server = started("a SPARQL server", lambda: OxigraphServer(tmp_path_factory.mktemp("attacked_oxigraph")))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def host():
    with attacks.host() as places:
        yield places


@pytest.fixture(scope="module")
def stores(request, tmp_path_factory):
    """Each kind of store, opened when first attacked."""
    opened = {}

    def store(kind):
        if kind not in opened:
            place = _where(kind, request, tmp_path_factory.mktemp(kind))
            opened[kind] = attacks.open_to_attack(kind, **place)
        return opened[kind]

    yield store
    for each in opened.values():
        each.close()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", attacks.ATTACKS)
def test_an_attack_is_refused_or_without_effect(stores, host, kind):
    places, connected = host
    failed = {}
    for attack in attacks.ATTACKS[kind]:
        got = attacks.what_it_got(stores(kind), attack, places)
        if failings := attacks.failings(stores(kind), kind, got, places, connected):
            failed[f"{attack.kind}: {attack.name}"] = (failings, got)
    assert failed == {}


@pytest.mark.parametrize("kind", attacks.ATTACKS)
def test_the_check_of_an_attack_would_notice_one_that_succeeds(stores, host, kind):
    places, _ = host
    store = stores(kind)
    graph = store.graph()
    store.apply(graph.diff(graph.subgraph(["London"])))
    found = attacks.failings(store, kind, f"read 0.1 s: {SECRET}", places, [object()])
    assert len(found) == 3 and any("the graph has changed" in each for each in found)
    assert not attacks.failings(store, kind, "read 0.1 s: []", places, [])
