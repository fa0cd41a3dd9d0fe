"""The program inside the sandbox: it holds a copy of the graph, and forks once for every statement.

Requests and replies are a four-byte length and that many bytes: a JSON request in; out, one byte that says how it ended, and what the
child wrote, which the worker does not read.
Runs inside the sandbox: standard library, NetworkX and its sisters only.
"""

from __future__ import annotations

import gc
import json
import math
import os
import resource
import select
import signal
import struct
import sys
import time
from typing import Any

from kgot_lab.sandbox import seccomp
from kgot_lab.sandbox.claims import put
from kgot_lab.sandbox.statements import answer
from kgot_lab.sandbox.tracked import Journal, TrackedGraph, track

REPLIED, TIMED_OUT, TOO_LONG, CRASHED, READY = b"=", b"t", b"o", b"x", b"!"
RESULT = 3  # the only descriptor a statement has


def main() -> None:
    """Serve requests from standard input until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    instructions = None
    if sys.platform == "linux":
        instructions = seccomp.program()
        seccomp.hide_memory()
    gc.disable()
    journal = track(TrackedGraph())
    _send(READY)
    while (request := _receive()) is not None:
        if request.get("clear"):
            journal = _emptied(journal)
        put(journal, request.get("nodes", ()), request.get("edges", ()))
        if "do" in request:
            gc.freeze()  # the collector of a fork must not write to every page of the graph
            _send(*_run_apart(request, journal, instructions))
        else:
            _send(READY)


def _emptied(journal: Journal) -> Journal:
    """A new journal over a new graph; the old one's cycles are cut, because the collector is off."""
    for part in (journal.graph._succ, journal.graph._pred, journal.graph._node):
        dict.clear(part)
    journal.graph.__dict__.clear()
    journal.__dict__.clear()
    return track(TrackedGraph())


def _run_apart(request: dict[str, Any], journal: Journal, instructions: bytes | None) -> tuple[bytes, bytes]:
    """Run a statement in a fork that can only write its result; returns how it ended and what it wrote."""
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reading, writing = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            if instructions is not None:
                seccomp.die_with(parent)
            _confine(writing, request, peak_kb, instructions)
            gc.enable()
            reply = answer(request["do"], request["statement"], journal)
            _write_all(RESULT, json.dumps(reply, ensure_ascii=False, allow_nan=False).encode())
        except BaseException as error:
            detail = error.strerror if isinstance(error, OSError) else type(error).__name__
            _write_all(RESULT, json.dumps({"error": f"no result could be told: {detail}"}).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        return _await(child, reading, time.monotonic() + request["seconds"], request["bytes"])
    finally:
        os.close(reading)


def _confine(writing: int, request: dict[str, Any], peak_kb: int, instructions: bytes | None) -> None:
    """Keep one descriptor, little memory and time, and few system calls."""
    if writing != RESULT:
        os.dup2(writing, RESULT)
    os.closerange(0, RESULT)
    os.closerange(RESULT + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    seconds = math.ceil(request["seconds"]) + 1
    limits = {"CPU": seconds, "AS": peak_kb * 1024 + request["memory"], "FSIZE": 0, "NOFILE": 64, "CORE": 0, "NPROC": 0, "MEMLOCK": 0}
    for name, most in limits.items():
        if instructions is not None or name in ("CPU", "FSIZE", "CORE"):  # other systems know not all of them
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    if instructions is not None:
        seccomp.confine(instructions)


def _await(child: int, reading: int, deadline: float, most: int) -> tuple[bytes, bytes]:
    chunks, size, how = [], 0, REPLIED
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            how = TIMED_OUT
            break
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            how = TOO_LONG
            break
    status = _reap(child, how, deadline)
    if how == REPLIED and (not chunks or os.WIFSIGNALED(status)):
        signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return (TIMED_OUT, b"") if signal_number in (signal.SIGXCPU, signal.SIGKILL) else (CRASHED, str(signal_number).encode())
    return how, b"".join(chunks) if how == REPLIED else b""


def _reap(child: int, how: bytes, deadline: float) -> int:
    """Wait for a child that closed its result, but not past the deadline; end it then, or at once if it misbehaved."""
    pause = 0.0001
    while how == REPLIED and time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(pause)
        pause = min(0.01, 2 * pause)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _receive() -> dict[str, Any] | None:
    head = _read_all(4)
    if not head:
        return None
    request: dict[str, Any] = json.loads(_read_all(struct.unpack(">I", head)[0]))
    return request


def _read_all(size: int) -> bytes:
    chunks = []
    while size:
        chunk = os.read(0, min(size, 1 << 20))
        if not chunk:
            return b""
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _send(how: bytes, payload: bytes = b"") -> None:
    _write_all(1, struct.pack(">I", len(payload) + 1) + how + payload)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
