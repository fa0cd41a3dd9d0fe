"""Plots of a comparison of systems on the same questions, for lesson 50: scores, cost, confidence, differences.

All are drawn from stored per-question results, so they show what has been answered so far. A system of the
plan without an answer is named as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import require_known
from kgot_lab.evaluation.reports import span
from kgot_lab.evaluation.significance import reliability, risk_curve
from kgot_lab.evaluation.tables import format_decimal, format_signed
from kgot_lab.viz.plots.figure import (
    BASELINE_PEN,
    BEST_PEN,
    FAINT,
    INK,
    MUTED,
    Pen,
    Plot,
    annotate,
    bar_pen,
    bar_plot,
    draw_diagonal,
    empty_plot,
    error_bar,
    line_pen,
    new_figure,
    place_legend_below,
    plot,
    short_label,
    use_integer_ticks,
)

if TYPE_CHECKING:
    from kgot_lab.benchmark.comparison.losses import LossesBySet
    from kgot_lab.benchmark.comparison.results import ComparisonResults, SystemScores

_UNANSWERED = "not answered yet"
_NO_ANSWERS = "no question is answered yet"
_LIMITS = (-0.03, 1.03)  # the limits of an axis of shares
_DIFFERENCES_NOTE = "filled: p < .05 after Holm; diamond: aimed at; right of the line: the first is better"
_PANELS_PER_ROW = 2  # panels per row
_CEILING_PEN = Pen(MUTED, "h", (0, (1, 1.5)))
_LINEAR_TOKENS = 20  # tokens up to which the scale is linear, so that 0 can be shown
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
    sets, systems = _checked_sets(findings, on, findings.sets), list(findings.plan["systems"])
    if not findings.answers:
        return empty_plot(_NO_ANSWERS)
    names = _closed_book_system(findings), _gold_system(findings)
    lines = dict(zip(names, ("model alone", "ceiling: the gold sentences"), strict=True))
    with _panels(sets, 0.95 + 0.25 * len(systems)) as (figure, panels):
        for axes, set in zip(panels, sets, strict=False):
            rows = {row.system: row for row in findings.system_scores if row.on == set}
            for position, system in enumerate(systems):
                if row := rows.get(system):
                    style = _marker_style(_system_pen(findings, system))
                    axes.errorbar([row.f1.mean], [position], xerr=error_bar(row.f1), **style)
            for name, label in lines.items():
                if row := rows.get(name):
                    pen = _system_pen(findings, name)
                    style = {"color": pen.colour, "linewidth": 0.9, "linestyle": pen.dashes, "zorder": 1}
                    axes.axvline(row.f1.mean, label=label, **style)
            axes.set(title=set, xlim=_LIMITS, ylim=(len(systems) - 0.4, -0.6), xlabel="F1, 95 % interval")
            labels = [_label_with_count(system, rows.get(system)) for system in systems]
            axes.set_yticks(range(len(systems)), labels)
            for label, system in zip(axes.get_yticklabels(), systems, strict=True):
                label.set_color(INK if system in rows else FAINT)
            axes.grid(axis="y", visible=False)
        place_legend_below(figure)
        measured = [row for row in findings.system_scores if row.on in sets]
        text = _describe_scores(findings, measured, lambda row: format_decimal(row.f1.mean))
        return plot(figure, f"F1 of each system with 95 % intervals. {text}", [*map(_number_row, measured)])


def evidence_scores(findings: ComparisonResults, *, on: Sequence[str] = ()) -> Plot:
    """Plot F1 with its 95 % interval against the median evidence tokens of each system.

    Each set has a panel. `on` are sets, by default all together. Raises UnknownName if there is no such set.
    """
    sets = _checked_sets(findings, on, findings.sets[-1:])
    measured = [row for row in findings.system_scores if row.on in sets and row.evidence_tokens is not None]
    if not measured:
        return empty_plot(_NO_ANSWERS)
    largest = max((row.evidence_tokens or 0 for row in measured), default=0)
    ticks = [tick for tick in _TICKS if tick <= 1.5 * largest] or [0]
    with _panels(sets, 3.2) as (figure, panels):
        for axes, set in zip(panels, sets, strict=False):
            for row in (row for row in measured if row.on == set):
                style = _marker_style(_system_pen(findings, row.system)) | {"elinewidth": 0.9}
                label, error = _system_label(findings, row.system), error_bar(row.f1)
                axes.errorbar([row.evidence_tokens], [row.f1.mean], yerr=error, label=label, **style)
            axes.set_xscale("symlog", linthresh=_LINEAR_TOKENS, linscale=0.5)
            axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            axes.minorticks_off()
            axes.set(title=set, xlim=(-4, 1.6 * max(largest, _LINEAR_TOKENS)), ylim=_LIMITS)
            axes.set(xlabel="evidence, median tokens", ylabel="F1, 95 % interval")
        place_legend_below(figure)

        def describe(row: SystemScores) -> str:
            return f"{row.evidence_tokens:,.0f} tokens for {format_decimal(row.f1.mean)}"

        text = f"F1 against the evidence it was read from. {_describe_scores(findings, measured, describe)}"
        return plot(figure, text, list(map(_number_row, measured)))


def likelihood_trust(findings: ComparisonResults, systems: Sequence[str] = (), *, on: str = "") -> Plot:
    """Plot the reliability diagram, number of answers and risk–coverage curve of answer likelihoods.

    `systems` are by default all with likelihoods, except the ceiling. `on` is a set, by default all together.
    Raises UnknownName if the plan does not have a system or set.
    """
    default = [system for system in findings.plan["systems"] if system != _gold_system(findings)]
    chosen = _checked_systems(findings, systems, default)
    [on] = _checked_sets(findings, [on] if on else (), findings.sets[-1:])
    answers = {system: pairs for system in chosen if (pairs := findings.token_probabilities(system, on))[0]}
    if not answers:
        return empty_plot("no answer with a likelihood is there yet")
    numbers: list[dict[str, Any]] = []
    width = 0.09 / len(answers)
    with new_figure(10.2, 4.2, columns=3) as (figure, (right, count, risk)):
        draw_diagonal(right, "as likely as right")
        for number, (system, (values, correct)) in enumerate(answers.items()):
            pen, name = (_system_pen(findings, system), f"{_system_label(findings, system)}, n {len(values)}")
            bins, curve = reliability(values, correct), risk_curve(values, correct)
            points = [row.sure for row in bins], [row.right for row in bins]
            right.plot(*points, label=name, **pen.line | {"linewidth": 0.9})
            middles = [(row.low + row.high) / 2 + (number - (len(answers) - 1) / 2) * width for row in bins]
            style = bar_pen(number).fill | {"facecolor": pen.colour, "linewidth": 0.4}
            count.bar(middles, [row.n for row in bins], width=width, **style)
            risk.plot(*zip(*curve, strict=True), markevery=max(1, len(curve) // 8), **pen.line)
            numbers += [
                {"system": system, "likelihood": r.sure, "share right": r.right, "n": r.n} for r in bins
            ]
            numbers += [{"system": system, "coverage": share, "share wrong": wrong} for share, wrong in curve]
        right.set(xlabel="likelihood of the answer", ylabel="share right", xlim=_LIMITS, ylim=_LIMITS)
        count.set(xlabel="likelihood of the answer", ylabel="answers", xlim=_LIMITS)
        risk.set(xlabel="coverage: the surest answers kept", ylabel="risk: share wrong of them")
        risk.set(xlim=(0, 1.03), ylim=_LIMITS)
        use_integer_ticks(count.yaxis)
        place_legend_below(figure)
        missing = [system for system in chosen if system not in answers]
        return plot(figure, _format_confidence(on, answers, missing), numbers)


def paired_differences(findings: ComparisonResults, *, on: Sequence[str] = ()) -> Plot:
    """Plot the mean paired difference in F1 of each pair in the plan, with its 95 % interval.

    Only questions that both systems answered are compared. A line marks zero. A filled mark has p below .05
    after Holm correction. `on` are sets, by default all together. Raises UnknownName if there is no such set.
    """
    sets = _checked_sets(findings, on, findings.sets[-1:])
    found = {(pair.system, pair.other, pair.on): pair for pair in findings.pairs}
    rows = [(system, other, set) for set in sets for system, other in findings.plan["pairs"]]
    if not any(row in found for row in rows):
        return empty_plot("no two systems of the plan have answered the same questions yet")
    labels, numbers = [], []
    with new_figure(8.6, 1.0 + 0.29 * len(rows)) as (figure, [axes]):
        axes.axvline(0, color=INK, linewidth=1)
        for position, (system, other, set) in enumerate(rows):
            pair, where = found.get((system, other, set)), (f", {set}" if len(sets) > 1 else "")
            labels.append(f"{system} − {other}{where}" + (f", n {pair.difference.n}" if pair else ""))
            if pair is None:
                both = findings.results_on(system, set) and findings.results_on(other, set)
                reason = "too few questions yet" if both else _UNANSWERED
                annotate(axes, reason, (0, position), (5, 0), va="center", color=MUTED)
                continue
            difference = pair.difference
            fill = {"markerfacecolor": BEST_PEN.colour if pair.p_holm < 0.05 else "white"}
            style = _marker_style(Pen(BEST_PEN.colour, "D" if pair.aimed else "o")) | fill
            axes.errorbar([difference.mean], [position], xerr=error_bar(difference), **style)
            pair_names = {"system": system, "other": other, "on": set, "difference": difference.mean}
            interval = {"low": difference.low, "high": difference.high, "questions": difference.n}
            numbers.append(pair_names | interval | {"p": pair.p, "p Holm": pair.p_holm})
        axes.set_yticks(range(len(rows)), [short_label(label, 60) for label in labels])
        set_note = "" if len(sets) > 1 else f" on {sets[0]}"
        axes.set(ylim=(len(rows) - 0.4, -0.6), xlabel=f"difference of F1{set_note}, 95 % interval")
        axes.set_title(_DIFFERENCES_NOTE, fontsize=9)
        limit = max(abs(end) for row in numbers for end in (row["low"], row["high"]))
        axes.set_xlim(-1.08 * limit - 0.02, 1.08 * limit + 0.02)
        names = {row: f"{row[0]} − {row[1]} on {row[2]}" for row in rows}
        shown = [(names[row], found[row].difference) for row in rows if row in found]
        descriptions = "; ".join(f"{name} {format_signed(gap.mean)} ({span(gap)})" for name, gap in shown)
        missing = _format_missing([names[row] for row in rows if row not in found])
        return plot(figure, f"Differences of F1 on the same questions: {descriptions}.{missing}", numbers)


def stages_lost(
    findings: ComparisonResults, stages: LossesBySet, systems: Sequence[str] = (), *, on: str = ""
) -> Plot:
    """Plot how many answers of each system were right, and at which stage the others were lost.

    `stages` are the result of `collect_losses`. `on` is a set, by default all together. Raises UnknownName if the
    plan does not have a system or set.
    """
    from kgot_lab.benchmark.comparison.losses import LOSSES, count_losses

    chosen = _checked_systems(findings, systems, list(findings.plan["systems"]))
    [on] = _checked_sets(findings, [on] if on else (), findings.sets[-1:])
    losses = count_losses(findings, stages)
    counted = {system: counts for set, system, counts in losses if set == on and system in chosen}
    if not counted:
        return empty_plot("no trace says yet where answers were lost")
    missing = [name for name in chosen if name not in counted]
    ends = {
        name: ", ".join(f"{counts[stage]} {stage}" for stage in LOSSES if counts[stage])
        for name, counts in counted.items()
    }
    summary = "; ".join(f"{system} {end}" for system, end in ends.items())
    missing_note = f" Not known yet: {', '.join(missing)}." if missing else ""
    rows = [{"system": name, **{loss: counts[loss] for loss in LOSSES}} for name, counts in counted.items()]
    bars = [
        (name, f"{counts.total()} of {len(findings.results_on(name, on))} known")
        for name, counts in counted.items()
    ]
    parts = {stage: [counts[stage] for counts in counted.values()] for stage in LOSSES}
    pens = dict(zip(LOSSES, _STAGE_PENS, strict=True))
    text = f"Where answers were lost, on {on}: {summary}.{missing_note}"
    size, labels = (8.6, 1.5, 0.36), (f"answers on {on}",)
    return bar_plot(size, parts, pens, bars=bars, labels=labels, description=text, rows=rows, axis_scale=1.2)


# --- parts ---


@contextmanager
def _panels(sets: Sequence[str], height: float) -> Iterator[tuple[Any, list[Any]]]:
    """Yield a figure and a panel for each set, two in a row, each `height` inches high."""
    columns = min(_PANELS_PER_ROW, len(sets))
    rows = -(-len(sets) // columns)
    width = 9.6 if columns > 1 else 7.2
    with new_figure(width, height * rows + 0.5, rows=rows, columns=columns) as (figure, panels):
        figure.get_layout_engine().set(hspace=0.06)
        for spare in panels[len(sets) :]:
            spare.set_axis_off()
        yield figure, panels


def _closed_book_system(findings: ComparisonResults) -> str:
    """Return the plan's system without search (closed book), or ""."""
    systems = findings.plan["systems"].items()
    return next((name for name, plan in systems if not plan["search"] and plan["reads"] != "loop"), "")


