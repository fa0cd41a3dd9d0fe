"""From what a reader asks for to a run of questions: the plan is written or checked, the budget begun where
earlier sittings left it.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path

from kgot_lab import __version__
from kgot_lab.benchmark.questions.attempt import Equipment, check_question_system
from kgot_lab.benchmark.questions.batch import TOOL_TIMES, QuestionRun
from kgot_lab.benchmark.questions.kit import Kit, ModelsBehind, More, nothing_more
from kgot_lab.benchmark.questions.plan import QuestionPlan, hash_of_ids
from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.benchmark.questions.report import spent_before
from kgot_lab.benchmark.questions.sets import Selection
from kgot_lab.errors import BadInput, without_secrets
from kgot_lab.io.files import write_whole
from kgot_lab.llm.budget import Budget, Budgeted, Spending, requested_price
from kgot_lab.loop.limits import Limits
from kgot_lab.stores import empty_store
from kgot_lab.types import LLM, Document

_UNLIMITED = Budget()
_IGNORED = (
    "*\n"  # traces hold the questions: they do not belong in a repository, and some sets may not be passed on
)


@dataclass(frozen=True)
class Answerers:
    """Which system answers, with which models and limits, on which store, over which further documents and
    with which further tools.

    `planning` is None as long as it is only checked whether a run can be. `web`, `mirror` and `engine` tell
    the plan where `tools` look.
    """

    system: str
    planning: LLM | None
    limits: Limits
    execution: LLM | None = None
    grader: LLM | None = None
    vision: LLM | None = None  # a model that takes images, for tools
    store: str = "in_memory"
    unsafe: bool = False
    documents: Sequence[Document] = ()
    tools: More = nothing_more  # of a question and the models behind them, which are kept to the budget; only the loop has them
    web: bool = False
    mirror: str = ""
    engine: str = ""


@dataclass(frozen=True)
class ReadyRun:
    """A run that can begin, or go on, and what its models spend together."""

    run: QuestionRun
    spending: Spending


def check_run(
    whole: QuestionSet, selection: Selection, by: Answerers, folder: Path, *, graded: bool = False
) -> None:
    """See, before a model is connected, that a run can be: its system, questions and store, and the plan in
    its folder.

    Raises BadInput, UnknownName, and what opening the store raises.
    """
    check_question_system(by.system)
    chosen = selection.of(whole)
    if graded and whole.scored_by == "gaia":
        raise BadInput(f"{whole.name} is scored by its own rules: leave the grader out")
    bare = [question.id for question in chosen.questions if not question.documents]
    if by.system == "rag" and not (whole.documents or by.documents) and bare:
        which = whole.name if len(bare) == len(chosen.questions) else f"question {bare[0]!r} of {whole.name}"
        also = f" (nor have {len(bare) - 1} others)" if 1 < len(bare) < len(chosen.questions) else ""
        raise BadInput(
            f"RAG needs documents to find passages in, and {which} has none{also}: name a folder with --documents DIR"
        )
    if by.system == "loop" and by.limits.reading == "paths" and by.tools is nothing_more:
        _check_paths(chosen, [*whole.documents, *by.documents])
    _plan(whole, chosen, selection, by).check(folder, but=("model", "execution", "vision", "tools"))
    if by.system == "loop":
        empty_store(by.store, unsafe=by.unsafe).close()


def _check_paths(chosen: QuestionSet, shared: Sequence[Document]) -> None:
    """Raise BadInput where the mode paths could read nothing for any question; where it can for some, the
    others end in an error.
    """
    if all(question.attachments for question in chosen.questions):
        raise BadInput(
            "the mode paths reads documents, not attached files, and every question has one: take another preset"
        )
    if not shared and not any(question.documents for question in chosen.questions):
        raise BadInput(
            "the mode paths needs documents, and no question has any: name a folder with --documents DIR, or use --web"
        )


def prepared(
    whole: QuestionSet, selection: Selection, by: Answerers, folder: Path, budget: Budget = _UNLIMITED
) -> ReadyRun:
    """The run of the selected questions in a folder of its own, where the plan is written once nothing stands
    in its way.

    Raises BadInput for a folder with another plan, for questions that the system cannot answer and for a
    model without a price where dollars are limited, UnknownName, and what opening the store raises.
    """
    check_run(whole, selection, by, folder, graded=by.grader is not None)
    chosen, looped = selection.of(whole), by.system == "loop"
    for llm in (by.planning, by.execution, by.grader, by.vision):
        if llm is not None and budget.dollars is not None and requested_price(llm) is None:
            named = "say it under `price:` in the file of models (--models FILE), or limit calls or tokens"
            raise BadInput(f"the price of {llm.name} is not known, so dollars cannot be limited: {named}")
    calls, spent = spent_before(folder)
    spending = Spending(budget)
    spending.charge(spent, calls=calls)
    models = (by.planning, by.execution, by.grader, by.vision)
    planning, execution, grader, vision = (llm and Budgeted(llm, spending) for llm in models)
    assert planning is not None
    documents = (*whole.documents, *by.documents)
    behind = ModelsBehind(planning, vision, spending)
    more, follow = by.tools if looped else nothing_more, looped and by.limits.reading == "paths"
    kit = Kit(documents, behind, folder / TOOL_TIMES, system=by.system, more=more, follow=follow)
    tools = kit.names(chosen.questions) if by.system != "zero-shot" else []
    begun = _plan(whole, chosen, selection, by)
    begun = replace(
        begun,
        model=planning.name,
        execution=(execution or planning).name,
        vision=vision.name if vision else "",
    )
    if not replace(begun, tools=tools).keep(folder):
        write_whole(folder / ".gitignore", _IGNORED, "what git ignores")
    equipment = Equipment(planning, by.limits, kit, execution, by.store, by.unsafe)
    return ReadyRun(QuestionRun(folder, chosen, by.system, equipment, grader), spending)


def _plan(whole: QuestionSet, chosen: QuestionSet, selection: Selection, by: Answerers) -> QuestionPlan:
    """The plan of a run as far as it is known before its models are."""
    looped = by.system == "loop"
    return QuestionPlan(
        set=whole.name, set_sha256=whole.sha256, questions=len(chosen.questions), questions_sha256=hash_of_ids(chosen),
        selection=asdict(selection), system=by.system, model="", execution="", limits=by.limits.as_json() if looped else {},
        documents_sha256=QuestionSet(list(by.documents), []).sha256, private=whole.private,
        store=without_secrets(by.store) if looped else "", scored_by=whole.scored_by, web=by.web, mirror=by.mirror, engine=by.engine,
        made={"date": str(date.today()), "version": __version__, "machine": platform.machine()},
    )  # fmt: skip
