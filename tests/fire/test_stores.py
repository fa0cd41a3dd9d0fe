"""The short form of the fire over stores: a few seconds of each room, always the same ones."""

from __future__ import annotations

import random

import pytest

from fire import damage, power, side_by_side, store_machine
from fire.counting import fault_of


@pytest.mark.parametrize("kind", ["in_memory", "sqlite"])
def test_a_store_does_what_its_model_does_whatever_comes(kind, tmp_path):
    where = {"path": str(tmp_path / ("graph.db" if kind == "sqlite" else "graph.log"))}
    assert store_machine.fault_in(kind, where, 1, 15) == ""


@pytest.mark.parametrize("case", power.CASES, ids=lambda case: case.__name__)
def test_what_was_acknowledged_outlives_a_power_failure_and_a_full_disk(case):
    assert [fault for number in range(15) if (fault := fault_of(case, number))] == []


def test_damage_to_any_file_of_ours_is_said_or_does_not_matter(tmp_path):
    chance, made = random.Random(2), damage.make_all(tmp_path)
    for sort, (data, whole) in made.items():
        (folder := tmp_path / f"damaged {sort.name}").mkdir()
        for _ in range(15):
            what, changed = damage.damaged(data, chance)
            assert changed == data or damage.fault_of(sort, changed, whole, folder) == "", (sort.name, what)


@pytest.mark.parametrize("case", side_by_side.CASES, ids=lambda case: case.__name__)
def test_threads_and_processes_lose_nothing_to_each_other(case):
    assert [fault for number in range(2) if (fault := fault_of(case, number))] == []
