"""How far a run or a long job is, in the output of a notebook cell while it happens; nothing is shown
anywhere else.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.formatting import line

SHOWN = 16  # lines at once: the last ones
_BAR, _PAUSE = 30, 0.2  # signs of a bar, and seconds between two pictures of it


def display_progress(events: Iterable[Event], head: str = "") -> Iterator[Event]:
    """Pass events on, and where a notebook cell runs show the last of them below `head`, in one output that
    grows with the run.
    """
    if not in_notebook():
        yield from events
        return
    progress = CellProgress(head)
    for event in events:
        progress.tell(event)
        yield event


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook; IPython is not loaded to find out."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


class CellProgress:
    """One output of a cell that shows how far a run has come."""

    def __init__(self, head: str = "") -> None:
        self._head, self._lines, self._count = head, deque[str](maxlen=SHOWN), 0
        self._handle: Any = None

    def tell(self, event: Event) -> None:
        """Show one more event; the answer is left to what the cell returns."""
        self._count += 1
        if not isinstance(event, Answered):
            self._lines.append(line(event))
        self._show("finished" if isinstance(event, Answered) else "working …")

    @property
    def text(self) -> str:
        """What is shown."""
        before = self._count - len(self._lines)
        return "\n".join(
            [
                *([self._head] if self._head else []),
                *([f"({before} events before)"] if before > 1 else []),
                *self._lines,
            ]
        )

    def _show(self, state: str) -> None:
        from IPython.display import display

        shown = {"text/plain": f"{self.text}\n{self._count} events, {state}"}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown, raw=True)


def counted_in_cell(what: str, *, clock: Callable[[], float] = time.monotonic) -> Callable[..., None]:
    """What to give a long job as its `progress`: called with how many of how many are done, it shows a bar
    where a notebook cell runs.
    """
    bar = CellBar(what, clock) if in_notebook() else None

    def tell(done: int, total: int, *_: object) -> None:
        if bar is not None:
            bar.tell(done, total)

    return tell


class CellBar:
    """One output of a cell that shows how many of how many are done; it is drawn a few times a second at
    most, and at the end.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock, self._began = what, clock, clock()
        self._shown_at: float | None = None
        self._handle: Any = None

    def tell(self, done: int, total: int) -> None:
        """Show how far it is."""
        now = self._clock()
        if done < total and self._shown_at is not None and now - self._shown_at < _PAUSE:
            return
        self._shown_at = now
        full = _BAR * done // max(1, total)
        self._show(
            f"{self._what}: [{'#' * full}{'.' * (_BAR - full)}] {done:,} of {total:,}, {now - self._began:.0f} s"
        )

    def _show(self, text: str) -> None:
        from IPython.display import display

        shown = {"text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown, raw=True)
