"""Long jobs by the address of a Dask scheduler: sweeps, joins, and how far they are in a notebook."""

from __future__ import annotations

import numpy as np
import pytest
from support.loopback import free_port
from support.workers import local_cluster

from kgot_lab.api import ask
from kgot_lab.api.ask import CellBar, counted_in_cell
from kgot_lab.errors import BadInput, LabError
from kgot_lab.io.dask_workers import part_failed, swept, workers_at
from kgot_lab.similarity.blocks import Effort
from kgot_lab.similarity.join import similar_pairs


@pytest.fixture(scope="module")
def address():
    with local_cluster(processes=False) as cluster:
        yield cluster.scheduler_address


def squared(number):
    if number < 0:
        raise BadInput("only numbers from 0")
    return 100 // (number + 1)


def test_a_sweep_gives_the_results_in_the_order_of_its_settings_here_and_by_workers(address):
    told = []
    with workers_at(address) as client:
        there = swept(squared, range(20), client=client, progress=lambda *counts: told.append(counts))
    assert there == swept(squared, range(20)) and told == [(n, 20) for n in range(1, 21)]


def test_an_error_of_ours_comes_back_as_it_is_and_any_other_with_what_to_do(address):
    with workers_at(address) as client:
        with pytest.raises(BadInput, match="only numbers from 0"):
            swept(squared, [1, -2], client=client)
        with pytest.raises(
            LabError, match=r"a worker could not do its part \(TypeError.*install the same kgot_lab"
        ):
            swept(squared, ["x"], client=client)


def test_a_join_takes_the_workers_of_an_address(address):
    vectors = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with workers_at(address) as client:
        there = similar_pairs(vectors, 0.5, effort=Effort(client=client))
    assert np.array_equal(there.rows, similar_pairs(vectors, 0.5).rows)


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "http://127.0.0.1:8786", "", "file:///etc"])
def test_what_is_no_address_of_a_scheduler_is_refused(address):
    with pytest.raises(BadInput, match="tcp://HOST:8786"), workers_at(address):
        pass


def test_a_scheduler_that_does_not_answer_is_said_with_how_to_start_one():
    pytest.importorskip("distributed")
    with (
        pytest.raises(BadInput, match="dask scheduler"),
        workers_at(f"tcp://127.0.0.1:{free_port()}", seconds=0.5),
    ):
        pass


def test_a_scheduler_without_a_worker_is_said():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", processes=False, host="127.0.0.1", protocol="tcp://"
        ) as cluster,
        pytest.raises(BadInput, match="has no worker"),
        workers_at(cluster.scheduler_address, seconds=0.5),
    ):
        pass


class Shown(CellBar):
    """Keeps what it would show."""

    def __init__(self, clock):
        super().__init__("reading", clock)
        self.texts = []

    def _show(self, text):
        self.texts.append(text)


def test_a_bar_is_drawn_a_few_times_a_second_and_at_the_end():
    seconds = iter([0, *(number / 10 for number in range(1, 11))])
    bar = Shown(lambda: next(seconds))
    for done in range(1, 11):
        bar.tell(done, 10)
    assert (
        len(bar.texts) < 10
        and bar.texts[0].startswith("reading: [###...")
        and bar.texts[-1].endswith("10 of 10, 1 s")
    )
    assert bar.texts[-1].count("#") == 30


def test_outside_of_a_notebook_nothing_is_shown_and_in_one_an_output_grows(monkeypatch):
    counted_in_cell("reading")(1, 2, "a.py")
    shown, updated = [], []

    class Handle:
        def update(self, told, **_):
            updated.append(told["text/plain"])

    display = pytest.importorskip("IPython.display")
    monkeypatch.setattr(display, "display", lambda told, **_: shown.append(told["text/plain"]) or Handle())
    monkeypatch.setattr(ask, "in_notebook", lambda: True)
    tell = counted_in_cell("reading", clock=iter(range(9)).__next__)
    tell(1, 2, "a.py")
    tell(2, 2)
    assert len(shown) == len(updated) == 1 and "1 of 2" in shown[0] and "2 of 2" in updated[0]


def test_a_worker_that_went_away_is_no_reason_to_install_anything():
    class FutureCancelledError(Exception):
        """As dask.distributed has one."""

    assert "went away" in str(part_failed(FutureCancelledError("already forgotten"))) and "install" in str(
        part_failed(TypeError("x"))
    )
