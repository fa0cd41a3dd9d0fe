"""Give the worker of a closed sandbox to the next one that is started in the same way.

An engine takes up to two seconds to start and the tests open hundreds of stores. A statement runs in a fork
or in a transaction that is undone, and the next sandbox clears the graph and loads its own.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from pytest import MonkeyPatch

from kgot_lab.sandbox.process import Sandbox, _Worker

SPARE: dict[tuple[int, str], list[_Worker]] = {}
ask, start = _Worker.ask, Sandbox._ready_worker


def reuse_workers(patch: MonkeyPatch) -> None:
    """Replace the start and the end of a sandbox's worker until the patch is undone."""
    patch.setattr(_Worker, "ask", ask_and_note)
    patch.setattr(Sandbox, "_ready_worker", ready)
    patch.setattr(Sandbox, "close", close)


def ask_and_note(self: _Worker, *request: Any) -> tuple[bytes, bytes]:
    self.busy = True  # and stays so after an interrupt: its answer is still to come
    answer = ask(self, *request)
    self.busy = False
    return answer


def ready(self: Sandbox) -> _Worker:
    key = os.getpid(), repr(self.launch)
    if self._worker is None:
        idle = [worker for worker in SPARE.pop(key, []) if worker.alive]
        if idle:
            self._worker, self._pending = idle.pop(), None
            SPARE[key] = idle
    worker = start(self)
    if vars(self).get("lent") is not worker:
        self.lent, self.give_back = worker, weakref.finalize(self, give_back, key, worker)
        self.give_back.atexit = False
    return worker


def close(self: Sandbox) -> None:
    with self._lock:
        if self._worker is not None:
            stop = self.give_back if vars(self).get("lent") is self._worker else self._worker.stop
            stop()
        self._worker = self._pending = self.lent = None


def give_back(key: tuple[int, str], worker: _Worker) -> None:
    idle = SPARE.setdefault(key, [])
    if key[0] == os.getpid() and worker.alive and not vars(worker).get("busy") and len(idle) < 2:
        idle.append(worker)
    else:
        worker.stop()
