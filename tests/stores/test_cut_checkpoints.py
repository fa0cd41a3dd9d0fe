"""SQLite files during a checkpoint and after one that a full disk or a kill cut short: the file alone looks
damaged, and with its log nothing is lost.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="no limit on the size of files here")

from support import cut_checkpoint_script
from support.cut_checkpoint_script import AFTER, BEFORE, KINDS

from kgot_lab.diagnostics.file_check import check_file
from kgot_lab.errors import StoreDamaged

pytestmark = pytest.mark.extended

ADDED = len(BEFORE) + len(AFTER)
NAME, LOG, INDEX = "file.db", "file.db-wal", "file.db-shm"


@pytest.fixture(scope="module", params=KINDS)
def cut(request, tmp_path_factory):
    """The kind of a file, a folder with it as a killed process leaves it, and how much was read beside that
    process.
    """
    kind, path = request.param, tmp_path_factory.mktemp("cut") / NAME
    command = [sys.executable, cut_checkpoint_script.__file__, kind, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert "disk" in writer.stdout.readline()
            head, size = path.read_bytes()[:100], path.stat().st_size
            page_size, pages = int.from_bytes(head[16:18]), int.from_bytes(head[28:32])
            assert size < pages * page_size  # it tells of pages that only the log has
            left = tmp_path_factory.mktemp("left")
            shutil.copytree(path.parent, left, dirs_exist_ok=True)
            try:
                beside = count(kind, path)
            except StoreDamaged as error:
                beside = error
        finally:
            writer.kill()
    return kind, left, beside


@pytest.fixture
def left(cut, tmp_path):
    """The kind of a file and a copy of what a killed process left of it."""
    shutil.copytree(cut[1], tmp_path, dirs_exist_ok=True)
    return cut[0], tmp_path / NAME


def count(kind: str, path: Path) -> int:
    """How much a file holds."""
    open_file, _, count_in = KINDS[kind]
    with closing(open_file(path)) as opened:
        return count_in(opened)


def test_beside_a_writer_whose_checkpoint_failed_everything_is_read(cut):
    assert cut[2] == ADDED


def test_after_a_kill_in_a_checkpoint_everything_is_read(left):
    kind, path = left
    assert kind not in ("claims", "graph") or check_file(path).whole
    assert count(kind, path) == ADDED


def test_without_the_index_of_the_log_as_after_a_restart_everything_is_read(left):
    kind, path = left
    path.with_name(INDEX).unlink()
    assert count(kind, path) == ADDED


@pytest.mark.parametrize("harm", ["absent", "cut"])
def test_without_the_log_that_it_needs_the_same_file_is_damaged(left, harm):
    kind, path = left
    log = path.with_name(LOG)
    if harm == "cut":
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    else:
        log.unlink()
    path.with_name(INDEX).unlink()
    with pytest.raises(StoreDamaged, match="is damaged"):
        count(kind, path)
