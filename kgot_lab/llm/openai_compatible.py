"""Models on servers with the OpenAI protocol or Ollama's, with visible retries and protected keys."""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, LLMError, require_parts
from kgot_lab.io.http_client import bounded_client, proxy_options, proxy_variable
from kgot_lab.llm.budget import (
    CHARACTERS_PER_TOKEN,
    MIN_TIMEOUT,
    estimate_tokens,
    report_possible_charge,
    require_budget_for_retry,
    seconds_left,
    text_tokens,
)
from kgot_lab.llm.capabilities import Refusal, RequestFormat, RequestTarget, ServerMessage, as_interrupted
from kgot_lab.llm.keys import authorization_headers, key_for, mask_key, remove_key
from kgot_lab.llm.presets import ENDPOINTS, Endpoint, Price, RetryPolicy, Settings, price_of, server_at
from kgot_lab.llm.streaming import IncomingAnswer
from kgot_lab.llm.structured import is_reasoning_model
from kgot_lab.llm.transport import PROTOCOLS, RawReply
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.types import Json, Prompt, Reply, Usage

__all__ = ["ENDPOINTS", "Endpoint", "OpenAICompatible", "Price", "RetryPolicy", "Settings", "server_at"]

_PATIENT, _AS_PROMPTED = RetryPolicy(), Settings()
_EMPTY_REPLY = "the reply is empty"
_READS, _WRITES = "reads", "writes"
_BOTH_COUNTS = frozenset({_READS, _WRITES})  # the token counts that a server may not report
_LONG_PROMPT = 3_000  # tokens, as estimated: no shorter prompt is cut by a context of 2,048
_MIN_SHARE_READ = 4  # a prompt has at least this part of the estimated tokens
_OLLAMA_CONTEXT = 4_096  # tokens of the context that Ollama loads a model with unless asked for another


@dataclass
class _CallState:
    """The state of a call: the prompt as sent, the requests so far, empty replies, and their usage."""

    prompt: Prompt
    streams: bool = False  # whether the answer is streamed
    attempt: int = 1
    empty: int = 0
    spent: Usage = Usage()
    started: float = field(default_factory=time.perf_counter)

    def usage(self, last: Usage = Usage()) -> Usage:
        """Return the usage of the call so far, with that of its last request."""
        return replace(self.spent + last, seconds=time.perf_counter() - self.started)


