"""What a run cost: calls, seconds, tokens and dollars by step and role, and what a single call takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from kgot_lab.loop.state import Entry, Ledger, ledger
from kgot_lab.types import Json
from kgot_lab.viz.plots.figure import (
    INK,
    Plot,
    compact,
    counted_bars,
    legend_below,
    nothing,
    plot,
    plot_drawing,
    short_label,
    stacked,
)
from kgot_lab.viz.plots.runs import Runs, runs_of

_MOST = 30  # bars a reader can take in
Amount = Callable[[Entry], float]
AMOUNTS: dict[str, Amount] = {
    "calls": lambda entry: 1,
    "seconds": lambda entry: entry.seconds,
    "tokens": lambda entry: entry.prompt_tokens + entry.completion_tokens,
    "US dollars": lambda entry: entry.cost,
}
RATES: dict[str, Amount] = {
    "seconds a call": lambda entry: entry.seconds,
    "tokens a call": lambda entry: entry.prompt_tokens + entry.completion_tokens,
    "tokens a second": lambda entry: (
        (entry.prompt_tokens + entry.completion_tokens) / entry.seconds if entry.seconds else 0.0
    ),
    "US dollars a call": lambda entry: entry.cost,
}


def costs(what: Ledger | Runs) -> Plot:
    """Calls, seconds, tokens and (where a call had a price) dollars of each step, by the role of the call.

    Of several runs, or a ledger that holds several, there is a bar for each run in place of each step; at
    most 30 bars are drawn.
    """
    entries = _entries(what)
    if not entries:
        return nothing("no model was asked, so nothing was spent")
    several = len({entry.run for entry in entries}) > 1
    groups = _grouped(
        entries,
        lambda entry: entry.run if several else f"step {entry.step}" if entry.step else "before step 1",
    )
    roles = list(dict.fromkeys(entry.role for entry in entries))
    shown = dict(list(groups.items())[:_MOST])
    panels = _priced(AMOUNTS, entries)
    with plot_drawing(3.1 * len(panels) + 1.6, 1.15 + 0.36 * len(shown), columns=len(panels)) as (
        figure,
        axes,
    ):
        for panel, (name, amount) in zip(axes, panels.items(), strict=True):
            parts = {
                role: [sum(amount(entry) for entry in some if entry.role == role) for some in shown.values()]
                for role in roles
            }
            ends = list(map(sum, zip(*parts.values(), strict=True)))
            stacked(panel, list(shown), parts)
            counted_bars(panel, ends, list(map(compact, ends)))
            panel.set(xlabel=name, xlim=(0, 1.22 * max(ends) or 1))
            _sparse(panel)
            if panel is not axes[0]:
                panel.set_yticklabels([])
        legend_below(figure)
        rows = [_summed(run, step, role, some) for (run, step, role), some in _by_all(entries).items()]
        return plot(figure, _told(entries, groups, several), rows)


def speed(what: Ledger | Runs) -> Plot:
    """What one call takes, by role: seconds, tokens, tokens a second and (where it had a price) dollars;
    mean, least and most.
    """
    entries = _entries(what)
    if not entries:
        return nothing("no model was asked, so no call took any time")
    groups = _grouped(entries, lambda entry: entry.role)
    panels = _priced(RATES, entries)
    with plot_drawing(3.1 * len(panels) + 1, 0.8 + 0.4 * len(groups), columns=len(panels)) as (figure, axes):
        for panel, (name, rate) in zip(axes, panels.items(), strict=True):
            for place, some in enumerate(groups.values()):
                values = [rate(entry) for entry in some]
                panel.plot(
                    [min(values), max(values)], [place, place], "|-", color=INK, linewidth=1.2, markersize=9
                )
                panel.plot([fmean(values)], [place], "o", color="#0072B2", markersize=7)
                panel.annotate(
                    compact(fmean(values)),
                    (fmean(values), place),
                    xytext=(0, 6),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8,
                )
            panel.set(xlabel=name, xlim=(0, None), ylim=(len(groups) - 0.4, -0.7))
            labels = [short_label(f"{role} ({len(some)})") for role, some in groups.items()]
            panel.set_yticks(range(len(groups)), labels if panel is axes[0] else [""] * len(groups))
            _sparse(panel)
        rows = [{"role": role, "calls": len(some), **_spread(some, panels)} for role, some in groups.items()]
        means = ", ".join(
            f"{role} {compact(fmean(entry.seconds for entry in some))}" for role, some in groups.items()
        )
        return plot(
            figure, f"What one call takes, by role, with the least and the most. Mean seconds: {means}.", rows
        )


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _entries(what: Ledger | Runs) -> tuple[Entry, ...]:
    if isinstance(what, Ledger):
        return what.entries
    return tuple(entry for name, events in runs_of(what).items() for entry in ledger(events, name).entries)


def _grouped(entries: Iterable[Entry], name: Callable[[Entry], Any]) -> dict[Any, list[Entry]]:
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(name(entry), []).append(entry)
    return groups


def _by_all(entries: Iterable[Entry]) -> dict[tuple[str, int, str], list[Entry]]:
    return _grouped(entries, lambda entry: (entry.run, entry.step, entry.role))


def _priced(panels: Mapping[str, Amount], entries: Sequence[Entry]) -> dict[str, Amount]:
    """The panels to draw: dollars only where there were any."""
    return {
        name: amount
        for name, amount in panels.items()
        if "dollars" not in name or any(entry.cost for entry in entries)
    }


def _sparse(panel: Any) -> None:
    panel.xaxis.get_major_locator().set_params(nbins=4)
    panel.xaxis.set_major_formatter(lambda number, _: compact(number))
    panel.grid(axis="y", visible=False)


def _summed(run: str, step: int, role: str, entries: Sequence[Entry]) -> dict[str, Json]:
    read, written = (
        sum(entry.prompt_tokens for entry in entries),
        sum(entry.completion_tokens for entry in entries),
    )
    spent = {
        "seconds": sum(entry.seconds for entry in entries),
        "US dollars": sum(entry.cost for entry in entries),
    }
    return {
        "run": run,
        "step": step,
        "role": role,
        "calls": len(entries),
        "tokens read": read,
        "tokens written": written,
        **spent,
    }


def _spread(entries: Sequence[Entry], panels: Mapping[str, Amount]) -> dict[str, Json]:
    """Least, mean and most of each rate."""
    values = {name: [rate(entry) for entry in entries] for name, rate in panels.items()}
    return {
        f"{name}, {which}": of(some)
        for name, some in values.items()
        for which, of in (("least", min), ("mean", fmean), ("most", max))
    }


def _told(entries: Sequence[Entry], groups: Mapping[str, Sequence[Entry]], several: bool) -> str:
    roles = _grouped(entries, lambda entry: entry.role)
    by_role = ", ".join(
        f"{role} {len(some)}"
        for role, some in sorted(roles.items(), key=lambda each: (-len(each[1]), each[0]))
    )
    dollars = sum(entry.cost for entry in entries)
    price = f"{compact(dollars)} US dollars" if dollars else "no price"
    cut = f"; the first {_MOST} are drawn" if len(groups) > _MOST else ""
    where = f"{len(groups)} runs{cut}" if several else f"a run, over {len(groups)} steps{cut}"
    return f"Costs of {where}: {len(entries)} calls ({by_role}), {compact(sum(entry.seconds for entry in entries))} seconds, {price}."
