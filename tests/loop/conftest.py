"""A warm sandbox for the tests of a module."""

from __future__ import annotations

import pytest

from kgot_lab.stores import InMemory


@pytest.fixture(scope="module")
def shared():
    with InMemory() as store:
        yield store


@pytest.fixture
def store(shared):
    """The same warm sandbox for every test, with an empty graph."""
    shared.write("G.clear()")
    return shared
