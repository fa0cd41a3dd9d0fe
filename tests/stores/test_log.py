"""The log of diffs: what was acknowledged is there, what was not is not, and a file that is something else is not touched."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.stores.in_memory import InMemory, inverse
from kgot_lab.stores.log import history
from kgot_lab.types import Diff, Edge, Node

NASTY = "quote \" ' brace {} \\ ` line\u2028 é 中 🧪 \x00 \ud800"


def some_diffs(count=20, seed=0):
    """Writes that add, change and remove."""
    chance, store = random.Random(seed), InMemory()
    for number in range(count):
        node = Node(f"n{number}", ("Thing",), {"text": NASTY, "number": number, "deep": {"a": [1, None, 1.5]}})
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
        assert store.graph() == kept
        store.apply(inverse(diffs[-1]))
        assert tuple(history(tmp_path / "graph.log")) == (*diffs, inverse(diffs[-1]))


def test_the_graph_after_every_write_can_be_had_again(tmp_path):
    diffs = list(some_diffs())
    with InMemory(path=tmp_path / "graph.log") as store:
        for diff in diffs:
            store.apply(diff)
    assert tuple(history(tmp_path / "graph.log")) == tuple(diffs)


def test_a_line_torn_anywhere_is_cut_off_and_nothing_before_it_is_lost(tmp_path):
    path = tmp_path / "graph.log"
    with InMemory(path=path) as store:
        sizes = [path.stat().st_size]
        for diff in some_diffs(4):
            store.apply(diff)
            sizes.append(path.stat().st_size)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        acknowledged = max((number for number, end in enumerate(sizes) if end <= size), default=0)
        assert len(list(history(path))) == acknowledged
        if size % 97 == 0:
            with InMemory(path=path) as store:
                store.apply(Diff(added_nodes=(Node("new"),)))
            assert len(list(history(path))) == acknowledged + 1


def test_damage_before_the_end_is_an_error_and_the_file_is_left_alone(tmp_path):
    path = tmp_path / "graph.log"
    with InMemory(path=path) as store:
        for diff in some_diffs(6):
            store.apply(diff)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"record \d+ is damaged"):
        InMemory(path=path)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "content", [b"notes of mine\n", b"\x00" * 100, b'{"type":"node"}\n', b"SQLite format 3\x00" + bytes(200), b"0123abcd my notes"]
)
def test_a_file_that_is_no_log_is_not_touched(tmp_path, content):
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not a diff log"):
        InMemory(path=path)
    assert path.read_bytes() == content


def test_a_second_process_is_told_that_the_store_is_open(tmp_path):
    path = tmp_path / "graph.log"
    with InMemory(path=path) as store:
        store.apply(Diff(added_nodes=(Node("a"),)))
        code = f"from kgot_lab.stores.in_memory import InMemory\nInMemory(path={str(path)!r})"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
        assert "StoreUnavailable" in other.stderr and "this store is open already" in other.stderr
        with pytest.raises(StoreUnavailable):
            InMemory(path=path)
    with InMemory(path=path) as store:
        assert len(store.graph()) == 1


def test_a_store_that_was_closed_leaves_its_file_to_others(tmp_path):
    path = tmp_path / "graph.log"
    first = InMemory(path=path)
    first.apply(Diff(added_nodes=(Node("a"),)))
    first.close()
    for act in (first.graph, first.schema, first.compact, lambda: first.apply(Diff(added_nodes=(Node("c"),)))):
        with pytest.raises(StoreUnavailable, match="was closed; open another one"):
            act()
        with InMemory(path=path) as second:
            assert second.graph().ids == ("a",)


def test_a_compacted_log_holds_the_same_graph_and_is_shorter(tmp_path):
    path = tmp_path / "graph.log"
    with InMemory(path=path) as store:
        for number in range(30):
            store.apply(Diff(added_nodes=(Node("a", (), {"n": number}),)))
            store.apply(Diff(removed_nodes=(Node("a", (), {"n": number}),)))
        store.apply(Diff(added_nodes=(Node("last"),)))
        before = path.stat().st_size
        store.compact()
        store.apply(Diff(added_nodes=(Node("after"),)))
        assert path.stat().st_size < before / 5
    with InMemory(path=path) as store:
        assert store.graph().ids == ("last", "after")


FULL = """
import resource, signal, sys
from kgot_lab.errors import StoreUnavailable
from kgot_lab.stores.in_memory import InMemory
from kgot_lab.types import Diff, Node

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = InMemory(path=sys.argv[1])
store.apply(Diff(added_nodes=(Node("a"),)))
size = store._path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, -1))
for act in (lambda: store.apply(Diff(added_nodes=(Node("refused", (), {"text": "x" * 100}),))), store.compact):
    try:
        act()
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
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path / "graph.log")], capture_output=True, text=True, timeout=600)
    *refused, before, after = ran.stdout.splitlines()
    assert refused[0] == "refused" and before == after == "a next", ran.stderr
    assert not list(tmp_path.glob("*.new"))


def test_a_value_that_is_not_json_is_refused_before_anything_is_kept(tmp_path):
    with InMemory(path=tmp_path / "graph.log") as store:
        with pytest.raises(BadInput, match="not JSON"):
            store.apply(Diff(added_nodes=(Node("a", (), {"x": float("nan")}),)))
        assert not len(store.graph())