def _gold_system(findings: ComparisonResults) -> str:
    """Return the plan's system that gets the gold sentences, or ""."""
    return next((name for name, plan in findings.plan["systems"].items() if plan["search"] == "gold"), "")


def _system_pen(findings: ComparisonResults, system: str) -> Pen:
    """Return the pen of a system, which is the same in all plots of a plan."""
    target = next((aim["system"] for aim in findings.plan["aims"]), "")
    special = {
        target: BEST_PEN,
        _closed_book_system(findings): BASELINE_PEN,
        _gold_system(findings): _CEILING_PEN,
    }
    if system in special:
        return special[system]
    return line_pen([name for name in findings.plan["systems"] if name not in special].index(system))


def _marker_style(pen: Pen) -> dict[str, Any]:
    style = {"fmt": pen.marker, "color": pen.colour, "markersize": 12 if pen.marker == "*" else 6}
    return style | {"markeredgewidth": 0.9, "elinewidth": 1.4}


def _system_label(findings: ComparisonResults, system: str) -> str:
    role = " (model alone)" if system == _closed_book_system(findings) else ""
    return short_label(system) + role + (" (ceiling)" if system == _gold_system(findings) else "")


def _label_with_count(system: str, row: SystemScores | None) -> str:
    return f"{short_label(system)}, {f'n {row.n}' if row else _UNANSWERED}"


