"""The ten plots of a run of questions, those that Besta et al. 2025 draw, each as a picture and as its
numbers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from kgot_lab.benchmark.questions.batch import RECEIPTS, traces_of
from kgot_lab.benchmark.questions.question_result import QuestionReceipt, by_level, read_receipts
from kgot_lab.benchmark.questions.report import ledger_of
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.grading import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    UNCLEAR,
    GradedScores,
    graded_scores,
)
from kgot_lab.evaluation.significance import Estimate, share
from kgot_lab.evaluation.tables import decimal
from kgot_lab.io.files import write_whole
from kgot_lab.loop.state import Ledger
from kgot_lab.types import Json, Usage
from kgot_lab.viz.plots.figure import (
    INK,
    MUTED,
    Pen,
    Plot,
    bar_pen,
    compact,
    counted_bars,
    legend_below,
    nothing,
    outside_legend,
    plot,
    plot_drawing,
    short_label,
    stacked,
    whole_numbers,
)

# What became of the questions of a run: by level, by the steps a person took, and by the grades a model
# gave.

Receipts = Iterable[QuestionReceipt]

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
_ASKED, _RIGHT = Pen("#BBBBBB"), _PENS["correct"]
_NOTHING = "no question was answered"


def success_by_level(receipts: Receipts) -> Plot:
    """The share of correct answers at each level and of all, with 95 % intervals; close calls are told and
    not counted.
    """
    groups = levels_of(receipts)
    if not groups:
        return nothing(_NOTHING)
    return _shares(groups, "share of correct answers", f"Share of correct answers{_of(groups)}")


def ends_by_level(receipts: Receipts) -> Plot:
    """How many questions of each level ended how: correct, close call, wrong, not attempted, an error; forced
    where steps ran out.
    """
    groups = levels_of(receipts)
    if not groups:
        return nothing(_NOTHING)
    return _ends(groups, lambda receipt: receipt.end, _PENS, f"How the questions ended{_of(groups)}")


def steps_of_people(receipts: Receipts) -> Plot:
    """How many steps people took for the questions, all of them and those that were answered correctly."""
    rows = [receipt for receipt in receipts if receipt.human_steps is not None]
    if not rows:
        return nothing("no steps: these questions do not say how many a person took")
    asked = Counter(receipt.human_steps or 0 for receipt in rows)
    right = Counter(receipt.human_steps or 0 for receipt in rows if receipt.correct)
    numbers: list[dict[str, Json]] = [
        {"steps": steps, "questions": asked[steps], "correct": right[steps]} for steps in sorted(asked)
    ]
    with plot_drawing(7.2, 3.2) as (figure, [axes]):
        axes.bar(
            [row["steps"] for row in numbers],
            [row["questions"] for row in numbers],
            width=0.8,
            label="all",
            **_ASKED.fill,
        )
        axes.bar(
            [row["steps"] for row in numbers],
            [row["correct"] for row in numbers],
            width=0.5,
            label="correct",
            **_RIGHT.fill,
        )
        axes.set(xlabel="steps a person took", ylabel="questions")
        whole_numbers(axes.xaxis)
        whole_numbers(axes.yaxis)
        axes.grid(axis="x", visible=False)
        legend_below(figure)
        told = ", ".join(f"{row['steps']} steps: {row['correct']} of {row['questions']}" for row in numbers)
        return plot(figure, f"Correct answers by the steps a person took. {told}.", numbers)


def graded_success(receipts: Receipts) -> Plot:
    """The share of answers that a model graded correct, by the type of the question and of all, with 95 %
    intervals.
    """
    rows = [receipt for receipt in receipts if receipt.grade]
    if not rows:
        return nothing("no grades: no model graded these answers")
    types = {
        kind: [row for row in rows if row.type == kind] for kind in sorted({row.type for row in rows} - {""})
    }
    groups = {**(types if len(types) > 1 else {}), "all": rows}
    return _shares(groups, "share graded correct", "Share of answers that a model graded correct")


def graded_ends(receipts: Receipts) -> Plot:
    """How a model graded the answers, with SimpleQA's five measures."""
    rows = [receipt for receipt in receipts if receipt.grade]
    if not rows:
        return nothing("no grades: no model graded these answers")
    return _ends({"all": rows}, lambda row: row.grade, _GRADE_PENS, _measures(rows))


