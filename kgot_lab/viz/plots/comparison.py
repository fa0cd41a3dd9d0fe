"""Plots of a comparison of systems on the same questions: scores, cost, confidence and differences.

All are drawn from stored per-question results, so they show what has been answered so far. A system of the
plan without an answer is named as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import UnknownName
from kgot_lab.evaluation.reports import span
from kgot_lab.evaluation.significance import Estimate, reliability, risk_curve
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.viz.plots.figure import (
    BASELINE_COLOUR,
    BEST,
    FAINT,
    INK,
    MUTED,
    Pen,
    Plot,
    annotate,
    bar_pen,
    bar_plot,
    diagonal,
    legend_below,
    line_pen,
    nothing,
    plot,
    plot_drawing,
    reach,
    short_label,
    whole_numbers,
)

if TYPE_CHECKING:
    from kgot_lab.benchmark.comparison.losses import LossesBySet
    from kgot_lab.benchmark.comparison.results import ComparisonResults, SystemScores

_UNANSWERED = "not answered yet"
_EMPTY = "no question is answered yet"
_SHARE = (-0.03, 1.03)  # the limits of an axis of shares
_DIFFERENCES = (
    "filled: p < .05 after Holm; diamond: aimed at before the run; right of the line: the first is better"
)
_WIDE = 2  # panels per row
_CEILING = Pen(MUTED, "h", (0, (1, 1.5)))
_LINEAR = 20  # tokens up to which the scale is linear, so that 0 can be shown
_STAGE_PENS = (  # in order of LOSSES, from right to compared wrongly
    Pen("#009E73"), Pen("#F0E442", hatch="----"), Pen("#FFFFFF"), Pen("#56B4E9", hatch="////"), Pen("#0072B2", hatch=r"\\\\"),
    Pen("#CC79A7", hatch="xxxx"), Pen("#E69F00", hatch="||||"), Pen("#D55E00", hatch="++++"), Pen("#BBBBBB", hatch="//"),
)  # fmt: skip
_TICKS = (0, 20, 50, 100, 200, 500, 1000, 2000, 5000)


def answer_scores(findings: ComparisonResults, *, on: Sequence[str] = ()) -> Plot:
    """Plot the F1 of each system with its 95 % interval, a panel for each set.

    Lines mark the model alone and the ceiling. The number of answers follows the name of the system. `on` are
    sets, by default each and all together. Raises UnknownName if there is no such set.
    """
    sets, systems = _sets(findings, on, findings.sets), list(findings.plan["systems"])
    if not findings.answers:
        return nothing(_EMPTY)
    lines = {_alone(findings): "model alone", _ceiling(findings): "ceiling: the gold sentences"}
    with _panels(sets, 0.95 + 0.25 * len(systems)) as (figure, panels):
        for axes, set in zip(panels, sets, strict=False):
            rows = _rows(findings, set)
            for place, system in enumerate(systems):
                if row := rows.get(system):
                    axes.errorbar([row.f1.mean], [place], xerr=reach(row.f1), **_dot(_pen(findings, system)))
            for name, label in lines.items():
                if row := rows.get(name):
                    pen = _pen(findings, name)
                    look = {"color": pen.colour, "linewidth": 0.9, "linestyle": pen.dashes, "zorder": 1}
                    axes.axvline(row.f1.mean, label=label, **look)
            axes.set(title=set, xlim=_SHARE, ylim=(len(systems) - 0.4, -0.6), xlabel="F1, 95 % interval")
            axes.set_yticks(range(len(systems)), [_counted(system, rows.get(system)) for system in systems])
            for label, system in zip(axes.get_yticklabels(), systems, strict=True):
                label.set_color(INK if system in rows else FAINT)
            axes.grid(axis="y", visible=False)
        legend_below(figure)
        drawn = [row for row in findings.system_scores if row.on in sets]
        said = _told(findings, drawn, lambda row: format_decimal(row.f1.mean))
        return plot(figure, f"F1 of each system with 95 % intervals. {said}", list(map(_numbers, drawn)))


def evidence_scores(findings: ComparisonResults, *, on: Sequence[str] = ()) -> Plot:
    """Plot F1 with its 95 % interval against the median evidence tokens of each system.

    Each set has a panel. `on` are sets, by default all together. Raises UnknownName if there is no such set.
    """
    sets = _sets(findings, on, findings.sets[-1:])
    told = [row for row in findings.system_scores if row.on in sets and row.evidence_tokens is not None]
    if not told:
        return nothing(_EMPTY)
    most = max((row.evidence_tokens or 0 for row in told), default=0)
    ticks = [tick for tick in _TICKS if tick <= 1.5 * most] or [0]
    with _panels(sets, 3.2) as (figure, panels):
        for axes, set in zip(panels, sets, strict=False):
            for row in (row for row in told if row.on == set):
                look = _dot(_pen(findings, row.system)) | {"elinewidth": 0.9}
                label = _named(findings, row.system)
                axes.errorbar([row.evidence_tokens], [row.f1.mean], yerr=reach(row.f1), label=label, **look)
            axes.set_xscale("symlog", linthresh=_LINEAR, linscale=0.5)
            axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            axes.minorticks_off()
            axes.set(title=set, ylim=_SHARE, xlim=(-4, 1.6 * max(most, _LINEAR)), ylabel="F1, 95 % interval")
            axes.set_xlabel("evidence, median tokens")
        legend_below(figure)
        said = _told(
            findings, told, lambda row: f"{row.evidence_tokens:,.0f} tokens for {format_decimal(row.f1.mean)}"
        )
        return plot(figure, f"F1 against the evidence it was read from. {said}", list(map(_numbers, told)))


def likelihood_trust(findings: ComparisonResults, systems: Sequence[str] = (), *, on: str = "") -> Plot:
    """Plot the reliability diagram, number of answers and risk–coverage curve of answer likelihoods.

    `systems` are by default all with likelihoods, except the ceiling. `on` is a set, by default all together.
    Raises UnknownName if the plan does not have a system or set.
    """
    usual = [system for system in findings.plan["systems"] if system != _ceiling(findings)]
    chosen = _chosen(findings, systems, usual)
    [on] = _sets(findings, [on] if on else (), findings.sets[-1:])
    sure = {system: told for system in chosen if (told := findings.likelihoods(system, on))[0]}
    if not sure:
        return nothing("no answer with a likelihood is there yet")
    numbers: list[dict[str, Any]] = []
    width = 0.09 / len(sure)
    with plot_drawing(10.2, 4.2, columns=3) as (figure, (right, count, risk)):
        diagonal(right, "as likely as right")
        for number, (system, (likely, correct)) in enumerate(sure.items()):
            pen, name = _pen(findings, system), f"{_named(findings, system)}, n {len(likely)}"
            bins, curve = reliability(likely, correct), risk_curve(likely, correct)
            found = [row.sure for row in bins], [row.right for row in bins]
            right.plot(*found, label=name, **pen.line | {"linewidth": 0.9})
            middles = [(row.low + row.high) / 2 + (number - (len(sure) - 1) / 2) * width for row in bins]
            look = bar_pen(number).fill | {"facecolor": pen.colour, "linewidth": 0.4}
            count.bar(middles, [row.n for row in bins], width=width, **look)
            risk.plot(*zip(*curve, strict=True), markevery=max(1, len(curve) // 8), **pen.line)
            numbers += [
                {"system": system, "likelihood": row.sure, "share right": row.right, "n": row.n}
                for row in bins
            ]
            numbers += [{"system": system, "coverage": share, "share wrong": wrong} for share, wrong in curve]
        right.set(xlabel="likelihood of the answer", ylabel="share right", xlim=_SHARE, ylim=_SHARE)
        count.set(xlabel="likelihood of the answer", ylabel="answers", xlim=_SHARE)
        risk.set(
            xlabel="coverage: the surest answers kept", ylabel="risk: share wrong of them", xlim=(0, 1.03)
        )
        risk.set_ylim(*_SHARE)
        whole_numbers(count.yaxis)
        legend_below(figure)
        missing = [system for system in chosen if system not in sure]
        return plot(figure, _format_confidence(on, sure, missing), numbers)


def paired_differences(findings: ComparisonResults, *, on: Sequence[str] = ()) -> Plot:
    """Plot the mean paired difference in F1 of each pair in the plan, with its 95 % interval.

    Only questions that both systems answered are compared. A line marks zero. A filled mark has p below .05
    after Holm correction. `on` are sets, by default all together. Raises UnknownName if there is no such set.
    """
    sets = _sets(findings, on, findings.sets[-1:])
    found = {(pair.system, pair.other, pair.on): pair for pair in findings.pairs}
    rows = [(system, other, set) for set in sets for system, other in findings.plan["pairs"]]
    if not any(row in found for row in rows):
        return nothing("no two systems of the plan have answered the same questions yet")
    labels, numbers = [], []
    with plot_drawing(8.6, 1.0 + 0.29 * len(rows)) as (figure, [axes]):
        axes.axvline(0, color=INK, linewidth=1)
        for place, (system, other, set) in enumerate(rows):
            pair, where = found.get((system, other, set)), f", {set}" * (len(sets) > 1)
            labels.append(f"{system} − {other}{where}" + (f", n {pair.difference.n}" if pair else ""))
            if pair is None:
                both = findings.results_on(system, set) and findings.results_on(other, set)
                said = "too few questions yet" if both else _UNANSWERED
                annotate(axes, said, (0, place), (5, 0), va="center", color=MUTED)
                continue
            gap = pair.difference
            fill = {"markerfacecolor": BEST.colour if pair.p_holm < 0.05 else "white"}
            look = _dot(Pen(BEST.colour, "D" if pair.aimed else "o")) | fill
            axes.errorbar([gap.mean], [place], xerr=reach(gap), **look)
            named = {"system": system, "other": other, "on": set, "difference": gap.mean}
            span = {"low": gap.low, "high": gap.high, "questions": gap.n}
            numbers.append(named | span | {"p": pair.p, "p Holm": pair.p_holm})
        axes.set_yticks(range(len(rows)), [short_label(label, 60) for label in labels])
        one = "" if len(sets) > 1 else f" on {sets[0]}"
        axes.set(ylim=(len(rows) - 0.4, -0.6), xlabel=f"difference of F1{one}, 95 % interval")
        axes.set_title(_DIFFERENCES, fontsize=9)
        far = max(abs(end) for row in numbers for end in (row["low"], row["high"]))
        axes.set_xlim(-1.08 * far - 0.02, 1.08 * far + 0.02)
        names = {row: f"{row[0]} − {row[1]} on {row[2]}" for row in rows}
        gaps = "; ".join(f"{names[row]} {_gap(found[row].difference)}" for row in rows if row in found)
        missing = [names[row] for row in rows if row not in found]
        return plot(figure, f"Differences of F1 on the same questions: {gaps}.{_open(missing)}", numbers)


def stages_lost(
    findings: ComparisonResults, stages: LossesBySet, systems: Sequence[str] = (), *, on: str = ""
) -> Plot:
    """Plot how many answers of each system were right, and at which stage the others were lost.

    `stages` are the result of `collect_losses`. `on` is a set, by default all together. Raises UnknownName if the
    plan does not have a system or set.
    """
    from kgot_lab.benchmark.comparison.losses import LOSSES, count_losses

    chosen = _chosen(findings, systems, list(findings.plan["systems"]))
    [on] = _sets(findings, [on] if on else (), findings.sets[-1:])
    every = count_losses(findings, stages)
    counted = {system: counts for set, system, counts in every if set == on and system in chosen}
    if not counted:
        return nothing("no trace has told yet where answers were lost")
    missing = [name for name in chosen if name not in counted]
    ends = {
        system: ", ".join(f"{counts[stage]} {stage}" for stage in LOSSES if counts[stage])
        for system, counts in counted.items()
    }
    told = "; ".join(f"{system} {end}" for system, end in ends.items())
    unknown = f" Not known yet: {', '.join(missing)}." if missing else ""
    rows = [
        {"system": name, **{stage: counts[stage] for stage in LOSSES}} for name, counts in counted.items()
    ]
    bars = [
        (name, f"{counts.total()} of {len(findings.results_on(name, on))} known")
        for name, counts in counted.items()
    ]
    return bar_plot(
        (8.6, 1.5, 0.36),
        {stage: [counts[stage] for counts in counted.values()] for stage in LOSSES},
        dict(zip(LOSSES, _STAGE_PENS, strict=True)),
        bars=bars,
        labels=(f"answers on {on}",),
        said=f"Where answers were lost, on {on}: {told}.{unknown}",
        rows=rows,
        room=1.2,
    )


# --- parts ---


@contextmanager
def _panels(sets: Sequence[str], height: float) -> Iterator[tuple[Any, list[Any]]]:
    """Yield a figure and a panel for each set, two in a row, each `height` inches high."""
    columns = min(_WIDE, len(sets))
    rows = -(-len(sets) // columns)
    width = 9.6 if columns > 1 else 7.2
    with plot_drawing(width, height * rows + 0.5, rows=rows, columns=columns) as (figure, panels):
        figure.get_layout_engine().set(hspace=0.06)
        for spare in panels[len(sets) :]:
            spare.set_axis_off()
        yield figure, panels


def _rows(findings: ComparisonResults, set: str) -> Mapping[str, SystemScores]:
    return {row.system: row for row in findings.system_scores if row.on == set}


def _alone(findings: ComparisonResults) -> str:
    """Return the plan's system without search (closed book), or ""."""
    systems = findings.plan["systems"].items()
    return next((name for name, told in systems if not told["search"] and told["reads"] != "loop"), "")


