"""What is known of a server's capabilities, and the classification of failed requests.

A parameter that a server refused is not sent again.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from kgot_lab.io.http_client import UnusableBody, describe_proxy, is_retryable_status, proxy_variable
from kgot_lab.llm.structured import write_schema_in_prompt
from kgot_lab.types import Json, Message, Prompt

_UNSUPPORTED = (
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|deprecated|only the default|(may|can) only be"
    r"|must be verified"
)
# Parameters that a server may refuse, and patterns of its messages. Ollama says only that the model "does not
# support thinking".
_OPTIONAL = {
    "temperature": "temperature",
    "seed": "seed",
    "reasoning_effort": "reasoning_effort|reasoning effort|thinking",
}

# What servers say whose chat template has no system message, as 400 or 500.
_NO_SYSTEM = re.compile(
    r"(system|developer)['\"`]?s?\s+(role|message|prompt|instruction|turn)|role\b.{0,80}\bsystem\b|\brole\b.{0,200}\buser\b.{0,20}\bassistant\b"
    r"|roles must alternate|only user and assistant|(start|begin|first).{0,40}\buser\b",
    re.S,
)
_SYSTEM = "system role"

# The same for streaming. OpenAI allows streaming of some models only to verified organizations.
_STREAMING = {"stream_options": "stream_options|include_usage", "stream": r"\bstream(ing)?\b"}

# Without logprobs OpenAI returns 403, and llama-cpp-python's server 500.
_NO_LOGPROBS = {400, 403, 422, 500, 501}
# prefix of our own reasons
_FAILURE_KINDS = ("no answer within", "no connection", "the answer ends before its end", "the reply is empty")
_GATEWAY_TIMEOUTS = {504, 524}  # a gateway gave up on the server; the second is Cloudflare's


@dataclass(frozen=True)
class Refusal:
    """Why a request failed, and whether to retry.

    `wait` is the delay that the server requested, in seconds. The reason may contain the key, which servers
    and clients repeat. It is removed where the reason is shown.
    """

    reason: str
    status: int = 0  # HTTP status, 0 if there was no answer
    again: bool = False
    wait: float | None = None
    advice: str = ""  # what to do, if known better than by the status
    perhaps_charged: bool = False  # whether the server may have answered and charged
    broke_off: bool = False  # whether a part of the answer was passed on

    @property
    def kind(self) -> str:
        """The kind of failure, without the server's words."""
        if self.status:
            return f"HTTP {self.status}"
        return next((k for k in _FAILURE_KINDS if self.reason.startswith(k)), "no answer that can be used")


class ServerMessage(str):
    """A message about a failed request.

    `unquoted` omits the server's own words, which a log must not contain.
    """

    unquoted: str

    def __new__(cls, text: str, unquoted: str) -> ServerMessage:
        message = super().__new__(cls, text)
        message.unquoted = unquoted
        return message


def omit_quotes(text: str) -> str:
    """Return a message about waits without the server's words."""
    return text.unquoted if isinstance(text, ServerMessage) else text


