"""What a run of questions has taken in all its sittings, as far as its folder tells, and what the rest of it
will take.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kgot_lab.benchmark.questions.batch import QuestionRun, trace_files
from kgot_lab.errors import TraceError
from kgot_lab.evaluation.grading import grading_prompt
from kgot_lab.io.files import write_whole
from kgot_lab.llm.budget import CostEstimate, Rate, Spending, estimate, requested_price, tokens_of
from kgot_lab.loop.forecast import forecast
from kgot_lab.types import LLM, Usage

UNTRACED = "untraced.json"
_TURNS = 2  # that a question is reckoned to take; most decide earlier than their limits
# tokens read and written: five passages, or the question alone
_PLAIN = {"rag": (1000, 40), "zero-shot": (150, 40)}
_GRADED = (tokens_of(grading_prompt("", "", "")) + 60, 5)


def rest_of(run: QuestionRun) -> dict[str, CostEstimate]:
    """What the questions that are not answered will take, and their grades where a model gives them; by what
    is done, as text.
    """
    there, missing = run.receipts, run.missing()
    open_ = [question for question in missing if question.id not in there or there[question.id].error]
    expected = {}
    if open_ and run.system == "loop":
        one = forecast(run.equipment.limits, steps=_TURNS, rate=_rate_of(run.equipment.planning))
        expected[f"{len(open_)} questions of {_TURNS} turns"] = _times(len(open_), one)
    elif open_:
        expected[f"{len(open_)} questions"] = estimate(
            {run.system: len(open_)}, _PLAIN, _rate_of(run.equipment.planning)
        )
    if missing and run.grader is not None:
        expected[f"{len(missing)} grades"] = estimate(
            {"grade": len(missing)}, {"grade": _GRADED}, _rate_of(run.grader)
        )
    return expected


def spent_before(folder: Path) -> tuple[int, Usage]:
    """How many calls earlier sittings made and what they cost: what the traces hold, and what was noted
    beside them.
    """
    traced, (calls, more) = _traced(folder), _untraced(folder)
    return len(traced) + calls, Usage.total([*traced, more])


def note_untraced(folder: Path, spending: Spending) -> None:
    """Keep what was spent and no trace holds: calls that failed, and requests without an answer, which count
    in the next sitting too.

    A kill leaves no time for it.
    """
    traced, spent = _traced(folder), spending.spent
    known = Usage.total(traced)
    beside = {
        "calls": max(0, spending.calls - len(traced)),
        "prompt_tokens": max(0, spent.prompt_tokens - known.prompt_tokens),
        "completion_tokens": max(0, spent.completion_tokens - known.completion_tokens),
        "cost": max(
            0.0, round(spent.cost - known.cost, 9)
        ),  # sums in another order differ in their last digits
    }
    write_whole(folder / UNTRACED, json.dumps(beside) + "\n", "what no trace holds")


def _untraced(folder: Path) -> tuple[int, Usage]:
    try:
        noted = json.loads((folder / UNTRACED).read_text(encoding="utf-8"))
        return int(noted.pop("calls")), Usage(**noted)
    except FileNotFoundError:
        return 0, Usage()
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        lost = "delete it, and what failed calls of earlier sittings took is not counted"
        raise TraceError(
            f"{folder / UNTRACED} does not hold what no trace holds ({type(error).__name__}): {lost}"
        ) from error


def _traced(folder: Path) -> list[Usage]:
    """What each call cost that the traces hold; a walk that a kill left beside its trace counts where it
    holds more.
    """
    pairs = ((_asked_in(path), _asked_in(path.with_suffix(".again"))) for path in trace_files(folder))
    return [usage for pair in pairs for usage in max(pair, key=len)]


def _asked_in(path: Path) -> Sequence[Usage]:
    # the other events, often long, need not be read
    lines = path.read_bytes().splitlines() if path.exists() else []
    asked = (line for line in lines if line.startswith(b'{"event":"Asked"') and line.endswith(b"}"))
    return [Usage(**json.loads(line)["usage"]) for line in asked]


def _rate_of(llm: LLM) -> Rate:
    return Rate(price=requested_price(llm))


def _times(count: int, one: CostEstimate) -> CostEstimate:
    return replace(
        one, calls=count * one.calls, prompt_tokens=count * one.prompt_tokens, completion_tokens=count * one.completion_tokens,
        seconds=count * one.seconds, dollars=None if one.dollars is None else count * one.dollars,
    )  # fmt: skip
