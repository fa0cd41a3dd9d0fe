"""Two protocols: chat completions, which all servers support, and Ollama's own.

Only Ollama's own sets the context size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgot_lab.io.http_client import require_few_containers
from kgot_lab.llm.capabilities import RequestFormat
from kgot_lab.llm.presets import Endpoint, Settings
from kgot_lab.llm.structured import (
    estimate_reasoning_tokens,
    is_logprob,
    split_reasoning,
    write_schema_in_prompt,
)
from kgot_lab.types import Json, Message, Prompt


@dataclass(frozen=True)
class RawReply:
    """A parsed answer before validation: texts, tokens, and how it ended."""

    said: str
    ended: str
    read: int
    written: int  # including reasoning
    thought: int = 0
    charged: float = 0.0  # US dollars, if the server reports them
    declined: str = ""  # the model's refusal
    # sum over the tokens whose logprob the server reports, with or without the end token
    logprob: float | None = None


_HUGE = 1e12  # implausible number of tokens or dollars
_DONE = b"[DONE]"


class StreamCollector(Protocol):
    """The events of one streamed answer. `ended` is set at its end."""

    ended: bool

    def events(self, lines: Iterator[bytes]) -> Iterator[Json]: ...  # raises ValueError
    def add(self, event: Json) -> tuple[str, str]: ...  # the answer and the separate reasoning in it
    def whole(self) -> Json: ...  # the answer as without streaming


class ChatCollector:
    """A chat completion in server-sent events, or as one body from a server that does not stream."""

    def __init__(self) -> None:
        self.ended = False
        self._chat = False
        self._said, self._thought, self._refusal, self._call = (list[str]() for _ in range(4))
        self._logprobs = list[Json]()
        self._finish: Json = None
        self._usage: Json = None

    def events(self, lines: Iterator[bytes]) -> Iterator[Json]:
        for line in lines:
            if line.startswith(b"{"):
                data = b"\n".join([line, *lines])
                require_few_containers(data)
                self.ended = True
                yield json.loads(data)
            elif line.startswith(b"data:") and (data := line.removeprefix(b"data:").strip()):
                if data == _DONE:
                    self.ended = True
                    return
                yield json.loads(data)

    def add(self, event: Json) -> tuple[str, str]:
        self._usage = _member(event, "usage") or self._usage
        choice = _first(_member(event, "choices"))
        delta = _member(choice, "delta")
        message = delta if isinstance(delta, Mapping) else _member(choice, "message")
        if _member(choice, "index") or not isinstance(message, Mapping):
            return "", ""
        self._chat = True
        self._finish = _member(choice, "finish_reason") or self._finish
        self.ended = self.ended or bool(self._finish)
        tokens = _member(_member(choice, "logprobs"), "content")
        if isinstance(tokens, list):
            self._logprobs += [{"logprob": _member(token, "logprob")} for token in tokens]
        said, thought = _texts(message.get("content"))
        thought = thought or str(next(filter(None, map(message.get, _THOUGHT_NAMES)), ""))
        call = _first(message.get("tool_calls"))
        if not _member(call, "index"):
            self._call.append(str(_member(_member(call, "function"), "arguments") or ""))
        self._said.append(said)
        self._thought.append(thought)
        self._refusal.append(str(message.get("refusal") or ""))
        return said, thought

    def whole(self) -> Json:
        if not self._chat:
            return {}
        texts = {"content": self._said, "reasoning_content": self._thought, "refusal": self._refusal}
        message: Json = {name: "".join(parts) for name, parts in texts.items()}
        message["function_call"] = {"arguments": "".join(self._call)}
        choice = {"message": message, "finish_reason": self._finish, "logprobs": {"content": self._logprobs}}
        return {"choices": [choice], "usage": self._usage}


class OllamaCollector:
    """Ollama's own answer: a line of JSON for each piece, and a last one with the usage."""

    def __init__(self) -> None:
        self.ended = False
        self._last: Json = None
        self._said, self._thought = list[str](), list[str]()

    def events(self, lines: Iterator[bytes]) -> Iterator[Json]:
        for line in lines:
            if line.strip():
                yield json.loads(line)
            if self.ended:
                return

    def add(self, event: Json) -> tuple[str, str]:
        message = _member(event, "message")
        said, thought = str(_member(message, "content") or ""), str(_member(message, "thinking") or "")
        self._last = event
        self._said.append(said)
        self._thought.append(thought)
        self.ended = _member(event, "done") is True
        return said, thought

    def whole(self) -> Json:
        if not isinstance(_member(self._last, "message"), Mapping):
            return self._last
        return {**self._last, "message": {"content": "".join(self._said), "thinking": "".join(self._thought)}}


