"""Plots of the events of one or several runs: samples of votes, and growth of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, zip_longest
from statistics import median
from typing import Any, TypeAlias

from kgot_lab.arguments import check_names
from kgot_lab.errors import BadInput
from kgot_lab.loop.events import Event, Refused, Voted, Wrote
from kgot_lab.loop.trace import Trace, events_of
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json
from kgot_lab.viz.plots.figure import (
    FAINT,
    INK,
    MUTED,
    Pen,
    Plot,
    annotate,
    bar_plot,
    empty_plot,
    line_pen,
    new_figure,
    place_legend_below,
    plot,
    short_label,
    use_integer_ticks,
)

Runs: TypeAlias = Trace | Iterable[Event] | Iterable[Trace] | Mapping[str, Trace | Iterable[Event]]
_Rows: TypeAlias = Sequence[Mapping[str, Json]]

VOTES = {  # in order along a bar
    "RETRIEVE": Pen("#56B4E9"),
    "INSERT": Pen("#E69F00", hatch="////"),
    "neither": Pen("#CC79A7", hatch="xxxx"),
    "not asked": Pen("#FFFFFF"),
}
NODES, EDGES = Pen("#0072B2", "o"), Pen("#D55E00", "s", (0, (5, 2)))
FAINT_LINE = {"color": FAINT, "linewidth": 0.8}
_MAX_LINES = 8  # maximum runs with distinguishable lines
MAX_TICKS = 12  # maximum writes with a tick label


def events_by_run(what: Runs) -> dict[str, tuple[Event, ...]]:
    """Return the events of each run by its name.

    `what` is a trace, plain events, several traces, or a mapping from names to either. Raises BadInput for
    anything else, or if two traces have the same name.
    """
    if isinstance(what, Mapping):
        return {str(name): events_of(run) for name, run in what.items()}
    if isinstance(what, Trace):
        return {what.run: what.events}
    items: list[Any] = list(what) if isinstance(what, Iterable) else [what]
    if items and all(isinstance(item, Trace) for item in items):
        if len({item.run for item in items}) < len(items):
            raise BadInput("two of these traces have the same name; give a dictionary of traces by name")
        return {item.run: item.events for item in items}
    return {"": events_of(items)}


@check_names
def votes(what: Runs) -> Plot:
    """Plot the samples of each vote and their agreement, or for several runs the outcomes of votes."""
    runs = events_by_run(what)
    votes = [(name, event) for name, events in runs.items() for event in events if isinstance(event, Voted)]
    held_votes = [(name, vote) for name, vote in votes if vote.votes]
    if not held_votes:
        missing = "no vote was sampled" if votes else "there is no vote"
        return empty_plot(f"{missing} in {_format_runs(runs)}")
    rows = []
    for name, vote in held_votes:
        outcome = {"run": name, "step": vote.step, "choice": vote.choice}
        rows.append(outcome | _sample_counts(vote) | {"agreement": vote.agreement})
    agreed = sum(vote.agreement for _, vote in held_votes) / len(held_votes)
    unpolled_count = len(votes) - len(held_votes)
    unpolled = f", {format_count(unpolled_count, 'turn')} went on without a vote" if unpolled_count else ""
    vote_count = f"{len(held_votes)} vote{'s' * (len(held_votes) != 1)}"
    text = f"Samples of {vote_count} in {_format_runs(runs)}: mean agreement {agreed:.0%}{unpolled}."
    if len(runs) > 1:
        return _plot_vote_outcomes([vote for _, vote in held_votes], text, rows)
    bars = [f"after step {vote.step}" if vote.step else "at the start" for _, vote in held_votes]
    return _plot_votes(bars, [vote for _, vote in held_votes], text, rows)


@check_names
def growth(what: Runs, *, nodes: int = 0, edges: int = 0) -> Plot:
    """Plot the number of nodes and edges after each write, and the writes that were refused.

    Several runs get a line each. `nodes` and `edges` are the numbers before the run.
    """
    runs = events_by_run(what)
    sizes_by_run = {name: _graph_sizes(events, nodes, edges) for name, events in runs.items()}
    if not any(len(rows) > 1 for rows in sizes_by_run.values()):
        return empty_plot(f"nothing was written in {_format_runs(runs)}")
    rows = [{"run": name, **row} for name, sizes in sizes_by_run.items() for row in sizes]
    ends = [sizes[-1] for sizes in sizes_by_run.values()]
    if len(runs) > 1:
        largest = max(ends, key=lambda row: (row["nodes"], row["edges"]))
        description = f"Growth of {len(runs)} graphs, one for each run; the largest has {largest['nodes']} nodes and {largest['edges']} edges."
        return _plot_growths(sizes_by_run, description, rows)
    refused = sum(row["what"] == "refused" for row in rows)
    description = f"Growth of the graph over {ends[0]['write']} writes to {ends[0]['nodes']} nodes and {ends[0]['edges']} edges"
    return _plot_growth(rows, f"{description}; refused: {refused}." if refused else f"{description}.", rows)


# --- votes ---


def _plot_votes(names: Sequence[str], votes: Sequence[Voted], description: str, rows: _Rows) -> Plot:
    """Draw a bar of samples for each vote, with its outcome after it."""
    parts = {part: [_sample_counts(vote)[part] for vote in votes] for part in VOTES}
    outcomes = (f"{vote.choice}, {vote.agreement:.0%} agreed" for vote in votes)
    size, bars = (7.6, 1.05, 0.38), list(zip(names, outcomes, strict=True))
    return bar_plot(size, parts, VOTES, bars=bars, labels=("samples",), description=description, rows=rows)


def _plot_vote_outcomes(votes: Sequence[Voted], description: str, rows: _Rows) -> Plot:
    """Draw the distinct outcomes of votes, the most frequent first."""
    by_outcome: dict[tuple[Any, ...], list[Voted]] = {}
    for vote in votes:
        kind = (vote.choice, vote.inserts, vote.retrieves, vote.invalid, vote.possible)
        by_outcome.setdefault(kind, []).append(vote)
    outcomes = sorted(by_outcome, key=lambda kind: (-len(by_outcome[kind]), kind))
    bars = [f"{len(by_outcome[kind])} vote{'s' * (len(by_outcome[kind]) != 1)}" for kind in outcomes]
    return _plot_votes(bars, [by_outcome[kind][-1] for kind in outcomes], description, rows)


def _sample_counts(vote: Voted) -> dict[str, int]:
    unasked = max(0, vote.possible - vote.votes)
    return {"RETRIEVE": vote.retrieves, "INSERT": vote.inserts, "neither": vote.invalid, "not asked": unasked}


# --- growth ---


def _graph_sizes(events: Iterable[Event], nodes: int, edges: int) -> list[dict[str, Json]]:
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


def _plot_growth(sizes: _Rows, description: str, rows: _Rows) -> Plot:
    """Plot nodes and edges after each write of one run.

    A dotted line marks the end of a step. A cross before a write marks that something was refused.
    """
    written = [row for row in sizes if row["what"] != "refused"]
    refused = [row["write"] + 0.5 for row in sizes if row["what"] == "refused"]
    writes = [row["write"] for row in written]
    with new_figure(7.6, 3.6) as (figure, [axes]):
        for what, pen in (("nodes", NODES), ("edges", EDGES)):
            axes.plot(writes, [row[what] for row in written], label=what, clip_on=False, **pen.line)
            annotate(axes, f"{written[-1][what]}", (writes[-1], written[-1][what]), (7, -3))
        if refused:
            style = {"color": INK, "label": "something refused", "clip_on": False, "zorder": 5}
            axes.plot(refused, [0] * len(refused), "x", **style)
        for row, following in pairwise(written[1:]):
            if following["step"] != row["step"]:
                axes.axvline(row["write"] + 0.5, color=MUTED, linewidth=0.8, linestyle=":")
        tick_step = len(writes) // MAX_TICKS + 1
        names = ["start", *(f"{row['write']}\nstep {row['step']}" for row in written[1:])]
        axes.set_xticks(writes[::tick_step], names[::tick_step])
        axes.set(ylabel="in the graph", ylim=(0, None), xlim=(-0.2, writes[-1] + 0.6), xlabel="write")
        place_legend_below(figure)
        return plot(figure, description, rows)


def _plot_growths(sizes_by_run: Mapping[str, _Rows], description: str, rows: _Rows) -> Plot:
    """Plot nodes and edges after each step, with a line for each run.

    If there are many runs, their lines are pale and another shows the median.
    """
    by_step = {name: _sizes_by_step(sizes) for name, sizes in sizes_by_run.items()}
    with new_figure(9, 4.2, columns=2) as (figure, panels):
        for axes, what in zip(panels, ("nodes", "edges"), strict=True):
            for number, (name, sizes) in enumerate(by_step.items()):
                own_style = {"label": short_label(name), **line_pen(number).line}
                style = FAINT_LINE if len(sizes_by_run) > _MAX_LINES else own_style
                axes.plot(range(len(sizes)), [row[what] for row in sizes], **style)
            if len(sizes_by_run) > _MAX_LINES:
                steps = zip_longest(*([row[what] for row in sizes] for sizes in by_step.values()))
                step_sizes = ([size for size in sizes if size is not None] for sizes in steps)
                # fewer than three runs have no meaningful median
                medians = [median(sizes) for sizes in step_sizes if len(sizes) >= 3]
                label = "median, where 3 runs or more came so far"
                axes.plot(range(len(medians)), medians, label=label, **NODES.line)
            axes.set(title=what, xlabel="after step", ylim=(0, None))
            use_integer_ticks(axes.xaxis)
        place_legend_below(figure)
        return plot(figure, description, rows)


def _sizes_by_step(sizes: _Rows) -> list[Mapping[str, Json]]:
    """Return the size at the end of each step, starting at step 0."""
    return [[row for row in sizes if row["step"] <= step][-1] for step in range(sizes[-1]["step"] + 1)]


def _format_runs(runs: Mapping[str, Sequence[Event]]) -> str:
    return "this run" if len(runs) == 1 else f"these {len(runs)} runs"