def _ceiling(findings: ComparisonResults) -> str:
    """Return the plan's system that gets the gold sentences, or ""."""
    return next((name for name, told in findings.plan["systems"].items() if told["search"] == "gold"), "")


def _aimed(findings: ComparisonResults) -> str:
    """Return the system that the plan's aims are about, or ""."""
    return next((aim["system"] for aim in findings.plan["aims"]), "")


def _pen(findings: ComparisonResults, system: str) -> Pen:
    """Return the pen of a system, which is the same in all plots of a plan."""
    special = {_aimed(findings): BEST, _alone(findings): BASELINE_COLOUR, _ceiling(findings): _CEILING}
    if system in special:
        return special[system]
    return line_pen([name for name in findings.plan["systems"] if name not in special].index(system))


def _dot(pen: Pen) -> dict[str, Any]:
    look = {"fmt": pen.marker, "color": pen.colour, "markersize": 12 if pen.marker == "*" else 6}
    return look | {"markeredgewidth": 0.9, "elinewidth": 1.4}


def _named(findings: ComparisonResults, system: str) -> str:
    what = " (model alone)" * (system == _alone(findings)) + " (ceiling)" * (system == _ceiling(findings))
    return short_label(system) + what


def _counted(system: str, row: SystemScores | None) -> str:
    return f"{short_label(system)}, {f'n {row.n}' if row else _UNANSWERED}"


