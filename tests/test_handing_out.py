"""Which process gets which tests: every file that is said to take long exists, groups stay together, and no
test is lost.
"""

from __future__ import annotations

from pathlib import Path

from support.handing_out import BROWSER, LONG, group_of, in_order

ROOT = Path(__file__).parents[1]


def test_what_is_said_to_take_long_is_there():
    assert [place for place in LONG if place not in BROWSER and not (ROOT / place).exists()] == []


def test_a_file_stays_together_and_those_of_the_browser_are_three_shards():
    assert group_of("tests/loop/test_walk.py::test_it[a::b]") == "tests/loop/test_walk.py"
    named = ("notebooks", "claims", "graph_view", "lab", "pages")
    shards = [group_of(f"tests/browser/test_{name}.py::test_it") for name in named]
    assert shards == [BROWSER[0], BROWSER[1], BROWSER[1], BROWSER[2], BROWSER[2]]


def test_what_takes_long_comes_first_and_all_else_stays_in_its_order():
    given = [
        "tests/a.py::x",
        f"{LONG[4]}::y",
        "tests/b.py::z",
        "tests/browser/test_lab.py::v",
        f"{LONG[4]}::u",
        "tests/a.py::w",
    ]
    assert in_order(given) == [given[3], given[1], given[4], given[0], given[2], given[5]]
