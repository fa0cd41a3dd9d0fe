"""The log of diffs: what was acknowledged is there, what was not is not, and a file that is something else is
not touched.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

from kgot_lab.diagnostics.file_check import check_file
from kgot_lab.errors import BadInput, QueryFailed, StoreDamaged, StoreUnavailable
from kgot_lab.io.processes import lock_file
from kgot_lab.stores import open_store
from kgot_lab.stores.embedded_store import InMemory, inverse
from kgot_lab.stores.hash_chain import format_record
from kgot_lab.stores.log import DiffLog, read_history, salvage_log
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
        assert store.graph() == kept
        store.apply(inverse(diffs[-1]))
        assert tuple(read_history(tmp_path / "graph.log")) == (*diffs, inverse(diffs[-1]))


def test_the_graph_after_every_write_can_be_had_again(tmp_path):
    diffs = list(some_diffs())
    with InMemory(path=tmp_path / "graph.log") as store:
        for diff in diffs:
            store.apply(diff)
    assert tuple(read_history(tmp_path / "graph.log")) == tuple(diffs)


def killed_while_writing(path, count=4):
    """The bytes of a log whose writer was killed, and how long it was after each write."""
    code = """
import os, sys
sys.path.insert(0, sys.argv[2])
from stores.test_log import InMemory, some_diffs
store = InMemory(path=sys.argv[1])
print(os.path.getsize(sys.argv[1]), flush=True)
for diff in some_diffs(int(sys.argv[3])):
    store.apply(diff)
    print(os.path.getsize(sys.argv[1]), flush=True)
