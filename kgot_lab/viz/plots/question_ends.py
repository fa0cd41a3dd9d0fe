"""What became of the questions of a run: by level, by the steps a person took, and by the grades a model
gave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from kgot_lab.benchmark.questions.question_result import QuestionReceipt, by_level
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
from kgot_lab.types import Json
from kgot_lab.viz.plots.figure import (
    Pen,
    Plot,
    counted_bars,
    legend_below,
    nothing,
    plot,
    plot_drawing,
    short_label,
    stacked,
    whole_numbers,
)

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
