"""Run jobs on the workers of a Dask scheduler, by its address.

A scheduler runs any code that is sent to it, so it should be your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from kgot_lab.errors import BadInput, LabError, mask_secrets, needs_extra, require_amount

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


class DaskClient(Protocol):
    """A client of Dask, as `dask_client` gives one."""

    submit: Any
    cancel: Any
    nthreads: Any


@contextmanager
def dask_client(address: str, *, seconds: float = 10.0) -> Iterator[Any]:
    """Connect a Dask client to a scheduler at an address such as "tcp://HOST:8786".

    Pass the client to any function that takes a `client`. Raises NotInstalled if Dask is missing, and
    BadInput if within `seconds` no scheduler answers or it has no worker.
    """
    require_amount(seconds, "the seconds to wait", positive=True)
    if not address.startswith(("tcp://", "tls://")):
        given = repr(mask_secrets(address)[:80])
        raise BadInput(f"a scheduler of Dask has an address such as tcp://HOST:8786, not {given}")
    with needs_extra("bench", "Dask"):
        import distributed
    dask: Any = distributed  # it has no types
    try:
        client = dask.Client(address, timeout=seconds)
    except (OSError, ValueError) as error:
        started = "start one with `dask scheduler`, and workers with `dask worker` and its address"
        problem = f"no scheduler of Dask answers at {mask_secrets(address)} ({type(error).__name__})"
        raise BadInput(f"{problem}: {started}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=seconds)
        except TimeoutError:
            problem = "the scheduler has no worker"
            raise BadInput(f"{problem}: start some with `dask worker` and its address") from None
        yield client


def run_jobs(
    client: Any, function: Callable[..., _Result], jobs: Sequence[_Job], *shared: Any
) -> Iterator[tuple[int, _Result]]:
    """Run jobs on the workers and yield the result of each with its number, in order of completion.

    The function gets a job, and what all `shared` futures of the client hold.
    Closing the iterator cancels the remaining jobs. Raises a LabError that `function` raises as it is, and
    LabError for any other error and for a worker that was lost over a job repeatedly.
    """
    import distributed

    as_completed: Any = distributed.as_completed
    pending = {client.submit(function, job, *shared, pure=False): number for number, job in enumerate(jobs)}
    try:
        for future in as_completed(list(pending)):
            try:
                result = future.result()
            except LabError:
                raise
            except Exception as error:
                raise job_error(error) from error
            yield pending.pop(future), result
    finally:
        client.cancel(list(pending))


def job_error(error: Exception) -> LabError:
    """Return the error for a job that failed: its worker or the scheduler is gone, or it lacks something."""
    signs = ("Cancelled", "CommClosed", "KilledWorker", "Timeout")
    is_gone = any(sign in type(error).__name__ for sign in signs)
    lost = "the worker, or the scheduler, went away; start it again and give the same command, which goes on from what is finished"
    lacks = "install the same kgot_lab on each worker, with the same extras"
    problem = f"{type(error).__name__}: {str(error)[:200]}"
    return LabError(f"a worker could not do its part ({problem}): {lost if is_gone else lacks}")
