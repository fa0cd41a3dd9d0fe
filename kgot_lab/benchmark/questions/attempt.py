"""Answer one question with one system on file, so that it can be resumed without repeating calls."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput, BadReply, ToolFailed, TraceError, require_known
from kgot_lab.evaluation.grading import grading_prompt, parse_grade
from kgot_lab.llm.structured import compact_schema, parse
from kgot_lab.loop import prompts
from kgot_lab.loop.answer_check import MAX_CITED, select_evidence
from kgot_lab.loop.controller import RunOptions, think
from kgot_lab.loop.events import Answered, Asked, Event, Role, Started, ToolCall, ToolReturned
from kgot_lab.loop.evidence import judge_answer
from kgot_lab.loop.limits import REFERENCE, Limits
from kgot_lab.loop.modes.paths.mentions import GraphSentence
from kgot_lab.loop.modes.paths.reading import format_passages, rejection_reason
from kgot_lab.loop.modes.paths.values import is_no_answer
from kgot_lab.loop.prompts import Answer
from kgot_lab.loop.replay.recording import Recording, ReplayLLM
from kgot_lab.loop.replay.replay import Resources, resume
from kgot_lab.loop.run_context import RunContext, Steps
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import RESTORE_HINT, load_run, model_metadata, record
from kgot_lab.stores import empty_store
from kgot_lab.text.words import text_sentences
from kgot_lab.tools.tool import Result, Tool, search_argument
from kgot_lab.types import LLM, Json, Message, Prompt, Reply

# Baselines without a graph, as runs like the loop's: zero-shot and RAG.

_REPLY_TOKENS = 200  # tokens of a reply


@dataclass(frozen=True)
class OneCall:
    """How a model is called once: the prompt, and the answer in a reply.

    The prompt is built from a question and what was found (None for the question alone).
    """

    prompt: Callable[[str, Result | None], Prompt]
    answer: Callable[[str], str]


def zero_shot_prompt(question: str) -> Prompt:
    """Build the prompt of a question alone."""
    return _prompt(f"Question: {question}")


def rag_prompt(question: str, passages: str, *, may_abstain: bool = False) -> Prompt:
    """Build the prompt of a question below the passages. With `may_abstain`, the answer may be "unknown"."""
    rule = '\nIf the passages do not say it, the answer is "unknown".' if may_abstain else ""
    return _prompt(f"Passages:\n{passages}\n\nQuestion: {question}{rule}")


def _prompt(text: str) -> Prompt:
    asked = f'{text}\n{prompts.FORMATS["gaia"]}\nReply as JSON: {{"answer": "..."}}'
    messages = Message("system", prompts.ANSWER), Message("user", asked)
    return Prompt(messages, compact_schema(Answer), 0.0, 0, _REPLY_TOKENS)


def _parse_answer(reply: str) -> str:
    """Return the answer in a JSON reply, or the whole reply if it has another form."""
    try:
        return parse(reply, Answer).answer
    except BadReply:
        return reply.strip()


def _json_prompt(question: str, found: Result | None, *, may_abstain: bool = False) -> Prompt:
    return rag_prompt(question, found.text, may_abstain=may_abstain) if found else zero_shot_prompt(question)


JSON_CALL = OneCall(_json_prompt, _parse_answer)
UNKNOWN_CALL = OneCall(partial(_json_prompt, may_abstain=True), _parse_answer)


def zero_shot(
    question: Question, llm: LLM, reading: OneCall = JSON_CALL, *, name: str = "zero-shot"
) -> Iterator[Event]:
    """Ask the model the question alone, by default with a JSON reply."""
    yield Started(question=question.text, limits={"preset": name}, planning=llm.name)
    reply = yield from _request_reply(llm, reading.prompt(question.text, None), "answer")
    yield Answered(text=reading.answer(reply.text), forced=True)


def plain_rag(
    question: Question,
    llm: LLM,
    tool: Tool,
    reading: OneCall = JSON_CALL,
    *,
    name: str = "rag",
    check: bool = False,
) -> Iterator[Event]:
    """Ask the model the question over the results of one search.

    An answer that cannot have been read from the passages is a guess. With `check`, it is judged as in the
    loop instead, by the sentences that carry it.
    """
    yield Started(question=question.text, limits={"preset": name}, planning=llm.name)
    if not (argument := search_argument(tool)):
        raise BadInput(f"RAG needs a tool that finds documents, which {tool.name} does not")
    call = ToolCall(tool.name, {argument: question.text})
    try:
        found = tool(**call.arguments)
    except ToolFailed as error:
        found = Result("")
        yield ToolReturned(call=call, text=str(error), failed=True)
    else:
        yield ToolReturned(call=call, text=found.text, sources=found.sources)
    reply = yield from _request_reply(llm, reading.prompt(question.text, found), "answer")
    text, likelihood = reading.answer(reply.text), None if reply.logprob is None else math.exp(reply.logprob)
    missing = rejection_reason(question.text, text, format_passages(found.sources)) if found.sources else ""
    judged: dict[str, Any] = {"forced": bool(missing) or not found.sources, "missing": missing}
    if is_no_answer(text) or check:
        parts = ((d, *numbered) for d in found.sources for numbered in enumerate(text_sentences(d.text)))
        sentences = [GraphSentence(d.id, d.title, part, d.id, number) for d, number, part in parts]
        texts = list(map(str, select_evidence(question.text, text, sentences) or sentences[:MAX_CITED]))
        with closing(empty_store("in_memory")) as store:
            run = RunContext(llm, llm, store, {}, REFERENCE, None, State(question=question.text))
            judged = yield from judge_answer(run, text, texts, likelihood=likelihood)
    yield Answered(text=text, passages=tuple(document.id for document in found.sources), **judged)


def _request_reply(llm: LLM, prompt: Prompt, role: str) -> Steps[Reply]:
    """Call the model, record the call as an event, and return the reply."""
    reply = llm(prompt)
    usage, logprob = reply.usage, reply.logprob
    yield Asked(
        role=Role(role), model=llm.name, prompt=prompt, reply=reply.text, usage=usage, logprob=logprob
    )
    return reply


QUESTION_SYSTEMS = ("loop", "rag", "rag-unknown", "zero-shot")


@dataclass(frozen=True)
class Equipment:
    """What every question of a run is answered with.

    `tools` returns the tools of a question, and `walk` is the run of a system with a single call. If it is
    not `clocked`, since stored replies return at once, the seconds of a question are those of the original
    replies.
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
    require_known("system", QUESTION_SYSTEMS, name)


