"""The ten plots of a run of questions, as in Besta et al. 2025, each as a picture and its numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from kgot_lab.benchmark.questions.batch import RESULTS_FILE, load_traces
from kgot_lab.benchmark.questions.question_result import QuestionResult, group_by_level, read_results
from kgot_lab.benchmark.questions.report import build_ledger
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.grading import CORRECT, INCORRECT, NOT_ATTEMPTED, UNCLEAR, graded_scores
from kgot_lab.evaluation.significance import proportion
from kgot_lab.evaluation.tables import format_decimal
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.state import Ledger
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json, Usage
from kgot_lab.viz.plots.figure import (
    INK,
    MUTED,
    Pen,
    Plot,
    annotate,
    bar_pen,
    bar_plot,
    empty_plot,
    error_bar,
    format_compact,
    label_bars,
    new_figure,
    place_legend_below,
    place_legend_outside,
    plot,
    short_label,
    use_integer_ticks,
)

# Outcomes of the questions of a run: by level, by a person's number of steps, and by a model's grades.

Results = Iterable[QuestionResult]

_PENS = {
    "correct": Pen("#009E73"),
    "correct, forced": Pen("#56B4E9", hatch="////"),
    "close call": Pen("#F0E442", hatch="----"),
    "wrong": Pen("#D55E00", hatch="xxxx"),
    "wrong, forced": Pen("#CC79A7", hatch="++++"),
    "not attempted": Pen("#FFFFFF"),
    "unclear": Pen("#E69F00", hatch="||||"),
    "error": Pen("#777777", hatch=r"\\\\"),
}
_GRADE_PENS = {
    CORRECT: _PENS["correct"],
    NOT_ATTEMPTED: _PENS["not attempted"],
    INCORRECT: _PENS["wrong"],
    UNCLEAR: _PENS["unclear"],
}
_ALL_PEN, _CORRECT_PEN = Pen("#BBBBBB"), _PENS["correct"]
_NO_ANSWER = "no question was answered"


def success_by_level(results: Results) -> Plot:
    """Plot the accuracy at each level and overall, with 95 % intervals.

    Close calls are reported but not counted as correct.
    """
    groups = results_by_level(results)
    if not groups:
        return empty_plot(_NO_ANSWER)
    return _plot_shares(groups, "share of correct answers", f"Share of correct answers{_level_note(groups)}")


def outcomes_by_level(results: Results) -> Plot:
    """Plot how the questions of each level ended.

    A question ends as correct, close call, wrong, not attempted or error. Forced answers, given when the
    steps ran out, are shown apart.
    """
    groups = results_by_level(results)
    if not groups:
        return empty_plot(_NO_ANSWER)
    title = f"How the questions ended{_level_note(groups)}"
    return _plot_outcomes(groups, lambda result: result.end, _PENS, title)


def steps_of_people(results: Results) -> Plot:
    """Plot how many steps people took for all questions and for those answered correctly."""
    rows = [result for result in results if result.human_steps is not None]
    if not rows:
        return empty_plot("no steps: these questions do not say how many a person took")
    totals = Counter(result.human_steps or 0 for result in rows)
    correct = Counter(result.human_steps or 0 for result in rows if result.correct)
    steps = sorted(totals)
    with new_figure(7.2, 3.2) as (figure, [axes]):
        axes.bar(steps, [totals[count] for count in steps], width=0.8, label="all", **_ALL_PEN.fill)
        axes.bar(steps, [correct[count] for count in steps], width=0.5, label="correct", **_CORRECT_PEN.fill)
        axes.set(xlabel="steps a person took", ylabel="questions")
        use_integer_ticks(axes.xaxis)
        use_integer_ticks(axes.yaxis)
        axes.grid(axis="x", visible=False)
        place_legend_below(figure)
        parts = (f"{format_count(count, 'step')}: {correct[count]} of {totals[count]}" for count in steps)
        summary = ", ".join(parts)
        numbers = [{"steps": count, "questions": totals[count], "correct": correct[count]} for count in steps]
        return plot(figure, f"Correct answers by the steps a person took. {summary}.", numbers)


def graded_success(results: Results) -> Plot:
    """Plot the share of answers that a model graded correct, with 95 % intervals.

    The shares are by question type, and over all questions.
    """
    rows = [result for result in results if result.grade]
    if not rows:
        return empty_plot("no grades: no model graded these answers")
    kinds = sorted({row.type for row in rows} - {""})
    types = {kind: [row for row in rows if row.type == kind] for kind in kinds}
    groups = {**(types if len(types) > 1 else {}), "all": rows}
    return _plot_shares(groups, "share graded correct", "Share of answers that a model graded correct")


def graded_outcomes(results: Results) -> Plot:
    """Plot how a model graded the answers, with the five measures of SimpleQA."""
    rows = [result for result in results if result.grade]
    if not rows:
        return empty_plot("no grades: no model graded these answers")
    return _plot_outcomes({"all": rows}, lambda row: row.grade, _GRADE_PENS, _format_measures(rows))


def results_by_level(results: Results) -> dict[str, list[QuestionResult]]:
    """Return the results by level, if there are levels, and all of them under "all".

    Returns an empty dict if there are no results.
    """
    rows = list(results)
    groups = group_by_level(rows)
    levels = {level or "no level": group for level, group in groups.items()} if set(groups) - {""} else {}
    return {**levels, "all": rows} if rows else {}


# --- parts ---


def _level_note(groups: Mapping[str, Sequence[QuestionResult]]) -> str:
    return " by level" if len(groups) > 1 else " (no levels in this set)"


def _plot_shares(groups: Mapping[str, Sequence[QuestionResult]], label: str, title: str) -> Plot:
    correct = {name: sum(bool(row.correct) for row in rows) for name, rows in groups.items()}
    estimates = {name: proportion(correct[name], len(rows)) for name, rows in groups.items()}
    close_calls = {name: sum(row.end == "close call" for row in rows) for name, rows in groups.items()}
    counts = {name: f"{correct[name]} of {len(rows)}" for name, rows in groups.items()}
    with new_figure(7.2, 1.05 + 0.42 * len(groups)) as (figure, [axes]):
        means = [estimate.mean for estimate in estimates.values()]
        axes.barh(range(len(groups)), means, height=0.68, **_CORRECT_PEN.fill)
        for position, estimate in enumerate(estimates.values()):
            axes.errorbar([estimate.mean], [position], xerr=error_bar(estimate), color="#222222", capsize=3)
        labels = [counts[name] + (f", {n} close" if n else "") for name, n in close_calls.items()]
        label_bars(axes, [estimate.high for estimate in estimates.values()], labels)
        axes.set(xlim=(0, 1.3), ylim=(len(groups) - 0.4, -0.6), xlabel=f"{label}, 95 % interval")
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_yticks(range(len(groups)), list(groups))
        axes.grid(axis="y", visible=False)
        shares = (f"{name} {format_decimal(each.mean)} ({counts[name]})" for name, each in estimates.items())
        numbers = [
            {"group": name, "questions": each.n, "correct": each.mean, "low": each.low, "high": each.high, "close calls": close_calls[name]}
            for name, each in estimates.items()
        ]  # fmt: skip
        return plot(figure, f"{title}: {'; '.join(shares)}.", numbers)


def _plot_outcomes(
    groups: Mapping[str, Sequence[QuestionResult]],
    classify: Callable[[QuestionResult], str],
    pens: Mapping[str, Pen],
    title: str,
) -> Plot:
    def describe(counts: Mapping[str, Counter[str]]) -> str:
        kinds = {name: ", ".join(f"{n} {kind}" for kind, n in row.items()) for name, row in counts.items()}
        return f"{title}. {'; '.join(f'{name}: {counter}' for name, counter in kinds.items())}."

    return _plot_by_kind(groups, classify, pens, ("questions", title), describe)


def _format_measures(rows: Sequence[QuestionResult]) -> str:
    scores = graded_scores(row.grade for row in rows)
    measures = {
        "correct": scores.correct, "not attempted": scores.not_attempted, "incorrect": scores.incorrect,
        "correct given attempted": scores.correct_given_attempted, "F": scores.f1,
    }  # fmt: skip
    return ", ".join(f"{name} {format_decimal(estimate.mean)}" for name, estimate in measures.items())


# Tools that a run used, compared with those that people used for the same questions.

CATEGORIES = {  # purpose of a tool, by patterns of its name; the first match counts
    "images": r"image|vision|ocr|picture|photo|colou?r",
    "sound and video": r"audio|video|youtube|speech|listen|transcri|microphone",
    "search and web": r"search|brows|web|wiki|internet|archive|\bmap",
    "code and numbers": r"python|code|calculat|compil|program|algebra|arithmetic",
    "files": r"attachment|file|pdf|excel|spreadsheet|xlsx|csv|word|docx|powerpoint|pptx|zip|json|xml|document|text editor",
    "language model": r"llm|language model|translat",
}
OTHER = "other"
COVERAGES = {"all of them": 1.0, "three quarters": 0.75, "half": 0.5, "a quarter": 0.25, "less": 0.0}
_NO_TOOLS = "no tools: these questions do not say which a person used"


def tool_category(tool: str) -> str:
    """Return the purpose of a tool: one of CATEGORIES, or "other"."""
    return next((name for name, words in CATEGORIES.items() if re.search(words, tool.lower())), OTHER)


def _categories(tools: Iterable[str]) -> set[str]:
    return set(map(tool_category, tools))


def tool_coverage(result: QuestionResult) -> float | None:
    """Return the share of the tool kinds used by a person that the run used, 0 to 1.

    Returns None if the question lists no tools.
    """
    human_kinds, run_kinds = _categories(result.human_tools), _categories(result.tools)
    return len(human_kinds & run_kinds) / len(human_kinds) if human_kinds else None


def tool_match(results: Iterable[QuestionResult]) -> Plot:
    """Plot the share of a person's tool kinds that the run used, by level."""
    rows = _results_with_tools(results)
    if not rows:
        return empty_plot(_NO_TOOLS)

    def describe(counts: Mapping[str, Counter[str]]) -> str:
        kinds = ", ".join(f"{kind} {counts['all'][kind]}" for kind in COVERAGES)
        return f"Of the kinds of tools a person used, used were: {kinds}, of {len(rows)} questions."

    label = "questions, by how many of the kinds of tools a person used were used"
    return _plot_by_kind(results_by_level(rows), _coverage_class, _coverage_pens(), (label,), describe)


