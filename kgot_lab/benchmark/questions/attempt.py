"""One question answered by one system, every event on file: what was begun goes on, and no reply on file is
asked for again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.benchmark.questions.attempt import plain_rag, zero_shot
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput, TraceError, UnknownName
from kgot_lab.evaluation.grading import grade_in, grading_prompt
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Event, Started
from kgot_lab.loop.limits import Limits
from kgot_lab.loop.replay.recording import Recording, RememberedLLM
from kgot_lab.loop.replay.replay import Resources, resume
from kgot_lab.loop.run_context import Steps
from kgot_lab.loop.trace import RESTORE, load_run, made_by, record
from kgot_lab.stores import empty_store
from kgot_lab.tools.tool import Result, Tool, sought_by
from kgot_lab.types import LLM, Json

QUESTION_SYSTEMS = ("loop", "rag", "zero-shot")


@dataclass(frozen=True)
class Equipment:
    """What every question of a run is answered with; `tools` gives those for a question, `walk` is the short
    run of a further system.

    Where it is not `clocked`, since replies on file are given at once, a question's seconds are what its
    replies took when they were given.
    """

    planning: LLM
    limits: Limits
    tools: Callable[[Question], Sequence[Tool]]
    execution: LLM | None = None
    store: str = "in_memory"
    unsafe: bool = False
    walk: Callable[[Question, LLM, Sequence[Tool]], Iterator[Event]] | None = None
    clocked: bool = True


def check_question_system(name: str) -> None:
    """Raise UnknownName for a system there is not."""
    if name not in QUESTION_SYSTEMS:
        raise UnknownName("system", name, QUESTION_SYSTEMS)


def attempt(question: Question, system: str, equipment: Equipment, path: Path) -> Steps[None]:
    """The run of a question, from where its trace stops: recorded events first. Raises what the system
    raises.
    """
    if system == "loop":
        yield from _loop(question, equipment, path)
        return
    if equipment.walk is not None:
        walk, tools = equipment.walk, equipment.tools(question)
        yield from recalled(
            lambda llm: walk(question, llm, tools), equipment.planning, path, {"question": question.id}
        )
        return
    if system == "zero-shot":
        yield from recalled(
            lambda llm: zero_shot(question, llm), equipment.planning, path, {"question": question.id}
        )
        return
    finder = next((tool for tool in equipment.tools(question) if sought_by(tool)), None)
    if finder is None:
        raise BadInput(
            "RAG needs documents to find passages in, and this question has none: name a folder with --documents DIR"
        )
    yield from recalled(
        lambda llm: plain_rag(question, llm, finder), equipment.planning, path, {"question": question.id}
    )


def grading_run(question: Question, predicted: str, grader: LLM, path: Path) -> Iterator[Event]:
    """A model's grade of an answer, as a run on file whose answer is the grade; a grade on file is not asked
    for again.
    """

    def walk(llm: LLM) -> Iterator[Event]:
        yield Started(question=question.text, preset="grading", planning=llm.name)
        prompt = grading_prompt(question.text, " or ".join((question.answer, *question.aliases)), predicted)
        reply = llm(prompt)
        yield Asked(
            role="grade",
            model=llm.name,
            prompt=prompt,
            reply=reply.text,
            usage=reply.usage,
            logprob=reply.logprob,
        )
        yield Answered(text=grade_in(reply.text).grade, forced=False)

    yield from recalled(walk, grader, path, {"question": question.id})


def _loop(question: Question, equipment: Equipment, path: Path) -> Iterator[Event]:
    tools, llm, execution = list(equipment.tools(question)), equipment.planning, equipment.execution
    with closing(empty_store(equipment.store, unsafe=equipment.unsafe)) as store:
        if read_events(path):
            yield from resume(path, store, Resources(tools, llm, execution))
            return
        path.unlink(missing_ok=True)
        names = [file.name for file in question.attachments]
        walk = think(
            question.text, llm, store, tools, equipment.limits, execution=execution, attachments=names
        )
        yield from record(walk, path, about={"question": question.id, **made_by(llm)})


def recalled(
    walk: Callable[[LLM], Iterator[Event]], llm: LLM, path: Path, about: Mapping[str, Json]
) -> Iterator[Event]:
    """A short run walked from its beginning, with the replies that its trace holds; the trace is replaced
    when the run is whole.
    """
    fresh = path.with_suffix(".again")
    # a kill came after the reply and before this took the place of the trace
    if _replies(fresh) > _replies(path):
        fresh.replace(path)
    fresh.unlink(missing_ok=True)
    events = read_events(path)
    if not events:
        path.unlink(missing_ok=True)
        yield from record(walk(llm), path, about=about)
        return
    yield from record(walk(RememberedLLM(Recording.of(events), llm.name, llm)), fresh, about=about)
    fresh.replace(path)


def read_events(path: Path) -> tuple[Event, ...]:
    """The events of a trace, none where there is no file or a kill left no whole line of it; raises
    TraceError for a damaged one.
    """
    if not path.exists() or b"\n" not in path.read_bytes():
        return ()
    try:
        return load_run(path).events
    except TraceError as error:
        again = f"restore a copy of {path.name}, or delete it and it is asked again"
        raise TraceError(f"{str(error).removesuffix(RESTORE)}: {again}") from error


def is_damaged(path: Path) -> bool:
    """Whether a trace cannot be read, so that nothing is asked until it is mended or gone."""
    try:
        read_events(path)
    except TraceError:
        return True
    return False


def _replies(path: Path) -> int:
    return sum(isinstance(event, Asked) for event in read_events(path))


class Watched:
    """A tool whose calls are timed, in seconds; calls of one that is shared wait for each other."""

    def __init__(
        self, tool: Tool, told: Callable[[str, float, bool], None], lock: threading.Lock | None = None
    ):
        self.name, self.description, self.arguments, self.finds = (
            tool.name,
            tool.description,
            tool.arguments,
            sought_by(tool),
        )
        self._tool, self._told, self._lock = tool, told, lock or threading.Lock()

    def __call__(self, /, **arguments: Json) -> Result:  # a model may well name an argument self
        with self._lock:
            began, failed = time.perf_counter(), True
            try:
                result = self._tool(**arguments)
                failed = False
                return result
            finally:
                self._told(self.name, time.perf_counter() - began, failed)