def levels_of(receipts: Receipts) -> dict[str, list[QuestionReceipt]]:
    """The receipts of each level, where the set has levels, and all of them; nothing where there are none."""
    rows = list(receipts)
    groups = by_level(rows)
    levels = {level or "no level": some for level, some in groups.items()} if set(groups) - {""} else {}
    return {**levels, "all": rows} if rows else {}


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _of(groups: Mapping[str, Sequence[QuestionReceipt]]) -> str:
    return " by level" if len(groups) > 1 else " (no levels in this set)"


def _shares(groups: Mapping[str, Sequence[QuestionReceipt]], label: str, said: str) -> Plot:
    estimates = {
        name: share(sum(bool(row.correct) for row in rows), len(rows)) for name, rows in groups.items()
    }
    close = {name: sum(row.end == "close call" for row in rows) for name, rows in groups.items()}
    with plot_drawing(7.2, 1.05 + 0.42 * len(groups)) as (figure, [axes]):
        axes.barh(range(len(groups)), [each.mean for each in estimates.values()], height=0.68, **_RIGHT.fill)
        for place, each in enumerate(estimates.values()):
            axes.errorbar(
                [each.mean],
                [place],
                xerr=[[each.mean - each.low], [each.high - each.mean]],
                color="#222222",
                capsize=3,
            )
        counts = [f"{sum(bool(row.correct) for row in rows)} of {len(rows)}" for rows in groups.values()]
        words = [
            told + f", {close[name]} close" * bool(close[name])
            for name, told in zip(groups, counts, strict=True)
        ]
        counted_bars(axes, [each.high for each in estimates.values()], words)
        axes.set(
            xlim=(0, 1.3),
            ylim=(len(groups) - 0.4, -0.6),
            xlabel=f"{label}, 95 % interval",
            xticks=[0, 0.25, 0.5, 0.75, 1],
        )
        axes.set_yticks(range(len(groups)), list(groups))
        axes.grid(axis="y", visible=False)
        told = "; ".join(
            f"{name} {decimal(each.mean)} ({count})"
            for (name, each), count in zip(estimates.items(), counts, strict=True)
        )
        numbers = [_numbers(name, each, close[name]) for name, each in estimates.items()]
        return plot(figure, f"{said}: {told}.", numbers)


def _numbers(name: str, estimate: Estimate, close: int) -> dict[str, Json]:
    span = {"correct": estimate.mean, "low": estimate.low, "high": estimate.high}
    return {"group": name, "questions": estimate.n, **span, "close calls": close}


def _ends(
    groups: Mapping[str, Sequence[QuestionReceipt]],
    kind_of: Callable[[QuestionReceipt], str],
    pens: Mapping[str, Pen],
    said: str,
) -> Plot:
    counts = {name: Counter(map(kind_of, rows)) for name, rows in groups.items()}
    with plot_drawing(8.0, 1.15 + 0.42 * len(groups)) as (figure, [axes]):
        stacked(axes, list(groups), {kind: [counts[name][kind] for name in groups] for kind in pens}, pens)
        counted_bars(
            axes, [len(rows) for rows in groups.values()], [str(len(rows)) for rows in groups.values()]
        )
        axes.set_xlabel("questions")
        axes.set_title(short_label(said, 110), fontsize=9, loc="left")
        whole_numbers(axes.xaxis)
        legend_below(figure)
        told = "; ".join(
            f"{name}: {', '.join(f'{n} {kind}' for kind, n in some.items())}" for name, some in counts.items()
        )
        rows = [
            {"group": name, "questions": len(groups[name]), **{kind: counts[name][kind] for kind in pens}}
            for name in groups
        ]
        return plot(figure, f"{said}. {told}.", rows)


def _measures(rows: Sequence[QuestionReceipt]) -> str:
    scores: GradedScores = graded_scores(row.grade for row in rows)
    told = {
        "correct": scores.correct, "not attempted": scores.not_attempted, "incorrect": scores.incorrect,
        "correct given attempted": scores.correct_given_attempted, "F": scores.f1,
    }  # fmt: skip
    return ", ".join(f"{name} {decimal(each.mean)}" for name, each in told.items())


# Which tools a run of questions used, against those that people used for the same questions.