def _numbers(row: SystemScores) -> dict[str, Any]:
    told = {"F1": row.f1.mean, "low": row.f1.low, "high": row.f1.high, "evidence tokens": row.evidence_tokens}
    return {"on": row.on, "system": row.system, "n": row.n} | told


def _told(
    findings: ComparisonResults, told: Sequence[SystemScores], of: Callable[[SystemScores], str]
) -> str:
    """Describe what each system reached on each set, and which systems have no answers."""
    said = [
        f"{set}: {', '.join(f'{row.system} {of(row)} (n {row.n})' for row in told if row.on == set)}"
        for set in findings.sets
    ]
    unanswered = [system for system in findings.plan["systems"] if system not in findings.answers]
    return f"{'; '.join(each for each in said if not each.endswith(': '))}.{_open(unanswered)}"


def _gap(difference: Estimate) -> str:
    return f"{format_signed(difference.mean)} ({span(difference)})"


def _open(names: Sequence[str]) -> str:
    return f" Not answered yet: {', '.join(names)}." if names else ""


def _sets(findings: ComparisonResults, on: Sequence[str], usual: list[str]) -> list[str]:
    for name in on:
        if name not in findings.sets:
            raise UnknownName("question set", name, findings.sets)
    return list(on) or usual


def _chosen(findings: ComparisonResults, systems: Sequence[str], usual: list[str]) -> list[str]:
    for name in systems:
        if name not in findings.plan["systems"]:
            raise UnknownName("system", name, findings.plan["systems"])
    return list(systems) or usual


def _format_confidence(
    on: str, sure: Mapping[str, tuple[list[float], list[float]]], missing: Sequence[str]
) -> str:
    means = [
        f"{system} {format_decimal(fmean(likely))} likely and {format_decimal(fmean(right))} right (n {len(right)})"
        for system, (likely, right) in sure.items()
    ]
    gone = f" Without a likelihood so far: {', '.join(missing)}." if missing else ""
    return f"How far the likelihood of an answer can be trusted on {on}: on average {', '.join(means)}.{gone}"
