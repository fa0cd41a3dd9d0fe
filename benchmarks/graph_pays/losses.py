"""Where wrong answers were lost: not found, not shown, refused, not chosen, misread, or compared wrongly.

The stages are computed from traces, which are large and not stored. The stages are stored, in
FOLDER/lost.json.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kgot_lab.benchmark.comparison.comparison_run import system_folder
from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.questions.batch import TRACES, readable_events, trace_name
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.benchmark.questions.sets import BUNDLED_SETS
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.grading import contains_answer, exact_match
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.events import Answered, Asked, Event, Parsed, ToolReturned
from kgot_lab.loop.modes.paths.question_form import classify_question
from kgot_lab.loop.render import join_lines

RIGHT, NEARLY, NOT_FOUND, MISREAD = "right", "nearly right", "passages not all found", "misread"
NEARLY_RIGHT_F1 = 0.5  # the least F1 of an answer that is nearly right
FAILED = "an error"
NOT_SHOWN = "not shown"
REFUSED_RIGHT = "refused"
NOT_CHOSEN = "not chosen"
COMPARED = "compared wrongly"
LOSSES: Mapping[str, str] = {  # the stages, and what each means
    RIGHT: "the right answer, or an alias of it",
    NEARLY: "half of the words or more (F1 of .5)",
    FAILED: "no answer, but an error",
    NOT_FOUND: "a passage that is needed was never returned by a search",
    NOT_SHOWN: "all passages were found, but the answer stands in nothing that the model was shown",
    REFUSED_RIGHT: "the model gave the right answer, and the check of answers refused it",
    NOT_CHOSEN: "the model gave the right answer, and another was taken",
    MISREAD: "the answer stood in what the model was shown, and it read another",
    COMPARED: "two things were to be compared, for yes or no or one of them, and it came out wrong",
}
LOST_FILE = "lost.json"
_KIND = "where answers were lost"
LossesBySet = Mapping[str, Mapping[str, Mapping[str, str]]]  # by set, system, and id of the question


def stage_before_reading(question: Question, events: Sequence[Event], f1: float, em: float) -> str:
    """Return whether an answer is right, nearly right, or lost because not all its passages were found.

    Returns "" for an answer lost at a later stage.
    """
    if em:
        return RIGHT
    if f1 >= NEARLY_RIGHT_F1:
        return NEARLY
    found = {document.id for event in events if isinstance(event, ToolReturned) for document in event.sources}
    return "" if set(question.gold) <= found else NOT_FOUND


def find_loss(question: Question, events: Sequence[Event], result: QuestionResult) -> str:
    """Return the first of LOSSES at which an answer was lost, from the events of its run.

    The examples of a prompt do not count as shown.
    """
    if result.error:
        return FAILED
    if stage := stage_before_reading(question, events, result.f1, result.em):
        return stage
    golds = (question.answer, *question.aliases)
    parsed = [event for event in events if isinstance(event, Parsed)]
    right = [event for event in parsed if any(exact_match(event.text, gold) for gold in golds)]
    if right:
        return REFUSED_RIGHT if all(event.problem for event in right) else NOT_CHOSEN
    if classify_question(question.text) != "open" or question.answer.lower() in {"yes", "no"}:
        return COMPARED
    shown = _shown_text(question, events)
    return MISREAD if any(contains_answer(shown, gold) for gold in golds) else NOT_SHOWN


def _shown_text(question: Question, events: Sequence[Event]) -> str:
    """Return the last message of every prompt, without the question, whose words are not evidence."""
    prompts = (event.prompt.messages[-1].text for event in events if isinstance(event, Asked))
    return join_lines(prompt.replace(question.text, " ") for prompt in prompts)


def collect_losses(folder: Path, findings: ComparisonResults) -> LossesBySet:
    """Return the stored loss stages, updated by those computed from the traces that exist.

    Raises BadInput if the file holds something else.
    """
    stages: dict[str, dict[str, dict[str, str]]] = {}
    for set, systems in load_losses(folder, findings.plan).items():
        for system, ids in systems.items():
            answers = findings.results_on(system, set)
            stages.setdefault(set, {})[system] = {
                id: stage
                for id, stage in ids.items()
                if (set, id) not in answers or _is_consistent(stage, answers[set, id])
            }
    for set in findings.plan["sets"]:
        for system in findings.answers:
            if worked_out := _losses_in_traces(folder, findings, set, system):
                stages.setdefault(set, {}).setdefault(system, {}).update(worked_out)
    return stages


def load_losses(folder: Path, plan: Mapping[str, Any]) -> LossesBySet:
    """Read the loss stages in FOLDER/lost.json, empty if the file does not exist.

    Raises BadInput if the file holds something else.
    """
    path = folder / LOST_FILE
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["kind"] != _KIND:
            raise ValueError(f"its kind is {content['kind']!r}")
        for set, systems in content["stages"].items():
            for system, ids in systems.items():
                if set not in plan["sets"] or system not in plan["systems"]:
                    raise ValueError(f"{system} on {set} is not in the plan")
                if strange := [stage for stage in ids.values() if stage not in LOSSES]:
                    raise ValueError(f"there is no stage {strange[0]!r}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        named = isinstance(error, KeyError | TypeError | AttributeError)
        why = f"{type(error).__name__}: {error}" if named else error
        wrong = f"does not say where answers of this comparison were lost ({why})"
        raise BadInput(f"{path} {wrong}: restore a copy, or put it away") from None
    return dict(content["stages"])


def save_losses(folder: Path, stages: LossesBySet) -> Path:
    """Write the stages into FOLDER/lost.json, in the order of the names."""
    content = json.dumps({"kind": _KIND, "stages": stages}, indent=1, sort_keys=True) + "\n"
    return write_atomically(folder / LOST_FILE, content, "where answers were lost")


def losses_grid(findings: ComparisonResults, stages: LossesBySet) -> Grid:
    """Tabulate how many answers were lost at each stage, by system and set.

    The last column shows for how many of the answers the stage is known.
    """
    rows = []
    for set, system, counts in count_losses(findings, stages):
        given = len(findings.results_on(system, set))
        cells = (f"{system} on {set}", *(str(counts[stage] or "") for stage in LOSSES))
        rows.append(tuple(map(Cell, (*cells, f"{counts.total()} of {given}"))))
    return Grid("Where answers were lost", ("answers", *LOSSES, "known"), tuple(rows))


def count_losses(findings: ComparisonResults, stages: LossesBySet) -> Iterator[tuple[str, str, Counter[str]]]:
    """Yield the number of answers per stage, for each system on each set and on all sets.

    Systems without any are skipped.
    """
    for set in findings.sets:
        for system in findings.answers:
            answers = findings.results_on(system, set)
            known = (stages.get(name, {}).get(system, {}).get(id) for name, id in answers)
            if counts := Counter(filter(None, known)):
                yield set, system, counts


def _losses_in_traces(folder: Path, findings: ComparisonResults, set: str, system: str) -> dict[str, str]:
    """Compute the loss stages of a system's answers to a set, by question id, from complete traces."""
    traces, found = system_folder(folder, set, system) / TRACES, {}
    if not traces.is_dir() or set not in BUNDLED_SETS:
        return {}
    questions = _questions_by_id(set)
    for (_, id), result in findings.results_on(system, set).items():
        events = readable_events(traces / trace_name(id))
        if id in questions and (result.error or any(isinstance(event, Answered) for event in events)):
            found[id] = find_loss(questions[id], events, result)
    return found


def _is_consistent(stage: str, result: QuestionResult) -> bool:
    """Return whether a stored stage is consistent with an answer, which may have been repeated since."""
    expected = RIGHT if result.em else NEARLY if result.f1 >= NEARLY_RIGHT_F1 else ""
    expected = FAILED if result.error else expected
    return stage == expected or not (expected or stage in (FAILED, RIGHT, NEARLY))


@cache
def _questions_by_id(set: str) -> Mapping[str, Question]:
    return {question.id: question for question in BUNDLED_SETS[set]().questions}
