"""What is in the answer of a server, of which nothing is taken for granted, and answers that come piece by piece put together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from kgot_lab.http.bounded import check_holders
from kgot_lab.types import Json

_DONE = b"[DONE]"


def member_of(value: Json, name: str) -> Json:
    """A member of what may be no object; None where there is none."""
    return value.get(name) if isinstance(value, Mapping) else None


def first_in(value: Json) -> Json:
    """The first of what may be no list; None where there is none."""
    return value[0] if isinstance(value, Sequence) and not isinstance(value, str) and value else None


def texts_in(content: Json) -> tuple[str, str]:
    """What is said and what is thought in a content: a text, or the list of parts that some servers send."""
    if isinstance(content, str):
        return content, ""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    said = "".join(part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str))
    return said, "".join(str(part["thinking"]) for part in parts if part.get("type") == "thinking" and part.get("thinking"))


class Gathering(Protocol):
    """The events of one answer, as a server sends them one after another; `ended` once it said that there are no more."""

    ended: bool

    def events(self, lines: Iterator[bytes]) -> Iterator[Json]: ...  # raises ValueError
    def add(self, event: Json) -> tuple[str, str]: ...  # what is said in it, and what is thought apart from that
    def whole(self) -> Json: ...  # as the server would have answered at once


class ChatGathering:
    """A chat completion in server-sent events; also one that comes at once, from a server that does not stream."""

    def __init__(self) -> None:
        self.ended = False
        self._chat = False
        self._said, self._thought, self._refusal = list[str](), list[str](), list[str]()
        self._logprobs = list[Json]()
        self._finish: Json = None
        self._usage: Json = None

    def events(self, lines: Iterator[bytes]) -> Iterator[Json]:
        for line in lines:
            if line.startswith(b"{"):
                data = b"\n".join([line, *lines])
                check_holders(data)
                self.ended = True
                yield json.loads(data)
            elif line.startswith(b"data:") and (data := line.removeprefix(b"data:").strip()):
                if data == _DONE:
                    self.ended = True
                    return
                yield json.loads(data)

    def add(self, event: Json) -> tuple[str, str]:
        self._usage = member_of(event, "usage") or self._usage
        choice = first_in(member_of(event, "choices"))
        delta = member_of(choice, "delta")
        message = delta if isinstance(delta, Mapping) else member_of(choice, "message")
        if member_of(choice, "index") or not isinstance(message, Mapping):
            return "", ""
        self._chat = True
        self._finish = member_of(choice, "finish_reason") or self._finish
        self.ended = self.ended or bool(self._finish)
        tokens = member_of(member_of(choice, "logprobs"), "content")
        self._logprobs += [{"logprob": member_of(token, "logprob")} for token in tokens] if isinstance(tokens, list) else []
        said, thought = texts_in(message.get("content"))
        thought = thought or str(message.get("reasoning_content") or message.get("reasoning") or "")
        self._said.append(said)
        self._thought.append(thought)
        self._refusal.append(str(message.get("refusal") or ""))
        return said, thought

    def whole(self) -> Json:
        if not self._chat:
            return {}
        message = {"content": "".join(self._said), "reasoning_content": "".join(self._thought), "refusal": "".join(self._refusal)}
        choice = {"message": message, "finish_reason": self._finish, "logprobs": {"content": self._logprobs}}
        return {"choices": [choice], "usage": self._usage}


class OllamaGathering:
    """Ollama's own answer: a line of JSON for each piece, and a last one with what it took."""

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
        message = member_of(event, "message")
        said, thought = str(member_of(message, "content") or ""), str(member_of(message, "thinking") or "")
        self._last = event
        self._said.append(said)
        self._thought.append(thought)
        self.ended = member_of(event, "done") is True
        return said, thought

    def whole(self) -> Json:
        if not isinstance(member_of(self._last, "message"), Mapping):
            return self._last
        return {**self._last, "message": {"content": "".join(self._said), "thinking": "".join(self._thought)}}