@dataclass(frozen=True)
class RequestFormat:
    """The request format for a server.

    The remaining ways to request a schema, best first, the name of max_tokens, omitted parameters, and the
    allowance for reasoning.
    """

    ways: tuple[str, ...]
    max_tokens_name: str
    allowance: int = 0
    left_out: tuple[str, ...] = ()

    def next_after(
        self, refusal: Refusal, prompt: Prompt, attempt: int, *, streams: bool = False
    ) -> RequestFormat | None:
        """Return the next request format to try after a refusal.

        None if the refusal names nothing that the server does not support.
        """
        told, refused = refusal.reason.lower(), refusal.status in {400, 422}
        may_refuse = "logprobs" not in self.left_out and refusal.status in _NO_LOGPROBS
        if prompt.likelihood and may_refuse and "logprob" in told:
            return replace(self, left_out=(*self.left_out, "logprobs"))
        if prompt.schema is not None and len(self.ways) > 1:
            names_schema = re.search("response_format|json_schema|json_object|schema|grammar", told)
            # llama-cpp-python's server refuses json_schema with a 500
            stuck = refusal.status == 500 and attempt >= 2 and self.ways[0] == "json_schema"
            if (refused and names_schema) or (stuck and "json_object" in self.ways):
                return replace(self, ways=self.ways[1:], left_out=(*self.left_out, self.ways[0]))
        has_system = any(message.role == "system" for message in prompt.messages)
        may_refuse = has_system and _SYSTEM not in self.left_out and refusal.status in {400, 422, 500}
        if may_refuse and _NO_SYSTEM.search(told):
            return replace(self, left_out=(*self.left_out, _SYSTEM))
        other = "max_tokens" if self.max_tokens_name == "max_completion_tokens" else "max_completion_tokens"
        names_limit = _is_unsupported(refusal, r"max_(completion_)?tokens")
        if names_limit and other in told and other not in self.left_out:
            return replace(self, max_tokens_name=other, left_out=(*self.left_out, self.max_tokens_name))
        for name, words in (_OPTIONAL | (_STREAMING if streams else {})).items():
            if name not in self.left_out and _is_unsupported(refusal, words):
                return replace(self, left_out=(*self.left_out, name))
        too_long = re.search(r"max_(completion_)?tokens|context length|context window|output tokens", told)
        if self.allowance and refused and too_long:
            # the model cannot generate that many tokens
            return replace(self, allowance=0, left_out=(*self.left_out, "allowance"))
        return None

    def adapt(self, prompt: Prompt) -> tuple[Prompt, str]:
        """Return the prompt to send, and how its schema is requested, "" without one.

        Without a system role its text begins the first message of the user.
        """
        way = self.ways[0] if prompt.schema is not None else ""
        prompt = write_schema_in_prompt(prompt) if way == "words" else prompt
        if _SYSTEM not in self.left_out:
            return prompt, way
        told = [message.text for message in prompt.messages if message.role == "system"]
        others = [message for message in prompt.messages if message.role != "system"]
        first = others.pop(0) if others and others[0].role == "user" else Message("user", "")
        first = replace(first, text="\n\n".join(filter(None, [*told, first.text])))
        return replace(prompt, messages=(first, *others)), way

    def supported_only(self, body: Mapping[str, Json]) -> dict[str, Json]:
        """Return the members of a body that are set and that the server does not refuse."""
        return {n: value for n, value in body.items() if value is not None and n not in self.left_out}


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """Parse a Retry-After header to seconds: a number, or an HTTP date (RFC 9110, 10.2.3)."""
    header = headers.get("retry-after", "")
    if re.fullmatch(r"\d+(\.\d*)?", header, re.ASCII):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _is_unsupported(refusal: Refusal, name: str) -> bool:
    """Return whether a server does not support a parameter, rather than finding its value too large."""
    reason = refusal.reason.lower()
    is_named = re.search(name, reason) is not None and re.search(_UNSUPPORTED, reason) is not None
    return refusal.status in {400, 422} and is_named


@dataclass(frozen=True)
class RequestTarget:
    """Where a request was sent, its timeout, the longest delay that a server may request, and what it answers.

    `more_time` is how a caller allows more seconds.
    """

    address: str
    seconds: float
    longest_asked: float
    answer: str = "a chat completion"
    more_time: str = "patience=RetryPolicy(timeout=SECONDS)"


