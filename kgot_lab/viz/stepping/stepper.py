"""Step through a run event by event, and change it.

It is a static picture, and a live view where a kernel runs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled
from kgot_lab.loop.events import Answered, Event, Started
from kgot_lab.loop.formatting import caption
from kgot_lab.loop.replay import replay
from kgot_lab.loop.replay.forks import edited_index, fork_note, load_forks
from kgot_lab.loop.replay.replay import Fork
from kgot_lab.loop.trace import Trace, diffs, events_of, graph_after
from kgot_lab.stores import open_for
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Json
from kgot_lab.viz.graph.marks import Place
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.live import Live, LiveOutput, describe_error
from kgot_lab.viz.static.drawing import draw_rect, draw_text, paper
from kgot_lab.viz.static.markup import Markup, key_of, keyed, shortened
from kgot_lab.viz.static.table import Sheet, Table
from kgot_lab.viz.stepping.data import DRAWN_OF_RUN, fork_data, places_in_run, run_data, step_lines, step_name

_WIDTH, GRAPH_HEIGHT, _LINE = 800, 540, 20  # sizes of the static picture
_LETTERS, STRONG = 118, 92  # maximum characters of its lines
STEPS_SHOWN = 8


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
        self._positions = places_in_run(
            *(graph for fork in forks for graph in _graphs_of(fork.events)), *_graphs_of(self.events)
        )
        data = {
            "view": "stepper",
            "question": self.question,
            "origin": fork_note(run),
            "height": height,
            "model": live.planning is not None,
            "run": run_data(self.events, self._positions, by_hand=edited_index(run)),
            "forks": [fork_data(self.events, fork, self._positions) for fork in forks],
        }
        self.picture = story(run, forks, graph, self._positions)
        self.live = Live(self.picture, data, self._heard)

    @property
    def question(self) -> str:
        """The question of the run."""
        return replay.start_event(self.events).question

    def fork(self, at: int, change: str) -> Fork:
        """Replay the run with event number `at` changed, as `replay.fork` does, and show the fork.

        Raises BadInput if that event cannot be changed, or if the store refuses the changed statement.
        """
        store = self._store()
        try:
            made = replay.fork(self.events, at, change, store, self._live_parts)
        finally:
            store.close()
        self._positions = places_in_run(*_graphs_of(made.events), known=self._positions)
        self.forks.append(made)
        data = fork_data(self.events, made, self._positions)
        self.live.data = {**self.live.data, "forks": [*self.live.data["forks"], data]}
        self.live.send({"fork": data, "number": len(self.forks)})
        return made

    def table(self, *, limit: int = 200) -> Table:
        """Return the events of the run and of each fork, and the final graph, as tables.

        Each table has at most `limit` rows.
        """
        forks = (_sheet(f"Fork {number}", fork.events, limit) for number, fork in enumerate(self.forks, 1))
        return Table((_sheet("The run", self.events, limit), *forks, *self.picture.table(limit=limit).sheets))

    def __repr__(self) -> str:
        forks = f", {len(self.forks)} fork" + "s" * (len(self.forks) != 1) if self.forks else ""
        return f"<Stepper at event {self.at} of {len(self.events)}{forks}: {self.question!r}>"

    def _heard(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"at": int(at)} if 0 <= at < len(self.events):
                self.at = at
            case {"forks": int(seen)} if (
                0 <= seen < len(self.forks)
            ):  # a reopened page only has the forks that its cell stored
                return {"forks": self.live.data["forks"][seen:], "number": seen + 1}
            case {"fork": int(at), "change": str(change)}:
                return self._forked(at, change)
        return {}

    def _forked(self, at: int, change: str) -> Json:
        """Fork for the browser, and return any error to be shown there."""
        self.live.send({"walking": True})
        try:
            self.fork(at, change)
        except Exception as error:
            return {"refused": describe_error(error)}
        return {}


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
        raise BadInput(
            "there are no events to step through: give a trace that was loaded, or a list of what think(…) yielded"
        )
    if not isinstance(events[0], Started):
        raise BadInput(
            f"the first event of a run is Started, and this one is {type(events[0]).__name__}: give the run from its beginning"
        )
    begun = events[0]
    if forks is None:
        forks = load_forks(run, bundled("traces")) if live.planning is None and run.run else ()
    return Stepper(
        run, tuple(forks), live, store or (lambda: open_for(begun.dialect, *begun.readers)), height=height
    )


def _graphs_of(events: Sequence[Event]) -> list[PropertyGraph]:
    """Return the union of all states of the graph, and the final graph.

    The union is needed to give a position also to what is removed later.
    """
    last = graph_after(events)
    first = graph_after(events[:1])
    nodes, edges = {node.id: node for node in first.nodes}, {edge.identity: edge for edge in first.edges}
    for diff in diffs(events):
        nodes |= {node.id: node for node in (*diff.added_nodes, *(after for _, after in diff.changed_nodes))}
        edges |= {
            edge.identity: edge for edge in (*diff.added_edges, *(after for _, after in diff.changed_edges))
        }
    return [PropertyGraph.of(nodes.values(), edges.values()), last]


def _sheet(name: str, events: Sequence[Event], limit: int) -> Sheet:
    """Return a table of the events: number, step, what happened, and the text that was said or run."""
    rows = (
        (str(number), step_name(event.step), caption(event), _text_of(event))
        for number, event in enumerate(events[:limit])
    )
    return Sheet(("event", "step", "what happened", "text"), tuple(rows), len(events), name)


def _text_of(event: Event) -> str:
    """Return the text that was asked, replied, run or found at an event, or ""."""
    return next(
        (
            str(getattr(event, name))
            for name in ("question", "reply", "mended", "statement", "code", "text")
            if hasattr(event, name)
        ),
        "",
    )


# --- the static picture ---


def story(run: Trace, forks: Sequence[Fork], graph: PropertyGraph, positions: Mapping[str, Place]) -> Picture:
    """Draw a run in one picture: question, steps, answer, forks and the final graph."""
    events = run.events
    is_answered = any(isinstance(event, Answered) for event in events)
    mark = run if is_answered else None
    drawn = svg(
        graph, highlight=mark, limit=DRAWN_OF_RUN, positions=positions, width=_WIDTH, height=GRAPH_HEIGHT
    )
    lines = [*_lines(events), *_of_forks(run, forks)]
    tops = [10 + _LINE * (number + 1) for number in range(len(lines))]
    texts = (_text(line, float(y)) for line, y in zip(lines, tops, strict=True))
    top = tops[-1] + 14
    inner = drawn.svg.replace(f' data-picture="{key_of(drawn.svg)}"', "", 1).replace(
        "<svg ", f'<svg y="{top}" ', 1
    )
    title = f"A run of {len(events)} events: {replay.start_event(events).question}"
    said = f"{' '.join(line.text for line in lines)} {drawn.alt}"
    height = top + GRAPH_HEIGHT
    background = draw_rect(0, 0, _WIDTH, height, "#fff")
    whole = paper(title, _WIDTH, height, background, *texts, Markup(inner), desc=said)
    return replace(drawn, svg=keyed(whole), alt=said)


@dataclass(frozen=True)
class Line:
    """A line of the static picture."""

    text: str
    strong: bool = False
    indent: float = 0.0


def _lines(events: Sequence[Event]) -> Iterator[Line]:
    """Yield the question, the steps, and how the run ended."""
    yield from (
        Line(line, strong=True)
        for line in textwrap.wrap(shortened(replay.start_event(events).question, 3 * STRONG), STRONG)
    )
    steps = step_lines(events)
    for step in steps[:STEPS_SHOWN]:
        for number, line in enumerate(textwrap.wrap(step, _LETTERS)[:3]):
            yield Line(line, indent=18.0 * (number > 0))
    if len(steps) > STEPS_SHOWN:
        yield Line(f"… and {len(steps) - STEPS_SHOWN} more steps")
    answer = next((event for event in events if isinstance(event, Answered)), None)
    guess = f" (a guess: {answer.guess_reason})" if answer and answer.forced else ""
    end = (
        f"Answer: {answer.text}{guess}"
        if answer
        else f"The run stops at event {len(events) - 1}, before an answer."
    )
    yield from (Line(line, strong=True) for line in textwrap.wrap(shortened(end, 3 * STRONG), STRONG))


def _of_forks(run: Trace, forks: Sequence[Fork]) -> Iterator[Line]:
    """Yield the origin of a run that is a fork, and a line on each fork of it.

    A fork's line has the change, its cost and its answer.
    """
    yield from (Line(line) for line in textwrap.wrap(fork_note(run), _LETTERS))
    for number, fork in enumerate(forks, start=1):
        calls = f"{fork.avoided} calls answered from this run, {fork.asked} asked anew"
        end = f"answer: {fork.answer}" if fork.answer else f"it stopped: {fork.stopped}"
        told = f"Fork {number}: event {fork.first_difference} changed by hand; {calls}; {shortened(end, 2 * _LETTERS)}"
        yield from (
            Line(line, indent=18.0 * (place > 0)) for place, line in enumerate(textwrap.wrap(told, _LETTERS))
        )


def _text(line: Line, y: float) -> Markup:
    size, colour = (15, "#111") if line.strong else (13, "#333")
    return draw_text(line.text, 20.0 + line.indent, y, size, colour, bold=line.strong)
