"""The questions answered by all systems, in turn, so that wherever it stops all systems have answered the
same first questions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from kgot_lab.benchmark.comparison.comparison_run import ReusingLLM, replies_on_file
from kgot_lab.benchmark.comparison.plan import Design, check_sets, keep_comparison
from kgot_lab.benchmark.comparison.systems import PassageSearches, check_systems, short_walk
from kgot_lab.benchmark.questions.attempt import Equipment, is_damaged
from kgot_lab.benchmark.questions.batch import RECEIPTS, TRACES, QuestionRun, trace_name
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.benchmark.questions.question_result import QuestionReceipt, read_receipts
from kgot_lab.errors import LLMError
from kgot_lab.loop.events import Event
from kgot_lab.types import LLM

_IN_A_ROW = 5  # answers that end in an error before a sitting stops: then it is the model's server and not the question


class Due(NamedTuple):
    """One question of a set that a system has to answer."""

    set: str
    system: str
    question: Question


@dataclass(frozen=True)
class Slice:
    """Which of the questions a sitting is about: of some systems and sets, the first so many of each set; all
    where nothing is named.
    """

    systems: Collection[str] = ()
    sets: Collection[str] = ()
    limit: int | None = None


WHOLE = Slice()


def turns(design: Design, chosen: Slice = WHOLE) -> Iterator[Due]:
    """All that is to be answered, in order: the first question of each set by every system, then the second,
    and so on.

    Systems that this version does not have are left out. Raises UnknownName, and BadInput where such a one is
    named.
    """
    check_systems(chosen.systems, design.systems)
    check_sets(list(chosen.sets), design.samples)
    systems = {
        name: system
        for name, system in design.systems.items()
        if system.exists_whole and name in (chosen.systems or design.systems)
    }
    sets = {
        name: sample.questions
        for name, sample in design.samples.items()
        if name in (chosen.sets or design.samples)
    }
    most = max(map(len, sets.values()), default=0)
    for number in range(most if chosen.limit is None else min(most, chosen.limit)):
        for name, questions in sets.items():
            if number < len(questions):
                yield from (
                    Due(name, each, questions[number])
                    for each, system in systems.items()
                    if system.asks(number)
                )


def place_of(folder: Path, set: str, system: str) -> Path:
    """The folder of a system's answers to a set."""
    return folder / set / system


def receipts_of(folder: Path, set: str, system: str) -> dict[str, QuestionReceipt]:
    """A system's receipts on a set, by the ids of the questions."""
    return read_receipts(place_of(folder, set, system) / RECEIPTS)


def missing(design: Design, folder: Path, chosen: Slice = WHOLE) -> list[Due]:
    """What is not answered yet, or ended in an error, in the order in which it is asked."""
    there: dict[tuple[str, str], dict[str, QuestionReceipt]] = {}
    left = []
    for due in turns(design, chosen):
        key = due.set, due.system
        if key not in there:
            there[key] = receipts_of(folder, *key)
        receipt = there[key].get(due.question.id)
        if receipt is None or receipt.error:
            left.append(due)
    return left


@dataclass(frozen=True)
class ComparisonRun:
    """A design, the folder in which its answers are kept, and the model that gives them.

    With folders to `reuse`, a reply in a trace there or here to the very same prompt is taken instead of
    asking again; such an answer's seconds are those that its replies took when they were given.
    """

    design: Design
    folder: Path
    llm: LLM
    unsafe: bool = False
    reuse: Sequence[Path] = ()
    clock: Callable[[], float] = field(default=time.monotonic)
    _reused: list[int] = field(default_factory=lambda: [0], init=False, repr=False, compare=False)

    def answers(
        self,
        chosen: Slice = WHOLE,
        minutes: float | None = None,
        told: Callable[[Due, Event], None] = lambda *_: None,
    ) -> Iterator[tuple[Due, QuestionReceipt]]:
        """Answer what is missing, each receipt as it is written; no question is begun once the minutes are
        over.

        The plan is written first. Raises BadInput for another plan, and LLMError where five answers in a row
        end in an error, or the key is refused; what was begun is on file, and goes on from there.
        """
        self.keep_plan()
        left = missing(self.design, self.folder, chosen)
        began, in_a_row = self.clock(), 0
        for due in left:
            if minutes is not None and self.clock() - began >= 60 * minutes:
                return
            for receipt in self._run(due).answers(told=partial(_told, told, due)):
                yield due, receipt
                in_a_row = in_a_row + 1 if receipt.error else 0
                if in_a_row == _IN_A_ROW:
                    raise LLMError(
                        f"{in_a_row} answers in a row ended in an error, so it stops; the last one: {receipt.error}"
                    )

    @property
    def reused(self) -> int:
        """How many replies were taken from traces so far."""
        return self._reused[0]

    def is_damaged(self, due: Due) -> bool:
        """Whether the trace of an answer cannot be read."""
        return is_damaged(place_of(self.folder, due.set, due.system) / TRACES / trace_name(due.question.id))

    def keep_plan(self) -> None:
        """Write the plan, or see that the one in the folder is the same; raises BadInput: what differs."""
        keep_comparison(self.design.plan(self.llm), self.folder)

    def _run(self, due: Due) -> QuestionRun:
        """The run of one question by one system."""
        system = self.design.systems[due.system]
        # here, so that making an index is not counted as answering
        given = self._searches[due.set].tools(system, due.question)
        place = place_of(self.folder, due.set, due.system)
        walk, llm = short_walk(due.system, system), self.llm
        if self.reuse:
            llm = ReusingLLM(
                llm, replies_on_file((self.folder, *self.reuse), due.set, due.question.id), self._count
            )
        equipment = Equipment(
            llm,
            system.limits,
            lambda _: given,
            store=system.store or "in_memory",
            unsafe=self.unsafe,
            walk=walk,
        )
        equipment = replace(equipment, clocked=not self.reuse)
        asked = self.design.samples[due.set].only([due.question.id])
        return QuestionRun(place, asked, due.system if walk else "loop", equipment)

    def _count(self) -> None:
        self._reused[0] += 1

    @cached_property
    def _searches(self) -> dict[str, PassageSearches]:
        return {name: PassageSearches(sample) for name, sample in self.design.samples.items()}


def _told(told: Callable[[Due, Event], None], due: Due, _: Question, event: Event) -> None:
    told(due, event)
