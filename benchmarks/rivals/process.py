"""A system that runs in a process of its own, asked by JSON lines, with its peak memory."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, TextIO

START_SECONDS = 900  # some load hundreds of megabytes of libraries
Reply = dict[str, Any]


class SystemProcess:
    """A served system (see adapters/protocol.py), as a context manager that ends it and its children."""

    def __init__(
        self, command: list[str], settings: dict[str, Any], env: dict[str, str], log: TextIO
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=env,
            start_new_session=True,
        )
        self.peak = 0  # bytes
        self._watched = threading.Thread(target=self._watch, daemon=True)
        self._watched.start()
        self._send(settings)
        self.began = self._receive("start", START_SECONDS)  # an error, if the system cannot even be loaded

    def ask(self, do: str, given: object, seconds: float) -> Reply:
        """Send a command and return {"result": …} or {"error": …}. Raises TimeoutError."""
        self._send({"do": do, "with": given})
        return self._receive(do, seconds)

    def _receive(self, what: str, seconds: float) -> Reply:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, seconds))
        if not ready:
            raise TimeoutError(f"{what} took longer than {seconds:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            return {"error": f"the process ended with {self._process.wait()}"}
        reply: Reply = json.loads(line)
        return reply

    def take_peak(self) -> int:
        """Return the peak memory in bytes since the last call."""
        peak, self.peak = max(self.peak, tree_memory(self._process.pid)), 0
        return peak

    def __enter__(self) -> SystemProcess:
        return self

    def __exit__(self, *_: object) -> None:
        for ending in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, ending)
                self._process.wait(5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def _send(self, row: object) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((json.dumps(row) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it has ended: the reply tells so

    def _watch(self) -> None:
        while self._process.poll() is None:
            self.peak = max(self.peak, tree_memory(self._process.pid))
            time.sleep(0.5)


def tree_memory(root: int) -> int:
    """Return the resident memory of a process and all its descendants, in bytes (Linux)."""
    children: dict[int, list[int]] = defaultdict(list)
    resident = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        children[int(fields[1])].append(int(folder.name))
        resident[int(folder.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += resident.get(process, 0)
        waiting += children[process]
    return total