def run_question(question: Question, system: str, equipment: Equipment, path: Path) -> Steps[None]:
    """Run a question from where its trace stops, with the recorded events first.

    Raises what the system raises.
    """
    if system == "loop":
        yield from _run_loop(question, equipment, path)
        return
    walk = _single_call(question, system, equipment)
    yield from run_or_replay(walk, equipment.planning, path, {"question": question.id})


def _single_call(question: Question, system: str, equipment: Equipment) -> Callable[[LLM], Iterator[Event]]:
    """Return the run of a system that calls the model once. Raises BadInput if it lacks a search tool."""
    if equipment.walk is not None:
        walk, tools = equipment.walk, equipment.tools(question)
        return lambda llm: walk(question, llm, tools)
    if system == "zero-shot":
        return lambda llm: zero_shot(question, llm)
    finder = next((tool for tool in equipment.tools(question) if search_argument(tool)), None)
    if finder is None:
        reason = "RAG needs documents to find passages in, and this question has none"
        raise BadInput(f"{reason}: name a folder with --documents DIR")
    reading = UNKNOWN_CALL if system == "rag-unknown" else JSON_CALL
    return lambda llm: plain_rag(
        question, llm, finder, reading, name=system, check=equipment.limits.check_answers
    )


def grading_run(question: Question, predicted: str, grader: LLM, path: Path) -> Iterator[Event]:
    """Grade an answer with a model, as a recorded run whose answer is the grade.

    A stored grade is not requested again.
    """

    def walk(llm: LLM) -> Iterator[Event]:
        yield Started(question=question.text, limits={"preset": "grading"}, planning=llm.name)
        golds = " or ".join((question.answer, *question.aliases))
        reply = yield from _request_reply(llm, grading_prompt(question.text, golds, predicted), "grade")
        yield Answered(text=parse_grade(reply.text).grade, forced=False)

    yield from run_or_replay(walk, grader, path, {"question": question.id})