def tool_choice_flow(results: Iterable[QuestionResult]) -> Plot:
    """Draw a flow from the share of a person's tool kinds that were used to correct or not correct."""
    rows = _results_with_tools(results)
    if not rows:
        return empty_plot(_NO_TOOLS)
    flows = Counter((_coverage_class(row), "correct" if row.correct else "not correct") for row in rows)
    with new_figure(7.6, 3.8) as (figure, [axes]):
        _draw_flow(axes, flows, [kind for kind in COVERAGES if any(left == kind for left, _ in flows)])
        summary = "; ".join(
            f"{left}: {flows[left, 'correct']} correct, {flows[left, 'not correct']} not"
            for left in COVERAGES
        )
        alt = f"Whether the answer is correct, by how many of a person's kinds of tools were used. {summary}."
        numbers = [{"tools": left, "answer": end, "questions": n} for (left, end), n in sorted(flows.items())]
        return plot(figure, alt, numbers)


def tool_usage(results: Iterable[QuestionResult]) -> Plot:
    """Draw a ring chart of the number of questions in which each tool was used.

    A tool counts once per question.
    """
    counts = Counter(tool for result in results for tool in result.tools)
    if not counts:
        return empty_plot("no tool was used")
    ordered, total = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])), counts.total()
    with new_figure(6.4, 3.6) as (figure, [axes]):
        style = {"width": 0.4, "edgecolor": INK}
        wedges, _ = axes.pie([n for _, n in ordered], startangle=90, counterclock=False, wedgeprops=style)
        for number, (wedge, (tool, n)) in enumerate(zip(wedges, ordered, strict=True)):
            wedge.set(facecolor=bar_pen(number).colour, hatch=bar_pen(number).hatch)
            wedge.set_label(short_label(f"{tool}: {n} ({n / total:.0%})"))
        axes.text(0, 0, f"{total}\nuses", ha="center", va="center")
        place_legend_outside(axes)
        summary = ", ".join(f"{tool} {n}" for tool, n in ordered)
        rows = [{"tool": tool, "questions": n} for tool, n in ordered]
        return plot(figure, f"Questions in which each tool was used: {summary}.", rows)


