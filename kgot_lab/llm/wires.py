"""The two ways of talking to a server: chat completions, which all speak, and Ollama's own, which alone sets its context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kgot_lab.llm.answers import ChatGathering, Gathering, OllamaGathering, first_in, member_of, texts_in
from kgot_lab.llm.manner import Manner
from kgot_lab.llm.presets import Endpoint
from kgot_lab.llm.settings import Settings
from kgot_lab.llm.structured import is_logprob, schema_in_words
from kgot_lab.llm.thinking import share_of, split_thought
from kgot_lab.types import Json, Message, Prompt


@dataclass(frozen=True)
class RawReply:
    """What came back, before it is known to be of use: texts, tokens, and how it ended."""

    said: str
    ended: str
    read: int
    written: int  # thoughts included
    thought: int = 0
    charged: float = 0.0  # US dollars, where the server tells
    declined: str = ""  # the words with which the model would not answer
    logprob: float | None = None  # of all tokens whose logprob the server tells; whether an end mark is one of them is its own choice


_HUGE = 1e12  # tokens or dollars that no server means


class Wire(Protocol):
    """How a request is written and an answer read."""

    def address(self, preset: Endpoint) -> str: ...
    def body(self, model: str, prompt: Prompt, room: int, manner: Manner, settings: Settings) -> dict[str, Json]: ...
    def read(self, answer: Json, *, thinks: bool) -> RawReply | str: ...  # or why it is no answer
    def streamed(self, body: dict[str, Json], manner: Manner) -> dict[str, Json]: ...  # the same request, to be answered piece by piece
    def gathering(self) -> Gathering: ...  # of the pieces of one answer


class ChatCompletions:
    """The OpenAI protocol, as docs of OpenAI, Anthropic, Gemini, OpenRouter, vLLM and llama.cpp describe it."""

    def address(self, preset: Endpoint) -> str:
        return f"{preset.base_url.rstrip('/')}/chat/completions"

    def body(self, model: str, prompt: Prompt, room: int, manner: Manner, settings: Settings) -> dict[str, Json]:
        way = manner.ways[0] if prompt.schema is not None else ""
        asked = schema_in_words(prompt) if way == "words" else prompt
        body: dict[str, Json] = {
            "model": model,
            "messages": [{"role": message.role, "content": _parts(message)} for message in asked.messages],
            manner.max_tokens_name: room,
            "temperature": prompt.temperature,
            "seed": prompt.seed,
            "reasoning_effort": settings.reasoning_effort or None,
            "logprobs": prompt.likelihood or None,
        }
        if way == "json_schema":
            body["response_format"] = {"type": way, "json_schema": {"name": "reply", "schema": prompt.schema, "strict": False}}
        elif way == "json_object":
            body["response_format"] = {"type": way, "schema": prompt.schema}
        return _sent(body, manner)

    def streamed(self, body: dict[str, Json], manner: Manner) -> dict[str, Json]:
        """Its usage has to be asked for (platform.openai.com, "stream_options"); what does not stream takes no options for it."""
        return body if "stream" in manner.left_out else _sent({**body, "stream": True, "stream_options": {"include_usage": True}}, manner)

    def gathering(self) -> Gathering:
        return ChatGathering()

    def read(self, answer: Json, *, thinks: bool) -> RawReply | str:
        """Servers send odd answers, so nothing is taken for granted."""
        choice = first_in(member_of(answer, "choices"))
        message = member_of(choice, "message")
        if not isinstance(message, Mapping):
            return "the answer holds no choices, so it is not a chat completion"
        text, apart = texts_in(message.get("content"))
        said, inside = split_thought(text, thinks=thinks)
        thought = next((words for words in (apart, inside, message.get("reasoning_content"), message.get("reasoning")) if words), "")
        usage = member_of(answer, "usage")
        read, plain = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        written = max(plain, _count(usage, "total_tokens") - read)  # Gemini and xAI count thoughts only in the total
        counted = _count(member_of(usage, "completion_tokens_details"), "reasoning_tokens")
        hidden = counted or written - plain or share_of(written, str(thought), said)
        ended, refusal = member_of(choice, "finish_reason"), message.get("refusal")
        declined = str(refusal or ("a filter withheld it" if ended == "content_filter" else ""))
        return RawReply(said, str(ended), read, written, min(hidden, written), _number(usage, "cost"), declined, _logprob(choice))


class OllamaChat:
    """Ollama's own protocol (docs.ollama.com/api/chat): /v1 of Ollama passes on neither num_ctx nor other options."""

    def address(self, preset: Endpoint) -> str:
        return f"{preset.base_url.rstrip('/').removesuffix('/v1')}/api/chat"

    def body(self, model: str, prompt: Prompt, room: int, manner: Manner, settings: Settings) -> dict[str, Json]:
        way = manner.ways[0] if prompt.schema is not None else ""
        asked = schema_in_words(prompt) if way == "words" else prompt
        options = {"num_predict": room, "temperature": prompt.temperature, "seed": prompt.seed, "num_ctx": settings.num_ctx}
        body: dict[str, Json] = {
            "model": model,
            "messages": [_with_images(message) for message in asked.messages],
            "stream": False,
            "options": _sent(options, manner),
            "reasoning_effort": _THINK.get(settings.reasoning_effort),
            "format": prompt.schema if way == "format" else None,
        }
        return {{"reasoning_effort": "think"}.get(name, name): value for name, value in _sent(body, manner).items()}

    def streamed(self, body: dict[str, Json], manner: Manner) -> dict[str, Json]:
        return {**body, "stream": "stream" not in manner.left_out}

    def gathering(self) -> Gathering:
        return OllamaGathering()

    def read(self, answer: Json, *, thinks: bool) -> RawReply | str:
        message = member_of(answer, "message")
        if not isinstance(message, Mapping):
            return "the answer holds no message, so it is not Ollama's"
        said, inside = split_thought(str(message.get("content") or ""), thinks=thinks)
        thought = str(message.get("thinking") or inside)
        read, written = _count(answer, "prompt_eval_count"), _count(answer, "eval_count")
        return RawReply(said, str(member_of(answer, "done_reason")), read, written, share_of(written, thought, said))


