"""Lock files between processes, protect objects from forked children and signals, and end what takes too long."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn, Protocol, Self

from kgot_lab.arguments import CheckedCalls
from kgot_lab.errors import BadInput
from kgot_lab.io.files import os_errors_as


def lock_file(file: IO[Any], *, waits: bool = False) -> None:
    """Lock an open file exclusively until it is closed.

    If another has the lock, waits for it or raises OSError.
    """
    if os.name == "nt":  # untested
        import msvcrt

        while waits:
            with suppress(OSError):  # it gives up after ten seconds, and is called again
                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
                return
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable the cyclic garbage collector within a block that builds millions of objects, none of them cyclic.

    Scanning them for cycles would take a quarter of the time.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def exclusive_lock(path: Path, on_wait: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock file `<name>.lock` beside a path while the block runs.

    `on_wait` is called before waiting for another holder. The lock excludes other processes and other threads,
    so it cannot be acquired twice. Raises BadInput if the lock file cannot be created.
    """
    lock = path.with_name(f"{path.name}.lock")
    with _acquired_lock(lock, on_wait):
        try:
            yield
        finally:
            with suppress(OSError):  # an open file may not be deletable, which does no harm
                lock.unlink()  # while it is held: a waiting process finds that it is gone, and starts again


@contextmanager
def _acquired_lock(lock: Path, on_wait: Callable[[], object]) -> Iterator[None]:
    was_notified = False
    while True:
        with os_errors_as(f"cannot write {lock}"):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("ab")
        with file:
            try:
                lock_file(file)
            except BlockingIOError:
                if not was_notified:
                    on_wait()
                was_notified = True
                lock_file(file, waits=True)
            except OSError as error:
                reason = error.strerror or error
                raise BadInput(f"cannot lock {lock}: {reason}; take a folder on another disk") from error
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                    yield
                    return


# Forked children: locks, connections and worker processes that the parent opened belong to the parent alone.

OPENED_BEFORE_FORK = "was opened in another process, of which this one is a fork, which cannot use it: open it again here (a file: closed there)"


class Closing(CheckedCalls, ABC):
    """An object that is closed at the end of a `with` block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release what the object has open."""

    def __reduce__(self) -> NoReturn:
        problem = "is open, and cannot be copied, pickled or sent to another process"
        raise BadInput(f"this {type(self).__name__} {problem}: pass on where it is, and open it there")


class InheritedResource(Protocol):
    """An open resource of which a forked child gets a copy."""

    def after_fork(
        self,
    ) -> None: ...  # detaches it in the child without effects on the parent; must not wait or raise


_inherited_resources: weakref.WeakSet[InheritedResource] = weakref.WeakSet()


def register_for_forks(resource: InheritedResource) -> None:
    """Call `after_fork` in every forked child while this object exists, before anything else runs there."""
    _inherited_resources.add(resource)


def prevent_collection(resource: object) -> None:
    """Prevent an object from ever being collected, even at the end of the program.

    Closing a copy of it would affect the parent process.
    """
    if hasattr(ctypes, "pythonapi"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(resource))


def _notify_resources() -> None:
    for resource in list(_inherited_resources):
        resource.after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_notify_resources)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Deliver signals that arrive in the block after it, for code that an exception would leave half done."""
    pending: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():  # only this one handles signals
        found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        handlers = {number: handler for number, handler in found.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda *received: pending.append(received))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in pending:
            handlers[number](number, frame)


# Ending operations that take too long and have no timeout of their own.


@contextmanager
def watchdog(seconds: float, on_timeout: Callable[[], object]) -> Iterator[threading.Event]:
    """Call `on_timeout` from another thread if the block takes longer than `seconds`.

    The event is set if it was called.
    """
    timed_out = threading.Event()

    def expire() -> None:
        timed_out.set()
        on_timeout()

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield timed_out
    finally:
        timer.cancel()
