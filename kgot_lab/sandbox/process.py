"""Start a worker in a sandbox, send it statements, and check its answers, its time and its memory.

A worker that dies, hangs or returns invalid answers is replaced: the statement fails, and the next one gets a
new worker with the correct graph.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import struct
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, TypeVar

from kgot_lab.errors import BadInput, QueryFailed, SandboxError, require_seconds
from kgot_lab.graph.changes import MutableGraph
from kgot_lab.io.processes import Closing, register_for_forks
from kgot_lab.sandbox.replies import MalformedReply, encode_element, encode_removal, parse_changes, parse_part
from kgot_lab.types import STATEMENT_SECONDS, Diff, Edge, Json, Node, Rows

Result = TypeVar("Result")

# The memory of a sandbox: of all its processes together, because the limit of one does not bound their
# number.

_PROC = Path("/proc")


def descendants(pid: int) -> tuple[int, ...]:
    """Return a process and all its descendants, or only itself on a machine that does not list them."""
    process_ids = [pid]
    for process_id in process_ids:
        tasks = _PROC / str(process_id) / "task"
        for thread in _list_folder(tasks):
            process_ids += map(int, _read_text(tasks / thread / "children").split())
    return tuple(process_ids)


def anonymous_megabytes(processes: tuple[int, ...]) -> float:
    """Return the memory of some processes that is not backed by files, in MB.

    Pages that two processes share count in each. 0 on a machine that does not report it.
    """
    return sum(map(_anonymous_kilobytes, processes)) / 1024


def _anonymous_kilobytes(pid: int) -> int:
    fields = (line.split() for line in _read_text(_PROC / str(pid) / "status").splitlines())
    return sum(int(field[1]) for field in fields if field[:1] in (["RssAnon:"], ["RssShmem:"]))


def _list_folder(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _read_text(path: Path) -> str:
    try:
        # a process may have a name that is not valid text
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it ended in the meantime, or this is not Linux
        return ""


_MAX_RESULT_BYTES = 1_000_000  # bytes of rows or text that one statement may return
MAX_CHANGE_BYTES = 16_000_000  # bytes of changes that one statement may make
_MAX_ERROR_BYTES = 1 << 16  # bytes of a program's output that are read for its reason
# how error messages of Docker, bubblewrap, Go and others begin
_REASON_PREFIX = re.compile(r"(docker|bwrap|fatal error|panic|error): ", re.I)
_JAVA_MARGIN = "# \t"  # Java's crash messages have a margin
_JAVA_START_ERROR = "Error occurred during initialization of VM"
# seconds that the worker and the check of its answer may take in addition to the statement: half its own
_MIN_GRACE_SECONDS, _MAX_GRACE_SECONDS = 1.0, 2.0
_MEMORY_CHECK_SECONDS = 0.1  # seconds between two checks of a sandbox's memory
_SLACK_MB = 256  # memory of an engine in addition to that of a statement
# changes that one statement may wait for; with more, the graph is loaded again before its time starts
MAX_PENDING = 5_000

BOOT = """
import importlib, sys, types
folder, engine = sys.argv[1:3]
for name, path in (("", []), (".worker", [folder + "/worker"]), ("." + engine, [folder + "/" + engine])):
    package = types.ModuleType("kgot_lab.sandbox" + name)
    package.__path__ = path
    sys.modules[package.__name__] = package
