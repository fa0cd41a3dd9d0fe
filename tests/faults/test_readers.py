"""The short form of the fire over readers of files."""

from __future__ import annotations

import pytest
from support.installed import needs

from faults import readers

needs("markitdown", "pyoxigraph")


def test_every_whole_file_is_read():
    faults = {name: readers.fault_of(name, data) for name, data in readers.seeds().items()}
    assert faults == dict.fromkeys(readers.seeds(), "")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_damaged_file_is_read_or_refused_in_time_and_stops_no_folder(seed):
    found = readers.run(3.0, seed)
    assert found.faults == {} and found.cases > 0
