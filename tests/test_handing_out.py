"""Which process gets which tests: every file that is said to take long exists, groups stay together, and no
test is lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.handing_out import BROWSER, LONG, group_of, in_order

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("place", LONG)
def test_what_is_said_to_take_long_is_there(place):
    assert (ROOT / place).exists()


def test_a_file_stays_together_and_all_of_the_browser_too():
    assert group_of("tests/loop/test_walk.py::test_it[a::b]") == "tests/loop/test_walk.py"
    assert (
        group_of("tests/browser/test_lab.py::test_a")
        == group_of("tests/browser/test_pages.py::test_b")
        == BROWSER
    )


def test_what_takes_long_comes_first_and_all_else_stays_in_its_order():
    given = [
        "tests/a.py::x",
        f"{LONG[2]}::y",
        "tests/b.py::z",
        f"{BROWSER}/test_lab.py::v",
        f"{LONG[2]}::u",
        "tests/a.py::w",
    ]
    assert in_order(given) == [given[3], given[1], given[4], given[0], given[2], given[5]]
