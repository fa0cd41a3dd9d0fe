"""Files of claims: told from files of other kinds."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.saying import said

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable
from kgot_lab.memory.claims.claims import open_claims


def test_a_file_of_another_kind_a_newer_one_and_a_damaged_one_are_refused_untouched(tmp_path):
    text, foreign, newer, broken = (
        tmp_path / name for name in ("text.db", "foreign.db", "newer.db", "broken.db")
    )
    text.write_text(
        "no database at all, but a longer text than the head of one, which is a hundred bytes. " * 9
    )
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE facts (id)")
    with open_claims(newer) as claims:
        claims.learn([said(f"Ada knows p{i}") for i in range(200)])
    broken.write_bytes(newer.read_bytes()[:4096] + b"\xaa" * 8192 + newer.read_bytes()[12288:])
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
    for path, error, message in (
        (text, BadInput, "not an SQLite file"),
        (foreign, BadInput, "something else made"),
        (newer, BadInput, "newer version of this package"),
        (broken, StoreDamaged, "damaged"),
        (tmp_path, BadInput, "is a folder"),
        (Path("no\0path"), BadInput, "path that no file can have"),
    ):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(error, match=message):
            open_claims(path)
        assert before is None or path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_child_that_was_forked_within_a_change_neither_ends_nor_undoes_it(tmp_path):
    with open_claims(path := tmp_path / "claims.db") as claims:
        claims.learn([said("Ada knows Charles")])
        parent, status = os.getpid(), 1
        try:
            with claims.storage.changing():
                claims.learn([said("Ada knows Mary")])
                if child := os.fork():
                    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    with closing(sqlite3.connect(path)) as other:
                        assert other.execute("SELECT count(*) FROM claims").fetchone() == (1,)
        except StoreUnavailable as error:  # pragma: no cover
            status = 0 if "was opened in another process" in str(error) else 2
        finally:
            if os.getpid() != parent:  # pragma: no cover
                os._exit(status)
        assert status == 0 and len(claims.facts()) == 2


def test_an_error_of_something_else_within_a_change_is_no_damage_of_the_file(tmp_path):
    with open_claims(tmp_path / "claims.db") as claims:
        for elsewhere in (lambda: b"\xff".decode(), lambda: sqlite3.connect(tmp_path)):
            with pytest.raises((UnicodeDecodeError, sqlite3.OperationalError)), claims.storage.changing():
                claims.learn([said("Ada knows Charles")])
                elsewhere()
        assert claims.facts() == ()