CATEGORIES = {  # what a tool is for, by its name or by how people call it; the first that fits
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
_CORRECT, _NOT = Pen("#009E73"), Pen("#D55E00", hatch="xxxx")


def category_of(tool: str) -> str:
    """What a tool is for: one of CATEGORIES, or "other"."""
    return next((name for name, words in CATEGORIES.items() if re.search(words, tool.lower())), OTHER)


def tool_coverage(receipt: QuestionReceipt) -> float | None:
    """The share of the kinds of tools a person used that were used, 0 to 1; None where the question lists
    none.
    """
    wanted = {category_of(tool) for tool in receipt.human_tools}
    used = {category_of(tool) for tool in receipt.tools}
    return len(wanted & used) / len(wanted) if wanted else None


def tool_match(receipts: Iterable[QuestionReceipt]) -> Plot:
    """How many of the kinds of tools that a person used were used, by level."""
    rows = _listing(receipts)
    if not rows:
        return nothing(_NO_TOOLS)
    groups = levels_of(rows)
    counts = {name: Counter(map(_class, some)) for name, some in groups.items()}
    with plot_drawing(8.0, 1.15 + 0.42 * len(groups)) as (figure, [axes]):
        stacked(
            axes, list(groups), {kind: [counts[name][kind] for name in groups] for kind in COVERAGES}, _pens()
        )
        counted_bars(
            axes, [len(some) for some in groups.values()], [str(len(some)) for some in groups.values()]
        )
        axes.set_xlabel("questions, by how many of the kinds of tools a person used were used")
        whole_numbers(axes.xaxis)
        legend_below(figure)
        told = ", ".join(f"{kind} {counts['all'][kind]}" for kind in COVERAGES)
        numbers = [
            {
                "group": name,
                "questions": len(groups[name]),
                **{kind: counts[name][kind] for kind in COVERAGES},
            }
            for name in groups
        ]
        return plot(
            figure,
            f"Of the kinds of tools a person used, used were: {told}, of {len(rows)} questions.",
            numbers,
        )


def tool_choice_flow(receipts: Iterable[QuestionReceipt]) -> Plot:
    """From how many of a person's kinds of tools were used, on the left, to whether the answer is correct, on
    the right.
    """
    rows = _listing(receipts)
    if not rows:
        return nothing(_NO_TOOLS)
    flows = Counter((_class(row), "correct" if row.correct else "not correct") for row in rows)
    with plot_drawing(7.6, 3.8) as (figure, [axes]):
        _flow(axes, flows, [kind for kind in COVERAGES if any(left == kind for left, _ in flows)])
        told = "; ".join(
            f"{left}: {flows[left, 'correct']} correct, {flows[left, 'not correct']} not"
            for left in COVERAGES
        )
        numbers: list[dict[str, Json]] = [
            {"tools": left, "answer": right, "questions": n} for (left, right), n in sorted(flows.items())
        ]
        return plot(
            figure,
            f"Whether the answer is correct, by how many of a person's kinds of tools were used. {told}.",
            numbers,
        )


def tools_in_questions(receipts: Iterable[QuestionReceipt]) -> Plot:
    """In how many questions each tool was used, as a ring; a tool counts once a question."""
    counts = Counter(tool for receipt in receipts for tool in receipt.tools)
    if not counts:
        return nothing("no tool was used")
    ordered, total = sorted(counts.items(), key=lambda each: (-each[1], each[0])), counts.total()
    with plot_drawing(6.4, 3.6) as (figure, [axes]):
        wedges, _ = axes.pie(
            [n for _, n in ordered],
            startangle=90,
            counterclock=False,
            wedgeprops={"width": 0.4, "edgecolor": INK},
        )
        for number, (wedge, (tool, n)) in enumerate(zip(wedges, ordered, strict=True)):
            wedge.set(
                **{key: value for key, value in bar_pen(number).fill.items() if key in {"facecolor", "hatch"}}
            )
            wedge.set_label(short_label(f"{tool}: {n} ({n / total:.0%})"))
        axes.text(0, 0, f"{total}\nuses", ha="center", va="center")
        outside_legend(axes)
        told = ", ".join(f"{tool} {n}" for tool, n in ordered)
        return plot(
            figure,
            f"Questions in which each tool was used: {told}.",
            [{"tool": tool, "questions": n} for tool, n in ordered],
        )


def category_success(receipts: Iterable[QuestionReceipt]) -> Plot:
    """How many questions were answered correctly, by the kinds of tools that people used for them; a question
    may have several kinds.
    """
    rows = _listing(receipts)
    if not rows:
        return nothing(_NO_TOOLS)
    kinds = Counter(
        (kind, bool(row.correct)) for row in rows for kind in {category_of(tool) for tool in row.human_tools}
    )
    names = sorted(
        {kind for kind, _ in kinds}, key=lambda kind: (-kinds[kind, True] - kinds[kind, False], kind)
    )
    with plot_drawing(7.6, 1.15 + 0.42 * len(names)) as (figure, [axes]):
        parts = {
            "correct": [kinds[name, True] for name in names],
            "not correct": [kinds[name, False] for name in names],
        }
        stacked(axes, names, parts, {"correct": _CORRECT, "not correct": _NOT})
        ends = [kinds[name, True] + kinds[name, False] for name in names]
        counted_bars(
            axes, ends, [f"{kinds[name, True]} of {end}" for name, end in zip(names, ends, strict=True)]
        )
        axes.set_xlabel("questions")
        whole_numbers(axes.xaxis)
        legend_below(figure)
        numbers = [
            {"kind of tool": name, "correct": kinds[name, True], "not correct": kinds[name, False]}
            for name in names
        ]
        told = ", ".join(
            f"{name} {kinds[name, True]} of {end}" for name, end in zip(names, ends, strict=True)
        )
        return plot(figure, f"Correct answers by the kinds of tools a person used: {told}.", numbers)


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _listing(receipts: Iterable[QuestionReceipt]) -> list[QuestionReceipt]:
    return [receipt for receipt in receipts if receipt.human_tools]


def _class(receipt: QuestionReceipt) -> str:
    covered = tool_coverage(receipt) or 0.0
    return next(name for name, least in COVERAGES.items() if covered >= least)


def _pens() -> dict[str, Pen]:
    return {name: bar_pen(number) for number, name in enumerate(COVERAGES)}


def _flow(axes: Any, flows: Mapping[tuple[str, str], int], lefts: Sequence[str]) -> None:
    """Bands from the left to the right, as wide as they have questions."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    total, rights, pens = sum(flows.values()), ("correct", "not correct"), _pens()
    gap = 0.06 * total
    begun = dict.fromkeys((*lefts, *rights), 0.0)
    for names, column in ((lefts, 0), (rights, 1)):
        place = 0.0
        for name in names:
            size = sum(n for pair, n in flows.items() if pair[column] == name)
            begun[name] = place
            words = {"ha": "right" if column == 0 else "left", "va": "center", "fontsize": 9}
            axes.text(-0.02 if column == 0 else 1.02, place + size / 2, f"{name}: {size}", **words)
            place += size + gap
    for left in lefts:
        for right in rights:
            if not (size := flows.get((left, right), 0)):
                continue
            (a, b), codes = (
                (begun[left], begun[right]),
                [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY],
            )
            points = [
                (0, a),
                (0.5, a),
                (0.5, b),
                (1, b),
                (1, b + size),
                (0.5, b + size),
                (0.5, a + size),
                (0, a + size),
                (0, a),
            ]
            fill = pens[left].fill if right == "correct" else {**pens[left].fill, "alpha": 0.45}
            axes.add_patch(PathPatch(Path(points, codes), **fill))
            begun[left], begun[right] = a + size, b + size
    axes.set(xlim=(-0.45, 1.4), ylim=(total + gap * len(lefts), -gap))
    axes.set_axis_off()


# What the roles of a run of questions cost, in six panels.

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


TEN_PLOTS: Mapping[str, Callable[[Sequence[QuestionReceipt], Ledger], Plot]] = {
    "success": lambda receipts, _: success_by_level(receipts),
    "all_stats": lambda receipts, _: ends_by_level(receipts),
    "steps_distribution": lambda receipts, _: steps_of_people(receipts),
    "graded_success": lambda receipts, _: graded_success(receipts),
    "graded_all_stats": lambda receipts, _: graded_ends(receipts),
    "tool_match": lambda receipts, _: tool_match(receipts),
    "tool_choice_analysis": lambda receipts, _: tool_choice_flow(receipts),
    "tool_usage_count": lambda receipts, _: tools_in_questions(receipts),
    "tool_category_success": lambda receipts, _: category_success(receipts),
    "cost_summary": lambda _, ledger: role_costs(ledger),
}


def save_ten_plots(folder: Path, kind: str = "svg") -> Iterator[tuple[Path, Plot]]:
    """Draw the plots of the run in a folder into its folder `plots`, a JSON summary beside each; raises
    BadInput where there is no run.
    """
    receipts = list(read_receipts(folder / RECEIPTS).values())
    if not receipts:
        raise BadInput(
            f"there are no receipts of questions in {folder}: name the folder of a run, as its --folder was"
        )
    ledger, place = ledger_of(traces_of(folder)), folder / "plots"
    for name, draw in TEN_PLOTS.items():
        drawn = draw(receipts, ledger)
        told = {"plot": name, "told": drawn.alt, "numbers": list(drawn.numbers)}
        write_whole(
            place / f"{name}.json",
            json.dumps(told, indent=1, ensure_ascii=False) + "\n",
            "the numbers of the plot",
        )
        yield drawn.save(place / f"{name}.{kind}"), drawn
