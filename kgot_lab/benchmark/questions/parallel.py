"""Work on many items in some threads, which ends in order: what is under way is finished, nothing further is
begun.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Halted(Exception):
    """Work was stopped because all of it is to end: no error of its own."""


def in_parallel(
    work: Callable[[_Item], _Result], items: Iterable[_Item], parallel: int, halt: threading.Event
) -> Generator[_Result, None, None]:
    """What `work` gives for each item, as it comes, from so many threads.

    When it raises, or whoever takes the results stops, no further item is begun, `halt` is set, and those
    under way are waited for; then the first error is raised.
    """
    todo, done = queue.SimpleQueue[_Item](), queue.SimpleQueue[_Result | BaseException | None]()
    for item in items:
        todo.put(item)

    def run() -> None:
        while not halt.is_set():
            try:
                done.put(work(todo.get_nowait()))
            except queue.Empty:
                break
            except BaseException as error:  # it is raised in the thread that takes the results
                halt.set()
                done.put(error)
        done.put(None)

    # daemons: a second Ctrl-C leaves at once
    threads = [threading.Thread(target=run, daemon=True) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    problem: BaseException | None = None
    try:
        for result in _until_all_ended(done, parallel):
            if isinstance(result, BaseException):
                problem = problem if problem is not None or isinstance(result, Halted) else result
            else:
                yield result
    finally:
        halt.set()
        for thread in threads:
            thread.join()
    if problem is not None:
        raise problem


def _until_all_ended(
    done: queue.SimpleQueue[_Result | BaseException | None], threads: int
) -> Iterator[_Result | BaseException]:
    left = threads
    while left:
        item = done.get()
        if item is None:
            left -= 1
        else:
            yield item