def category_success(results: Iterable[QuestionResult]) -> Plot:
    """Plot how many questions were answered correctly, by the kinds of tools that people used.

    A question may have several kinds.
    """
    rows = _results_with_tools(results)
    if not rows:
        return empty_plot(_NO_TOOLS)
    kinds = Counter((kind, bool(row.correct)) for row in rows for kind in _categories(row.human_tools))
    totals = {kind: kinds[kind, True] + kinds[kind, False] for kind, _ in kinds}
    names = sorted(totals, key=lambda kind: (-totals[kind], kind))
    right, wrong = ([kinds[name, is_correct] for name in names] for is_correct in (True, False))
    labels = [f"{kinds[name, True]} of {totals[name]}" for name in names]
    bars = list(zip(names, labels, strict=True))
    summary = ", ".join(f"{name} {label}" for name, label in bars)
    outcomes = zip(names, right, wrong, strict=True)
    numbers = [{"kind of tool": name, "correct": a, "not correct": b} for name, a, b in outcomes]
    parts, pens = (
        {"correct": right, "not correct": wrong},
        {"correct": _CORRECT_PEN, "not correct": _PENS["wrong"]},
    )
    text, labels = f"Correct answers by the kinds of tools a person used: {summary}.", ["questions"]
    return bar_plot((7.6, 1.15, 0.42), parts, pens, bars=bars, labels=labels, description=text, rows=numbers)