# Ollama knows low, medium, high and max for some models; the others take any of them as yes.
_THINK: Mapping[str, Json] = {
    "none": False, "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "max",
}  # fmt: skip
WIRES: Mapping[str, Wire] = {"chat completions": ChatCompletions(), "ollama": OllamaChat()}


def _sent(body: Mapping[str, Json], manner: Manner) -> dict[str, Json]:
    return {name: value for name, value in body.items() if value is not None and name not in manner.left_out}


def _parts(message: Message) -> Json:
    """A text alone, or a text and the images that belong to it."""
    if not message.images:
        return message.text
    images = [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
    return [{"type": "text", "text": message.text}, *images]


def _with_images(message: Message) -> dict[str, Json]:
    """A message as Ollama takes it: images without the head of their data URL."""
    images = {"images": [url.partition(",")[2] or url for url in message.images]} if message.images else {}
    return {"role": message.role, "content": message.text} | images


def _logprob(choice: Json) -> float | None:
    """The logprob of a choice; None where the server does not tell that of each token it lists."""
    tokens = member_of(member_of(choice, "logprobs"), "content")
    told = [member_of(token, "logprob") for token in tokens] if isinstance(tokens, list) else []
    return float(sum(told)) if told and all(map(is_logprob, told)) else None


def _number(value: Json, name: str) -> float:
    """A number in an answer, 0 where there is none."""
    told = member_of(value, name)
    return float(told) if isinstance(told, int | float) and not isinstance(told, bool) and 0 < told < _HUGE else 0.0


def _count(value: Json, name: str) -> int:
    return int(_number(value, name))
