"""The worker program for engines that can be forked: it holds a copy of the graph and forks for every
statement.

A message is a four-byte length and that many bytes. A request is JSON. A reply is one byte for the outcome,
and the output of the child, which the worker does not read. Runs inside the sandbox: imports the standard
library and modules of the sandbox only.
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
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from kgot_lab.sandbox.worker import seccomp

REPLIED, TIMED_OUT, TOO_LARGE, CRASHED, READY = b"=", b"t", b"o", b"x", b"!"
RESULT_DESCRIPTOR = 3  # the only descriptor a statement has


class ClaimedGraph(Protocol):
    """A graph of claims on nodes and edges, as in `claims`."""

    def clear(self) -> None: ...
    def put(self, nodes: Iterable[list[Any]], edges: Iterable[list[Any]]) -> None: ...


class StatementGraph(ClaimedGraph, Protocol):
    """A graph for the statements of one language."""

    def answer(
        self, do: str, text: str
    ) -> dict[str, Any]: ...  # in a fork that ends with it: nodes and edges, rows, text, or error


def serve(graph: StatementGraph) -> None:
    """Serve requests from standard input until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    drop_privileges()
    seccomp_filter = seccomp.filter_program() if sys.platform == "linux" else None
    gc.disable()
    for request in statements(graph):
        gc.freeze()  # the garbage collector of a fork must not write to every page of the graph
        send_reply(*_run_in_fork(request, graph, seccomp_filter))


def statements(graph: ClaimedGraph) -> Iterator[dict[str, Any]]:
    """Apply the claims of each request from standard input, and yield the requests that have a statement."""
    send_reply(READY)
    while (request := receive_request()) is not None:
        if request.get("clear"):
            graph.clear()
        graph.put(request.get("nodes", ()), request.get("edges", ()))
        if "do" in request:
            yield request
        else:
            send_reply(READY)


def drop_privileges() -> None:
    """Switch to the user that the environment names, if any, and hide this process's memory from others."""
    if user := os.environ.pop("RUN_AS", ""):
        seccomp.switch_user(int(user))
    if sys.platform == "linux":
        seccomp.hide_memory()


def _run_in_fork(
    request: dict[str, Any], graph: StatementGraph, seccomp_filter: bytes | None
) -> tuple[bytes, bytes]:
    """Run a statement in a fork that can only write its result, and return the outcome and the output."""
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_fd, write_fd = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            if seccomp_filter is not None:
                seccomp.die_with(parent)
            _confine(write_fd, request, peak_kb, seccomp_filter)
            gc.enable()
            if "without" in request:  # edges that this statement does not see
                graph.put((), request["without"])
            reply = graph.answer(request["do"], request["statement"])
            _write_all(RESULT_DESCRIPTOR, json.dumps(reply, ensure_ascii=False, allow_nan=False).encode())
        except BaseException as error:
            reason = error.strerror if isinstance(error, OSError) else type(error).__name__
            problem = {"error": f"no result could be told: {reason}"}
            _write_all(RESULT_DESCRIPTOR, json.dumps(problem).encode())
        finally:
            os._exit(0)
    os.close(write_fd)
    try:
        return _await_result(child, read_fd, time.monotonic() + request["seconds"], request["bytes"])
    finally:
        os.close(read_fd)


def _confine(writing: int, request: dict[str, Any], peak_kb: int, instructions: bytes | None) -> None:
    """Restrict this process to one descriptor, little memory and time, and few system calls."""
    if writing != RESULT_DESCRIPTOR:
        os.dup2(writing, RESULT_DESCRIPTOR)
    os.closerange(0, RESULT_DESCRIPTOR)
    os.closerange(RESULT_DESCRIPTOR + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    seconds = math.ceil(request["seconds"]) + 1
    limits = {
        "CPU": seconds,
        "AS": peak_kb * 1024 + request["memory"],
        "FSIZE": 0,
        "NOFILE": 64,
        "CORE": 0,
        "NPROC": 0,
        "MEMLOCK": 0,
    }
    for name, limit in limits.items():
        if instructions is not None or name in ("CPU", "FSIZE", "CORE"):  # not all systems know the others
            kind = getattr(resource, f"RLIMIT_{name}")
            # the limits of this machine may be lower, and cannot be raised
            hard_limit = resource.getrlimit(kind)[1]
            limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
            resource.setrlimit(kind, (limit, limit))
    if instructions is not None:
        seccomp.install_filter(instructions)


def _await_result(child: int, reading: int, deadline: float, max_bytes: int) -> tuple[bytes, bytes]:
    chunks, size, outcome = [], 0, REPLIED
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not poll.poll(remaining * 1000):
            outcome = TIMED_OUT
            break
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            outcome = TOO_LARGE
            break
    status = _reap(child, outcome, deadline)
    if outcome == REPLIED and (not chunks or os.WIFSIGNALED(status)):
        signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if signal_number in (signal.SIGXCPU, signal.SIGKILL):
            return TIMED_OUT, b""
        return CRASHED, str(signal_number).encode()
    return outcome, b"".join(chunks) if outcome == REPLIED else b""


def _reap(child: int, outcome: bytes, deadline: float) -> int:
    """Wait until the deadline for a child that closed its result, and then kill it.

    A child that misbehaved is killed at once.
    """
    delay = 0.0001
    while outcome == REPLIED and time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(delay)
        delay = min(0.01, 2 * delay)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def receive_request() -> dict[str, Any] | None:
    """Read the next request, or None at the end."""
    header = _read_all(4)
    if not header:
        return None
    request: dict[str, Any] = json.loads(_read_all(struct.unpack(">I", header)[0]))
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


def send_reply(outcome: bytes, payload: bytes = b"") -> None:
    """Send a reply: the outcome and the output."""
    _write_all(1, struct.pack(">I", len(payload) + 1) + outcome + payload)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
