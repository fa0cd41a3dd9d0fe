"""The same questions without a graph: the model alone (zero-shot), and the model over passages (RAG), as runs
like the loop's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kgot_lab.benchmark.questions.question import Question
from kgot_lab.errors import BadInput, BadReply, ToolFailed
from kgot_lab.llm.structured import parse, schema_of
from kgot_lab.loop import prompts
from kgot_lab.loop.events import Answered, Asked, Event, Started, ToolCall, ToolReturned
from kgot_lab.loop.prompts import Answer
from kgot_lab.loop.run_context import Steps
from kgot_lab.tools.tool import Result, Tool, sought_by
from kgot_lab.types import LLM, Message, Prompt

_LONGEST = 200  # tokens of a reply


@dataclass(frozen=True)
class OneCall:
    """How a model is asked: the prompt of a question over what was found (None: alone), the answer in a
    reply, and why that is refused.
    """

    prompt: Callable[[str, Result | None], Prompt]
    answer: Callable[[str], str]
    refused: Callable[[str, str, Result], str] = lambda question, answer, found: ""


def zero_shot(
    question: Question, llm: LLM, reading: OneCall | None = None, *, name: str = "zero-shot"
) -> Iterator[Event]:
    """Ask the model, nothing else; by default it is asked for JSON."""
    yield Started(question=question.text, preset=name, planning=llm.name)
    text = yield from _asked(llm, question, None, reading or IN_JSON)
    yield Answered(text=text, forced=True)


def plain_rag(
    question: Question, llm: LLM, tool: Tool, reading: OneCall | None = None, *, name: str = "rag"
) -> Iterator[Event]:
    """Ask the model over what one search for the question returns; an answer that its reading refuses stands,
    as a guess.
    """
    reading = reading or IN_JSON
    yield Started(question=question.text, preset=name, planning=llm.name)
    if not (argument := sought_by(tool)):
        raise BadInput(f"RAG needs a tool that finds documents, which {tool.name} does not")
    call = ToolCall(tool.name, {argument: question.text})
    try:
        found = tool(**call.arguments)
    except ToolFailed as error:
        found = Result("")
        yield ToolReturned(call=call, text=str(error), failed=True)
    else:
        yield ToolReturned(call=call, text=found.text, sources=found.sources)
    text = yield from _asked(llm, question, found, reading)
    forced = not found.sources or bool(reading.refused(question.text, text, found))
    yield Answered(text=text, forced=forced, passages=tuple(document.id for document in found.sources))


def zero_shot_prompt(question: str) -> Prompt:
    """A question and nothing else."""
    return _prompt(f"Question: {question}")


def rag_prompt(question: str, passages: str) -> Prompt:
    """A question under the passages that were found for it."""
    return _prompt(f"Passages:\n{passages}\n\nQuestion: {question}")


def _prompt(text: str) -> Prompt:
    asked = f'{text}\n{prompts.FORMATS["gaia"]}\nReply as JSON: {{"answer": "..."}}'
    return Prompt(
        (Message("system", prompts.ANSWER), Message("user", asked)), schema_of(Answer), 0.0, 0, _LONGEST
    )


def _asked(llm: LLM, question: Question, found: Result | None, reading: OneCall) -> Steps[str]:
    """The answer in a model's reply."""
    prompt = reading.prompt(question.text, found)
    reply = llm(prompt)
    yield Asked(
        role="answer",
        model=llm.name,
        prompt=prompt,
        reply=reply.text,
        usage=reply.usage,
        logprob=reply.logprob,
    )
    return reading.answer(reply.text)


def _answer_in(reply: str) -> str:
    """The answer in a reply of JSON; one of another form is taken as it stands."""
    try:
        return parse(reply, Answer).answer
    except BadReply:
        return reply.strip()


def _json_prompt(question: str, found: Result | None) -> Prompt:
    return zero_shot_prompt(question) if found is None else rag_prompt(question, found.text)


IN_JSON = OneCall(_json_prompt, _answer_in)
