"""The same questions without a graph: the model alone (zero-shot), and the model over the best passages (RAG), as runs like the loop's."""

from __future__ import annotations

from collections.abc import Iterator

from kgot_lab.errors import BadInput, BadReply, ToolFailed
from kgot_lab.experiments.questions.question import Question
from kgot_lab.llm.structured import parse, schema_of
from kgot_lab.loop import prompts
from kgot_lab.loop.events import Answered, Asked, Event, Started, ToolCall, ToolReturned
from kgot_lab.loop.run import Steps
from kgot_lab.loop.shapes import Answer
from kgot_lab.tools.tool import Result, Tool, sought_by
from kgot_lab.types import LLM, Message, Prompt

_LONGEST = 200  # tokens of a reply


def zero_shot(question: Question, llm: LLM) -> Iterator[Event]:
    """Ask the model, nothing else."""
    yield Started(question=question.text, preset="zero-shot", planning=llm.name)
    text = yield from _asked(llm, zero_shot_prompt(question.text))
    yield Answered(text=text, forced=True)


def plain_rag(question: Question, llm: LLM, tool: Tool) -> Iterator[Event]:
    """Ask the model over what one search for the question returns."""
    yield Started(question=question.text, preset="rag", planning=llm.name)
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
    text = yield from _asked(llm, rag_prompt(question.text, found.text))
    yield Answered(text=text, forced=not found.sources, passages=tuple(document.id for document in found.sources))


def zero_shot_prompt(question: str) -> Prompt:
    """A question and nothing else."""
    return _prompt(f"Question: {question}")


def rag_prompt(question: str, passages: str) -> Prompt:
    """A question under the passages that were found for it."""
    return _prompt(f"Passages:\n{passages}\n\nQuestion: {question}")


def _prompt(text: str) -> Prompt:
    asked = f'{text}\n{prompts.FORMATS["gaia"]}\nReply as JSON: {{"answer": "..."}}'
    return Prompt((Message("system", prompts.ANSWER), Message("user", asked)), schema_of(Answer), 0.0, 0, _LONGEST)


def _asked(llm: LLM, prompt: Prompt) -> Steps[str]:
    """The answer in a model's reply; one of another form is taken as it stands."""
    reply = llm(prompt)
    yield Asked(role="answer", model=llm.name, prompt=prompt, reply=reply.text, usage=reply.usage, logprob=reply.logprob)
    try:
        return parse(reply.text, Answer).answer
    except BadReply:
        return reply.text.strip()