sys.modules["kgot_lab"] = types.ModuleType("kgot_lab")
sys.path += sys.argv[3:]
importlib.import_module("kgot_lab.sandbox." + engine + ".worker").main()
"""  # the worker finds what engines share and its own engine, and nothing else of this package
OPTIONS = ("-s", "-P", "-S", "-c", BOOT)  # not -I or -E, which ignore PYTHONHASHSEED
WORKER_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
FOLDER = Path(__file__).parent  # a worker sees its folder `worker` and that of its engine


def worker_environment(memory_mb: int) -> dict[str, str]:
    """Return the environment of a worker, without the variables of this process.

    It contains the memory limit, for an engine that needs it at start.
    """
    return {**WORKER_ENVIRONMENT, "MEMORY_MB": str(memory_mb)}


@dataclass(frozen=True)
class Launch:
    """The way in which one kind of sandbox starts its worker.

    An environment of None is that of this process.
    """

    kind: str
    command: tuple[str, ...]
    environment: Mapping[str, str] | None
    patience: float = 30.0  # seconds until the worker must be ready


class _WorkerBroken(Exception):
    """The worker can no longer be used."""


class _WorkerLost(_WorkerBroken):
    """The worker ended or stopped, because of a statement or something else."""


class Sandbox(Closing):
    """Runs statements in a worker process, one fork each, against a copy of the graph.

    `seconds` is wall time and `memory_mb` address space for each statement. All processes of the sandbox
    together may use `memory_mb` on top of twice what they use between statements.
    """

    def __init__(self, launch: Launch, *, seconds: float = STATEMENT_SECONDS, memory_mb: int = 512):
        self.launch, self.seconds, self.memory_mb = launch, require_seconds(seconds), memory_mb
        self._truth = MutableGraph()
        # changes that the worker does not know yet; None if it needs the whole graph
        self._pending: list[Diff] | None = None
        self._waiting = 0  # the number of elements in them
        self._worker: _Worker | None = None
        self._lock = threading.RLock()
        register_for_forks(self)

    def __repr__(self) -> str:
        return f"<{self.launch.kind} sandbox: {self.seconds:g} s, {self.memory_mb} MB, {len(self._truth.nodes)} nodes>"

    def write(self, statement: str) -> Diff:
        """Return what a statement would change, checked against the graph but not applied.

        Raises QueryFailed if the statement fails or its changes are not valid.
        """

        def parse(payload: bytes) -> Diff:
            return self._truth.difference(*parse_changes(payload, statement))

        return self._request("write", statement, parse, MAX_CHANGE_BYTES)

    def read(self, statement: str, without: Sequence[Edge] = ()) -> Rows:
        """Run a read statement and return its rows, as if the edges `without` were missing.

        Raises QueryFailed if the statement fails.
        """
        options: dict[str, Any] = {"without": list(map(encode_removal, without))} if without else {}
        parse = partial(parse_part, name="rows", kind=list, statement=statement)
        return tuple(self._request("read", statement, parse, **options))

    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Run plain Python and return what it prints, or the value of its last expression.

        `seconds` replaces the time limit. Raises QueryFailed if the code fails.
        """
        parse = partial(parse_part, name="text", kind=str, statement=code)
        return str(self._request("compute", code, parse, seconds=seconds))

    def apply(self, diff: Diff) -> None:
        """Apply a diff to the graph.

        The worker gets it with the next statement. Raises BadInput if it does not fit.
        """
        with self._lock:
            self._truth.apply(diff)
            if self._pending is not None:
                self._pending.append(diff)
                self._waiting += _diff_size(diff)
                if self._waiting > MAX_PENDING:
                    self._pending = None

    def reset(self, nodes: tuple[Node, ...], edges: tuple[Edge, ...]) -> None:
        """Replace the graph.

        Raises BadInput if the new one is not valid.
        """
        with self._lock:
            self._truth, self._pending = MutableGraph(nodes, edges), None

    def close(self) -> None:
        """Stop the worker.

        A later statement starts a new one.
        """
        with self._lock:
            if self._worker is not None:
                self._worker.stop()
            self._worker = self._pending = None

    def after_fork(self) -> None:
        """Detach the worker in a forked child, since it is the parent's.

        The next statement starts one of the child's own.
        """
        self._lock = threading.RLock()
        self.close()

    def _request(
        self,
        do: str,
        statement: str,
        parse: Callable[[bytes], Result],
        max_bytes: int = _MAX_RESULT_BYTES,
        seconds: float | None = None,
        **options: Json,
    ) -> Result:
        seconds = self.seconds if seconds is None else require_seconds(seconds)
        limits = {"seconds": seconds, "memory": self.memory_mb << 20, "bytes": max_bytes, **options}
        with self._lock:
            worker = self._ready_worker()
            pending, self._pending, self._waiting = self._pending or [], [], 0
            try:
                request = {**_merge_diffs(pending), "do": do, "statement": statement, **limits}
                grace = min(_MAX_GRACE_SECONDS, max(_MIN_GRACE_SECONDS, seconds / 2))
                deadline = time.monotonic() + seconds + grace
                outcome, payload = worker.ask(request, deadline, self.memory_mb)
                if outcome == b"=" and len(payload) <= max_bytes:
                    result = parse(payload)
                    if time.monotonic() < deadline:
                        return result
                    outcome = b"t"
            except _WorkerBroken as error:
                self.close()
                # another process may have killed it: it was not necessarily the statement
                is_lost = isinstance(error, _WorkerLost)
                problem = "the sandbox ended or stopped while it ran the statement; it"
                explanation = problem if is_lost else "the statement broke the sandbox, which"
                raise QueryFailed(statement, f"{explanation} starts afresh ({error})") from None
            except (MalformedReply, BadInput) as error:
                self.close()  # a statement that can forge a reply may have done more
                raise QueryFailed(statement, f"what the statement returned makes no sense: {error}") from None
            except QueryFailed:
                raise
            # an interrupt: the answer would arrive later and be taken for that of the next statement
            except BaseException:
                self.close()
                raise
        raise QueryFailed(statement, self._explain_failure(outcome, payload, max_bytes, seconds))

    def _explain_failure(self, outcome: bytes, payload: bytes, max_bytes: int, seconds: float) -> str:
        if outcome == b"t":
            return f"the statement took longer than {seconds:g} seconds"
        if outcome in (b"o", b"="):
            return f"the statement returned more than {max_bytes:,} bytes"
        number = payload.decode("ascii", "replace")
        if not number.isdigit() or len(number) > 3 or number == "0":
            return "the statement ended the interpreter before it had a result"
        names = {int(signal_number): signal_number.name for signal_number in signal.Signals}
        return f"the statement crashed the interpreter ({names.get(int(number), number)}); perhaps it needs more memory than it may have"

    def _ready_worker(self) -> _Worker:
        """Return a running worker that has loaded an earlier state of the graph.

        `_pending` holds the changes since. Raises SandboxError if it cannot start or load the graph.
        """
        if self._worker is None or not self._worker.alive:
            self.close()
            self._worker = _Worker(self.launch)
        if self._pending is None:
            nodes = map(encode_element, self._truth.nodes.values())
            edges = map(encode_element, self._truth.edges.values())
            try:
                seconds = 60 + len(self._truth.edges) / 1000
                request = {"clear": True, "nodes": list(nodes), "edges": list(edges)}
                self._worker.ask(request, time.monotonic() + seconds)
            except _WorkerBroken as error:
                self.close()
                kind = self.launch.kind
                raise SandboxError(f"the {kind} sandbox could not load the graph: {error}") from None
            self._pending, self._waiting = [], 0
        return self._worker


