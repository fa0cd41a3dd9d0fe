"""The ten plots of a run of questions, those that Besta et al. 2025 draw, each as a picture and as its
numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kgot_lab.benchmark.questions.batch import RECEIPTS, traces_of
from kgot_lab.benchmark.questions.question_result import QuestionReceipt, read_receipts
from kgot_lab.benchmark.questions.report import ledger_of
from kgot_lab.errors import BadInput
from kgot_lab.io.files import write_whole
from kgot_lab.loop.ledger import Ledger
from kgot_lab.viz.plots.figure import Plot
from kgot_lab.viz.plots.questions import (
    category_success,
    ends_by_level,
    graded_ends,
    graded_success,
    role_costs,
    steps_of_people,
    success_by_level,
    tool_choice_flow,
    tool_match,
    tools_in_questions,
)

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
