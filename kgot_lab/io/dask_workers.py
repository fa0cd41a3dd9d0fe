"""Work for the workers of a Dask scheduler, by its address; a scheduler runs what anybody sends who reaches
it, so it belongs to you.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kgot_lab.errors import BadInput, LabError, NotInstalled, require_amount, without_secrets

_Asked = TypeVar("_Asked")
_Made = TypeVar("_Made")
WorkerProgress = Callable[[int, int], object]  # how many of how many are done


@contextmanager
def workers_at(address: str, *, seconds: float = 10.0) -> Iterator[Any]:
    """A Dask client of the scheduler at an address such as "tcp://HOST:8786", for all that takes a `client`.

    Raises NotInstalled, and BadInput where within so many seconds no scheduler answers, or one without a
    worker.
    """
    require_amount(seconds, "the seconds to wait", some=True)
    if not address.startswith(("tcp://", "tls://")):
        raise BadInput(
            f"a scheduler of Dask has an address such as tcp://HOST:8786, not {without_secrets(address)[:80]!r}"
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
            f"no scheduler of Dask answers at {without_secrets(address)} ({type(error).__name__}): {started}"
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
    """What workers make of each job, as they finish, with the number of the job; whoever stops listening
    takes the others back.

    Raises what the act raises of our errors, and LabError for any other and for a worker that was lost over a
    job again and again.
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
    """What to say of a job that raised: its worker or the scheduler is gone, or it lacks something."""
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
    """What an act makes of each of some settings, in their order: here one after the other, or by the workers
    of a Dask client.
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
