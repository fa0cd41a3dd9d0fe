"""Run the comparison with the systems in turn, so that after any stop they can be compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from kgot_lab.benchmark.comparison.plan import Design, write_comparison_plan
from kgot_lab.benchmark.comparison.systems import PassageSearches, single_call_walk
from kgot_lab.benchmark.questions.attempt import Equipment, read_events
from kgot_lab.benchmark.questions.batch import RESULTS_FILE, TRACES, QuestionRun, trace_name
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.benchmark.questions.question_result import QuestionResult, read_results
from kgot_lab.errors import LLMError, require_known
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.events import Asked, Event
from kgot_lab.types import LLM, Prompt, Reply

# Reuse of replies that other systems got to the same prompt.


def load_replies(folders: Iterable[Path], set: str, question: str) -> dict[str, Reply]:
    """Collect the replies in all systems' traces of a question from several folders by the digest of their prompt.

    The seed is part of the digest. If several replies have the same digest, the first is used.
    """
    found: dict[str, Reply] = {}
    pattern = f"{set}/*/{TRACES}/{trace_name(question)}"
    for path in (path for folder in folders for path in sorted(folder.glob(pattern))):
        for event in read_events(path):
            if isinstance(event, Asked) and not event.role.is_failed and not event.role.is_inside:
                found.setdefault(prompt_digest(event.prompt, event.model), event.as_reply)
    return found


class ReusingLLM:
    """A model with a cache of `known` replies, by `prompt_digest`. `on_reuse` is called for each one used."""

    def __init__(self, llm: LLM, known: Mapping[str, Reply], on_reuse: Callable[[], object]):
        self.name, self._llm, self._known, self._on_reuse = llm.name, llm, known, on_reuse

    def __call__(self, prompt: Prompt) -> Reply:
        if (reply := self._known.get(prompt_digest(prompt, self.name))) is None:
            return self._llm(prompt)
        self._on_reuse()
        return reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)  # its hash, engine, price and account


_MAX_FAILURES = 5  # consecutive errors before a session stops, since then the server is the cause


class PendingQuestion(NamedTuple):
    """One question of a set that a system has to answer."""

    set: str
    system: str
    question: Question


@dataclass(frozen=True)
class ComparisonSlice:
    """The systems, sets and first questions of each set that a session covers. Empty fields mean all."""

    systems: Collection[str] = ()
    sets: Collection[str] = ()
    limit: int | None = None


WHOLE = ComparisonSlice()


def questions_in_turn(design: Design, chosen: ComparisonSlice = WHOLE) -> Iterator[PendingQuestion]:
    """Yield all questions to answer, in order: the first of each set by every system, then the second, and so
    on.

    Raises UnknownName for a system or set there is not.
    """
    require_known("system", design.systems, *chosen.systems)
    require_known("question set", design.samples, *chosen.sets)
    names = chosen.systems or design.systems
    systems = {name: each for name, each in design.systems.items() if name in names}
    asked = chosen.sets or design.samples
    sets = {name: sample.questions for name, sample in design.samples.items() if name in asked}
    most = max(map(len, sets.values()), default=0)
    for number in range(most if chosen.limit is None else min(most, chosen.limit)):
        answering = [name for name, system in systems.items() if system.includes_question(number)]
        for set, questions in sets.items():
            if number < len(questions):
                yield from (PendingQuestion(set, system, questions[number]) for system in answering)


def system_folder(folder: Path, set: str, system: str) -> Path:
    """Return the folder of a system's answers to a set."""
    return folder / set / system


def load_system_results(folder: Path, set: str, system: str) -> dict[str, QuestionResult]:
    """Read a system's results on a set, by question id."""
    return read_results(system_folder(folder, set, system) / RESULTS_FILE)


def missing_answers(design: Design, folder: Path, chosen: ComparisonSlice = WHOLE) -> list[PendingQuestion]:
    """Return the questions without an answer or with an error, in the order in which they are asked."""
    stored: dict[tuple[str, str], dict[str, QuestionResult]] = {}
    pending = []
    for due in questions_in_turn(design, chosen):
        key = due.set, due.system
        if key not in stored:
            stored[key] = load_system_results(folder, *key)
        result = stored[key].get(due.question.id)
        if result is None or result.error:
            pending.append(due)
    return pending


@dataclass(frozen=True)
class ComparisonRun:
    """A design, the folder of its answers, and the model that gives them.

    With folders to `reuse`, a reply in a trace there or here to the same prompt is used instead of a new
    call. The seconds of such an answer are those of the original replies.
    """

    design: Design
    folder: Path
    llm: LLM
    unsafe: bool = False
    reuse: Sequence[Path] = ()
    clock: Callable[[], float] = field(default=time.monotonic)
    _reused: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    def answer_missing(
        self,
        chosen: ComparisonSlice = WHOLE,
        minutes: float | None = None,
        on_event: Callable[[PendingQuestion, Event], None] = lambda *_: None,
    ) -> Iterator[tuple[PendingQuestion, QuestionResult]]:
        """Answer what is missing and yield each result as it is written.

        No question is started after `minutes` have passed. The plan is written first. Raises BadInput if the
        folder has another plan, and LLMError if five answers in a row end in an error or the key is refused.
        Everything started is on file and can be resumed.
        """
        self.keep_plan()
        pending = missing_answers(self.design, self.folder, chosen)
        started, in_a_row = self.clock(), 0
        for due in pending:
            if minutes is not None and self.clock() - started >= 60 * minutes:
                return
            report = partial(lambda due, _, event: on_event(due, event), due)
            for result in self._question_run(due).answer_missing(on_event=report):
                yield due, result
                in_a_row = in_a_row + 1 if result.error else 0
                if in_a_row == _MAX_FAILURES:
                    last = f"the last one: {result.error}"
                    raise LLMError(f"{in_a_row} answers in a row ended in an error, so it stops; {last}")

    @property
    def reused(self) -> int:
        """How many replies were taken from traces so far."""
        return len(self._reused)

    def keep_plan(self) -> None:
        """Write the plan, or check that the folder holds the same one. Raises BadInput naming the
        differences.
        """
        write_comparison_plan(self.design.plan(self.llm), self.folder)

    def _question_run(self, due: PendingQuestion) -> QuestionRun:
        """Build the run of one question by one system."""
        system = self.design.systems[due.system]
        # here, so that making an index is not counted as answering
        given = self._searches[due.set].tools(system, due.question)
        place = system_folder(self.folder, due.set, due.system)
        walk, llm = single_call_walk(due.system, system), self.llm
        if self.reuse:
            known = load_replies((self.folder, *self.reuse), due.set, due.question.id)
            llm = ReusingLLM(llm, known, partial(self._reused.append, 1))
        store = system.store or "in_memory"
        equipment = Equipment(llm, system.limits, lambda _: given, store=store, unsafe=self.unsafe, walk=walk)
        equipment = replace(equipment, clocked=not self.reuse)
        asked = self.design.samples[due.set].only([due.question.id])
        return QuestionRun(place, asked, due.system if walk else "loop", equipment)

    @cached_property
    def _searches(self) -> dict[str, PassageSearches]:
        return {name: PassageSearches(sample) for name, sample in self.design.samples.items()}
