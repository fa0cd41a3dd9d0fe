"""kgot-lab doctor FILE: one line, and exit code 1 for what is broken."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing

import pytest

from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.types import Diff, Node


def test_the_command_says_whether_a_file_is_whole_and_salvages_it(kgot_lab, tmp_path):
    path = tmp_path / "graph.log"
    with InMemory(path=path) as store:
        for number in range(21):
            store.apply(Diff(added_nodes=(Node(f"n{number}"),)))
    assert kgot_lab("doctor", str(path)).out.startswith("whole")
    path.write_bytes(path.read_bytes().replace(b"n20", b"n2x"))
    broken = kgot_lab("doctor", str(path))
    assert broken.code == 1 and broken.out.startswith("BROKEN") and "doctor --salvage" in broken.out
    salvaged = kgot_lab("doctor", "--salvage", str(path))
    assert salvaged.code == 0 and "is kept as" in salvaged.out and "whole" in salvaged.out
    assert kgot_lab("doctor", "--salvage").code == 1


@pytest.fixture
def strange(tmp_path):
    """Files and what are none, by name."""
    note = '{"type":"node","id":"Ada","labels":[],"properties":{}}\n'
    for name in ("empty.log", "empty.sqlite", "empty.jsonl"):
        (tmp_path / name).touch()
    (tmp_path / "wide.jsonl").write_bytes(note.encode("utf-16"))
    (tmp_path / "wider.jsonl").write_bytes(note.encode("utf-32"))
    (tmp_path / "unmarked.jsonl").write_bytes(note.encode("utf-16-le"))
    (tmp_path / "latin.jsonl").write_bytes(note.replace("Ada", "Zoë").encode("latin-1"))
    (tmp_path / "noise.sqlite").write_bytes(bytes(range(1, 200)) * 20)
    (tmp_path / "zeros.log").write_bytes(bytes(4_000))
    (tmp_path / "dangling.log").symlink_to("nowhere.log")
    (tmp_path / "circle.log").symlink_to("circle.log")
    (tmp_path / "folder").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.log")
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute("CREATE TABLE places (url)")
        other.commit()
    return tmp_path


SAID = {
    "empty.log": "is empty, or was never written: restore a copy, or delete it",
    "empty.sqlite": "is empty, or was never written: restore a copy, or delete it",
    "empty.jsonl": "is empty, or was never written: restore a copy, or delete it",
    "wide.jsonl": "is a text in UTF-16, and only UTF-8 is read: save it as UTF-8",
    "wider.jsonl": "is a text in UTF-32, and only UTF-8 is read: save it as UTF-8",
    "unmarked.jsonl": "is a text in UTF-16, and only UTF-8 is read: save it as UTF-8",
    "latin.jsonl": "is not UTF-8 (invalid continuation byte at byte 24): save it as UTF-8",
    "noise.sqlite": "is no SQLite file, or has lost its beginning: if it was one, restore a copy",
    "zeros.log": "is no SQLite file, or has lost its beginning: if it was one, restore a copy",
    "dangling.log": "is a link to nowhere.log, which is not there: restore it",
    "circle.log": "cannot be read (Too many levels of symbolic links): see that you may read it, and the disk is sound",
    "folder": "is a folder: name a file in it",
    "pipe.log": "is a pipe, of which nothing was read: name a file",
    "other.sqlite": "is an SQLite file of another program, not a graph, memory or cache of this package: nothing here can check it",
    "x" * 5_000: "cannot be read (File name too long): see that you may read it, and the disk is sound",
}


@pytest.mark.skipif(sys.platform != "linux", reason="the system's own words are those of Linux")
@pytest.mark.parametrize("name", SAID, ids=lambda name: name[:20])
def test_what_is_no_file_of_ours_is_named_in_one_sentence_that_says_what_to_do(kgot_lab, strange, name):
    before = {path: path.read_bytes() for path in strange.iterdir() if path.is_file()}
    told = kgot_lab("doctor", str(strange / name))
    said = told.out + told.err
    assert told.code == 1
    assert SAID[name] in " ".join(said.split())
    assert len(said.strip().splitlines()) == 1
    assert len(said) < 700
    assert {path: path.read_bytes() for path in strange.iterdir() if path.is_file()} == before


@pytest.mark.skipif(sys.platform != "linux", reason="files that Linux alone has")
def test_a_device_and_a_file_that_fails_when_it_is_read_are_told(kgot_lab):
    device, failing = kgot_lab("doctor", "/dev/zero"), kgot_lab("doctor", "/proc/self/mem")
    assert device.code == 1 and "is a device, of which nothing was read: name a file" in device.err
    assert failing.code == 1 and "/proc/self/mem cannot be read (Input/output error)" in failing.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read any file")
def test_a_file_that_may_not_be_read_is_told(kgot_lab, tmp_path):
    (tmp_path / "graph.log").touch(mode=0)
    told = kgot_lab("doctor", str(tmp_path / "graph.log"))
    assert told.code == 1 and "cannot be read (Permission denied): see that you may read it" in told.err
