"""Files that one process at a time works on; the system frees the lock of a process that dies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kgot_lab.errors import BadInput


def hold(lock: IO[Any]) -> None:
    """Lock an open file for this opening of it alone, until it is closed; raises OSError where another has
    it.
    """
    if os.name == "nt":  # untested
        import msvcrt

        msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def one_at_a_time(path: Path, waits: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock of a file, `<name>.lock` beside it, for as long as the block runs; `waits` is told before
    another is waited for.

    It holds against other processes and against other threads, so nobody may ask for it twice. Raises
    BadInput where no file can be made.
    """
    lock = path.with_name(f"{path.name}.lock")
    with _held(lock, waits):
        try:
            yield
        finally:
            with suppress(
                OSError
            ):  # where a file that is open cannot be deleted it stays, and holds nobody up
                lock.unlink()  # while it is held: who waits for it finds that it is gone, and begins anew


@contextmanager
def _held(lock: Path, waits: Callable[[], object]) -> Iterator[None]:
    told = False
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("ab")
        except OSError as error:
            raise BadInput(f"cannot write {lock}: {error.strerror or error}") from error
        with file:
            try:
                hold(file)
            except BlockingIOError:
                if not told:
                    waits()
                told = True
                _wait(file)
            except OSError as error:
                raise BadInput(
                    f"cannot lock {lock}: {error.strerror or error}; take a folder on another disk"
                ) from error
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                    yield
                    return


def _wait(lock: IO[Any]) -> None:
    """Wait until nobody else has the lock of an open file, and take it."""
    if os.name == "nt":  # untested
        import msvcrt

        while True:
            with suppress(OSError):  # it gives up after ten seconds, and is asked again
                msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
                return
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
