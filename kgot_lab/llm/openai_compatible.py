"""Models on servers that speak the OpenAI protocol, with retries one can see and a key nobody can."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from kgot_lab.errors import LLMError
from kgot_lab.llm.presets import ENDPOINTS, Endpoint, Price, price_of, server_at
from kgot_lab.llm.structured import schema_in_words
from kgot_lab.types import Json, Message, Prompt, Reply, Usage

__all__ = ["ENDPOINTS", "Endpoint", "OpenAICompatible", "Patience", "Price", "server_at"]


@dataclass(frozen=True)
class Patience:
    """How long to try; times in seconds."""

    attempts: int = 6  # requests in all
    timeout: float = 120.0  # of one request
    first_wait: float = 1.0
    longest_wait: float = 60.0
    longest_asked: float = 300.0  # a server that asks to wait longer is not waited for


@dataclass(frozen=True)
class Refusal:
    """Why one request failed, and whether trying again may help; `wait` is what the server asked for, in seconds."""

    reason: str
    status: int = 0  # HTTP status, 0 if there was no answer
    again: bool = False
    wait: float | None = None


class OpenAICompatible:
    """Answers with a model on a server.

    Retries rate limits, time-outs, broken connections and server faults with growing, jittered waits, and tells `say` of each.
    What the server refuses (a seed, a temperature, a response format) is left out from then on and listed in `left_out`.
    Raises LLMError: at once when the key is missing, else with the server's own message and what to do. The key is in no text.
    """

    def __init__(
        self,
        preset: Endpoint,
        model: str,
        *,
        patience: Patience = Patience(),
        price: Price | None = None,
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = lambda _: None,
    ):
        import openai

        self.name = f"{preset.name}:{model}"
        self.preset, self.model, self.patience = preset, model, patience
        self.price = price or price_of(preset, model)
        self.left_out: list[str] = []
        self.requests = 0
        self._sleep, self._say = sleep, say
        self._max_tokens_name = preset.max_tokens_name
        self._ways = preset.schema_ways
        self._client = openai.OpenAI(api_key=_key(preset), base_url=preset.base_url, timeout=patience.timeout, max_retries=0)

    @property
    def cost_known(self) -> bool:
        """Whether this model's price is known; where it is not, usage says cost 0."""
        return self.price is not None

    def __call__(self, prompt: Prompt) -> Reply:
        started, attempt = time.perf_counter(), 1
        while True:
            outcome = self._request(prompt)
            if isinstance(outcome, Reply):
                return replace(outcome, usage=replace(outcome.usage, seconds=time.perf_counter() - started))
            if self._gave_way(outcome, prompt, attempt):
                continue
            if not outcome.again or attempt >= self.patience.attempts:
                raise LLMError(self._advice(outcome, attempt))
            wait = self._wait(outcome, attempt)
            self._say(f"{self.name}: {outcome.reason}; request {attempt} of {self.patience.attempts}, the next in {wait:.1f} s")
            self._sleep(wait)
            attempt += 1

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _request(self, prompt: Prompt) -> Reply | Refusal:
        """Send one request; its reply, or why there is none. Errors of the client stay inside: they hold the key."""
        import openai

        self.requests += 1
        try:
            answer = self._client.chat.completions.create(**self._body(prompt))
        except openai.APITimeoutError:
            return Refusal(f"no answer within {self.patience.timeout:g} s", again=True)
        except openai.APIConnectionError as error:
            cause = str(error.__cause__ or error) or "the connection broke"
            return Refusal(self._keyless(f"no connection to {self.preset.base_url}: {cause}"), again=True)
        except openai.APIStatusError as error:
            return self._status_refusal(error)
        except (openai.APIError, ValueError) as error:  # ValueError: the body is not JSON
            return Refusal(self._keyless(f"the answer is not a chat completion: {error}"))
        return self._reply(answer)

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        way = self._ways[0] if prompt.schema is not None else ""
        asked = schema_in_words(prompt) if way == "words" else prompt
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": message.role, "content": _content(message)} for message in asked.messages],
            self._max_tokens_name: prompt.max_tokens,
            "temperature": prompt.temperature,
        }
        if prompt.seed is not None and self.preset.takes_seed:
            body["seed"] = prompt.seed
        if way == "json_schema":
            body["response_format"] = {"type": way, "json_schema": {"name": "reply", "schema": prompt.schema, "strict": False}}
        elif way == "json_object":
            body["response_format"] = {"type": way, "schema": prompt.schema}
        return {name: value for name, value in body.items() if name not in self.left_out}

    def _reply(self, answer: Any) -> Reply | Refusal:
        """The reply in a chat completion; servers send odd ones, so nothing is taken for granted."""
        choices = getattr(answer, "choices", None) or [None]
        message = getattr(choices[0], "message", None)
        if message is None:
            return Refusal("the answer holds no choices, so it is not a chat completion")
        content = getattr(message, "content", None)
        if not content or not isinstance(content, str):
            why = getattr(message, "refusal", None) or f"it ended with {getattr(choices[0], 'finish_reason', None)!r}"
            return Refusal(self._keyless(f"the reply is empty: {why}. If it ended with 'length', ask with a larger max_tokens"))
        read, written = (_number(answer.usage, name) for name in ("prompt_tokens", "completion_tokens"))
        told = _number(answer.usage, "cost")  # OpenRouter reports what it charged
        counted = self.price.of(int(read), int(written)) if self.price else 0.0
        cut = getattr(choices[0], "finish_reason", None) == "length"
        return Reply(content, Usage(int(read), int(written), cost=told or counted), cut=cut)

    def _status_refusal(self, error: Any) -> Refusal:
        spent = getattr(error, "code", None) == "insufficient_quota"  # a 429 that no waiting mends
        reason = self._keyless(f"HTTP {error.status_code}: {_message(error)}")
        wait = _asked_wait(error.response.headers)
        if wait is not None and wait > self.patience.longest_asked:
            return Refusal(f"{reason} (it asks to wait {wait:.0f} s)", error.status_code)
        return Refusal(reason, error.status_code, not spent and (error.status_code in {408, 409, 429} or error.status_code >= 500), wait)

    def _gave_way(self, refusal: Refusal, prompt: Prompt, attempt: int) -> bool:
        """Whether something the server does not take was found and will not be sent again."""
        told = refusal.reason.lower()
        way, more = (self._ways[0], len(self._ways) > 1) if prompt.schema is not None else ("", False)
        schema_refused = refusal.status in {400, 422} and re.search("response_format|json_schema|json_object|schema|grammar", told)
        # llama-cpp-python's server refuses json_schema with a 500
        stuck = refusal.status == 500 and attempt >= 2 and way == "json_schema" and "json_object" in self._ways
        if more and (schema_refused or stuck):
            self.left_out.append(way)
            self._ways = self._ways[1:]
            return True
        other = "max_tokens" if self._max_tokens_name == "max_completion_tokens" else "max_completion_tokens"
        if _refused(refusal, r"max_(completion_)?tokens") and other in told and other not in self.left_out:
            self.left_out.append(self._max_tokens_name)
            self._max_tokens_name = other
            return True
        for name in ("temperature", "seed"):
            if name not in self.left_out and _refused(refusal, name):
                self.left_out.append(name)
                return True
        return False

    def _wait(self, refusal: Refusal, attempt: int) -> float:
        """Seconds to wait: what the server asked for, else twice as long each time, with jitter so that clients part."""
        if refusal.wait is not None:
            return refusal.wait
        return min(self.patience.longest_wait, self.patience.first_wait * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)

    def _advice(self, refusal: Refusal, attempt: int) -> str:
        where = f"the list of models of {self.preset.name}"
        what = {
            0: f"Is the server running at {self.preset.base_url}?" if refusal.again else "Is this the address of an OpenAI-compatible API?",
            400: "The request does not suit this model: another model or smaller limits may.",
            401: f"Check the key in the environment variable {self.preset.key_variable}.",
            403: f"The key in {self.preset.key_variable} may not use this model.",
            404: f"Check the model name {self.model!r} against {where}, and the address {self.preset.base_url}.",
            429: "The rate limit or quota is used up: wait, ask less often, or look at the account.",
        }.get(refusal.status, "Try again later or use another model.")
        tries = f" after {attempt} requests" if attempt > 1 else ""
        return f"{self.name} did not answer{tries}: {refusal.reason}. {what}"

    def _keyless(self, text: str) -> str:
        """A text without the key, nor anything that looks like one; servers echo keys in their messages."""
        key = self._client.api_key
        return re.sub(r"\b(sk-|AIza)[-\w*.]{8,}", "…", text.replace(key, "…") if len(key) > 4 else text)[:600]

    def __repr__(self) -> str:
        without = f", without {', '.join(self.left_out)}" if self.left_out else ""
        return f"<{self.name}: {self.requests} requests{without}, price {'known' if self.cost_known else 'unknown'}>"


