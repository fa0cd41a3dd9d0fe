"""HotpotQA with one small local model, three ways: closed book, RAG, and the KGoT loop; a line on file for
each question.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.questions.answers_on_file import rows_on_file
from kgot_lab.benchmark.questions.attempt import rag_prompt, zero_shot_prompt
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.benchmark.questions.sets import hotpotqa
from kgot_lab.evaluation.grading import contains_answer, exact_match, f1
from kgot_lab.io.files import write_atomically
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Asked, Forced, Read, Voted
from kgot_lab.loop.limits import PRESETS
from kgot_lab.loop.render import join_lines, row_text
from kgot_lab.loop.trace import load_run, record
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.types import LLM, Json, Prompt

SEARCHED = 8  # passages a search of the loop returns
RETRIEVED = 5  # passages RAG puts into its prompt


@dataclass(frozen=True)
class Outcome:
    """One question, one system."""

    id: str
    type: str
    answer: str
    gold: str
    em: float
    f1: float
    seconds: float
    calls: int
    prompt_tokens: int
    completion_tokens: int
    forced: bool | None = None  # loop: no read gave rows
    out_of_steps: bool | None = None  # loop: reading was forced because the steps ran out
    rows_hold_answer: bool | None = None
    steps: int | None = None
    agreement: float | None = None


def closed_book(llm: LLM) -> Callable[[Question], Outcome]:
    """Ask the model, nothing else."""

    def answer(question: Question) -> Outcome:
        return _one_call(llm, question, zero_shot_prompt(question.text))

    return answer


def rag(llm: LLM) -> Callable[[Question], Outcome]:
    """Ask the model over the five best passages of .7 embeddings + .3 BM25."""
    tool = search(hotpotqa().documents, k=RETRIEVED)

    def answer(question: Question) -> Outcome:
        began = time.perf_counter()
        passages = tool(query=question.text).text
        return _one_call(llm, question, rag_prompt(question.text, passages), began)

    return answer


def _one_call(llm: LLM, question: Question, prompt: Prompt, began: float | None = None) -> Outcome:
    from kgot_lab.llm.structured import parse
    from kgot_lab.loop.prompts import Answer

    began = began or time.perf_counter()
    reply = llm(prompt)
    said = parse(reply.text, Answer).answer
    usage = reply.usage
    scores = exact_match(said, question.answer), f1(said, question.answer)
    seconds = time.perf_counter() - began
    return Outcome(
        question.id,
        question.type,
        said,
        question.answer,
        *scores,
        seconds,
        1,
        usage.prompt_tokens,
        usage.completion_tokens,
    )


def kgot_loop(llm: LLM, preset: str, folder: Path) -> Callable[[Question], Outcome]:
    """The KGoT loop over the same passages."""
    tool = search(hotpotqa().documents, k=SEARCHED)

    def answer(question: Question) -> Outcome:
        path = folder / f"{question.id}.jsonl"
        path.unlink(missing_ok=True)
        began = time.perf_counter()
        store = open_store("in_memory")
        for _ in record(think(question.text, llm, store, [tool], PRESETS[preset]), path):
            pass
        store.close()
        return outcome_of_trace(question, path, time.perf_counter() - began)

    return answer


def outcome_of_trace(question: Question, path: Path, seconds: float) -> Outcome:
    """What a trace says of a question."""
    events = load_run(path).events
    final = next(event for event in events if isinstance(event, Answered))
    asked = [event for event in events if isinstance(event, Asked)]
    rows = join_lines(row_text(row) for event in events if isinstance(event, Read) for row in event.rows)
    votes = [event for event in events if isinstance(event, Voted) and event.votes]
    return Outcome(
        question.id, question.type, final.text, question.answer,
        exact_match(final.text, question.answer), f1(final.text, question.answer), seconds,
        len(asked), sum(event.usage.prompt_tokens for event in asked), sum(event.usage.completion_tokens for event in asked),
        final.forced, any(isinstance(event, Forced) for event in events), contains_answer(rows, question.answer),
        final.step, sum(event.agreement for event in votes) / len(votes) if votes else None,
    )  # fmt: skip


def answer_missing(
    path: Path, answer: Callable[[Question], Outcome], questions: Iterable[Question], head: Json
) -> Iterator[Outcome]:
    """Answer the questions not yet on file, a line each, and give what came out; a new file begins with a
    head.
    """
    if not path.exists():
        write_atomically(path, json.dumps(head) + "\n", "the answers")
    done = {row["id"] for row in rows_on_file(path)}
    for question in questions:
        if question.id not in done:
            result = answer(question)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
            yield result
