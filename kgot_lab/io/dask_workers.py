"""Run jobs on the workers of a Dask scheduler, by its address.

A scheduler runs any code that is sent to it, so it should be your own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kgot_lab.errors import BadInput, LabError, NotInstalled, mask_secrets, require_amount

_Asked = TypeVar("_Asked")
_Made = TypeVar("_Made")
WorkerProgress = Callable[[int, int], object]  # called with the number of finished jobs and of all


@contextmanager
def workers_at(address: str, *, seconds: float = 10.0) -> Iterator[Any]:
    """Connect a Dask client to a scheduler at an address such as "tcp://HOST:8786".

    Pass the client to any function that takes a `client`. Raises NotInstalled if Dask is missing, and
    BadInput if within `seconds` no scheduler answers or it has no worker.
    """
    require_amount(seconds, "the seconds to wait", positive=True)
    if not address.startswith(("tcp://", "tls://")):
        raise BadInput(
            f"a scheduler of Dask has an address such as tcp://HOST:8786, not {mask_secrets(address)[:80]!r}"
        )
    try:
        import distributed
    except ImportError:
        raise NotInstalled("bench", "Dask") from None
    made: Any = distributed  # it has no types
    try:
        client = made.Client(address, timeout=seconds)
    except (OSError, ValueError) as error:
        started = "start one with `dask scheduler`, and workers with `dask worker` and its address"
        raise BadInput(
            f"no scheduler of Dask answers at {mask_secrets(address)} ({type(error).__name__}): {started}"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=seconds)
        except TimeoutError:
            raise BadInput(
                "the scheduler has no worker: start some with `dask worker` and its address"
            ) from None
        yield client


def shared_out(
    client: Any, act: Callable[[_Asked], _Made], jobs: Sequence[_Asked]
) -> Iterator[tuple[int, _Made]]:
    """Run jobs on the workers and yield the result of each with its number, in order of completion.

    Closing the iterator cancels the remaining jobs. Raises a LabError that `act` raises as it is, and
    LabError for any other error and for a worker that was lost over a job repeatedly.
    """
    import distributed

    as_completed: Any = distributed.as_completed
    left = {client.submit(act, job, pure=False): number for number, job in enumerate(jobs)}
    try:
        for future in as_completed(list(left)):
            try:
                made = future.result()
            except LabError:
                raise
            except Exception as error:
                raise part_failed(error) from error
            yield left.pop(future), made
    finally:
        client.cancel(list(left))


def part_failed(error: Exception) -> LabError:
    """Return the error for a job that failed: its worker or the scheduler is gone, or it lacks something."""
    gone = any(
        word in type(error).__name__ for word in ("Cancelled", "CommClosed", "KilledWorker", "Timeout")
    )
    lost = "the worker, or the scheduler, went away; start it again and give the same command, which goes on from what is finished"
    lacks = "install the same kgot_lab on each worker, with the same extras"
    return LabError(
        f"a worker could not do its part ({type(error).__name__}: {str(error)[:200]}): {lost if gone else lacks}"
    )


def swept(
    act: Callable[[_Asked], _Made],
    settings: Sequence[_Asked],
    *,
    client: Any = None,
    progress: WorkerProgress | None = None,
) -> list[_Made]:
    """Apply `act` to each of some settings and return the results in order.

    Runs them one after the other, or on the workers of a Dask client if one is given.
    """
    told = progress or (lambda *_: None)
    if client is None:
        made = []
        for setting in settings:
            made.append(act(setting))
            told(len(made), len(settings))
        return made
    found: dict[int, _Made] = {}
    for number, one in shared_out(client, act, settings):
        found[number] = one
        told(len(found), len(settings))
    return [found[number] for number in range(len(settings))]
