"""The short form of the fire over servers of models: each fault once, by name."""

from __future__ import annotations

import pytest
from support.faulty_server import FAULTS, PATIENT

from faults import servers


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(servers, "TIMEOUT", 0.5)


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_a_server_does_is_a_reply_or_one_clear_error_in_time_and_little_memory(name):
    assert servers.fault_of(FAULTS[name]) == ""


def test_several_faults_at_once_are_no_worse():
    assert servers.run(2.0, seed=1).faults == {}


def test_the_ways_that_wait_are_all_known():
    assert {f"way: {name}" for name in PATIENT} <= set(FAULTS)
