"""Long jobs by the address of a Dask scheduler: sweeps, joins, and how far they are in a notebook."""

from __future__ import annotations

import pytest
from support.loopback import free_port
from support.workers import local_cluster

from kgot_lab.errors import BadInput, LabError
from kgot_lab.io.dask_workers import dask_client, job_error, run_jobs


@pytest.fixture(scope="module")
def address():
    with local_cluster(processes=False) as cluster:
        yield cluster.scheduler_address


def squared(number):
    if number < 0:
        raise BadInput("only numbers from 0")
    return 100 // (number + 1)


def test_every_job_is_done_once_by_the_workers(address):
    with dask_client(address) as client:
        done = dict(run_jobs(client, squared, range(20)))
    assert done == {number: squared(number) for number in range(20)}


def test_an_error_of_ours_comes_back_as_it_is_and_any_other_with_what_to_do(address):
    with dask_client(address) as client:
        with pytest.raises(BadInput, match="only numbers from 0"):
            list(run_jobs(client, squared, [1, -2]))
        with pytest.raises(
            LabError, match=r"a worker could not do its part \(TypeError.*install the same kgot_lab"
        ):
            list(run_jobs(client, squared, ["x"]))


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "http://127.0.0.1:8786", "", "file:///etc"])
def test_what_is_no_address_of_a_scheduler_is_refused(address):
    with pytest.raises(BadInput, match="tcp://HOST:8786"), dask_client(address):
        pass


def test_a_scheduler_that_does_not_answer_is_said_with_how_to_start_one():
    pytest.importorskip("distributed")
    with (
        pytest.raises(BadInput, match="dask scheduler"),
        dask_client(f"tcp://127.0.0.1:{free_port()}", seconds=0.5),
    ):
        pass


def test_a_scheduler_without_a_worker_is_said():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=0, dashboard_address="127.0.0.1:0", processes=False, host="127.0.0.1", protocol="tcp://"
        ) as cluster,
        pytest.raises(BadInput, match="has no worker"),
        dask_client(cluster.scheduler_address, seconds=0.5),
    ):
        pass


def test_a_worker_that_went_away_is_no_reason_to_install_anything():
    class FutureCancelledError(Exception):
        """As dask.distributed has one."""

    assert "went away" in str(job_error(FutureCancelledError("already forgotten")))
    assert "install" in str(job_error(TypeError("x")))
