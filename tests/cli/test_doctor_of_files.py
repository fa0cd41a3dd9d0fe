"""kgot-lab doctor FILE: one line, and exit code 1 for what is broken."""

from __future__ import annotations

from kgot_lab.stores.in_memory import InMemory
from kgot_lab.types import Diff, Node


def test_the_command_says_whether_a_file_is_whole_and_salvages_it(kgot_lab, tmp_path):
    path = tmp_path / "graph.log"
    with InMemory(path=path) as store:
        for number in range(21):
            store.apply(Diff(added_nodes=(Node(f"n{number}"),)))
    assert kgot_lab("doctor", str(path)).out.startswith("whole")
    path.write_bytes(path.read_bytes()[:-100])
    broken = kgot_lab("doctor", str(path))
    assert broken.code == 1 and broken.out.startswith("BROKEN") and "of 21 records" in broken.out
    salvaged = kgot_lab("doctor", "--salvage", str(path))
    assert salvaged.code == 0 and "is kept as" in salvaged.out and "whole" in salvaged.out
    assert kgot_lab("doctor", "--salvage").code == 1
