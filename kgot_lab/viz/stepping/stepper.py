"""Step through a run event by event, and change it.

It is a static picture, and a live view where a kernel runs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, attribute_errors, require_count, require_parts
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.events import Answered, Event, Started
from kgot_lab.loop.formatting import caption
from kgot_lab.loop.replay import replay
from kgot_lab.loop.replay.forks import edited_index, load_forks, run_note
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.trace import Trace, diffs, events_of, graph_after
from kgot_lab.stores import open_for
from kgot_lab.stores.protocol import Store
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json
from kgot_lab.viz.graph.marks import Point
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.live import Live, LiveOutput, describe_error
from kgot_lab.viz.static.drawing import draw_rect, draw_text, svg_root
from kgot_lab.viz.static.markup import Markup, add_picture_key, picture_key, shorten
from kgot_lab.viz.static.table import Sheet, Table, sheet
from kgot_lab.viz.stepping.data import (
    MAX_RUN_NODES,
    fork_data,
    run_data,
    run_positions,
    step_lines,
    step_name,
)

_WIDTH, GRAPH_HEIGHT, _LINE_HEIGHT = 800, 540, 20  # sizes of the static picture
_MAX_LINE_LENGTH, MAX_STRONG_LENGTH = 118, 92  # maximum characters of its lines
MAX_STEPS_SHOWN = 8


@check_arguments
class Stepper(LiveOutput):
    """The result of `stepper`: an interactive view, and afterwards the event in view and the forks so far."""

    def __init__(
        self,
        run: Trace,
        forks: Sequence[Fork],
        live: replay.Resources,
        store: Callable[[], Store],
        *,
        height: int,
    ) -> None:
        self.events, self.forks, self.at = run.events, list(forks), len(run.events) - 1
        self._live_parts, self._store = live, store
        graph = graph_after(self.events)
        fork_graphs = (graph for fork in forks for graph in _layout_graphs(fork.events))
        self._positions = run_positions(*fork_graphs, *_layout_graphs(self.events))
        data = {
            "view": "stepper",
            "question": self.question,
            "origin": run_note(run),
            "height": height,
            "model": live.planning is not None,
            "run": run_data(self.events, self._positions, by_hand=edited_index(run)),
            "forks": [fork_data(self.events, fork, self._positions) for fork in forks],
        }
        self.picture = run_picture(run, forks, graph, self._positions)
        self.live = Live(self.picture, data, self._handle_message)

    @property
    def question(self) -> str:
        """The question of the run."""
        return replay.start_event(self.events).question

    def fork(self, at: int, change: str) -> Fork:
        """Replay the run with event number `at` changed, as `replay.fork` does, and show the fork.

        Raises BadInput if that event cannot be changed, or if the store refuses the changed statement.
        """
        with attribute_errors("the function 'store' failed"):
            store = self._store()
        require_parts(
            store, ("write", "read", "schema", "close"), "the function 'store' gives an empty store"
        )
        try:
            new_fork = replay.fork(self.events, at, change, store, self._live_parts)
        finally:
            store.close()
        self._positions = run_positions(*_layout_graphs(new_fork.events), known=self._positions)
        self.forks.append(new_fork)
        data = fork_data(self.events, new_fork, self._positions)
        self.live.data = {**self.live.data, "forks": [*self.live.data["forks"], data]}
        self.live.send({"fork": data, "number": len(self.forks)})
        return new_fork

    def table(self, *, limit: int = 200) -> Table:
        """Return the events of the run and of each fork, and the final graph, as tables.

        Each table has at most `limit` rows.
        """
        require_count(limit, 1, "limit")
        named = ((f"Fork {number}", fork.events) for number, fork in enumerate(self.forks, 1))
        runs = (("The run", self.events), *named)
        sheets = (_event_sheet(name, events, limit) for name, events in runs)
        return Table((*sheets, *self.picture.table(limit=limit).sheets))

    def __repr__(self) -> str:
        forks = f", {len(self.forks)} fork" + "s" * (len(self.forks) != 1) if self.forks else ""
        return f"<Stepper at event {self.at} of {len(self.events)}{forks}: {self.question!r}>"

    def _handle_message(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"at": int(at)} if 0 <= at < len(self.events):
                self.at = at
            # a reopened page only has the forks that its cell stored
            case {"forks": int(seen)} if 0 <= seen < len(self.forks):
                return {"forks": self.live.data["forks"][seen:], "number": seen + 1}
            case {"fork": int(at), "change": str(change)}:
                return self._fork_from_browser(at, change)
        return {}

    def _fork_from_browser(self, at: int, change: str) -> Json:
        """Fork for the browser, and return any error to be shown there."""
        self.live.send({"walking": True})
        try:
            self.fork(at, change)
        except Exception as error:
            return {"refused": describe_error(error)}
        return {}


@check_arguments
def stepper(
    run: Trace | Iterable[Event],
    *,
    forks: Iterable[Fork] | None = None,
    live: replay.Resources = replay._NO_RESOURCES,
    store: Callable[[], Store] | None = None,
    height: int = 440,
) -> Stepper:
    """Step through a run, finished or not: guess the next decision, change one thing and see its effect.

    It opens at the end. `forks` are available from the start: by default those that are stored for this run,
    if no model is configured. `live` sets the model and tools that a new fork may use. By default there are
    none, and the fork stops at the first reply that was not recorded. `store` opens an empty store for the
    fork, by default one in this process, for the query languages of the run. `height` is that of an event and
    its graph, in pixels. Raises BadInput if the run has no events or lacks its beginning.
    """
    run = run if isinstance(run, Trace) else Trace("", "", events_of(run))
    events = run.events
    if not events:
        raise BadInput("there are no events to step through: give a trace, or a list of think(…)")
    if not isinstance(events[0], Started):
        raise BadInput(f"a run begins with Started, not with {type(events[0]).__name__}: give the whole run")
    require_count(height, 1, "height", maximum=10_000)
    started = events[0]
    if forks is None:
        forks = load_forks(run, bundled_path("traces")) if live.planning is None and run.run else ()
    open_store = store or (lambda: open_for(started.dialect, *started.readers))
    forks = tuple(forks)
    return Stepper(run, forks, live, open_store, height=height)


def _layout_graphs(events: Sequence[Event]) -> list[PropertyGraph]:
    """Return the union of all states of the graph, and the final graph.

    The union is needed to give a position also to what is removed later.
    """
    last = graph_after(events)
    first = graph_after(events[:1])
    nodes, edges = {node.id: node for node in first.nodes}, {edge.identity: edge for edge in first.edges}
    for diff in diffs(events):
        nodes |= {node.id: node for node in diff.written_nodes}
        edges |= {edge.identity: edge for edge in diff.written_edges}
    return [PropertyGraph.of(nodes.values(), edges.values()), last]


def _event_sheet(name: str, events: Sequence[Event], limit: int) -> Sheet:
    """Return a table of the events: number, step, what happened, and the text that was said or run."""
    rows = (
        (str(number), step_name(event.step), caption(event), _event_text(event))
        for number, event in enumerate(events[:limit])
    )
    return sheet(("event", "step", "what happened", "text"), rows, name, len(events))


def _event_text(event: Event) -> str:
    """Return the text that was asked, replied, run or found at an event, or ""."""
    names = ("question", "reply", "mended", "statement", "code", "text")
    return next((str(getattr(event, name)) for name in names if hasattr(event, name)), "")


# --- the static picture ---


def run_picture(
    run: Trace, forks: Sequence[Fork], graph: PropertyGraph, positions: Mapping[str, Point]
) -> Picture:
    """Draw a run in one picture: question, steps, answer, forks and the final graph."""
    events = run.events
    highlight = run if any(isinstance(event, Answered) for event in events) else None
    graph_picture = svg(
        graph,
        highlight=highlight,
        limit=MAX_RUN_NODES,
        positions=positions,
        width=_WIDTH,
        height=GRAPH_HEIGHT,
    )
    lines = [*_summary_lines(events), *_fork_lines(run, forks)]
    tops = [10 + _LINE_HEIGHT * (number + 1) for number in range(len(lines))]
    texts = (_draw_line(line, float(y)) for line, y in zip(lines, tops, strict=True))
    top = tops[-1] + 14
    key = f' data-picture="{picture_key(graph_picture.svg)}"'
    graph_svg = graph_picture.svg.replace(key, "", 1).replace("<svg ", f'<svg y="{top}" ', 1)
    title = f"A run of {len(events)} events: {replay.start_event(events).question}"
    description = f"{' '.join(line.text for line in lines)} {graph_picture.alt}"
    height = top + GRAPH_HEIGHT
    background = draw_rect(0, 0, _WIDTH, height, "#fff")
    svg_text = svg_root(title, _WIDTH, height, background, *texts, Markup(graph_svg), desc=description)
    return replace(graph_picture, svg=add_picture_key(svg_text), alt=description)


@dataclass(frozen=True)
class SummaryLine:
    """A line of the static picture."""

    text: str
    strong: bool = False
    indent: float = 0.0


def _strong_lines(text: str) -> Iterator[SummaryLine]:
    lines = textwrap.wrap(shorten(text, 3 * MAX_STRONG_LENGTH), MAX_STRONG_LENGTH)
    return (SummaryLine(line, strong=True) for line in lines)


def _summary_lines(events: Sequence[Event]) -> Iterator[SummaryLine]:
    """Yield the question, the steps, and how the run ended."""
    yield from _strong_lines(replay.start_event(events).question)
    steps = step_lines(events)
    for step in steps[:MAX_STEPS_SHOWN]:
        for number, line in enumerate(textwrap.wrap(step, _MAX_LINE_LENGTH)[:3]):
            yield SummaryLine(line, indent=18.0 * (number > 0))
    if len(steps) > MAX_STEPS_SHOWN:
        yield SummaryLine(f"… and {len(steps) - MAX_STEPS_SHOWN} more steps")
    ending = f"The run stops at event {len(events) - 1}, before an answer."
    if answer := next((event for event in events if isinstance(event, Answered)), None):
        ending = f"Answer: {answer.shown_text}" + (f" ({answer.remark})" if answer.remark else "")
    yield from _strong_lines(ending)


def _fork_lines(run: Trace, forks: Sequence[Fork]) -> Iterator[SummaryLine]:
    """Yield the origin of a run that is a fork, and a line on each fork of it.

    A fork's line has the change, its cost and its answer.
    """
    yield from (SummaryLine(line) for line in textwrap.wrap(run_note(run), _MAX_LINE_LENGTH))
    for number, fork in enumerate(forks, start=1):
        calls = f"{format_count(fork.avoided, 'call')} answered from this run, {fork.asked} asked again"
        ending = f"answer: {fork.answer}" if fork.answer else f"it stopped: {fork.stopped}"
        summary = f"Fork {number}: event {fork.first_difference} changed by hand; {calls}; {shorten(ending, 2 * _MAX_LINE_LENGTH)}"
        for index, line in enumerate(textwrap.wrap(summary, _MAX_LINE_LENGTH)):
            yield SummaryLine(line, indent=18.0 * (index > 0))


def _draw_line(line: SummaryLine, y: float) -> Markup:
    size, colour = (15, "#111") if line.strong else (13, "#333")
    return draw_text(line.text, 20.0 + line.indent, y, size, colour, bold=line.strong)