class OpenAICompatible:
    """A model on a server.

    Rate limits, time-outs, broken connections, server errors and empty replies are retried with increasing,
    jittered waits, and `say` is called for each. What the server refuses (a seed, a temperature, a response
    format, logprobs, a system message of its own) is omitted from then on and listed in `left_out`. A reasoning
    model gets additional tokens on top of max_tokens. Its reasoning is counted but is not in the text.

    The log-probability of a reply is the sum over the tokens that the server reports: OpenAI omits the end
    token, llama.cpp's server all but the last token of a character that takes several. It is None if the
    server reports nothing or refuses.

    A local server is contacted directly, others through the proxy in the environment. The name contains the
    settings that differ from the defaults, since they change replies. Raises BadInput for a proxy that cannot
    be used. Raises LLMError at once if there is no valid key, else with the server's message and advice, but
    never with the key.
    """

    concurrent = True  # it takes several calls at once

    @check_arguments
    def __init__(
        self,
        preset: Endpoint,
        model: str,
        *,
        patience: RetryPolicy = _PATIENT,
        price: Price | None = None,
        settings: Settings = _AS_PROMPTED,
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] = lambda _: None,
        client: Any = None,  # an openai.OpenAI to send requests with
    ):
        import openai

        unread = os.environ.get("OPENAI_BASE_URL", "").strip().rstrip("/")
        if preset.name == "openai" and unread not in {"", preset.base_url}:
            instead = "name a server of your own as http://HOST:PORT/v1#MODEL"
            say(
                f"note: OPENAI_BASE_URL ({unread}) is not followed, openai:{model} is asked at {preset.base_url}; {instead}"
            )
        if settings.num_ctx is not None and preset.wire != "ollama":
            problem = "num_ctx is for Ollama, which loads a model with it"
            raise BadInput(f"{problem}: {preset.name} has a context of its own, leave it out")
        self.name = f"{preset.name}:{model}{settings.suffix}"
        self.preset, self.model, self.patience, self.settings = preset, model, patience, settings
        self.price = price or price_of(preset, model)
        self.requests = 0
        self._told: frozenset[str] = frozenset()  # messages that were said, without their numbers
        self._sleep, self._say = sleep, say
        self._wire = PROTOCOLS[preset.wire]
        self._thinks = is_reasoning_model(model) or settings.reasoning_effort not in {"", "none"}
        allowance = settings.reasoning_allowance(self._thinks)
        self._manner = RequestFormat(preset.schema_ways, preset.max_tokens_name, allowance)
        self._lock = threading.Lock()
        if client is None:
            key = key_for(preset)
            connections = bounded_client(patience.timeout, **proxy_options(preset.base_url))
            headers = authorization_headers(preset, key)
            client = openai.OpenAI(
                api_key=key, base_url=preset.base_url, default_headers=headers, http_client=connections
            )
        require_parts(client, ("chat", "with_options"), "client is an openai.OpenAI")
        self._client = client.with_options(max_retries=0, timeout=patience.timeout)

    @property
    def left_out(self) -> list[str]:
        """The parameters that this server refused and that are no longer sent."""
        return list(self._manner.left_out)

    def worst(self, prompt: Prompt) -> Usage:
        """Return the maximum usage of one call.

        In the worst case every reply but the last is empty, and each retry gets twice the tokens.
        """
        tries, asked = self.patience.empty, self.settings.apply_to(prompt)
        written = (asked.max_tokens + self._manner.allowance) * (2**tries - 1)
        return Usage(estimate_tokens(asked) * tries, written)

    @check_arguments
    def __call__(self, prompt: Prompt) -> Reply:
        (reply,) = self._parts(prompt, streams=False)
        assert isinstance(reply, Reply)
        return reply

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Stream the reply in pieces, and the Reply last. Pieces are empty while the model reasons.

        An answer that breaks off is requested again, and its pieces begin on a new line.
        Closing the iterator closes the connection, so that the server can stop. Raises LLMError if the call
        fails.
        """
        return self._parts(prompt, streams=True)

    def _parts(self, prompt: Prompt, *, streams: bool) -> Iterator[str | Reply]:
        asking = _CallState(self.settings.apply_to(prompt), streams)
        outcome: Reply | Refusal | None = None
        try:
            while not isinstance(outcome, Reply):
                manner = self._manner
                outcome = yield from self._request(asking, manner)
                if isinstance(outcome, Refusal):
                    self._prepare_retry(outcome, manner, asking)
                    if outcome.broke_off:
                        yield "\n"
        except LLMError as error:
            error.spent = asking.usage()
            raise
        yield replace(outcome, usage=asking.usage(outcome.usage))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _prepare_retry(self, outcome: Refusal, manner: RequestFormat, asking: _CallState) -> None:
        """Prepare for a retry after a failed request. Raises LLMError if there is to be none."""
        if outcome.perhaps_charged:
            self._count_worst(asking, manner)
        if self._adapt_format(outcome, manner, asking) and not outcome.broke_off:
            return
        spent_tries = asking.attempt >= self.patience.attempts or asking.empty >= self.patience.empty
        if not outcome.again or spent_tries:
            error = LLMError(self._advice(outcome, asking))
            error.status = outcome.status
            raise error
        wait = self._retry_delay(outcome, asking.attempt)
        require_budget_for_retry(wait)
        count = f"request {asking.attempt} of {self._max_requests(asking, outcome)}"
        self._say(self._server_message(outcome, f"{count}, the next in {wait:.1f} s"))
        self._sleep(wait)
        asking.attempt += 1

    def _max_requests(self, asking: _CallState, refusal: Refusal) -> int:
        """Return the maximum number of requests for a call, if each fails as this one did."""
        if not asking.empty or refusal.status or not refusal.reason.startswith(_EMPTY_REPLY):
            return self.patience.attempts
        return min(self.patience.attempts, asking.attempt + self.patience.empty - asking.empty)

    def _request(self, asking: _CallState, manner: RequestFormat) -> Generator[str, None, Reply | Refusal]:
        """Send one request and yield the text of a streamed answer.

        Returns the reply or the refusal. Client errors are not passed on, since they contain the key.
        """
        client, body, sending = self._ready(asking, manner)
        hides = self._thinks and self.settings.reasoning_effort != "none" and not self.preset.thinks_apart
        answer = IncomingAnswer(self._client.api_key, streams=asking.streams, hides=hides)
        if asking.streams:
            body = self._wire.streamed(body, manner)
        refusal = yield from answer.pieces(client, self._wire.address(self.preset), body, sending)
        if refusal is not None:
            return refusal
        outcome = self._outcome(answer.raw(), asking, manner)
        return as_interrupted(outcome) if isinstance(outcome, Refusal) and answer.begun else outcome

    def _ready(self, asking: _CallState, manner: RequestFormat) -> tuple[Any, dict[str, Json], RequestTarget]:
        """Return the client for the next request, its body, and its timeout."""
        with self._lock:
            self.requests += 1
        asked = asking.prompt if self.preset.takes_seed else replace(asking.prompt, seed=None)
        limit, settings = _token_limit(asking, manner), self.settings
        if self.preset.wire == "ollama" and settings.num_ctx is None:
            settings = replace(settings, num_ctx=_context_size(asked, limit))
        body = self._wire.body(self.model, asked, limit, manner, settings)
        seconds = min(self.patience.timeout, max(seconds_left(), MIN_TIMEOUT))
        client = self._client
        if seconds != self.patience.timeout:
            client = client.with_options(timeout=seconds)
        return client, body, RequestTarget(self.preset.base_url, seconds, self.patience.longest_asked)

    def _outcome(self, raw: RawReply | str, asking: _CallState, manner: RequestFormat) -> Reply | Refusal:
        """Return the reply in an answer, or the refusal if it has none."""
        if isinstance(raw, str):
            return Refusal(raw, perhaps_charged=True)
        if untold := _unreported_counts(raw):  # unknown is not zero
            self._count_worst(asking, manner, untold, raw.said)
            what = "takes" if untold == _BOTH_COUNTS else next(iter(untold))
            known = "a budget counts the most dollars that can be, and tokens estimated from the text"
            self._say_once(f"{self.name}: this server does not tell how many tokens a call {what}; {known}")
        elif raw.read * _MIN_SHARE_READ < (sent := text_tokens(asking.prompt)) and sent >= _LONG_PROMPT:
            self._say_once(
                f"{self.name}: this server read {raw.read:,} tokens of a prompt of about {sent:,}, so it cut the prompt: "
                "raise its context (num_ctx of Ollama), or give it less to read"
            )
        return self._reply(raw, _token_limit(asking, manner), asking)

    def _say_once(self, message: str) -> None:
        """Say what is true of the server, once for each kind of message."""
        kind = re.sub(r"[\d,]+", "", message)
        with self._lock:
            said, self._told = kind in self._told, self._told | {kind}
        if not said:
            self._say(message)

    def _count_worst(
        self,
        asking: _CallState,
        manner: RequestFormat,
        untold: frozenset[str] = _BOTH_COUNTS,
        said: str | None = None,
    ) -> None:
        """Count the possible cost of a request with unknown usage in budgets.

        The usage of the prompt, the reply, or both is unknown. Tokens of a reply are estimated from its text.
        """
        read = estimate_tokens(asking.prompt) if _READS in untold else 0
        written = _token_limit(asking, manner) if _WRITES in untold else 0
        words = len((said or "").encode(errors="replace")) // CHARACTERS_PER_TOKEN + 1 if written else 0
        tokens = Usage() if said is None else Usage(read, words)
        report_possible_charge(self.price.of(read, written) if self.price else 0.0, tokens)

    def _reply(self, raw: RawReply, limit: int, asking: _CallState) -> Reply | Refusal:
        """Build the reply, or the refusal for an empty one, whose tokens are charged all the same."""
        cost = raw.charged or (self.price.of(raw.read, raw.written) if self.price else 0.0)
        usage = Usage(raw.read, raw.written, cost=cost, reasoning_tokens=raw.thought)
        if raw.said.strip() and not raw.declined:
            text = mask_key(replace_surrogates(raw.said), self._client.api_key)
            return Reply(text, usage, cut=raw.ended == "length", logprob=raw.logprob)
        asking.spent += usage
        if raw.declined:
            return Refusal(f"it declined: {raw.declined}", advice="Ask in other words, or another model.")
        asking.empty += 1
        return Refusal(f"{_EMPTY_REPLY}: {_why_empty(raw, limit)}", again=True)

    def _adapt_format(self, refusal: Refusal, sent: RequestFormat, asking: _CallState) -> bool:
        """Drop a parameter that the server does not support, and return whether one was found.

        Another call may have found it first.
        """
        manner = sent.next_after(refusal, asking.prompt, asking.attempt, streams=asking.streams)
        if manner is None:
            return False
        with self._lock:
            if self._manner == sent:
                self._manner = manner
                self._say(self._server_message(refusal, f"from now on without {manner.left_out[-1]}"))
        return True

    def _server_message(self, refusal: Refusal, then: str) -> ServerMessage:
        full = f"{self.name}: {self._keyless(refusal.reason)}; {then}"
        return ServerMessage(full, f"{self.name}: {refusal.kind}; {then}")

    def _retry_delay(self, refusal: Refusal, attempt: int) -> float:
        """Return the seconds to wait: as requested by the server, else exponential backoff with jitter."""
        if refusal.wait is not None:
            return refusal.wait
        wait = min(self.patience.longest_wait, self.patience.first_wait * 2.0 ** (attempt - 1))
        return wait * random.uniform(0.5, 1.0)

    def _advice(self, refusal: Refusal, asking: _CallState) -> str:
        tries = f" after {asking.attempt} requests" if asking.attempt > 1 else ""
        reason = self._keyless(refusal.reason).rstrip(". ")
        stop = "" if reason.endswith(("?", "!", "…")) else "."
        advice = refusal.advice or self._what_to_do(refusal, asking)
        what = "broke off its answer" if refusal.broke_off else "did not answer"
        return remove_key(f"{self.name} {what}{tries}: {reason}{stop} {advice}", self._client.api_key)

    def _what_to_do(self, refusal: Refusal, asking: _CallState) -> str:
        if asking.empty and not refusal.status and refusal.again:
            if asking.spent.reasoning_tokens:
                room = f"the allowance to think with (now {self._manner.allowance:,} tokens)"
                return f"Raise {room} in its settings, raise max_tokens, or lower reasoning_effort."
            return f"Raise max_tokens (now {asking.prompt.max_tokens:,}), ask in other words, or use another model."
        variable = self.preset.key_variable
        key = f"in the environment variable {variable}" if variable else "of the client"
        seen = " It may read no images." if any(message.images for message in asking.prompt.messages) else ""
        return {
            0: f"Is the server running at {self.preset.base_url}?"
            if refusal.again
            else "Is this the address of an OpenAI-compatible API?",
            400: f"The request does not suit this model: another model or smaller limits may.{seen}",
            401: f"Check the key {key}.",
            403: f"The key {key} may not use this model{self._or_the_proxy()}.",
            404: f"Check the model name {self.model!r} against the list of models of {self.preset.name}, "
            f"and the address {self.preset.base_url}.",
            429: "The rate limit or quota is used up: wait, ask less often, or look at the account.",
        }.get(refusal.status, "Try again later or use another model.")

    def _or_the_proxy(self) -> str:
        """Return a note that a proxy may have answered instead.

        It is empty unless a proxy is configured that can read the request.
        """
        variable = proxy_variable(self.preset.base_url) if self.preset.base_url.startswith("http://") else ""
        return variable and f", or the proxy that {variable} names refused to pass it on"

    def _keyless(self, text: str) -> str:
        """Return the beginning of a text without the key."""
        return remove_key(text, self._client.api_key)[:600]

    def __repr__(self) -> str:
        without = f", without {', '.join(self.left_out)}" if self.left_out else ""
        return (
            f"<{self.name}: {self.requests} requests{without}, price {'known' if self.price else 'unknown'}>"
        )


def _unreported_counts(raw: RawReply) -> frozenset[str]:
    """Return which token counts an answer does not report.

    A call always has a prompt, and text always has tokens.
    """
    reads, writes = raw.read == 0, raw.written == 0 and (bool(raw.said.strip()) or raw.read == 0)
    return frozenset(([_READS] if reads else []) + ([_WRITES] if writes else []))


def _why_empty(raw: RawReply, limit: int) -> str:
    """Explain how an empty reply ended and what its tokens were used for."""
    if raw.thought:
        return f"{raw.thought:,} of its {raw.written:,} tokens were thought, none was said, and it ended with {raw.ended!r} at {limit:,}"
    return f"it ended with {raw.ended!r} after {raw.written:,} of at most {limit:,} tokens"


def _context_size(prompt: Prompt, limit: int) -> int | None:
    """Return the context to ask for, None if the usual one is enough.

    It is a power of two, since Ollama loads a model again for each other context.
    """
    tokens = text_tokens(prompt) + limit
    return None if tokens <= _OLLAMA_CONTEXT else 1 << (tokens - 1).bit_length()


def _token_limit(asking: _CallState, manner: RequestFormat) -> int:
    """Return the most tokens that the next request lets the model generate."""
    return (asking.prompt.max_tokens + manner.allowance) << asking.empty  # doubled after each empty reply