class WireProtocol(Protocol):
    """How a request is serialised and an answer parsed."""

    def address(self, preset: Endpoint) -> str: ...
    def body(
        self, model: str, prompt: Prompt, room: int, manner: RequestFormat, settings: Settings
    ) -> dict[str, Json]: ...
    def read(self, answer: Json) -> RawReply | str: ...  # or why it is not an answer
    def streamed(
        self, body: dict[str, Json], manner: RequestFormat
    ) -> dict[str, Json]: ...  # the same request, streamed
    def gathering(self) -> StreamCollector: ...  # for one streamed answer


class ChatCompletions:
    """The OpenAI protocol, as documented by OpenAI, Anthropic, Gemini, OpenRouter, vLLM and llama.cpp."""

    def address(self, preset: Endpoint) -> str:
        return f"{preset.base_url.rstrip('/')}/chat/completions"

    def body(
        self, model: str, prompt: Prompt, max_tokens: int, format: RequestFormat, settings: Settings
    ) -> dict[str, Json]:
        schema_mode = format.ways[0] if prompt.schema is not None else ""
        prompt_sent = write_schema_in_prompt(prompt) if schema_mode == "words" else prompt
        messages = format.messages(prompt_sent)
        body: dict[str, Json] = {
            "model": model,
            "messages": [{"role": turn.role, "content": _parts(turn)} for turn in messages],
            format.max_tokens_name: max_tokens,
            "temperature": prompt.temperature,
            "seed": prompt.seed,
            "reasoning_effort": settings.reasoning_effort or None,
            "logprobs": prompt.likelihood or None,
        }
        if schema_mode == "json_schema":
            schema = {"name": "reply", "schema": prompt.schema, "strict": False}
            body["response_format"] = {"type": schema_mode, "json_schema": schema}
        elif schema_mode == "json_object":
            body["response_format"] = {"type": schema_mode, "schema": prompt.schema}
        return _supported_only(body, format)

    def streamed(self, body: dict[str, Json], format: RequestFormat) -> dict[str, Json]:
        """Return the body of a streaming request, which must request the usage.

        See "stream_options" at platform.openai.com. Without streaming no such option is sent.
        """
        if "stream" in format.left_out:
            return body
        return _supported_only({**body, "stream": True, "stream_options": {"include_usage": True}}, format)

    def gathering(self) -> StreamCollector:
        return ChatCollector()

    def read(self, answer: Json) -> RawReply | str:
        """Parse an answer without assuming any structure, since servers send odd ones."""
        choice = _first(_member(answer, "choices"))
        message = _member(choice, "message")
        if not isinstance(message, Mapping):
            return "the answer holds no choices, so it is not a chat completion"
        said, thought = _answer(message, choice)
        usage = _member(answer, "usage")
        read, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        # Gemini and xAI count reasoning only in the total
        written = max(completion, _count(usage, "total_tokens") - read)
        counted = _count(_member(usage, "completion_tokens_details"), "reasoning_tokens")
        hidden = counted or written - completion or estimate_reasoning_tokens(written, thought, said)
        ended, refusal = _member(choice, "finish_reason"), message.get("refusal")
        declined = str(refusal or ("a filter withheld it" if ended == "content_filter" else ""))
        hidden, cost = min(hidden, written), _number(usage, "cost")
        return RawReply(said, str(ended), read, written, hidden, cost, declined, _logprob(choice))


class OllamaChat:
    """Ollama's own protocol (docs.ollama.com/api/chat).

    Ollama's /v1 does not pass on num_ctx and other options.
    """

    def address(self, preset: Endpoint) -> str:
        return f"{preset.base_url.rstrip('/').removesuffix('/v1')}/api/chat"

    def body(
        self, model: str, prompt: Prompt, max_tokens: int, format: RequestFormat, settings: Settings
    ) -> dict[str, Json]:
        schema_mode = format.ways[0] if prompt.schema is not None else ""
        prompt_sent = write_schema_in_prompt(prompt) if schema_mode == "words" else prompt
        options: dict[str, Json] = {"num_predict": max_tokens, "temperature": prompt.temperature}
        options |= {"seed": prompt.seed, "num_ctx": settings.num_ctx}
        body: dict[str, Json] = {
            "model": model,
            "messages": [_with_images(message) for message in format.messages(prompt_sent)],
            "stream": False,
            "options": _supported_only(options, format),
            "reasoning_effort": _THINK.get(settings.reasoning_effort),
            "format": prompt.schema if schema_mode == "format" else None,
        }
        supported = _supported_only(body, format).items()
        return {"think" if name == "reasoning_effort" else name: value for name, value in supported}

    def streamed(self, body: dict[str, Json], format: RequestFormat) -> dict[str, Json]:
        return {**body, "stream": "stream" not in format.left_out}

    def gathering(self) -> StreamCollector:
        return OllamaCollector()

    def read(self, answer: Json) -> RawReply | str:
        message = _member(answer, "message")
        if not isinstance(message, Mapping):
            return "the answer holds no message, so it is not Ollama's"
        said, thought = _answer(message, answer)
        read, written = _count(answer, "prompt_eval_count"), _count(answer, "eval_count")
        ended, hidden = str(_member(answer, "done_reason")), estimate_reasoning_tokens(written, thought, said)
        return RawReply(said, ended, read, written, hidden)


