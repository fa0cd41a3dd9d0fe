"""A run or a report as one HTML file: it needs nothing beside it, can be printed, and what is live in it
works from disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kgot_lab.errors import BadInput, described_value
from kgot_lab.evaluation.reports import Report
from kgot_lab.io.files import write_whole
from kgot_lab.loop.events import Event
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.trace import Trace
from kgot_lab.viz.html import recall_page
from kgot_lab.viz.page import page
from kgot_lab.viz.stepping.stepper import stepper


@dataclass(frozen=True)
class Page:
    """The text of an HTML file; `save` writes it."""

    title: str
    text: str = field(repr=False)

    def save(self, path: Path | str) -> Path:
        """Write the page, making its folder if need be; raises BadInput when it cannot be written, and a page
        that was there stays.
        """
        return write_whole(path, self.text, "the page")

    def __repr__(self) -> str:
        return f"<Page {self.title!r}, {len(self.text) / 1000:,.0f} kB: .save(path) writes it>"


def html(
    what: Trace | Iterable[Event] | Report | Iterable[Report], *, forks: Iterable[Fork] = (), title: str = ""
) -> Page:
    """The page of a run, whose graph can be moved and stepped through, or of one recall report or several.

    `forks` are shown beside the run. Raises BadInput for nothing at all, for a run without its beginning, and
    for a mixture.
    """
    if isinstance(what, Trace):
        return _of_run(what, tuple(forks), title)
    if not isinstance(what, Report | Iterable):
        raise BadInput(f"html() takes a run or a recall report, not {described_value(what)}")
    things: list[Event | Report] = [what] if isinstance(what, Report) else list(what)
    reports = [thing for thing in things if isinstance(thing, Report)]
    events = [thing for thing in things if isinstance(thing, Event)]
    if not things or (reports and events) or len(reports) + len(events) < len(things):
        raise BadInput(
            "html() takes a run (a trace or its events), or a recall report or several, and not a mixture"
        )
    if events:
        return _of_run(Trace("", "", tuple(events)), tuple(forks), title)
    named = title or "The recall benchmark"
    return Page(named, recall_page(reports, title=named))


def _of_run(run: Trace, forks: tuple[Fork, ...], title: str) -> Page:
    walked = stepper(run, forks=forks)
    named = title or walked.question
    return Page(named, page(run, title=title, live={"Step through it": walked.live.data}))
