"""Files of claims: told from files of other kinds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.saying import said

from kgot_lab.errors import BadInput, StoreDamaged
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
        (Path("no\0path"), BadInput, "can be no path"),
    ):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(error, match=message):
            open_claims(path)
        assert before is None or path.read_bytes() == before
