"""Answering the cases and certifying the answers: each on file when it is done, so that it goes on after a
stop.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from benchmarks.certificates.cases import CertificateCase, TriedSet, digest_of_cases
from kgot_lab.benchmark.questions.attempt import Equipment, read_events
from kgot_lab.benchmark.questions.batch import TRACES, QuestionRun, trace_name
from kgot_lab.benchmark.questions.plan import format_differences, plan_differences
from kgot_lab.benchmark.questions.question import QuestionSet
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.errors import BadInput, LLMError
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.certificate import certificate_of_run
from kgot_lab.loop.limits import PATHS, Limits
from kgot_lab.loop.trace import model_metadata
from kgot_lab.memory.claims.certificate import Certificate
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.words import name_tokens
from kgot_lab.tools.search import default_retriever, search
from kgot_lab.tools.tool import Tool
from kgot_lab.types import LLM, Document, Json, Ranking

CERTIFICATES, TRIAL_PLAN = "certificates.json", "plan.json"
# each question has a graph of its own: facts for the next one serve nothing
TRIAL_LIMITS = PATHS.but(typed_facts=False)
_KIND = "does a certificate say so"
# answers that end in an error before it stops: then it is the model's server and not the question
_IN_A_ROW = 5


@dataclass(frozen=True)
class CertifiedCase:
    """A case that was answered: whether right, how likely the model held it, and what its certificate says.

    `facts` are subject, relation, object ("" for open) and state of each; `named`: whether a weak one is the
    fact that the change is about.
    """

    set: str
    change: str
    id: str
    predicted: str
    em: float
    f1: float
    likelihood: float | None
    ruling: str
    facts: tuple[tuple[str, str, str, str], ...]
    named: bool | None = None  # None of a case without a change
    group: str = ""
    made: str = ""  # the text of the passage that was made

    @property
    def states(self) -> frozenset[str]:
        """The states of its facts; an answer that needs no fact has a missing one."""
        return frozenset(state for *_, state in self.facts) or frozenset(["missing"])


@dataclass(frozen=True)
class CertificateTrial:
    """The cases over their sets, the folder that keeps their answers, and the model that gives them, in the
    mode `paths`.

    One index serves all cases of a set: a hidden passage, and passages made for other cases, are left out of
    what it finds.
    """

    sets: Mapping[str, TriedSet]
    cases: Sequence[CertificateCase]
    folder: Path
    llm: LLM
    limits: Limits = TRIAL_LIMITS
    retriever: Callable[[Sequence[Document]], Stage] = default_retriever
    clock: Callable[[], float] = field(default=time.monotonic)

    def missing(self) -> list[CertificateCase]:
        """The cases without a certificate on file, in the order in which they are asked."""
        there = {f"{row.set}/{row.change}/{row.id}" for row in certified_cases(self.folder)}
        return [case for case in self.cases if case.key not in there]

    def answers(self, minutes: float | None = None) -> Iterator[CertifiedCase]:
        """Answer and certify what is missing, each as it is on file; no case is begun once the minutes are
        over.

        Raises BadInput for another plan in the folder, or a trace that is gone, LLMError where five answers
        in a row end in an error.
        """
        self.keep_plan()
        rows = list(certified_cases(self.folder))
        began, in_a_row = self.clock(), 0
        for case in self.missing():
            if minutes is not None and self.clock() - began >= 60 * minutes:
                return
            receipt, place = self._answered(case)
            in_a_row = in_a_row + 1 if receipt.error else 0
            if in_a_row == _IN_A_ROW:
                raise LLMError(
                    f"{in_a_row} answers in a row ended in an error, so it stops; the last one: {receipt.error}"
                )
            if not receipt.error:
                certificate = certificate_of_run(read_events(place / TRACES / trace_name(case.question.id)))
                rows.append(certified_case(case, receipt, certificate))
                _keep(rows, self.folder)
                yield rows[-1]

    def keep_plan(self) -> None:
        """Write the plan, or see that the one in the folder is the same; raises BadInput: what differs."""
        path = self.folder / TRIAL_PLAN
        told = {
            "plan": 1, "kind": _KIND, "cases": len(self.cases), "cases_sha256": digest_of_cases(self.cases),
            "sets": {name: tried.questions.sha256 for name, tried in self.sets.items()},
            "model": {"name": self.llm.name, **model_metadata(self.llm)}, "limits": self.limits.as_json(), "found": 16,
            "retriever": getattr(self.retriever, "__name__", "another"),
        }  # fmt: skip
        plan = json.loads(json.dumps(told))
        if not path.exists():
            write_atomically(path, json.dumps(plan, indent=1, ensure_ascii=False) + "\n", "the plan")
            left_out = f"{TRACES}/\n.lock*\n"  # receipts are for keeping, traces are large
            write_atomically(self.folder / ".gitignore", left_out, "what git ignores")
        elif differences := plan_differences(trial_plan(self.folder), plan):
            raise BadInput(
                f"{self.folder} holds answers to another plan: {format_differences(differences)}. Name another folder with --folder DIR"
            )

    def _answered(self, case: CertificateCase) -> tuple[QuestionResult, Path]:
        """The receipt of a case, asked for unless it is on file without an error, and the folder that holds
        it and its trace.
        """
        place = self.folder / case.set / case.change
        tools = [self._tool(case)]
        run = QuestionRun(
            place,
            QuestionSet([], [case.question], case.set),
            "loop",
            Equipment(self.llm, self.limits, lambda _: tools),
        )
        if case.question.id in run.results and not (place / TRACES / trace_name(case.question.id)).exists():
            raise BadInput(
                f"{place} has an answer to {case.question.id} without its trace, and a certificate needs that: name another folder"
            )
        for receipt in run.answer_missing():
            return receipt, place
        return run.results[case.question.id], place

    def _tool(self, case: CertificateCase) -> Tool:
        documents, stage = self._searches[case.set]
        others = {
            other.made.id for other in self.cases if other.made and other.set == case.set and other != case
        }
        hidden = {case.hidden} | others
        return search(
            [document for document in documents if document.id not in hidden],
            hiding(stage, hidden),
            k=min(16, len(documents)),
        )

    @cached_property
    def _searches(self) -> dict[str, tuple[list[Document], Stage]]:
        """The passages of each set with all that are made for it, and the one index over them."""
        found = {}
        for name, tried in self.sets.items():
            made = [case.made for case in self.cases if case.made and case.set == name]
            documents = [*tried.questions.documents, *made]
            found[name] = documents, self.retriever(documents)
        return found


def hiding(stage: Stage, ids: Collection[str]) -> Stage:
    """A retriever that does not find some documents, as if they were not there."""

    def step(ranking: Ranking) -> Ranking:
        found = stage(ranking)
        return replace(found, hits=tuple(hit for hit in found.hits if hit.id not in ids))

    return Stage(f"{stage.name} without some", step)


def certified_case(case: CertificateCase, receipt: QuestionResult, certificate: Certificate) -> CertifiedCase:
    """What is kept of an answered case."""
    facts = tuple((*fact.needed_parts, fact.state) for fact in certificate.facts)
    named: bool | None = None
    if case.about is not None:
        weak = [
            set(name_tokens(" ".join(parts)))
            for *parts, state in facts
            if state in ("missing", "contested", "out of date")
        ]
        ends = [set(name_tokens(end)) for end in (case.about.subject, case.about.object)]
        named = any(end <= words for words in weak for end in ends)
    return CertifiedCase(
        case.set, case.change, case.question.id, receipt.predicted, receipt.em, receipt.f1, receipt.likelihood, certificate.ruling,
        facts, named, case.question.group, case.made.text if case.made else "",
    )  # fmt: skip


def trial_plan(folder: Path) -> dict[str, Json]:
    """The plan of a folder as plain values; raises BadInput where there is none."""
    try:
        plan = json.loads((folder / TRIAL_PLAN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"there is no plan of certificates in {folder}: {error}") from None
    if not isinstance(plan, dict) or plan.get("kind") != _KIND:
        raise BadInput(
            f"{folder / TRIAL_PLAN} is not the plan of certificates: name another folder with --folder DIR"
        )
    return plan


def certified_cases(folder: Path) -> list[CertifiedCase]:
    """The cases on file, none where there is no file; raises BadInput for one that holds something else."""
    path = folder / CERTIFICATES
    if not path.exists():
        return []
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return [CertifiedCase(**{**row, "facts": tuple(map(tuple, row["facts"]))}) for row in told]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{path} does not hold certificates of cases ({error}): restore a copy, or put it away"
        ) from None


def _keep(rows: Sequence[CertifiedCase], folder: Path) -> None:
    lines = ",\n".join(json.dumps(vars(row), ensure_ascii=False) for row in rows)
    write_atomically(folder / CERTIFICATES, f"[\n{lines}\n]\n", "the certificates")
