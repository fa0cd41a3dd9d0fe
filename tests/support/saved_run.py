"""Runs of tests on file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kgot_lab.loop.events import Event
from kgot_lab.loop.trace import record


def save_run(events: Iterable[Event], path: str | Path, *, run: str = "") -> None:
    """Write a whole run to a new file."""
    for _ in record(events, path, run=run):
        pass