def _run_loop(question: Question, equipment: Equipment, path: Path) -> Iterator[Event]:
    tools, llm, execution = list(equipment.tools(question)), equipment.planning, equipment.execution
    with closing(empty_store(equipment.store, unsafe=equipment.unsafe)) as store:
        if read_events(path):
            yield from resume(path, store, Resources(tools, llm, execution))
            return
        path.unlink(missing_ok=True)
        text, names = question.text, [file.name for file in question.attachments]
        # one call at a time: the questions are what runs side by side, and a killed run repeats no answered call
        options: RunOptions = {"execution": execution, "attachments": names, "parallel": 1}
        walk = think(text, llm, store, tools, equipment.limits, **options)
        yield from record(walk, path, metadata={"question": question.id, **model_metadata(llm)})


def run_or_replay(
    walk: Callable[[LLM], Iterator[Event]], llm: LLM, path: Path, about: Mapping[str, Json]
) -> Iterator[Event]:
    """Run a short run from its beginning, with the replies in its trace.

    The trace is replaced when the run is complete.
    """
    fresh = path.with_suffix(".again")
    # a kill came after the reply and before this took the place of the trace
    if _count_replies(fresh) > _count_replies(path):
        fresh.replace(path)
    fresh.unlink(missing_ok=True)
    events = read_events(path)
    if not events:
        path.unlink(missing_ok=True)
        yield from record(walk(llm), path, metadata=about)
        return
    yield from record(walk(ReplayLLM(Recording.from_events(events), llm.name, llm)), fresh, metadata=about)
    fresh.replace(path)


def read_events(path: Path) -> tuple[Event, ...]:
    """Read the events of a trace, or none if there is no file or no complete line in it.

    Raises TraceError for a damaged trace.
    """
    if not path.exists() or b"\n" not in path.read_bytes():
        return ()
    try:
        return load_run(path).events
    except TraceError as error:
        again = f"restore a copy of {path.name}, or delete it and it is asked again"
        raise TraceError(f"{str(error).removesuffix(RESTORE_HINT)}: {again}") from error


def is_damaged(path: Path) -> bool:
    """Return whether a trace cannot be read, so that nothing is asked until it is repaired or deleted."""
    try:
        read_events(path)
    except TraceError:
        return True
    return False


def _count_replies(path: Path) -> int:
    return sum(isinstance(event, Asked) for event in read_events(path))


class TimedTool:
    """A tool whose calls are timed, in seconds. Calls of a shared tool are serialized."""

    def __init__(
        self, tool: Tool, on_call: Callable[[str, float, bool], None], lock: threading.Lock | None = None
    ):
        self.name = tool.name
        self.description = tool.description
        self.arguments = tool.arguments
        self.finds = search_argument(tool)
        self._tool, self._told, self._lock = tool, on_call, lock or threading.Lock()

    def __call__(self, /, **arguments: Json) -> Result:  # a model may well name an argument self
        with self._lock:
            began, failed = time.perf_counter(), True
            try:
                result = self._tool(**arguments)
                failed = False
                return result
            finally:
                self._told(self.name, time.perf_counter() - began, failed)