os._exit(9)
"""
    tests = str(Path(__file__).parents[1])
    command = [sys.executable, "-c", code, str(path), tests, str(count)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 9, ran.stderr
    return path.read_bytes(), [int(line) for line in ran.stdout.split()]


def test_a_write_that_did_not_end_is_cut_off_and_said_and_nothing_before_it_is_lost(tmp_path):
    path = tmp_path / "graph.log"
    whole, sizes = killed_while_writing(path)
    for torn in (b"0", b"0123456789abcdef {", b"\0" * 50, b"0123456789abcdef {}\n", b"x" * 5_000):
        path.write_bytes(whole + torn)
        told = r"ended in record 6, which was cut off.*is kept as graph.log.damaged-1"
        with pytest.warns(UserWarning, match=told):
            store = InMemory(path=path)
        store.apply(Diff(added_nodes=(Node("new"),)))
        store.close()
        assert len(list(read_history(path))) == len(sizes)
        assert (tmp_path / "graph.log.damaged-1").read_bytes() == whole + torn
        (tmp_path / "graph.log.damaged-1").unlink()


@pytest.mark.extended
def test_no_truncation_loses_an_acknowledged_record_in_silence(tmp_path):
    path = tmp_path / "graph.log"
    whole, _ = killed_while_writing(path)
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                InMemory(path=path).close()
            except (StoreDamaged, BadInput) as error:
                said.append(error)
                assert path.read_bytes() == whole[:size]
        assert said, size


def test_no_flipped_bit_in_a_record_is_passed_over(tmp_path):
    path = tmp_path / "graph.log"
    whole, sizes = killed_while_writing(path)
    chance = random.Random(0)
    for _ in range(300):
        place = chance.randrange(sizes[0], len(whole))
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        reason = r"of 5 records that were put on the disk only the first \d are whole; nothing was changed"
        with pytest.raises(StoreDamaged, match=reason):
            InMemory(path=path)
        assert path.read_bytes() == data


def test_a_line_that_was_removed_or_moved_is_noticed(tmp_path):
    path = tmp_path / "graph.log"
    whole, _ = killed_while_writing(path)
    lines = whole.splitlines(keepends=True)
    swapped = [*lines[:4], lines[5], lines[4], *lines[6:]]
    for changed in (lines[:4] + lines[5:], lines[:-1], swapped, lines[:5] + lines[4:]):
        path.write_bytes(b"".join(changed))
        with pytest.raises(StoreDamaged):
            InMemory(path=path)


def test_what_is_whole_of_a_damaged_log_can_be_kept_and_the_damaged_one_stays_beside(tmp_path):
    path = tmp_path / "graph.log"
    whole, sizes = killed_while_writing(path)
    data = whole[: sizes[3] + 20] + b"?" + whole[sizes[3] + 21 :]
    path.write_bytes(data)
    with pytest.raises(StoreDamaged, match=r"kgot-lab doctor --salvage .*graph\.log"):
        InMemory(path=path)
    assert salvage_log(path).damaged_copy.read_bytes() == data
    with InMemory(path=path) as store:
        assert len(list(read_history(path))) == 3
        store.apply(Diff(added_nodes=(Node("new"),)))
    assert len(list(read_history(path))) == 4


@pytest.mark.parametrize("harm", ["a second head", "no head", "marks", "a shorter mark", "a line between"])
def test_a_log_whose_chain_is_sound_keeps_all_its_records(tmp_path, harm):
    path = tmp_path / "graph.log"
    whole, _ = killed_while_writing(path)
    lines = whole.splitlines(keepends=True)
    harmed = {
        "a second head": [lines[0], *lines],
        "no head": lines[1:],
        "marks": [lines[0], b"x" * len(lines[1]), b"x" * len(lines[2]), *lines[3:]],
        "a shorter mark": [lines[0], lines[1], lines[2][4:], *lines[3:]],
        "a line between": [*lines[:5], b"what somebody wrote\n", *lines[5:]],
    }
    path.write_bytes(b"".join(harmed[harm]))
    assert not check_file(path).whole
    assert salvage_log(path).summary == "kept 5 of 5 writes"
    assert len(list(read_history(path))) == 5 and check_file(path).whole


def test_a_salvage_of_a_log_tells_how_much_it_kept_and_a_refused_one_leaves_nothing(tmp_path):
    path = tmp_path / "graph.log"
    whole, sizes = killed_while_writing(path)
    path.write_bytes(whole[: sizes[2] + 20] + b"?" + whole[sizes[2] + 21 :])
    assert salvage_log(path).summary == "kept 2 of 5 writes"
    (tmp_path / "graph.log.damaged-1").unlink()
    lost = whole[: sizes[0]].replace(whole[-60:-50], b"") + whole[sizes[1] :]
    newer = format_record({"format": "kgot_lab diff log", "version": 3}, b"") + whole[sizes[0] :]
    older = b'7c39a82d {"format":"kgot_lab diff log","version":1}\n' + whole[sizes[0] :]
    refused = (newer, "another version"), (older, "another version")
    for data, reason in ((lost, "not one of 5 writes could be read"), *refused):
        path.write_bytes(data)
        for _ in range(2):
            with pytest.raises((StoreDamaged, BadInput), match=reason):
                salvage_log(path)
        assert path.read_bytes() == data and list(tmp_path.iterdir()) == [path]


# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_log_is_locked_by_whatever_name_it_is_opened(tmp_path, link):
    path, other = tmp_path / "graph.log", tmp_path / "elsewhere" / "other.log"
    other.parent.mkdir()
    with InMemory(path=path) as store:
        getattr(other, link)(path)
        store.apply(Diff(added_nodes=(Node("a"),)))
        with pytest.raises(StoreUnavailable, match="open already"):
            InMemory(path=other)
    with InMemory(path=other) as store:
        assert store.graph().ids == ("a",)
        with pytest.raises(StoreUnavailable, match="open already"):
            InMemory(path=path)


@pytest.mark.parametrize("act", ["delete", "replace", "write"])
def test_a_log_that_was_taken_away_while_open_takes_no_write_that_would_be_lost(tmp_path, act):
    path = tmp_path / "graph.log"
    with InMemory(path=path) as store:
        store.apply(Diff(added_nodes=(Node("a"),)))
        if act == "delete":
            path.unlink()
        elif act == "replace":
            (tmp_path / "copy.log").write_bytes(path.read_bytes())
            (tmp_path / "copy.log").replace(path)
        else:
            with path.open("ab") as file:
                file.write(b"of somebody else")
        with pytest.raises(StoreUnavailable, match="the change was not made"):
            store.apply(Diff(added_nodes=(Node("b"),)))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such places")
def test_a_file_of_somebody_else_is_not_touched_and_nothing_is_left_beside_it(tmp_path):
    mine = tmp_path / "passwd"
    mine.write_text("root:x:0:0:root:/root:/bin/bash\n" * 40)
    before = mine.stat()
    with pytest.raises(BadInput, match="not a diff log"):
        InMemory(path=mine)
    after = mine.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert list(tmp_path.iterdir()) == [mine]
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(StoreUnavailable, match="it is no file"):
            InMemory(path=place)
    with pytest.raises(StoreUnavailable, match="not a regular file but a pipe"):
        list(read_history(tmp_path / "pipe"))


def test_an_empty_file_becomes_a_log_and_that_is_said(tmp_path):
    (tmp_path / "graph.log").touch()
    with pytest.warns(UserWarning, match="is empty: a new log is begun"):
        InMemory(path=tmp_path / "graph.log").close()


@pytest.mark.parametrize(
    "content",
    [
        b"notes of mine\n",
        b"\x00" * 100,
        b'{"type":"node"}\n',
        b"SQLite format 3\x00" + bytes(200),
        b"0123abcd my notes",
    ],
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
        code = f"from kgot_lab.stores.embedded_store import InMemory\nInMemory(path={str(path)!r})"
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
    for act in (
        first.graph,
        first.schema,
        lambda: first.apply(Diff(added_nodes=(Node("c"),))),
    ):
        with pytest.raises(StoreUnavailable, match="was closed; open another one"):
            act()
        with InMemory(path=path) as second:
            assert second.graph().ids == ("a",)


FULL = """
import resource, signal, sys
from kgot_lab.errors import StoreUnavailable
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.types import Diff, Node

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = InMemory(path=sys.argv[1])
store.apply(Diff(added_nodes=(Node("a"),)))
size = store._path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, -1))
try:
    store.apply(Diff(added_nodes=(Node("refused", (), {"text": "x" * 100}),)))
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
    assert not list(tmp_path.glob("*.new"))


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


def test_a_log_that_another_process_creates_at_the_same_time_is_not_said_to_be_empty(tmp_path, monkeypatch):
    path, other = tmp_path / "graph.log", list[subprocess.Popen]()
    code = f"from kgot_lab.stores.log import DiffLog; DiffLog({str(path)!r})"

    def lock_after_another_came(file):
        if not other:
            command = [sys.executable, "-W", "error", "-c", code]
            other.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            with suppress(subprocess.TimeoutExpired):  # where it waits for this one, as it should
                other[0].wait(5)
        lock_file(file)

    monkeypatch.setattr("kgot_lab.stores.log.lock_file", lock_after_another_came)
    log = DiffLog(path)
    assert "is open already" in other[0].communicate()[1]
    log.close()
