"""Plots of the events of one or several runs: ballots of votes, and growth of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from statistics import median
from typing import Any, TypeAlias

from kgot_lab.errors import BadInput
from kgot_lab.loop.events import Event, Refused, Voted, Wrote
from kgot_lab.loop.trace import Trace
from kgot_lab.types import Json
from kgot_lab.viz.plots.figure import (
    FAINT,
    INK,
    MUTED,
    Pen,
    Plot,
    annotate,
    bar_plot,
    legend_below,
    line_pen,
    nothing,
    plot,
    plot_drawing,
    short_label,
    whole_numbers,
)

Runs: TypeAlias = Trace | Iterable[Event] | Iterable[Trace] | Mapping[str, Trace | Iterable[Event]]

BALLOTS = {  # in order along a bar
    "RETRIEVE": Pen("#56B4E9"),
    "INSERT": Pen("#E69F00", hatch="////"),
    "neither": Pen("#CC79A7", hatch="xxxx"),
    "not asked": Pen("#FFFFFF"),
}
NODES, EDGES = Pen("#0072B2", "o"), Pen("#D55E00", "s", (0, (5, 2)))
FAINT_LINE = {"color": FAINT, "linewidth": 0.8}
_MOST_LINES = 8  # maximum runs with distinguishable lines
TICKS = 12  # maximum writes with a tick label


def runs_of(what: Runs) -> dict[str, tuple[Event, ...]]:
    """Return the events of each run by its name.

    `what` is a trace, plain events, several traces, or a mapping from names to either. Raises BadInput for
    anything else, or if two traces have the same name.
    """
    if isinstance(what, Mapping):
        return {str(name): _events(run) for name, run in what.items()}
    if isinstance(what, Trace):
        return {what.run: what.events}
    items: list[Any] = list(what) if isinstance(what, Iterable) else [what]
    if items and all(isinstance(item, Trace) for item in items):
        if len({item.run for item in items}) < len(items):
            raise BadInput(
                "two of these traces have the same name; give them as a dictionary, each under a name of its own"
            )
        return {item.run: item.events for item in items}
    return {"": _events(items)}


def ballots(what: Runs) -> Plot:
    """Plot the ballots of each vote and their agreement, or for several runs the outcomes of votes."""
    runs = runs_of(what)
    votes = [(name, event) for name, events in runs.items() for event in events if isinstance(event, Voted)]
    polled = [(name, vote) for name, vote in votes if vote.ballots_cast]
    if not polled:
        return nothing(
            f"there is no vote in {_these(runs)}"
            if not votes
            else f"no ballot was asked for in {_these(runs)}"
        )
    rows = [
        {"run": name, "step": vote.step, "choice": vote.choice, **_cast(vote), "agreement": vote.agreement}
        for name, vote in polled
    ]
    agreed = sum(vote.agreement for _, vote in polled) / len(polled)
    alone = len(votes) - len(polled)
    unpolled = f", {alone} turns went on without a vote" * bool(alone)
    said = f"Ballots of {len(polled)} vote{'s' * (len(polled) != 1)} in {_these(runs)}: mean agreement {agreed:.0%}{unpolled}."
    if len(runs) > 1:
        return _kinds_of_votes([vote for _, vote in polled], said, rows)
    bars = [f"after step {vote.step}" if vote.step else "at the start" for _, vote in polled]
    words = [f"{vote.choice}, {vote.agreement:.0%} agreed" for _, vote in polled]
    return _ballot_bars(bars, [vote for _, vote in polled], words, said, rows)


def growth(what: Runs, *, nodes: int = 0, edges: int = 0) -> Plot:
    """Plot the number of nodes and edges after each write, and the writes that were refused.

    Several runs get a line each. `nodes` and `edges` are the numbers before the run.
    """
    runs = runs_of(what)
    grown = {name: _sizes(events, nodes, edges) for name, events in runs.items()}
    if not any(len(rows) > 1 for rows in grown.values()):
        return nothing(f"nothing was written in {_these(runs)}")
    rows = [{"run": name, **row} for name, sizes in grown.items() for row in sizes]
    ends = [sizes[-1] for sizes in grown.values()]
    if len(runs) > 1:
        most = max(ends, key=lambda row: (row["nodes"], row["edges"]))
        said = f"Growth of {len(runs)} graphs, one for each run; the largest has {most['nodes']} nodes and {most['edges']} edges."
        return _growth_of_many(grown, said, rows)
    refused = sum(row["what"] == "refused" for row in rows)
    said = f"Growth of the graph over {ends[0]['write']} writes to {ends[0]['nodes']} nodes and {ends[0]['edges']} edges"
    return _growth_of_one(rows, f"{said}; refused: {refused}." if refused else f"{said}.", rows)


# --- ballots ---


def _ballot_bars(
    bars: Sequence[str],
    votes: Sequence[Voted],
    words: Sequence[str],
    said: str,
    rows: Sequence[Mapping[str, Json]],
) -> Plot:
    """Draw a bar of ballots for each vote, with a label after it."""
    parts = {part: [_cast(vote)[part] for vote in votes] for part in BALLOTS}
    return bar_plot(
        (7.6, 1.05, 0.38),
        parts,
        BALLOTS,
        bars=list(zip(bars, words, strict=True)),
        labels=("ballots",),
        said=said,
        rows=rows,
    )


def _kinds_of_votes(votes: Sequence[Voted], said: str, rows: Sequence[Mapping[str, Json]]) -> Plot:
    """Draw the distinct outcomes of votes, the most frequent first."""
    alike: dict[tuple[Any, ...], list[Voted]] = {}
    for vote in votes:
        kind = (vote.choice, vote.inserts, vote.retrieves, vote.invalid, vote.possible)
        alike.setdefault(kind, []).append(vote)
    common = sorted(alike, key=lambda kind: (-len(alike[kind]), kind))
    bars = [f"{len(alike[kind])} vote{'s' * (len(alike[kind]) != 1)}" for kind in common]
    chosen = [alike[kind][-1] for kind in common]
    return _ballot_bars(
        bars, chosen, [f"{vote.choice}, {vote.agreement:.0%} agreed" for vote in chosen], said, rows
    )


def _cast(vote: Voted) -> dict[str, int]:
    left = max(0, vote.possible - vote.ballots_cast)
    return {"RETRIEVE": vote.retrieves, "INSERT": vote.inserts, "neither": vote.invalid, "not asked": left}


# --- growth ---


def _sizes(events: Iterable[Event], nodes: int, edges: int) -> list[dict[str, Json]]:
    """Return the size of the graph before the run, after each write and at each refused write."""
    rows: list[dict[str, Json]] = [{"write": 0, "step": 0, "what": "start", "nodes": nodes, "edges": edges}]
    writes = 0
    for event in events:
        if isinstance(event, Wrote):
            diff, writes = event.diff, writes + 1
            nodes += len(diff.added_nodes) - len(diff.removed_nodes)
            edges += len(diff.added_edges) - len(diff.removed_edges)
        elif not (isinstance(event, Refused) and event.writing):
            continue
        what = f"{event.diff}" if isinstance(event, Wrote) else "refused"
        rows.append({"write": writes, "step": event.step, "what": what, "nodes": nodes, "edges": edges})
    return rows


def _growth_of_one(
    sizes: Sequence[Mapping[str, Json]], said: str, rows: Sequence[Mapping[str, Json]]
) -> Plot:
    """Plot nodes and edges after each write of one run.

    A dotted line marks the end of a step. A cross before a write marks that something was refused.
    """
    grown = [row for row in sizes if row["what"] != "refused"]
    refused = [row["write"] + 0.5 for row in sizes if row["what"] == "refused"]
    places = [row["write"] for row in grown]
    with plot_drawing(7.6, 3.6) as (figure, [axes]):
        for what, pen in (("nodes", NODES), ("edges", EDGES)):
            axes.plot(places, [row[what] for row in grown], label=what, clip_on=False, **pen.line)
            annotate(axes, f"{grown[-1][what]}", (places[-1], grown[-1][what]), (7, -3))
        if refused:
            look = {"color": INK, "label": "something refused", "clip_on": False, "zorder": 5}
            axes.plot(refused, [0] * len(refused), "x", **look)
        for row, following in pairwise(grown[1:]):
            if following["step"] != row["step"]:
                axes.axvline(row["write"] + 0.5, color=MUTED, linewidth=0.8, linestyle=":")
        every = len(places) // TICKS + 1
        axes.set_xticks(
            places[::every], ["start", *(f"{row['write']}\nstep {row['step']}" for row in grown[1:])][::every]
        )
        axes.set(ylabel="in the graph", ylim=(0, None), xlim=(-0.2, places[-1] + 0.6), xlabel="write")
        legend_below(figure)
        return plot(figure, said, rows)


def _growth_of_many(
    grown: Mapping[str, Sequence[Mapping[str, Json]]], said: str, rows: Sequence[Mapping[str, Json]]
) -> Plot:
    """Plot nodes and edges after each step, with a line for each run.

    If there are many runs, their lines are pale and another shows the median.
    """
    by_step = {name: _at_steps(sizes) for name, sizes in grown.items()}
    with plot_drawing(9, 4.2, columns=2) as (figure, panels):
        for axes, what in zip(panels, ("nodes", "edges"), strict=True):
            for number, (name, sizes) in enumerate(by_step.items()):
                own = {"label": short_label(name), **line_pen(number).line}
                look = FAINT_LINE if len(grown) > _MOST_LINES else own
                axes.plot(range(len(sizes)), [row[what] for row in sizes], **look)
            if len(grown) > _MOST_LINES:
                steps = zip_longest(*([row[what] for row in sizes] for sizes in by_step.values()))
                reached = ([size for size in sizes if size is not None] for sizes in steps)
                # fewer than three runs have no meaningful median
                middle = [median(sizes) for sizes in reached if len(sizes) >= 3]
                label = "median, where 3 runs or more came so far"
                axes.plot(range(len(middle)), middle, label=label, **NODES.line)
            axes.set(title=what, xlabel="after step", ylim=(0, None))
            whole_numbers(axes.xaxis)
        legend_below(figure)
        return plot(figure, said, rows)


def _at_steps(sizes: Sequence[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    """Return the size at the end of each step, starting at step 0."""
    return [[row for row in sizes if row["step"] <= step][-1] for step in range(sizes[-1]["step"] + 1)]


def _these(runs: Mapping[str, Sequence[Event]]) -> str:
    return "this run" if len(runs) == 1 else f"these {len(runs)} runs"


def _events(run: Trace | Iterable[Any]) -> tuple[Event, ...]:
    events = run.events if isinstance(run, Trace) else tuple(run) if isinstance(run, Iterable) else (run,)
    for event in events:
        if not isinstance(event, Event):
            raise BadInput(
                f"a plot of a run needs its events or its trace (loop.trace.load), not {type(event).__name__}"
            )
    return events
