"""Lock files between processes, protect objects from forked children, and end what takes too long."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

from kgot_lab.errors import BadInput


def hold(lock: IO[Any]) -> None:
    """Lock an open file exclusively until it is closed.

    Raises OSError if another has the lock.
    """
    if os.name == "nt":  # untested
        import msvcrt

        msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def one_at_a_time(path: Path, waits: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock file `<name>.lock` beside a path while the block runs.

    `waits` is called before waiting for another holder. The lock excludes other processes and other threads,
    so it cannot be acquired twice. Raises BadInput if the lock file cannot be created.
    """
    lock = path.with_name(f"{path.name}.lock")
    with _held(lock, waits):
        try:
            yield
        finally:
            with suppress(OSError):  # an open file may not be deletable, which does no harm
                lock.unlink()  # while it is held: a waiting process finds that it is gone, and starts again


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
    """Wait for the lock of an open file and acquire it."""
    if os.name == "nt":  # untested
        import msvcrt

        while True:
            with suppress(OSError):  # it gives up after ten seconds, and is called again
                msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
                return
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)


# Forked children: locks, connections and worker processes that the parent opened belong to the parent alone.

ELSEWHERE = "was opened in another process, of which this one is a fork, which cannot use it: open it anew here (a file: closed there)"


class Inherited(Protocol):
    """An open resource of which a forked child gets a copy."""

    def forked(
        self,
    ) -> None: ...  # detaches it in the child without effects on the parent; must not wait or raise


_there: weakref.WeakSet[Inherited] = weakref.WeakSet()


def tell_of_forks(opened: Inherited) -> None:
    """Call `forked` in every forked child while this object exists, before anything else runs there."""
    _begin()
    _there.add(opened)


def keep_for_ever(connection: object) -> None:
    """Prevent an object from ever being collected, even at the end of the program.

    Closing a copy of it would affect the parent process.
    """
    if hasattr(ctypes, "pythonapi"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


@cache
def _begin() -> None:
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=_tell)


def _tell() -> None:
    for opened in list(_there):
        opened.forked()


# Ending operations that take too long and have no timeout of their own.


@contextmanager
def ended_after(seconds: float, end: Callable[[], object]) -> Iterator[threading.Event]:
    """Call `end` from another thread if the block takes longer than `seconds`.

    The event is set if it was called.
    """
    late = threading.Event()

    def act() -> None:
        late.set()
        end()

    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