def _diff_size(diff: Diff) -> int:
    nodes = len(diff.added_nodes) + len(diff.removed_nodes) + len(diff.changed_nodes)
    return nodes + len(diff.added_edges) + len(diff.removed_edges) + len(diff.changed_edges)


def _merge_diffs(diffs: list[Diff]) -> dict[str, Json]:
    """Merge diffs into one request, with only the last state of each element.

    The elements are in the order in which a graph grows.
    """
    nodes: dict[str, Json] = {}
    edges: dict[tuple[str, ...], Json] = {}
    for diff in diffs:
        for node in diff.removed_nodes:
            nodes[node.id] = encode_removal(node)
        for edge in diff.removed_edges:
            edges[edge.identity] = encode_removal(edge)
        for node in diff.written_nodes:
            nodes[node.id] = encode_element(node)
        for edge in diff.written_edges:
            edges[edge.identity] = encode_element(edge)
    return {"nodes": list(nodes.values()), "edges": list(edges.values())}


class _Worker:
    """A started worker process and its two pipes."""

    def __init__(self, launch: Launch):
        with ExitStack() as opened:
            try:
                self.errors = opened.enter_context(tempfile.TemporaryFile())
                starter = _worker_starter(os.getpid())
                self.process = starter.submit(_start_process, launch, self.errors).result()
            except (OSError, RuntimeError) as error:  # no file, process or thread is available
                raise SandboxError(f"the {launch.kind} sandbox could not be started: {error}") from None
            opened.pop_all()  # closed by _end
        self.stop = weakref.finalize(self, _end_worker, self.process, self.errors, os.getpid())
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._most_mb = 0.0  # that its processes may use together while they answer; 0 for no limit
        try:
            self._receive(time.monotonic() + launch.patience)
            self._idle = descendants(self.process.pid)
        except _WorkerBroken as error:
            self.errors.seek(0)
            reason = _informative_line(self.errors.read(_MAX_ERROR_BYTES).decode(errors="replace"))
            self.stop()
            raise SandboxError(f"the {launch.kind} sandbox did not start: {reason or error}") from None

    @property
    def alive(self) -> bool:
        return self.stop.alive and self.process.poll() is None

    def ask(
        self, request: Mapping[str, Json], deadline: float, memory_mb: int | None = None
    ) -> tuple[bytes, bytes]:
        """Send a request and return its outcome and output.

        Raises _Broken if the worker fails, also if it uses far more memory than a statement may.
        """
        self._most_mb = (
            0.0 if memory_mb is None else 2 * anonymous_megabytes(self._idle) + memory_mb + _SLACK_MB
        )
        data = json.dumps(request).encode()
        self._send(struct.pack(">I", len(data)) + data, deadline)
        return self._receive(deadline)

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            self._wait(self._in, select.POLLOUT, deadline)
            try:
                view = view[os.write(self._in, view[: 1 << 20]) :]
            except BlockingIOError:
                continue
            except OSError:
                raise _WorkerLost("it does not listen") from None

    def _receive(self, deadline: float) -> tuple[bytes, bytes]:
        header = self._read(4, deadline)
        size = struct.unpack(">I", header)[0]
        if not 0 < size <= MAX_CHANGE_BYTES + (1 << 17):
            output = _informative_line(self._read_rest(header, deadline).decode(errors="replace"))
            words = re.search("[A-Za-z]{3}", output)
            problem = (
                f"in place of an answer came {output!r}" if words else "its answer has an impossible length"
            )
            raise _WorkerBroken(problem)
        answer = self._read(size, deadline)
        return answer[:1], answer[1:]

    def _read(self, size: int, deadline: float) -> bytes:
        chunks = []
        while size:
            self._wait(self._out, select.POLLIN, deadline)
            chunk = os.read(self._out, min(size, 1 << 20))
            if not chunk:
                raise _WorkerLost("it ended")
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _read_rest(self, header: bytes, deadline: float) -> bytes:
        """Return what was written instead of an answer, as far as it arrives within a moment."""
        output = header
        with suppress(_WorkerBroken):
            while len(output) < _MAX_ERROR_BYTES:
                output += self._read(1, min(deadline, time.monotonic() + _MEMORY_CHECK_SECONDS))
        return output

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        """Wait until a pipe is ready, while checking the memory of the sandbox's processes.

        Raises _Broken if it takes too long or they use too much.
        """
        poll = select.poll()
        poll.register(descriptor, event)
        while not poll.poll(1000 * max(0.0, min(_MEMORY_CHECK_SECONDS, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                raise _WorkerLost("it does not answer")
            if self._most_mb and anonymous_megabytes(descendants(self.process.pid)) > self._most_mb:
                raise _WorkerBroken(f"it took more than {self._most_mb:,.0f} MB of memory")


def _informative_line(output: str) -> str:
    """Return the most informative line of a program's error output.

    It is the exception below a traceback, the first named reason, or the first line.
    """
    lines = [line.strip(_JAVA_MARGIN)[:300] for line in output.splitlines() if line.strip(_JAVA_MARGIN)]
    if any(line.startswith("Traceback ") for line in lines):
        return lines[-1]
    failed_lines = (number for number, line in enumerate(lines) if line.startswith(_JAVA_START_ERROR))
    if (java_line := next(failed_lines, None)) is not None:
        return ": ".join(lines[java_line : java_line + 2])  # the reason is in the next line
    return next((line for line in lines if _REASON_PREFIX.match(line)), lines[0] if lines else "")


@cache
def _worker_starter(process_id: int) -> ThreadPoolExecutor:
    """Return the one thread of this process that starts workers.

    bubblewrap ends a worker together with the thread that started it.
    """
    return ThreadPoolExecutor(1, f"sandbox-{process_id}")


def _start_process(launch: Launch, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = None if launch.environment is None else dict(launch.environment)
    return subprocess.Popen(
        launch.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        bufsize=0,
        env=environment,
        start_new_session=True,
    )


def _end_worker(process: subprocess.Popen[bytes], errors: IO[bytes], parent: int) -> None:
    """Kill a worker with all processes it started.

    A forked child only closes its ends of the pipes, also when it exits.
    """
    if os.getpid() == parent:
        _kill_session(process)
    else:
        process.returncode = 0  # the child must not wait for it
    for pipe in (process.stdin, process.stdout, errors):
        if pipe is not None:
            pipe.close()


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    # the latter on macOS, if only ended processes are left
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:  # otherwise its number may have been reused
            # its session: without a PID namespace its children would stay
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
