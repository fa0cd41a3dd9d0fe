"""Streaming replies: pieces of text with the Reply at the end. Closing a stream stops the model.

Every step of a stream may run in another thread and context, as in servers. So a context around a call is
entered around each step, and nothing is left set between steps. The end of the file parses streamed answers
of servers.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from kgot_lab.errors import LLMError, describe_value
from kgot_lab.io.http_client import UnusableBody, body_lines, client_library
from kgot_lab.llm.capabilities import Refusal, RequestTarget, as_interrupted, classify_error, error_in_answer
from kgot_lab.llm.keys import StreamMasker, errors_without_keys
from kgot_lab.llm.structured import (
    AnswerSplitter,
    StepwiseRecord,
    require_name,
    require_reply,
    split_reasoning,
)
from kgot_lab.llm.transport import AnswerCollector, RawReply
from kgot_lab.types import LLM, Json, Prompt, Reply

_Part = TypeVar("_Part")
_WORDS = re.compile(r"\s*\S+|\s+\Z")


@runtime_checkable
class StreamingLLM(LLM, Protocol):
    """A model that can stream its reply."""

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Stream pieces of the reply's text as they are generated, and the Reply last.

        Joined and stripped, the pieces are the reply's text, or end with it where what came before was reasoning without
        a beginning, or an answer that broke off. A piece may be empty while the model reasons, so
        that it can be stopped. Closing the iterator stops the model at once and leaves it ready for the next
        call. Until the reply has come or the iterator is closed, the model may block other calls, so close a
        stream that is not read to its end. Raises LLMError, possibly after some pieces, if the call fails.
        """
        ...


def stream_reply(llm: LLM, prompt: Prompt) -> Generator[str | Reply, None, None]:
    """Stream a model's reply like `StreamingLLM.stream`, word by word if the model cannot stream.

    Raises LLMError if the call fails or the model does not end with a complete Reply.
    """
    notes, reply = StepwiseRecord(), None
    require_name(llm)
    parts = llm.stream(prompt) if isinstance(llm, StreamingLLM) else word_by_word(lambda: llm(prompt))
    try:
        with errors_without_keys(), closing(run_in_steps(parts, notes.step)) as steps:
            for part in steps:
                if isinstance(part, str) and reply is None:
                    yield part
                else:
                    reply = require_reply(llm, part)
        if reply is None:
            raise LLMError(f"the stream of {llm.name} ended without its Reply(text, Usage(…))")
        notes.used.append(reply.usage)
    except LLMError as error:
        notes.used += [] if error.spent is None else [error.spent]
        raise
    finally:
        notes.finish()
    yield reply


def word_by_word(ask: Callable[[], object]) -> Iterator[str | Reply]:
    """Request a complete reply and yield it word by word, with the Reply last.

    Each word includes the space before it.
    """
    reply = ask()
    if not isinstance(reply, Reply):
        problem = f"a model replied with {describe_value(reply)}"
        raise LLMError(f"{problem}: it returns Reply(text, Usage(prompt_tokens, completion_tokens))")
    reply = replace(reply, text=reply.text.strip())
    yield from _WORDS.findall(reply.text)
    yield reply


def run_in_steps(
    parts: Iterator[_Part], within: Callable[[], AbstractContextManager[object]]
) -> Generator[_Part, None, None]:
    """Iterate over a stream, running each step and the closing inside a context that ends with the step."""
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


class IncomingAnswer:
    """The answer to one request, which is passed on while it comes if it `streams`.

    `begun` is set once some of it was passed on. If a model `hides` its reasoning in the answer without opening
    a block, all text is held until the reasoning ends. The key is masked in what is passed on.
    """

    def __init__(self, key: str, *, streams: bool, hides: bool):
        self.begun = False
        self._streams, self._collector = streams, AnswerCollector()
        self._spoken, self._masked = AnswerSplitter(thinks=hides), StreamMasker(key)
        # joins half characters over two pieces
        self._characters = codecs.getincrementaldecoder("utf-16-le")("replace")
        self._told: list[str] = []

    def pieces(
        self, client: Any, address: str, body: dict[str, Json], sending: RequestTarget
    ) -> Generator[str, None, Refusal | None]:
        """Send the request and yield the text that is passed on.

        Returns the reason why the answer was incomplete, or None. Closing the iterator closes the connection.
        """
        import openai

        try:
            # parsed here, since not every server names the type of its answer, or the right one
            post = partial(client.post, address, body=body, cast_to=object, stream=True)
            with _as_client_error(), closing(post(stream_cls=openai.Stream[object])) as stream:
                lines = body_lines(stream.response.iter_bytes())
                try:
                    refusal = yield from self._read(lines)
                except ValueError:
                    # an HTML page will not become an answer, but JSON may be called one
                    if "html" not in stream.response.headers.get("content-type", "").lower():
                        raise
                    refusal = Refusal("the answer is a page of the web, not a chat completion")
        except (openai.APIError, UnusableBody, ValueError, RecursionError) as error:
            refusal = classify_error(error, sending)
            return as_interrupted(replace(refusal, perhaps_charged=True), error) if self.begun else refusal
        return as_interrupted(replace(refusal, perhaps_charged=True)) if refusal and self.begun else refusal

    def raw(self) -> RawReply | str:
        """Return the whole answer, with the text as it was passed on, or the reason why it is not an answer."""
        raw = self._collector.read()
        return raw if isinstance(raw, str) or not self.begun else replace(raw, said=self._said())

    def _said(self) -> str:
        """Return what was passed on, without the reasoning that a model began inside of."""
        said = "".join(self._told).strip()
        return said if self._spoken.thought else split_reasoning(said, thinks=True)[0]

    def _read(self, lines: Iterator[bytes]) -> Generator[str, None, Refusal | None]:
        for event in self._collector.events(lines):
            if refusal := error_in_answer(event):
                return refusal
            said, thought = self._collector.add(event)
            if thought:
                self._spoken.thinks = False
            if self._streams:
                said = self._characters.decode(said.encode("utf-16-le", "surrogatepass"))
                yield self._telling(self._masked.after(self._spoken.after(said)))
        if not self._collector.ended:
            return Refusal("the answer ends before its end", again=True, perhaps_charged=True)
        if self._streams:
            last = self._spoken.after(self._characters.decode(b"", final=True)) + self._spoken.rest()
            yield self._telling(self._masked.after(last) + self._masked.rest())
            calls = self._collector.calls_after(self._said())
            if self.begun and calls:
                yield self._telling(self._masked.after(f"\n{calls}") + self._masked.rest())
            elif not self.begun and isinstance(raw := self.raw(), RawReply):
                yield self._telling(self._masked.after(raw.said.strip()) + self._masked.rest())
        return None

    def _telling(self, piece: str) -> str:
        self._told.append(piece)
        self.begun = self.begun or bool(piece)
        return piece


@contextmanager
def _as_client_error() -> Iterator[None]:
    """Convert errors while an answer is read to the client's own exceptions."""
    import openai

    library = client_library()
    try:
        yield
    except library.TimeoutException as error:
        raise openai.APITimeoutError(request=error.request) from error
    except library.RequestError as error:
        raise openai.APIConnectionError(request=error.request) from error