# Ollama supports low, medium, high and max for some models. Other models treat any of them as true.
_THINK: Mapping[str, Json] = {
    "none": False, "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "max",
}  # fmt: skip
PROTOCOLS: Mapping[str, WireProtocol] = {"chat completions": ChatCompletions(), "ollama": OllamaChat()}


def _supported_only(body: Mapping[str, Json], format: RequestFormat) -> dict[str, Json]:
    return {name: value for name, value in body.items() if value is not None and name not in format.left_out}


def _parts(message: Message) -> Json:
    """Return the content of a message: the text, or the text and the images."""
    if not message.images:
        return message.text
    images = [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
    return [{"type": "text", "text": message.text}, *images]


def _with_images(message: Message) -> dict[str, Json]:
    """Convert a message to Ollama's format, with images without the prefix of their data URL."""
    images = {"images": [url.partition(",")[2] or url for url in message.images]} if message.images else {}
    return {"role": message.role, "content": message.text} | images


def _member(value: Json, name: str) -> Json:
    """Return a member of a value that may not be an object, or None."""
    return value.get(name) if isinstance(value, Mapping) else None


def _first(value: Json) -> Json:
    """Return the first item of a value that may not be a list, or None."""
    return value[0] if isinstance(value, Sequence) and not isinstance(value, str) and value else None


def _texts(content: Json) -> tuple[str, str]:
    """Return the answer and the reasoning in a content: a text, or a list of parts as some servers send."""
    if isinstance(content, str):
        return content, ""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    said = "".join(p["text"] for p in parts if p.get("type") == "text" and isinstance(p.get("text"), str))
    thoughts = (p["thinking"] for p in parts if p.get("type") == "thinking" and p.get("thinking"))
    return said, "".join(map(str, thoughts))


_THOUGHT_NAMES = ("reasoning_content", "reasoning", "thinking")


def _answer(message: Mapping[str, Json], choice: Json) -> tuple[str, str]:
    """Return the answer and the reasoning in a message.

    The answer of a message without a text is in a tool call or, if the model ended by itself, what a server
    takes for its reasoning.
    """
    text, separate = _texts(message.get("content"))
    # any model may begin in a block that its template opens
    said, inside = split_reasoning(text, thinks=True)
    thoughts = (separate, inside, *(message.get(name) for name in _THOUGHT_NAMES))
    thought = str(next(filter(None, thoughts), ""))
    if said.strip():
        return said, thought
    call = _member(_first(message.get("tool_calls")), "function") or message.get("function_call")
    if arguments := _member(call, "arguments"):
        return arguments if isinstance(arguments, str) else json.dumps(arguments), thought
    ended = _member(choice, "finish_reason") or _member(choice, "done_reason")
    if thought and not inside and ended == "stop":
        return split_reasoning(thought, thinks=True)
    return said, thought


def parse_body(body: bytes, collector: StreamCollector) -> Json:
    """Parse the body of an answer, whether it is one or streamed, though nobody asked for that.

    Raises ValueError if it is neither.
    """
    if not body.lstrip().startswith((b"data:", b"event:", b":", b"id:")):
        try:
            return json.loads(body.strip())
        except ValueError as error:
            if not body.lstrip().startswith(b"{") or "Extra data" not in str(error):
                raise
    for event in collector.events(iter(body.splitlines())):
        if _member(event, "error"):
            return event
        collector.add(event)
    if not collector.ended:
        raise ValueError("it ends before its end")
    return collector.whole()


def _logprob(choice: Json) -> float | None:
    """Return the log-probability of a choice.

    None if the server does not report that of each token.
    """
    tokens = _member(_member(choice, "logprobs"), "content")
    logprobs = [_member(token, "logprob") for token in tokens] if isinstance(tokens, list) else []
    return float(sum(logprobs)) if logprobs and all(map(is_logprob, logprobs)) else None


def _number(value: Json, name: str) -> float:
    """Return a number in an answer, or 0."""
    number = _member(value, name)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return float(number) if is_number and 0 < number < _HUGE else 0.0


def _count(value: Json, name: str) -> int:
    return int(_number(value, name))
