"""What the roles of a run of questions cost, in six panels."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from kgot_lab.loop.state import Ledger
from kgot_lab.types import Json, Usage
from kgot_lab.viz.plots.figure import INK, MUTED, Plot, compact, nothing, plot, plot_drawing, short_label

_Panel = Callable[[int, Usage], float]
PANELS: dict[str, _Panel] = {
    "US dollars": lambda calls, spent: spent.cost,
    "calls": lambda calls, spent: calls,
    "seconds": lambda calls, spent: spent.seconds,
    "US dollars a million tokens": lambda calls, spent: _rate(1e6 * spent.cost, _tokens(spent)),
    "US dollars a thousand seconds": lambda calls, spent: _rate(1e3 * spent.cost, spent.seconds),
    "tokens a second": lambda calls, spent: _rate(_tokens(spent), spent.seconds),
}


def role_costs(ledger: Ledger) -> Plot:
    """Dollars, calls, seconds, and the rates between dollars, tokens and seconds, by role; lines at the
    least, the mean and the most.
    """
    roles = ledger.by_role()
    if not roles:
        return nothing("no model was asked, so nothing was spent")
    names = sorted(roles, key=lambda role: (-roles[role][0], role))
    with plot_drawing(12.5, 2 * (1.1 + 0.3 * len(names)), rows=2, columns=3) as (figure, panels):
        for number, (panel, (title, amount)) in enumerate(zip(panels, PANELS.items(), strict=True)):
            values = [amount(*roles[name]) for name in names]
            panel.barh(
                range(len(names)), values, height=0.62, facecolor="#56B4E9", edgecolor=INK, linewidth=0.7
            )
            for value, dashes in ((min(values), ":"), (fmean(values), "--"), (max(values), ":")):
                panel.axvline(value, color=MUTED, linewidth=0.9, linestyle=dashes)
            for place, value in enumerate(values):
                panel.annotate(
                    compact(value),
                    (value, place),
                    xytext=(3, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=8,
                )
            panel.set(xlim=(0, 1.25 * max(values) or 1), ylim=(len(names) - 0.4, -0.6))
            panel.set_title(
                f"{title}: {compact(amount(len(ledger.entries), ledger.total))} in all", fontsize=10
            )
            panel.set_yticks(
                range(len(names)),
                [short_label(name) for name in names] if number % 3 == 0 else [""] * len(names),
            )
            panel.grid(axis="y", visible=False)
        told = f"{len(ledger.entries):,} calls, {_tokens(ledger.total):,} tokens, {compact(ledger.total.seconds)} seconds"
        rows: list[dict[str, Json]] = [
            {"role": name, **{title: of(*roles[name]) for title, of in PANELS.items()}} for name in names
        ]
        return plot(figure, f"Costs by role: {told}, {compact(ledger.total.cost)} US dollars.", rows)


def _tokens(spent: Usage) -> int:
    return spent.prompt_tokens + spent.completion_tokens


def _rate(amount: float, of: float) -> float:
    return amount / of if of else 0.0
