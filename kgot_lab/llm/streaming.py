"""Words as a model writes them: a stream of pieces with the reply at its end, which is stopped by closing it.

Every step of a stream may be taken in another thread and in another context, as servers do; so what is set around a call is set around each
step, and nothing is left standing between two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Protocol, TypeVar, runtime_checkable

from kgot_lab.errors import LLMError, described_value
from kgot_lab.llm.structured import NotesOfSteps, named_reply, require_name
from kgot_lab.types import LLM, Prompt, Reply

_Part = TypeVar("_Part")
Telling = Generator[str | Reply, None, None]
_WORDS = re.compile(r"\s*\S+|\s+\Z")


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A model that tells its reply while it writes it."""

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Pieces of the reply's text as they are written, and last the Reply; raises LLMError, also when pieces have come.

        The pieces, put together and without the space around them, are the reply's text. A piece may be empty: the model thinks, and may be
        stopped. Closing the iterator stops the model at once and leaves it ready for the next call; until the reply has come or that is
        done, it may answer nobody else, so a stream that is not read to its end has to be closed.
        """
        ...


def streamed(llm: LLM, prompt: Prompt) -> Telling:
    """The stream of a model's reply, as `StreamingLLM.stream` gives it; one that cannot is asked for all of it, which is told in words.

    Raises LLMError, also for a model that does not end with a whole Reply.
    """
    notes, reply = NotesOfSteps(), None
    require_name(llm)
    parts = llm.stream(prompt) if isinstance(llm, StreamingLLM) else in_words(lambda: llm(prompt))
    try:
        with closing(in_steps(parts, notes.step)) as steps:
            for part in steps:
                if isinstance(part, str) and reply is None:
                    yield part
                else:
                    reply = named_reply(llm, part)
        if reply is None:
            raise LLMError(f"the stream of {llm.name} ended without a Reply: a model ends it with Reply(text, Usage(…))")
        notes.used.append(reply.usage)
    except LLMError as error:
        notes.used += [] if error.spent is None else [error.spent]
        raise
    finally:
        notes.hand_on()
    yield reply


def in_words(ask: Callable[[], object]) -> Iterator[str | Reply]:
    """A reply that is asked for whole, in pieces of one word each with the space before it, and last the reply itself."""
    reply = ask()
    if not isinstance(reply, Reply):
        raise LLMError(f"a model replied with {described_value(reply)}: it returns Reply(text, Usage(prompt_tokens, completion_tokens))")
    reply = replace(reply, text=reply.text.strip())
    yield from _WORDS.findall(reply.text)
    yield reply


def in_steps(parts: Iterator[_Part], within: Callable[[], AbstractContextManager[object]]) -> Generator[_Part, None, None]:
    """The parts of a stream, each step of it, and its closing, taken within a context that ends with the step."""
    try:
        while True:
            with within():
                try:
                    part = next(parts)
                except StopIteration:
                    return
            yield part
    finally:
        if (close := getattr(parts, "close", None)) is not None:
            with within():
                close()