# --- parts ---


def _results_with_tools(results: Iterable[QuestionResult]) -> list[QuestionResult]:
    return [result for result in results if result.human_tools]


def _coverage_class(result: QuestionResult) -> str:
    coverage = tool_coverage(result) or 0.0
    return next(name for name, least in COVERAGES.items() if coverage >= least)


def _coverage_pens() -> dict[str, Pen]:
    return {name: bar_pen(number) for number, name in enumerate(COVERAGES)}


def _draw_flow(axes: Any, flows: Mapping[tuple[str, str], int], lefts: Sequence[str]) -> None:
    """Draw bands from left to right, with widths proportional to their questions."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    total, rights, pens = sum(flows.values()), ("correct", "not correct"), _coverage_pens()
    gap = 0.06 * total
    starts = dict.fromkeys((*lefts, *rights), 0.0)
    for names, column, side, x in ((lefts, 0, "right", -0.02), (rights, 1, "left", 1.02)):
        y_start = 0.0
        for name in names:
            size = sum(n for pair, n in flows.items() if pair[column] == name)
            starts[name] = y_start
            axes.text(x, y_start + size / 2, f"{name}: {size}", ha=side, va="center", fontsize=9)
            y_start += size + gap
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    for left in lefts:
        for right in rights:
            if not (size := flows.get((left, right), 0)):
                continue
            a, b = starts[left], starts[right]
            over = [(0, a), (0.5, a), (0.5, b), (1, b)]
            points = [*over, *((x, y + size) for x, y in reversed(over)), (0, a)]
            fill = pens[left].fill if right == "correct" else {**pens[left].fill, "alpha": 0.45}
            axes.add_patch(PathPatch(Path(points, codes), **fill))
            starts[left], starts[right] = a + size, b + size
    axes.set(xlim=(-0.45, 1.4), ylim=(total + gap * len(lefts), -gap))
    axes.set_axis_off()


# Cost of the roles of a run of questions, in six panels.

_Panel = Callable[[int, Usage], float]
PANELS: dict[str, _Panel] = {
    "US dollars": lambda calls, spent: spent.cost,
    "calls": lambda calls, spent: calls,
    "seconds": lambda calls, spent: spent.seconds,
    "US dollars a million tokens": lambda calls, spent: _rate(1e6 * spent.cost, _total_tokens(spent)),
    "US dollars a thousand seconds": lambda calls, spent: _rate(1e3 * spent.cost, spent.seconds),
    "tokens a second": lambda calls, spent: _rate(_total_tokens(spent), spent.seconds),
}


def role_costs(ledger: Ledger) -> Plot:
    """Plot dollars, calls, seconds and their rates by role.

    The rates are between dollars, tokens and seconds. Lines mark the minimum, mean and maximum.
    """
    roles = ledger.by_role()
    if not roles:
        return empty_plot("no model was asked, so nothing was spent")
    names = sorted(roles, key=lambda role: (-roles[role][0], role))
    with new_figure(12.5, 2 * (1.1 + 0.3 * len(names)), rows=2, columns=3) as (figure, panels):
        for number, (panel, (title, amount)) in enumerate(zip(panels, PANELS.items(), strict=True)):
            values = [amount(*roles[name]) for name in names]
            panel.barh(range(len(names)), values, height=0.62, **Pen("#56B4E9").fill)
            for value, dashes in ((min(values), ":"), (fmean(values), "--"), (max(values), ":")):
                panel.axvline(value, color=MUTED, linewidth=0.9, linestyle=dashes)
            for place, value in enumerate(values):
                annotate(panel, format_compact(value), (value, place), (3, 0), va="center", fontsize=8)
            panel.set(xlim=(0, 1.25 * max(values) or 1), ylim=(len(names) - 0.4, -0.6))
            total = format_compact(amount(len(ledger.entries), ledger.total))
            panel.set_title(f"{title}: {total} in all", fontsize=10)
            labels = map(short_label, names) if number % 3 == 0 else [""] * len(names)
            panel.set_yticks(range(len(names)), list(labels))
            panel.grid(axis="y", visible=False)
        calls, tokens = format_count(len(ledger.entries), "call"), _total_tokens(ledger.total)
        totals = f"{calls}, {tokens:,} tokens, {format_compact(ledger.total.seconds)} seconds"
        rows: list[dict[str, Json]] = [
            {"role": name, **{title: of(*roles[name]) for title, of in PANELS.items()}} for name in names
        ]
        return plot(figure, f"Costs by role: {totals}, {format_compact(ledger.total.cost)} US dollars.", rows)


def _total_tokens(spent: Usage) -> int:
    return spent.prompt_tokens + spent.completion_tokens


def _rate(amount: float, of: float) -> float:
    return amount / of if of else 0.0


TEN_PLOTS: Mapping[str, Callable[[Sequence[QuestionResult], Ledger], Plot]] = {
    "success": lambda results, _: success_by_level(results),
    "all_stats": lambda results, _: outcomes_by_level(results),
    "steps_distribution": lambda results, _: steps_of_people(results),
    "graded_success": lambda results, _: graded_success(results),
    "graded_all_stats": lambda results, _: graded_outcomes(results),
    "tool_match": lambda results, _: tool_match(results),
    "tool_choice_analysis": lambda results, _: tool_choice_flow(results),
    "tool_usage_count": lambda results, _: tool_usage(results),
    "tool_category_success": lambda results, _: category_success(results),
    "cost_summary": lambda _, ledger: role_costs(ledger),
}


def save_ten_plots(folder: Path, kind: str = "svg", into: Path | None = None) -> Iterator[tuple[Path, Plot]]:
    """Draw the plots of a run into a folder, by default `plots` in its own, each with a JSON summary.

    Raises BadInput if the folder has no results.
    """
    results = list(read_results(folder / RESULTS_FILE).values())
    if not results:
        raise BadInput(f"there are no question results in {folder}: name the --folder of a run")
    ledger, plots_folder = build_ledger(load_traces(folder)), into or folder / "plots"
    for name, draw in TEN_PLOTS.items():
        plot_drawn = draw(results, ledger)
        content = {"plot": name, "told": plot_drawn.alt, "numbers": list(plot_drawn.numbers)}
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_atomically(plots_folder / f"{name}.json", text, "the numbers of the plot")
        yield plot_drawn.save(plots_folder / f"{name}.{kind}"), plot_drawn


def _plot_by_kind(
    groups: Mapping[str, Sequence[QuestionResult]],
    classify: Callable[[QuestionResult], str],
    pens: Mapping[str, Pen],
    labels: Sequence[str],
    describe: Callable[[Mapping[str, Counter[str]]], str],
) -> Plot:
    """Plot how many questions of each group are of each kind."""
    counts = {name: Counter(map(classify, rows)) for name, rows in groups.items()}
    parts = {kind: [counts[name][kind] for name in groups] for kind in pens}
    rows = [
        {"group": name, "questions": len(group), **{kind: counts[name][kind] for kind in pens}}
        for name, group in groups.items()
    ]
    bars = [(name, str(len(group))) for name, group in groups.items()]
    text = describe(counts)
    return bar_plot((8.0, 1.15, 0.42), parts, pens, bars=bars, labels=labels, description=text, rows=rows)