def classify_error(error: Exception, sending: RequestTarget) -> Refusal:
    """Classify an error of the client."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        reason, arrived = f"no answer within {sending.seconds:.3g} s", _may_have_arrived(error)
        advice = f"Allow it more with {sending.more_time}, or ask for less." if arrived else ""
        return Refusal(reason, again=True, perhaps_charged=arrived, advice=advice)
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(cause, UnusableBody):  # received, and perhaps charged
        return Refusal(str(cause), perhaps_charged=True, advice="Look at the server, or use another one.")
    if isinstance(error, openai.APIConnectionError):
        return _no_connection(error, sending.address)
    if isinstance(error, openai.APIStatusError):
        return _status_refusal(error, sending.longest_asked)
    if isinstance(error, UnicodeEncodeError):  # a lone surrogate
        advice = "Take that letter out of the prompt. Nothing was sent."
        return Refusal(f"the prompt cannot be sent: {error}", advice=advice)
    # not JSON, or nested too deeply
    return Refusal(f"the answer is not {sending.answer}: {error}", perhaps_charged=True)


def as_interrupted(refusal: Refusal, error: Exception | None = None) -> Refusal:
    """Return the refusal for an answer that broke off after some of it was passed on.

    It may have been charged. A request after it begins the answer again.
    """
    import openai

    reason = refusal.reason
    if isinstance(error, openai.APITimeoutError):
        reason = f"it was not complete in time ({reason})"
    elif isinstance(error, openai.APIConnectionError):
        reason = f"the connection broke ({error.__cause__ or error})"
    advice = refusal.advice or ("" if refusal.status else "What came is not the whole answer: ask again.")
    return replace(refusal, reason=reason, advice=advice, broke_off=True)


def error_in_answer(answer: Json) -> Refusal | None:
    """Return the error inside an answer of status 200, or None.

    A gateway reports errors of the server behind it in this way, with the status as the error's code.
    """
    problem = _error_in(answer)
    if problem is None:
        return None
    reason, status = problem
    if not status:
        advice, again = "Try again later or use another model.", _SERVER_FAILED.search(reason) is not None
        return Refusal(f"the answer is an error: {reason}", again=again, advice=advice, perhaps_charged=True)
    again, timed_out = is_retryable_status(status), status in _GATEWAY_TIMEOUTS
    reason = f"HTTP {status}, reported within an answer: {reason}"
    return Refusal(reason, status, again, perhaps_charged=timed_out)


_SERVER_FAILED = re.compile(
    "out of memory|overloaded|temporarily|unavailable|rate.?limit|internal|server.?error", re.I
)
_ANSWERS = {"choices", "data", "done"}  # members of what is no error


def _error_in(answer: Json) -> tuple[str, int] | None:
    """Return the message and status of an error in an answer, or None.

    The status is 0 if the error's code is not a status.
    """
    if not isinstance(answer, Mapping):
        return None
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    has_message = any(isinstance(answer.get(name), str | list) for name in _MESSAGES)
    is_error = has_message and not _ANSWERS & answer.keys()
    error = answer.get("error") or choice.get("error") or (answer if is_error else None)
    if not error:
        return None
    told = error if isinstance(error, Mapping) else {}
    message = next((told[name] for name in _MESSAGES if told.get(name)), error)
    codes = (str(told.get(name)) for name in ("code", "status", "status_code"))
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9]{2}", code)), 0)
    kind = "" if status else told.get("type")
    return f"{message} ({kind})" if kind else str(message), status


_MESSAGES = ("message", "detail", "error")


def _may_have_arrived(error: Exception) -> bool:
    """Return whether an unanswered request may have reached the server.

    The client's exception classes come from httpx or httpx2.
    """
    return type(error.__cause__).__name__ in {"ReadTimeout", "ReadError", "RemoteProtocolError"}


def _no_connection(error: Exception, address: str) -> Refusal:
    """Explain a failed connection and whether to retry. TLS failures are permanent."""
    cause = str(error.__cause__ or error) or "the connection broke"
    reason, tls_error = f"no connection to {address}{describe_proxy(address)}: {cause}", error.__cause__
    # the proxy's own answer, not worth a retry
    if (variable := proxy_variable(address)) and re.match(r"4\d\d\b", cause):
        advice = f"It is the proxy that refused: look at {variable}, or name the server in NO_PROXY."
        return Refusal(reason, advice=advice)
    while tls_error is not None and not isinstance(tls_error, ssl.SSLError):
        tls_error = tls_error.__cause__ or tls_error.__context__
    is_tls = tls_error is not None and not isinstance(tls_error, ssl.SSLEOFError)
    if not is_tls or type(error.__cause__).__name__ != "ConnectError":
        return Refusal(reason, again=True, perhaps_charged=_may_have_arrived(error))
    advice = "Such a server may speak no TLS: try the address with http:// in place of https://."
    if isinstance(tls_error, ssl.SSLCertVerificationError):
        advice = "If the server is yours, name its certificate, or that of its authority, in SSL_CERT_FILE."
    return Refusal(reason, advice=advice)


def _status_refusal(error: Any, longest_asked: float) -> Refusal:
    status = error.status_code
    spent = getattr(error, "code", None) == "insufficient_quota"  # a 429 that a retry does not solve
    reason = f"HTTP {status}: {_message(error)}"
    wait = requested_wait(error.response.headers)
    if wait is not None and wait > longest_asked:
        return Refusal(f"{reason} (it asks to wait {wait:.0f} s)", status)
    again = not spent and is_retryable_status(status)
    return Refusal(reason, status, again, wait, perhaps_charged=status in _GATEWAY_TIMEOUTS)


def _message(error: Any) -> str:
    """Return the server's own error message."""
    body: Json = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        return str(message or body.get("detail") or body)
    return str(body or error.message)
