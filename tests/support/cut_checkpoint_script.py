"""A program whose checkpoint ends in the middle: no file may grow by more than a page, as on a full disk.

Run as: python cut_checkpoint_script.py KIND FILE. It holds the file open until its input ends.
"""

from __future__ import annotations

import resource
import sqlite3
import sys
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from kgot_lab.experts.expert import expert_config
from kgot_lab.experts.repository import open_experts
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.memory.claims.claims import open_claims
from kgot_lab.memory.sqlite import SQLiteTripleStore
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.types import Diff, Node, Triple

BEFORE, AFTER = range(150), range(150, 180)
_LONG = "x" * 400


def _fact(number: int) -> Triple:
    return Triple(f"s{number}", "is", f"{_LONG}{number}")


def _add_experts(opened: Any, numbers: Iterable[int]) -> None:
    about = {"name": "Cook", "kg_db_id": "cookbook", "description": _LONG}
    with opened.storage.changing():
        for number in numbers:
            opened.add_expert(expert_config({**about, "persona": {"name": "Cook"}}), id=f"s{number}")


KINDS: dict[
    str, tuple[Callable[[Path], Any], Callable[[Any, Iterable[int]], object], Callable[[Any], int]]
    # how a file of each kind is opened, added to, and counted
] = {
    "claims": (
        open_claims,
        lambda opened, numbers: opened.learn([Claim(_fact(number), "doc") for number in numbers]),
        lambda opened: len(opened.triples()),
    ),
    "experts": (open_experts, _add_experts, lambda opened: len(opened.experts())),
    "triples": (
        SQLiteTripleStore,
        lambda opened, numbers: opened.add(map(_fact, numbers)),
        lambda opened: opened.count(),
    ),
    "graph": (
        Sqlite,
        lambda opened, numbers: opened.apply(
            Diff(added_nodes=tuple(Node(f"s{number}", (), {"text": _LONG}) for number in numbers))
        ),
        lambda opened: len(opened.graph()),
    ),
}


def main() -> None:
    kind, path = sys.argv[1], Path(sys.argv[2])
    open_file, add, _ = KINDS[kind]
    with closing(open_file(path)) as opened:
        add(opened, BEFORE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 4096,) * 2)
    opened = open_file(path)
    add(opened, AFTER)
    with closing(sqlite3.connect(path)) as other:
        try:
            other.execute("PRAGMA wal_checkpoint").fetchall()
        except sqlite3.OperationalError as error:
            print(error, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
