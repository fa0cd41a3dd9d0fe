"""How much memory a sandbox takes: all of its processes together, since the limit of one says nothing of how
many there are.
"""

from __future__ import annotations

import os
from pathlib import Path

_PROCESSES = Path("/proc")


def tree_of(pid: int) -> tuple[int, ...]:
    """A process and all below it, as this machine lists them; only the process itself where it does not."""
    found = [pid]
    for each in found:
        tasks = _PROCESSES / str(each) / "task"
        for thread in _listed(tasks):
            found += map(int, _read(tasks / thread / "children").split())
    return tuple(found)


def megabytes_of(processes: tuple[int, ...]) -> float:
    """The memory of some processes that no file gives back, pages that two share counted in each; 0 where
    this machine does not tell.
    """
    return sum(map(_kilobytes, processes)) / 1024


def _kilobytes(pid: int) -> int:
    fields = (line.split() for line in _read(_PROCESSES / str(pid) / "status").splitlines())
    return sum(int(field[1]) for field in fields if field[:1] in (["RssAnon:"], ["RssShmem:"]))


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        # a process may call itself by bytes that are no text
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it ended in the meantime, or this is no Linux
        return ""