def _key(preset: Endpoint) -> str:
    key = os.environ.get(preset.key_variable, "").strip()
    if not key and preset.key_needed:
        raise LLMError(f"{preset.name} needs a key: set the environment variable {preset.key_variable}. Nothing was sent.")
    return key or "none"


def _content(message: Message) -> str | list[dict[str, Any]]:
    """A text alone, or a text and the images that belong to it."""
    if not message.images:
        return message.text
    images = [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
    return [{"type": "text", "text": message.text}, *images]


def _message(error: Any) -> str:
    """The server's own words."""
    body: Json = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        told = inner.get("message") if isinstance(inner, dict) else inner
        return str(told or body.get("detail") or body)
    return str(body or error.message)


def _asked_wait(headers: Any) -> float | None:
    """Seconds in a Retry-After header: a number, or an HTTP date (RFC 9110, 10.2.3)."""
    told = headers.get("retry-after")
    try:
        return max(0.0, float(told)) if told else None
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _refused(refusal: Refusal, name: str) -> bool:
    """Whether a server says that it does not take a parameter, as against not taking its value as too large."""
    unknown = r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|deprecated|only the default"
    told = refusal.reason.lower()
    return refusal.status in {400, 422} and re.search(name, told) is not None and re.search(unknown, told) is not None


def _number(value: Any, name: str) -> float:
    """A number in an answer, 0 where there is none."""
    told = getattr(value, name, None)
    return float(told) if isinstance(told, (int, float)) else 0.0
