"""Which tools a run of questions used, against those that people used for the same questions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kgot_lab.benchmark.questions.question_result import QuestionReceipt
from kgot_lab.types import Json
from kgot_lab.viz.plots.figure import (
    INK,
    Pen,
    Plot,
    bar_pen,
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
from kgot_lab.viz.plots.questions import levels_of

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
_RIGHT, _NOT = Pen("#009E73"), Pen("#D55E00", hatch="xxxx")


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
        stacked(axes, names, parts, {"correct": _RIGHT, "not correct": _NOT})
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
