"""Run many questions in parallel in a folder, with a trace and a result for each, so that it can be resumed.

Questions are answered in threads: most time is spent waiting for a server or for sandboxes, which are
separate processes. One process suffices, and the document index, a local model and the budget exist once.
"""

from __future__ import annotations

import errno
import hashlib
import queue
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from kgot_lab import errors
from kgot_lab.benchmark.questions.attempt import Equipment, grading_run, is_damaged, read_events, run_question
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.question_result import (
    QuestionResult,
    add_costs,
    add_grade,
    append_result,
    read_results,
    score_answer,
    withhold_answer,
)
from kgot_lab.evaluation.grading import parse_grade
from kgot_lab.io.processes import exclusive_lock
from kgot_lab.loop.events import Answered, Asked, Event
from kgot_lab.types import LLM, Usage

# Parallel work with an orderly end: running items are finished, and no further ones started.

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Halted(Exception):
    """Work was stopped because all of it is to end: no error of its own."""


def run_in_parallel(
    work: Callable[[_Item], _Result], items: Iterable[_Item], parallel: int, halt: threading.Event
) -> Generator[_Result, None, None]:
    """Yield the result of `work` for each item as it completes, from `parallel` threads.

    If `work` raises, or the consumer stops, no further item is started, `halt` is set, and running items are
    waited for. Then the first error is raised.
    """
    todo, done = queue.SimpleQueue[_Item](), queue.SimpleQueue[_Result | BaseException | None]()
    for item in items:
        todo.put(item)

    def run() -> None:
        while not halt.is_set():
            try:
                done.put(work(todo.get_nowait()))
            except queue.Empty:
                break
            except BaseException as error:  # it is raised in the thread that takes the results
                halt.set()
                done.put(error)
        done.put(None)

    # daemons: a second Ctrl-C leaves at once
    threads = [threading.Thread(target=run, daemon=True) for _ in range(parallel)]
    for thread in threads:
        thread.start()
    problem: BaseException | None = None
    try:
        for _ in threads:  # each ends with None
            while (result := done.get()) is not None:
                if isinstance(result, BaseException):
                    problem = problem if problem is not None or isinstance(result, Halted) else result
                else:
                    yield result
    finally:
        halt.set()
        for thread in threads:
            thread.join()
    if problem is not None:
        raise problem


RESULTS_FILE, TOOL_TIMES, LEDGER, TOTALS = "results.jsonl", "tool_times.jsonl", "ledger.jsonl", "totals.json"
TRACES, GRADINGS = "traces", "gradings"  # folders
# no question could be answered after one of these
_FATAL = (errors.BadInput, errors.OverBudget, errors.NoSandbox, errors.NotInstalled, errors.ModelMissing)
# nothing more can be written, whatever the question
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
# questions that a model fails on before the run stops: then it is the server and not the question
_MAX_FAILURES = 5