def _number_row(row: SystemScores) -> dict[str, Any]:
    scores = {"F1": row.f1.mean, "low": row.f1.low, "high": row.f1.high}
    tokens = {"evidence tokens": row.evidence_tokens}
    return {"on": row.on, "system": row.system, "n": row.n} | scores | tokens


def _describe_scores(
    findings: ComparisonResults, rows: Sequence[SystemScores], format_value: Callable[[SystemScores], str]
) -> str:
    """Describe what each system reached on each set, and which systems have no answers."""
    by_set = [
        f"{set}: {', '.join(f'{row.system} {format_value(row)} (n {row.n})' for row in rows if row.on == set)}"
        for set in findings.sets
    ]
    unanswered = [system for system in findings.plan["systems"] if system not in findings.answers]
    return f"{'; '.join(part for part in by_set if not part.endswith(': '))}.{_format_missing(unanswered)}"


def _format_missing(names: Sequence[str]) -> str:
    return f" Not answered yet: {', '.join(names)}." if names else ""


def _checked_sets(findings: ComparisonResults, on: Sequence[str], default: list[str]) -> list[str]:
    require_known("question set", findings.sets, *on)
    return list(on) or default


def _checked_systems(findings: ComparisonResults, systems: Sequence[str], default: list[str]) -> list[str]:
    require_known("system", findings.plan["systems"], *systems)
    return list(systems) or default


def _format_confidence(
    on: str, answers: Mapping[str, tuple[list[float], list[float]]], missing: Sequence[str]
) -> str:
    means = [
        f"{system} {format_decimal(fmean(likelihoods))} likely and {format_decimal(fmean(right))} right (n {len(right)})"
        for system, (likelihoods, right) in answers.items()
    ]
    missing_note = f" Without a likelihood so far: {', '.join(missing)}." if missing else ""
    return f"How far the likelihood of an answer can be trusted on {on}: on average {', '.join(means)}.{missing_note}"
