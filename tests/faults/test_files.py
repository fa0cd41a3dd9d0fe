"""Every kind of file on a disk that is stopped, loses its power, is full, fails or is damaged, and beside other
processes: nothing that was acknowledged is lost, nothing made up, and neither is taken for the other.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from faults import damage, histories, places, store_machine, traces
from faults.counting import fault_of
from faults.kinds import KINDS
from faults.steps import faults_in, faults_of_failures, power_losses, recorded, stops
from kgot_lab.errors import LabError, StoreDamaged

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the disk below SQLite is found in /proc")

kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=str)


@kinds
def test_a_process_that_is_stopped_at_any_step_leaves_all_that_was_acknowledged(kind, tmp_path):
    """At one step in five; benchmarks.fire.files takes each."""
    recording = recorded(kind, tmp_path, writes=6)
    assert faults_in(kind, recording, stops(kind, recording.acts), every=5, strict=True) == {}


@kinds
def test_a_loss_of_power_leaves_all_that_was_acknowledged(kind, tmp_path):
    recording = recorded(kind, tmp_path, writes=6)
    assert faults_in(kind, recording, power_losses(recording.acts, random.Random(1)), every=5) == {}


@kinds
def test_a_disk_that_is_full_or_fails_refuses_in_one_sentence_and_the_file_goes_on_once_it_is_repaired(
    kind, tmp_path
):
    recording = recorded(kind, tmp_path, writes=6)
    assert faults_of_failures(kind, recording, random.Random(1), every=29) == {}


def test_a_file_that_is_not_synced_and_a_write_that_hides_its_failure_are_found(tmp_path, monkeypatch):
    kind, chance = KINDS["nonces"], random.Random(1)

    def write_without_a_word(nonces, number):
        with suppress(LabError):
            kind.write(nonces, number)

    hiding, recording = replace(kind, write=write_without_a_word), recorded(kind, tmp_path, writes=6)
    assert any(" of " in fault for fault in faults_of_failures(hiding, recording, chance, every=5).values())
    monkeypatch.setattr(
        "kgot_lab.stores.tables.sqlite.SQLiteTables.settings", ("journal_mode = WAL", "synchronous = OFF")
    )
    (tmp_path / "kept in memory").mkdir()
    recording = recorded(kind, tmp_path / "kept in memory", writes=6)
    assert len(faults_in(kind, recording, power_losses(recording.acts, chance))) > 20


@pytest.mark.parametrize("name", ["graph", "claims", "experts", "triples"])
def test_a_file_whose_checkpoint_was_stopped_is_damaged_without_the_log_that_it_needs(name, tmp_path):
    kind, stopped = KINDS[name], 0
    for files, _ in stops(kind, recorded(kind, tmp_path, writes=8).acts):
        data = files.get("file.db", b"")
        if "file.db-wal" in files and len(data) < 4096 * int.from_bytes(data[28:32]):
            (tmp_path / "left.db").write_bytes(data)
            with pytest.raises(StoreDamaged, match="is damaged"):
                kind.things(tmp_path / "left.db")
            stopped += 1
    assert stopped


@kinds
def test_openings_leave_no_descriptor_behind(kind, tmp_path):
    recorded(kind, tmp_path, writes=2)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        kind.things(tmp_path / kind.file)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


# --- several at once ---


def test_beside_writers_every_opening_reads_all_that_was_acknowledged(tmp_path):
    opens, faults = histories.faults_beside(KINDS.values(), tmp_path, rounds=1, seed=1)
    assert faults == {} and all(opens.values())


def test_a_process_that_opens_a_file_in_the_middle_of_a_step_reads_what_was_acknowledged(tmp_path):
    with histories.other_process() as ask:
        for name in KINDS:
            (folder := tmp_path / name).mkdir()
            asked, faults = histories.faults_beside_each_step(KINDS[name], folder, ask, writes=6, every=7)
            assert (faults, name) == ({}, name) and asked


@kinds
def test_threads_that_share_an_open_file_are_told_one_order(kind, tmp_path):
    assert histories.fault_of_threads(kind, tmp_path / kind.file, random.Random(1)) == ""


@pytest.mark.parametrize("name", ["graph", "claims", "experts", "embedded"])
def test_threads_whose_file_is_closed_are_told_and_keep_what_they_were_told(name, tmp_path):
    assert histories.fault_of_closing(KINDS[name], tmp_path / KINDS[name].file, random.Random(1)) == ""


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ([("write", 0, 2, [1]), ("read", 1, 3, []), ("read", 4, 5, [1])], ""),
        ([("write", 0, 1, [1]), ("read", 2, 3, []), ("read", 4, 5, [1])], "not there for a later read"),
        ([("write", 0, 9, [1]), ("read", 1, 2, [1]), ("read", 3, 4, []), ("read", 10, 11, [1])], "went back"),
        ([("write", 0, 9, [1]), ("write", 0, 9, [2]), ("read", 1, 5, [1]), ("read", 1, 5, [2])], "no order"),
        ([("read", 0, 1, [7])], "not written"),
        ([("write", 5, 6, [1]), ("read", 0, 1, [1])], "not written"),
    ],
)
def test_a_history_without_one_order_is_found(told, fault):
    history = [histories.Told(what, begin, end, tuple(things)) for what, begin, end, things in told]
    assert fault in histories.fault_of(history) and bool(fault) == bool(histories.fault_of(history))


# --- damage ---


def test_damage_to_any_file_is_said_or_does_not_matter():
    found = {sample.name: damage.faults_of(sample, random.Random(2), 12) for sample in damage.all_samples()}
    assert {name: faults for name, faults in found.items() if faults} == {}


# --- places, and the clock ---


def test_where_nothing_can_be_written_a_file_is_read_or_refused_in_one_sentence_and_stays_whole(tmp_path):
    assert places.faults_where_nothing_can_be_written(tmp_path) == {}


@kinds
@pytest.mark.parametrize("go", places.WAYS, ids=lambda go: go.__name__)
def test_a_file_whose_folder_goes_away_refuses_what_would_be_lost(kind, go, tmp_path):
    assert places.fault_of_going(kind, tmp_path, go) == ""


@kinds
def test_a_clock_that_jumps_loses_nothing(kind, tmp_path):
    assert places.fault_of_clock(kind, tmp_path / kind.file) == ""


# --- traces, and stores against a model ---


@pytest.mark.parametrize("case", traces.CASES, ids=lambda case: case.__name__)
def test_a_trace_has_what_was_passed_on_whatever_the_disk_does(case):
    assert [fault for number in range(15) if (fault := fault_of(case, number))] == []


@pytest.mark.parametrize("kind", ["in_memory", "sqlite"])
def test_a_store_does_what_its_model_does_whatever_comes(kind, tmp_path):
    where = {"path": str(tmp_path / ("graph.db" if kind == "sqlite" else "graph.log"))}
    assert store_machine.fault_in(kind, where, 1, 15) == ""