@dataclass(frozen=True)
class QuestionRun:
    """The questions, the models that answer and grade them, and the folder of the results."""

    folder: Path
    questions: QuestionSet
    system: str
    equipment: Equipment
    grader: LLM | None = None

    @property
    def results(self) -> dict[str, QuestionResult]:
        """The stored results by question id."""
        return read_results(self.folder / RESULTS_FILE)

    def missing(self) -> list[Question]:
        """Return the questions without a result, with an error, or without a grade of this grader."""
        stored = self.results
        return [
            question for question in self.questions.questions if not self._is_done(stored.get(question.id))
        ]

    def answer_missing(
        self, parallel: int = 1, on_event: Callable[[Question, Event], None] = lambda *_: None
    ) -> Iterator[QuestionResult]:
        """Answer what is missing, `parallel` questions at a time, and yield each result as it is written.

        An error in a question is its result. Raises LLMError if the key is refused or the model failed on
        several questions in a row, OverBudget, or an error that would end every question. Running calls are
        completed first, also on Ctrl-C.
        """
        lock, halt, there = threading.Lock(), threading.Event(), self.results
        answered = 0

        def answer(question: Question) -> tuple[QuestionResult, Exception | None, bool]:
            nonlocal answered
            result, error = self._answer_question(question, there.get(question.id), halt, on_event)
            with lock:
                append_result(self.folder / RESULTS_FILE, result)
                answered += not result.error
                barred = _is_refused(error, answered)
            if barred:
                halt.set()
            return result, error, barred

        in_a_row = 0
        with closing(run_in_parallel(answer, self.missing(), parallel, halt)) as done:
            for result, error, barred in done:
                yield result
                if barred:
                    raise errors.LLMError(f"the model may not be asked, so the run stops: {error}") from error
                in_a_row = in_a_row + 1 if _is_model_failure(error) else 0
                if in_a_row == _MAX_FAILURES:
                    failed = f"the model failed on {in_a_row} questions in a row"
                    raise errors.LLMError(f"{failed}, so the run stops: {error}") from error

    def is_damaged(self, id: str) -> bool:
        """Return whether the trace of a question's answer or grading cannot be read."""
        return any(is_damaged(self.folder / part / trace_name(id)) for part in (TRACES, GRADINGS))

    def _is_done(self, result: QuestionResult | None) -> bool:
        if result is None or result.error:
            return False
        return self.grader is None or result.grader == self.grader.name

    def _answer_question(
        self,
        question: Question,
        earlier: QuestionResult | None,
        halt: threading.Event,
        on_event: Callable[[Question, Event], None],
    ) -> tuple[QuestionResult, Exception | None]:
        """Answer a question and return its result, with the error that ended it, if any.

        `earlier` is the result of an earlier session.
        """
        name = trace_name(question.id)
        path, graded = self.folder / TRACES / name, self.folder / GRADINGS / name
        seen: list[Event] = []
        result = score_answer(question, "", self.questions.scored_by)
        problem: Exception | None = None
        stored_events = readable_events(path)
        before = Usage.total(event.usage for event in stored_events if isinstance(event, Asked)).seconds
        began = time.perf_counter()
        try:
            # so that its store is closed if it is halted
            with closing(run_question(question, self.system, self.equipment, path)) as events:
                for event in events:
                    seen.append(event)
                    on_event(question, event)
                    if halt.is_set():
                        raise Halted
            predicted = next(event.text for event in reversed(seen) if isinstance(event, Answered))
            result = score_answer(question, predicted, self.questions.scored_by)
            if self.grader is not None:
                gradings = list(grading_run(question, predicted, self.grader, graded))
                grade = parse_grade(next(event.reply for event in gradings if isinstance(event, Asked)))
                result = add_grade(result, grade, self.grader.name)
        except Exception as error:  # a defect on one question must not cost the others
            if _ends_the_run(error):
                raise
            kind = "" if isinstance(error, errors.LabError) else f"{type(error).__name__}: "
            text = f"{kind}{errors.error_message(error)}" or type(error).__name__
            result = replace(result, correct=None, error=text)
            problem = error
        seconds: float | None = before + time.perf_counter() - began
        # walking a recording again takes another time than the answer took
        if any(isinstance(event, Answered) for event in stored_events):
            seconds = earlier.seconds if earlier else None
        if not self.equipment.clocked:
            seconds = Usage.total(event.usage for event in seen if isinstance(event, Asked)).seconds
        result = add_costs(result, seen or readable_events(path), seconds)
        if self.system != "loop":  # it has no graph and no steps
            result = replace(result, out_of_steps=None, steps=None)
        return withhold_answer(result) if self.questions.private else result, problem


def _ends_the_run(error: Exception) -> bool:
    """Return whether an error concerns more than its question.

    A mode that does not support one question may support the next.
    """
    concerns_run = isinstance(error, (Halted, *_FATAL)) and not isinstance(error, errors.UnsupportedQuestion)
    return concerns_run or _is_full(error)


def _is_full(error: Exception) -> bool:
    """Return whether nothing more can be written, including when a trace reports it."""
    cause = error.__cause__ if isinstance(error, errors.TraceError) else error
    return isinstance(cause, OSError) and cause.errno in _DISK_FULL


def _is_refused(error: Exception | None, answered: int) -> bool:
    """Return whether a server refuses the key.

    After a first answer, a 403 may concern one question, whose text the server refuses.
    """
    return isinstance(error, errors.LLMError) and (
        error.status == 401 or (error.status == 403 and not answered)
    )


def _is_model_failure(error: Exception | None) -> bool:
    return isinstance(error, errors.LLMError) and not isinstance(error, errors.BadReply | errors.ReplayMiss)


def readable_events(path: Path) -> tuple[Event, ...]:
    """Read the events of a trace, or none if it is damaged or missing."""
    try:
        return read_events(path)
    except errors.LabError:
        return ()


def load_traces(folder: Path) -> dict[str, tuple[Event, ...]]:
    """Read the events of every answer and grading trace of a run, by file name, without damaged ones."""
    return {f"{path.parent.name}/{path.stem}": readable_events(path) for path in trace_files(folder)}


def trace_files(folder: Path) -> list[Path]:
    """Return the paths of the answer and grading traces of a run."""
    return [path for part in (TRACES, GRADINGS) for path in sorted((folder / part).glob("*.jsonl"))]


def trace_name(id: str) -> str:
    """Return the file name of a question's trace.

    It is the id if that is a valid file name everywhere. Otherwise a hash is added.
    """
    plain = re.sub(r"[^\w-]+", "_", id, flags=re.ASCII)[:60]
    same = plain == id.lower() == id  # some systems hold names that differ in capitals for one
    return f"{plain}.jsonl" if same else f"{plain}-{hashlib.sha256(id.encode()).hexdigest()[:8]}.jsonl"


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other runs. Raises BadInput if one is active. A killed process leaves no lock."""

    def refuse() -> None:
        problem = f"another run is at work in {folder}: wait for it, or name another folder"
        raise errors.BadInput(f"{problem} with --folder DIR")

    with exclusive_lock(folder / ".lock", on_wait=refuse):
        yield
