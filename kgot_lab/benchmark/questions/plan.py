"""The plan of a question run, written before it starts, so that no folder mixes two kinds of answers."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path

from kgot_lab import __version__
from kgot_lab.benchmark.questions.attempt import Equipment, check_question_system
from kgot_lab.benchmark.questions.batch import TOOL_TIMES, QuestionRun
from kgot_lab.benchmark.questions.kit import IsolatedPython, QuestionTools, ToolFactory, no_tools
from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.benchmark.questions.report import earlier_spending
from kgot_lab.benchmark.questions.sets import Selection
from kgot_lab.errors import BadInput, mask_secrets
from kgot_lab.io.files import write_atomically
from kgot_lab.llm.budget import Budget, Budgeted, Spending, requested_price
from kgot_lab.loop.limits import Limits
from kgot_lab.stores import empty_store
from kgot_lab.tools.offered import ToolResources
from kgot_lab.types import LLM, Document, Json

PLAN_FILE = "plan.json"
_SHOWN_DIFFERENCES = 3  # differences of two plans in one message
# defaults of fields that plans of earlier versions lack
_LATER_FIELDS: Mapping[str, Json] = {"web": False, "mirror": "", "engine": "", "vision": ""}


def write_question_plan(plan: Mapping[str, Json], folder: Path) -> bool:
    """Write the plan of a run into a folder, or check that the folder holds the same one.

    Returns True if it was there. Raises BadInput naming the differences.
    """
    if (folder / PLAN_FILE).exists():
        check_question_plan(plan, folder)
        return True
    refuse_other_files(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_plan_file(plan, folder)
    return False


def check_question_plan(
    plan: Mapping[str, Json], folder: Path, *, except_fields: Collection[str] = ()
) -> None:
    """Check that the plan in a folder, if there is one, is the same except for the fields in `except_fields`.

    Raises BadInput naming the differences.
    """
    if not (folder / PLAN_FILE).exists():
        return
    plans = {**_LATER_FIELDS, **read_plan(folder)}, plan
    stored, now = ({k: value for k, value in each.items() if k not in except_fields} for each in plans)
    if differences := plan_differences(stored, now):
        held = f"{folder} holds answers to another plan: {format_differences(differences)}"
        raise BadInput(f"{held}. Name another folder with --folder DIR")


def write_plan_file(plan: Mapping[str, Json], folder: Path) -> None:
    """Write a plan into the file of a folder."""
    write_atomically(folder / PLAN_FILE, json.dumps(plan, indent=1, ensure_ascii=False) + "\n", "the plan")


def creation_note() -> dict[str, Json]:
    """Return when and where a plan is made, which is not compared."""
    return {"date": str(date.today()), "version": __version__, "machine": platform.machine()}


def refuse_other_files(folder: Path) -> None:
    """Raise BadInput if a folder without a plan holds anything but hidden files."""
    held = [item.name for item in folder.iterdir()] if folder.is_dir() else []
    if left := [name for name in held if not name.startswith(".")]:
        remedy = "name an empty folder with --folder DIR"
        raise BadInput(f"{folder} has no {PLAN_FILE} but holds {left[0]}: {remedy}")


def hash_ids(questions: QuestionSet) -> str:
    """Hash the ids of questions in their order."""
    return hashlib.sha256("\n".join(question.id for question in questions.questions).encode()).hexdigest()


def read_plan(
    folder: Path,
    kind: str = "a run of questions",
    is_plan: Callable[[dict[str, Json]], bool] = lambda plan: plan.get("plan") == 1,
) -> dict[str, Json]:
    """Read the plan in a folder. Raises BadInput if there is none, or one of another kind."""
    path = folder / PLAN_FILE
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise BadInput(f"there is no plan of {kind} in {folder}: {reason}") from None
    if not isinstance(plan, dict) or not is_plan(plan):
        raise BadInput(f"{path} is not the plan of {kind}: name another folder with --folder DIR")
    return plan


def plan_differences(there: Mapping[str, Json], now: Mapping[str, Json], under: str = "") -> list[str]:
    """Return the differences between two plans, by field name.

    When and where a plan was made is not compared.
    """
    found: list[str] = []
    compared = [*(n for n in now if n != "made"), *(n for n in there if n not in {"plan", "made"})]
    for name in dict.fromkeys(compared):
        was, wanted = there.get(name), now.get(name)
        if isinstance(was, dict) and isinstance(wanted, dict):
            found += plan_differences(was, wanted, f"{under}{name}.")
        elif was != wanted:
            found.append(f"{under}{name} is {_short_json(was)} there and {_short_json(wanted)} now")
    return found


def format_differences(differences: Sequence[str]) -> str:
    """Format the first few differences, and the number of the rest, for an error message."""
    more = len(differences) - _SHOWN_DIFFERENCES
    return "; ".join(differences[:_SHOWN_DIFFERENCES]) + (f"; and {more:,} more" if more > 0 else "")


def _short_json(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:14]}…"


# Prepare a run: the plan is written or checked, and the budget continues from earlier sessions.

_UNLIMITED = Budget()
# traces hold the questions: they do not belong in a repository, and some sets may not be redistributed
_IGNORED = "*\n"


@dataclass(frozen=True)
class AnswerSettings:
    """The system that answers, with its models, limits and store, and what its tools are made of.

    `planning` is None while a run is only checked. `resources` hold documents beside those of the set, web sources
    and a vision model; the loop alone has more than documents. `tools` makes further tools of a question.
    """

    system: str
    planning: LLM | None
    limits: Limits
    execution: LLM | None = None
    grader: LLM | None = None
    store: str = "in_memory"
    unsafe: bool = False
    resources: ToolResources = field(default_factory=ToolResources)
    tools: ToolFactory = no_tools

    @property
    def models(self) -> list[LLM | None]:
        """The models for planning, execution, grading and vision."""
        return [self.planning, self.execution, self.grader, self.resources.vision]


@dataclass(frozen=True)
class ReadyRun:
    """A run that can start or resume, and the shared account of its models."""

    run: QuestionRun
    spending: Spending


def check_run(
    whole: QuestionSet, selection: Selection, by: AnswerSettings, folder: Path, *, graded: bool = False
) -> None:
    """Check, before a model is connected, that a run is possible.

    Checks its system, questions and store, and the plan in its folder. Raises BadInput, UnknownName, and what
    opening the store raises.
    """
    check_question_system(by.system)
    chosen = selection.select(whole)
    if graded and whole.scored_by == "gaia":
        raise BadInput(f"{whole.name} is scored by its own rules: leave the grader out")
    bare = [question.id for question in chosen.questions if not question.documents]
    if by.system.startswith("rag") and not (whole.documents or by.resources.documents) and bare:
        which = whole.name if len(bare) == len(chosen.questions) else f"question {bare[0]!r} of {whole.name}"
        also = f" (nor have {len(bare) - 1} others)" if 1 < len(bare) < len(chosen.questions) else ""
        lacking = f"RAG needs documents to find passages in, and {which} has none{also}"
        raise BadInput(f"{lacking}: name a folder with --documents DIR")
    sources = by.resources
    is_closed = by.tools is no_tools and not (sources.web or sources.mirror)
    if by.system == "loop" and by.limits.reading == "paths" and is_closed:
        _check_paths(chosen, [*whole.documents, *sources.documents])
    unknown_yet = ("model", "execution", "vision", "tools")
    check_question_plan(_build_plan(whole, chosen, selection, by), folder, except_fields=unknown_yet)
    if by.system == "loop":
        empty_store(by.store, unsafe=by.unsafe).close()


def _check_paths(chosen: QuestionSet, shared: Sequence[Document]) -> None:
    """Raise BadInput if the mode `paths` has nothing to read for any question.

    If it has something for some questions, the others end in an error.
    """
    if all(question.attachments for question in chosen.questions):
        need = "the mode paths reads documents, not attached files, and every question has one"
        raise BadInput(f"{need}: take another preset")
    if not shared and not any(question.documents for question in chosen.questions):
        need = "the mode paths needs documents, and no question has any"
        raise BadInput(f"{need}: name a folder with --documents DIR, or use --web")


def prepare_run(
    whole: QuestionSet, selection: Selection, by: AnswerSettings, folder: Path, budget: Budget = _UNLIMITED
) -> ReadyRun:
    """Prepare the run of the selected questions in a folder of its own, and write its plan after all checks.

    Raises BadInput for a folder with another plan, for questions that the system cannot answer, and for a
    model of unknown price if dollars are limited. Raises UnknownName, and what opening the store raises.
    """
    check_run(whole, selection, by, folder, graded=by.grader is not None)
    chosen, looped = selection.select(whole), by.system == "loop"
    for llm in by.models:
        if llm is not None and budget.dollars is not None and requested_price(llm) is None:
            named = "say it under `price:` in the file of models (--models FILE), or limit calls or tokens"
            raise BadInput(f"the price of {llm.name} is not known, so dollars cannot be limited: {named}")
    calls, spent = earlier_spending(folder)
    spending = Spending(budget)
    spending.charge(spent, calls=calls)
    planning, execution, grader, vision = (llm and Budgeted(llm, spending) for llm in by.models)
    assert planning is not None
    own = by.resources if looped else ToolResources()
    documents = (*whole.documents, *by.resources.documents)
    resources = replace(
        own, documents=documents, llm=planning, vision=vision, spending=spending,
        computer=IsolatedPython(by.unsafe, by.limits.tools.python_seconds),
        passages=by.limits.search_passages if looped else 5,
    )  # fmt: skip
    kit = QuestionTools(resources, folder / TOOL_TIMES, by.tools if looped else no_tools)
    tools = kit.tool_names(chosen.questions) if by.system != "zero-shot" else []
    plan = _build_plan(whole, chosen, selection, by)
    plan |= {"model": planning.name, "execution": (execution or planning).name, "tools": tools}
    if not write_question_plan(plan | {"vision": vision.name if vision else ""}, folder):
        write_atomically(folder / ".gitignore", _IGNORED, "what git ignores")
    equipment = Equipment(planning, by.limits, kit, execution, by.store, by.unsafe)
    return ReadyRun(QuestionRun(folder, chosen, by.system, equipment, grader), spending)


def _build_plan(
    whole: QuestionSet, chosen: QuestionSet, selection: Selection, by: AnswerSettings
) -> dict[str, Json]:
    """Return the set, the selected questions, and all that an answer depends on, as far as it is known before
    the models are.

    A budget is not part of it, since it may be raised.
    """
    looped = by.system == "loop"
    plan = {
        "plan": 1, "set": whole.name, "set_sha256": whole.sha256, "questions": len(chosen.questions),
        "questions_sha256": hash_ids(chosen), "selection": asdict(selection), "system": by.system, "model": "", "execution": "",
        "limits": by.limits.as_json() if looped else {}, "tools": [],
        "documents_sha256": QuestionSet(list(by.resources.documents), []).sha256,  # of those in addition to the set's own
        "store": mask_secrets(by.store) if looped else "", "scored_by": whole.scored_by, "private": whole.private,
        "web": by.resources.web, "mirror": by.resources.mirror or "", "engine": by.resources.engine, "vision": "", "made": creation_note(),
    }  # fmt: skip
    return dict(json.loads(json.dumps(plan)))
