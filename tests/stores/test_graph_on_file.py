"""A graph in this process whose file holds what was acknowledged: it goes on there, and others may write to it too."""

from __future__ import annotations

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.stores import open_store
from kgot_lab.stores.embedded_store import InMemory, inverse
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.types import Diff, Edge, Node

NASTY = "quote \" ' brace {} \\ ` line\u2028 é 中 🧪 \x00"


def some_diffs(count=20, seed=0):
    """Writes that add, change and remove."""
    chance, store = random.Random(seed), InMemory()
    for number in range(count):
        properties = {"text": NASTY, "number": number, "deep": {"a": [1, None, 1.5]}}
        node = Node(f"n{number}", ("Thing",), properties)
        before = list(store.graph().nodes)
        edges = (Edge(node.id, "near", chance.choice(before).id, {"w": 0.1}),) if before else ()
        diff = Diff(added_nodes=(node,), added_edges=edges)
        store.apply(diff)
        yield diff
        if number % 3 == 2:
            old = store.graph().node(f"n{number}")
            change = Diff(changed_nodes=((old, Node(old.id, ("Other",), {})),))
            store.apply(change)
            yield change


def test_a_store_on_a_path_goes_on_where_it_stopped(tmp_path):
    diffs = list(some_diffs())
    with InMemory(path=tmp_path / "graph.log") as store:
        for diff in diffs:
            store.apply(diff)
        kept = store.graph()
    with InMemory(path=tmp_path / "graph.log") as store:
        assert repr(store) == f"<InMemory graph.log: {len(kept)} nodes, {len(kept.edges)} edges>"
        assert store.graph() == kept and store.schema().nodes == len(kept)
        store.apply(inverse(diffs[-1]))
    with Sqlite(tmp_path / "graph.log") as store:
        assert store.graph() == kept.apply(inverse(diffs[-1]))


def test_stores_of_one_file_see_the_writes_of_each_other(tmp_path):
    with InMemory(path=tmp_path / "graph.log") as one, InMemory(path=tmp_path / "graph.log") as other:
        one.write("add('Ada', 'knows', 'Charles')")
        assert other.read("result = names()") == ("Ada", "Charles")
        other.write("G.remove_node('Charles')")
        assert one.schema().nodes == 1 and one.read("result = names()") == ("Ada",)
        assert [node.id for node in one.search("Ada")] == ["Ada"] and one.search("Charles") == ()
        with pytest.raises(BadInput):
            one.apply(Diff(removed_nodes=(Node("Charles"),)))
        assert one.graph() == other.graph()


def test_statements_of_several_stores_are_run_one_after_the_other(tmp_path):
    def count(times: int) -> None:
        with InMemory(path=tmp_path / "graph.log") as store:
            for _ in range(times):
                store.write("n = G.nodes['n'].get('count', 0) if 'n' in G else 0\nnode('n', count=n + 1)")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(count, [5, 5, 5]))
    with InMemory(path=tmp_path / "graph.log") as store:
        assert store.graph().node("n").properties == {"count": 15}


def test_a_write_that_fails_in_the_file_is_not_in_the_graph(tmp_path):
    with InMemory(path=tmp_path / "graph.log") as store:
        store.write("add('Ada', 'knows', 'Charles')")
        (tmp_path / "graph.log").rename(tmp_path / "moved.log")
        with pytest.raises(StoreUnavailable, match="may not be kept"):
            store.write("add('Eve', 'knows', 'Charles')")
        (tmp_path / "moved.log").rename(tmp_path / "graph.log")
    with InMemory(path=tmp_path / "graph.log") as store:
        assert {"Ada", "Charles"} <= set(store.graph().ids)


@pytest.mark.parametrize("content", [b"notes of mine\n", b"\x00" * 100, b"0123abcd my notes"])
def test_a_file_of_another_kind_is_not_touched(tmp_path, content):
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not an SQLite file, so it was not touched"):
        InMemory(path=path)
    assert path.read_bytes() == content


FULL = """
import resource, signal, sys
from kgot_lab.errors import StoreUnavailable
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.types import Diff, Node

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = InMemory(path=sys.argv[1])
store.apply(Diff(added_nodes=(Node("a"),)))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, -1))
try:
    store.apply(Diff(added_nodes=(Node("refused", (), {"text": "x" * 1_000_000}),)))
except StoreUnavailable:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
store.apply(Diff(added_nodes=(Node("next"),)))
print(*store.graph().ids)
store.close()
print(*InMemory(path=sys.argv[1]).graph().ids)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_write_that_the_disk_cannot_take_is_not_made_and_does_not_come_back(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "graph.log")], capture_output=True, text=True, timeout=600
    )
    *refused, before, after = ran.stdout.splitlines()
    assert refused[0] == "refused" and before == after == "a next", ran.stderr


@pytest.mark.parametrize("place", ["a\0b", "\ud800", "x" * 5_000])
def test_what_can_be_no_path_is_refused_in_one_sentence(place):
    for kind in ("in_memory", "sqlite"):
        with pytest.raises((BadInput, StoreUnavailable)):
            open_store(kind, at=place)


def test_the_home_of_a_user_is_meant_by_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for kind in ("in_memory", "sqlite"):
        open_store(kind, at=f"~/{kind}.store").close()
    assert {file.name for file in tmp_path.iterdir()} >= {"in_memory.store", "sqlite.store"}


@pytest.mark.parametrize("kind", ["in_memory", "cypher_embedded", "sparql_embedded", "sqlite"])
def test_what_is_no_text_or_nested_without_end_is_refused_by_name(kind):
    endless = []
    endless.append(endless)
    with open_store(kind) as store:
        with pytest.raises(BadInput, match="levels deep"):
            store.apply(Diff(added_nodes=(Node("a", (), {"p": endless}),)))
        with pytest.raises(QueryFailed, match="half a surrogate pair"):
            store.read("RETURN '\ud800'")
        assert len(store.graph()) == 0
