"""Two protocols: chat completions, which all servers support, and Ollama's own.

Only Ollama's own sets the context size.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgot_lab.io.coroutines import run_awaitable
from kgot_lab.io.http_client import require_few_containers
from kgot_lab.llm.capabilities import RequestFormat
from kgot_lab.llm.presets import Endpoint, Settings
from kgot_lab.llm.reply_forms import from_json
from kgot_lab.llm.structured import estimate_reasoning_tokens, is_logprob, split_reasoning
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
_OTHER_FIELDS = (b":", b"event:", b"id:", b"retry:")  # of server-sent events
_ERROR_EVENT = re.compile(rb"event:\s*error\b", re.I)


class AnswerCollector:
    """The events of one answer of either protocol, streamed or in one body. `ended` is set at its end."""

    def __init__(self) -> None:
        self.ended = False
        self._texts = {name: list[str]() for name in ("content", "thinking", "refusal")}
        self._calls = dict[tuple[str, str], tuple[str, str]]()  # names and arguments by index and id
        self._logprobs, self._choice, self._others = list[Json](), dict[str, Json](), dict[str, Json]()

    def events(self, lines: Iterator[bytes]) -> Iterator[Json]:
        """Parse server-sent events, lines of JSON, or one JSON value over several lines.

        Raises ValueError for anything else.
        """
        is_error = False
        for line in lines:
            data = line.strip().removeprefix(codecs.BOM_UTF8)
            in_event = data.startswith(b"data:")
            data = data.removeprefix(b"data:").strip()
            if data == _DONE:
                self.ended = True
                return
            if not data or (not in_event and data.startswith(_OTHER_FIELDS)):
                is_error = bool(data) and (is_error or bool(_ERROR_EVENT.match(data)))
                continue
            is_told = is_error or (in_event and data[:1] not in b'{["')  # an error may be no JSON
            event = _as_error(data) if is_told else self._parse(data, iter(()) if in_event else lines)
            self.ended = self.ended or not (in_event or _member(event, "done") is False)
            yield event
            if _member(event, "done") is True:
                return

    def _parse(self, data: bytes, lines: Iterator[bytes]) -> Json:
        try:
            return json.loads(data)
        except json.JSONDecodeError:
            data = b"\n".join([data, *lines])
            require_few_containers(data)
            return json.loads(data)

    def add(self, event: Json) -> tuple[str, str]:
        """Add an event, and return the answer and the separate reasoning in it."""
        if isinstance(event, Mapping):
            self._others |= {name: value for name, value in event.items() if value}
        choice = _first(_member(event, "choices")) or event
        delta = _member(choice, "delta")
        message = delta if isinstance(delta, Mapping) else _member(choice, "message")
        if message is None and isinstance(said := _member(choice, "text"), str):  # of a completion
            message = {"content": said}
        if _member(choice, "index") or not isinstance(message, Mapping):
            return "", ""
        self._choice |= {name: value for name, value in choice.items() if value}
        self.ended = self.ended or bool(_member(choice, "finish_reason"))
        tokens = _member(_member(choice, "logprobs"), "content")
        if isinstance(tokens, list):
            self._logprobs += tokens
        said, thought = _texts(message.get("content"))
        thought = thought or str(next(filter(None, map(message.get, _THOUGHT_NAMES)), ""))
        only = message.get("function_call")
        calls = message.get("tool_calls") or (only and [{"function": only}])
        for place, call in enumerate(calls if isinstance(calls, list) else ()):
            self._add_call(place, call)
        for name, text in zip(self._texts, (said, thought, message.get("refusal")), strict=True):
            self._texts[name].append(str(text or ""))
        return said, thought

    def _add_call(self, place: int, call: Json) -> None:
        """Add a tool call, or the next part of one, which has the same index and no other id."""
        index, key, function = (_member(call, name) for name in ("index", "id", "function"))
        if not isinstance(function, Mapping):
            return
        index, key = str(place if index is None else index), str(key or "")
        known = next(
            (each for each in reversed(self._calls) if each[0] == index and key in {"", each[1]}),
            (index, key),
        )
        name, arguments = self._calls.get(known, ("", ""))
        more = _member(function, "arguments") or ""
        more = more if isinstance(more, str) else json.dumps(more)
        self._calls[known] = name or str(_member(function, "name") or ""), arguments + more

    def calls_after(self, said: str) -> str:
        """Return the tool calls as text, where what is said holds no value of its own."""
        return "" if re.search(r"[{\[]", said) else calls_as_text([*self._calls.values()])

    def read(self) -> RawReply | str:
        """Return the answer in one, or why it is not one.

        No structure is assumed, since servers send odd ones.
        """
        if not self._choice:
            return "the answer holds no choices, so it is not a chat completion"
        ended = self._choice.get("finish_reason") or self._choice.get("done_reason")
        text, thought, refusal = ("".join(parts) for parts in self._texts.values())
        said, thought = _answer(text, thought, self.calls_after, ended)
        usage = self._others.get("usage")
        read = _count(usage, "prompt_tokens") or _count(self._others, "prompt_eval_count")
        completion = _count(usage, "completion_tokens") or _count(self._others, "eval_count")
        # Gemini and xAI count reasoning only in the total
        written = max(completion, _count(usage, "total_tokens") - read)
        counted = _count(_member(usage, "completion_tokens_details"), "reasoning_tokens")
        hidden = counted or written - completion or estimate_reasoning_tokens(written, thought, said)
        declined = refusal or ("a filter withheld it" if ended == "content_filter" else "")
        hidden, cost = min(hidden, written), _number(usage, "cost")
        return RawReply(said, str(ended), read, written, hidden, cost, declined, self._logprob())

    def _logprob(self) -> float | None:
        """Return the sum of the log-probabilities, None if the server does not report that of each token."""
        logprobs = [_member(token, "logprob") for token in self._logprobs]
        return float(sum(logprobs)) if logprobs and all(map(is_logprob, logprobs)) else None


class ChatCompletions:
    """The OpenAI protocol, as documented by OpenAI, Anthropic, Gemini, OpenRouter, vLLM and llama.cpp."""

    def address(self, preset: Endpoint) -> str:
        return "/chat/completions"  # below the address of the client

    def body(
        self, model: str, prompt: Prompt, max_tokens: int, format: RequestFormat, settings: Settings
    ) -> dict[str, Json]:
        sent, way = format.adapt(prompt)
        body: dict[str, Json] = {
            "model": model,
            "messages": [{"role": turn.role, "content": _parts(turn)} for turn in sent.messages],
            format.max_tokens_name: max_tokens,
            "temperature": prompt.temperature,
            "seed": prompt.seed,
            "reasoning_effort": settings.reasoning_effort or None,
            "logprobs": prompt.likelihood or None,
        }
        if way == "json_schema":
            schema = {"name": REPLY, "schema": prompt.schema, "strict": False}
            body["response_format"] = {"type": way, "json_schema": schema}
        elif way == "json_object":
            body["response_format"] = {"type": way, "schema": prompt.schema}
        return format.supported_only(body)

    def streamed(self, body: dict[str, Json], format: RequestFormat) -> dict[str, Json]:
        """Return the body of a streaming request, which must request the usage.

        See "stream_options" at platform.openai.com. Without streaming no such option is sent.
        """
        if "stream" in format.left_out:
            return body
        return format.supported_only({**body, "stream": True, "stream_options": {"include_usage": True}})


class OllamaChat(ChatCompletions):
    """Ollama's own protocol (docs.ollama.com/api/chat).

    Ollama's /v1 does not pass on num_ctx and other options.
    """

    def address(self, preset: Endpoint) -> str:
        return f"{preset.base_url.rstrip('/').removesuffix('/v1')}/api/chat"

    def body(
        self, model: str, prompt: Prompt, max_tokens: int, format: RequestFormat, settings: Settings
    ) -> dict[str, Json]:
        sent, way = format.adapt(prompt)
        options: dict[str, Json] = {"num_predict": max_tokens, "temperature": prompt.temperature}
        options |= {"seed": prompt.seed, "num_ctx": settings.num_ctx}
        body: dict[str, Json] = {
            "model": model,
            "messages": [_with_images(message) for message in sent.messages],
            "stream": False,
            "options": format.supported_only(options),
            "reasoning_effort": _THINK.get(settings.reasoning_effort),
            "format": prompt.schema if way == "format" else None,
        }
        supported = format.supported_only(body).items()
        return {"think" if name == "reasoning_effort" else name: value for name, value in supported}

    def streamed(self, body: dict[str, Json], format: RequestFormat) -> dict[str, Json]:
        return {**body, "stream": "stream" not in format.left_out}


# Ollama supports low, medium, high and max for some models. Other models treat any of them as true.
_THINK: Mapping[str, Json] = {
    "none": False, "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "max",
}  # fmt: skip
PROTOCOLS: Mapping[str, ChatCompletions] = {"chat completions": ChatCompletions(), "ollama": OllamaChat()}


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


def _as_error(data: bytes) -> Json:
    """Return the answer that is an error from what a server sends as one."""
    error = from_json(data.decode(errors="replace"))
    return error if _member(error, "error") else {"error": error}


def _member(value: Json, name: str) -> Json:
    """Return a member of a value that may not be an object, or None."""
    return value.get(name) if isinstance(value, Mapping) else None


def _first(value: Json) -> Json:
    """Return the first item of a value that may not be a list, or None."""
    return value[0] if isinstance(value, Sequence) and not isinstance(value, str) and value else None


def _texts(content: Json) -> tuple[str, str]:
    """Return the answer and the reasoning in a content: a text, or parts or an object as some servers send."""
    if isinstance(content, str):
        return content, ""
    listed = content if isinstance(content, list) else [] if content is None else [content]
    parts = [part for part in listed if isinstance(part, Mapping)]
    if parts and not any("type" in part or part.keys() == {"text"} for part in parts):  # the value asked for
        return json.dumps(content, ensure_ascii=False), ""
    texts = [part if isinstance(part, str) else _member(part, "text") for part in listed]
    said = "".join(text for text in texts if isinstance(text, str))
    thoughts = (p["thinking"] for p in parts if p.get("type") == "thinking" and p.get("thinking"))
    return said, "".join(map(str, thoughts))


def ask_langchain(chat: Any, prompt: Prompt, **options: Any) -> RawReply:
    """Ask a chat model of LangChain, or an object with the same `invoke`. Its text may be no text."""
    messages = [{"role": turn.role, "content": _parts(turn)} for turn in prompt.messages]
    invoke = getattr(chat, "invoke", None) or chat.ainvoke
    message: Any = run_awaitable(invoke(messages, **options))
    content, usage = getattr(message, "content", message), getattr(message, "usage_metadata", None)
    said = _texts(content)[0] if isinstance(content, list | Mapping) else content
    calls = getattr(message, "tool_calls", None)
    if calls and isinstance(calls, list) and not said:
        said = calls_as_text([(call.get("name"), call.get("args")) for call in calls])
    ends = (
        _member(getattr(message, "response_metadata", None), f"{name}_reason")
        for name in ("finish", "stop", "done")
    )
    read, written = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    thought = _count(_member(usage, "output_token_details"), "reasoning")
    return RawReply(said, str(next(filter(None, ends), "")), read, written, thought)


def calls_as_text(calls: Sequence[tuple[Json, Json]]) -> str:
    """Return tool calls, names and arguments, as JSON, and of the reply that was asked for its arguments alone."""
    if [name for name, _ in calls] in ([""], [None], [REPLY]) and isinstance(calls[0][1], str):
        return calls[0][1]
    listed = [{"name": name, "arguments": from_json(given)} for name, given in calls]
    return "\n".join(json.dumps(call, ensure_ascii=False) for call in listed)


REPLY = "reply"  # the name of the schema of a structured reply
_THOUGHT_NAMES = ("reasoning_content", "reasoning", "thinking")


def _answer(text: str, thought: str, calls_after: Callable[[str], str], ended: Json) -> tuple[str, str]:
    """Return the answer and the reasoning in the texts of a message.

    Tool calls are a part of the answer. That of a message without either is, if the model ended by itself, what a
    server takes for its reasoning.
    """
    # any model may begin in a block that its template opens
    said, inside = split_reasoning(text, thinks=True)
    if calls := calls_after(said):
        said = f"{said}\n{calls}".strip()
    elif not said.strip() and thought and not inside and ended == "stop":
        return split_reasoning(thought, thinks=True)
    return said, thought or inside


def _number(value: Json, name: str) -> float:
    """Return a number in an answer, or 0."""
    number = _member(value, name)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return float(number) if is_number and 0 < number < _HUGE else 0.0


def _count(value: Json, name: str) -> int:
    return int(_number(value, name))
