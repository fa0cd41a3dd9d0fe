"""Models on servers with the OpenAI protocol or Ollama's, with visible retries and protected keys."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from kgot_lab.errors import BadInput, LLMError
from kgot_lab.io.http_client import UnusableBody, bounded_client, proxy_options, proxy_variable
from kgot_lab.llm.budget import (
    MIN_TIMEOUT,
    estimate_tokens,
    report_possible_charge,
    require_budget_for_retry,
    seconds_left,
)
from kgot_lab.llm.capabilities import (
    Refusal,
    RequestFormat,
    RequestTarget,
    ServerMessage,
    as_interrupted,
    classify_error,
    error_in_answer,
)
from kgot_lab.llm.keys import authorization_headers, key_for, mask_key, remove_key
from kgot_lab.llm.presets import ENDPOINTS, Endpoint, Price, RetryPolicy, Settings, price_of, server_at
from kgot_lab.llm.streaming import StreamedAnswer
from kgot_lab.llm.structured import is_reasoning_model
from kgot_lab.llm.transport import PROTOCOLS, RawReply
from kgot_lab.types import Json, Prompt, Reply, Usage

__all__ = ["ENDPOINTS", "Endpoint", "OpenAICompatible", "Price", "RetryPolicy", "Settings", "server_at"]

_PATIENT, _AS_PROMPTED = RetryPolicy(), Settings()
_EMPTY = "the reply is empty"
_READS, _WRITES = "reads", "writes"
_BOTH = frozenset({_READS, _WRITES})  # the token counts that a server may not report


@dataclass
class _Asking:
    """The state of a call: the prompt as sent, the requests so far, empty replies, and their usage."""

    prompt: Prompt
    streams: bool = False  # whether the answer is streamed
    attempt: int = 1
    empty: int = 0
    spent: Usage = Usage()
    started: float = field(default_factory=time.perf_counter)

    def charged(self, reply: Reply) -> Reply:
        """Return the reply with the total usage of the call."""
        return replace(
            reply, usage=replace(self.spent + reply.usage, seconds=time.perf_counter() - self.started)
        )


class OpenAICompatible:
    """A model on a server.

    Rate limits, time-outs, broken connections, server errors and empty replies are retried with increasing,
    jittered waits, and `say` is called for each. What the server refuses (a seed, a temperature, a response
    format, logprobs) is omitted from then on and listed in `left_out`. A reasoning model gets additional
    tokens on top of max_tokens. Its reasoning is counted but is not in the text.

    The log-probability of a reply is the sum over the tokens that the server reports: OpenAI omits the end
    token, llama.cpp's server all but the last token of a character that takes several. It is None if the
    server reports nothing or refuses.

    A local server is contacted directly, others through the proxy in the environment. The name contains the
    settings that differ from the defaults, since they change replies. Raises BadInput for a proxy that cannot
    be used. Raises LLMError at once if there is no valid key, else with the server's message and advice, but
    never with the key.
    """

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
    ):
        import openai

        if preset.name == "openai" and (
            unread := os.environ.get("OPENAI_BASE_URL", "").strip().rstrip("/")
        ) not in {"", preset.base_url}:
            instead = "name a server of your own as http://HOST:PORT/v1#MODEL"
            say(
                f"note: OPENAI_BASE_URL ({unread}) is not followed, openai:{model} is asked at {preset.base_url}; {instead}"
            )
        if settings.num_ctx is not None and preset.wire != "ollama":
            raise BadInput(
                f"num_ctx is for Ollama, which loads a model with it: {preset.name} has a context of its own, leave it out"
            )
        self.name = f"{preset.name}:{model}{settings.suffix}"
        self.preset, self.model, self.patience, self.settings = preset, model, patience, settings
        self.price = price or price_of(preset, model)
        self.requests = 0
        self._untold = False  # whether missing token counts were reported
        self._sleep, self._say = sleep, say
        self._wire = PROTOCOLS[preset.wire]
        self._thinks = is_reasoning_model(model) or settings.reasoning_effort not in {"", "none"}
        self._manner = RequestFormat(preset.schema_ways, preset.max_tokens_name, settings.room(self._thinks))
        self._lock = threading.Lock()
        key = key_for(preset)
        self._client = openai.OpenAI(
            api_key=key, base_url=preset.base_url, timeout=patience.timeout, max_retries=0, default_headers=authorization_headers(preset, key),
            http_client=bounded_client(patience.timeout, **proxy_options(preset.base_url)),
        )  # fmt: skip

    @property
    def cost_known(self) -> bool:
        """Whether the price is known. Otherwise usage has cost 0."""
        return self.price is not None

    @property
    def left_out(self) -> list[str]:
        """The parameters that this server refused and that are no longer sent."""
        return list(self._manner.left_out)

    def worst(self, prompt: Prompt) -> Usage:
        """Return the maximum usage of one call.

        In the worst case every reply but the last is empty, and each retry gets twice the tokens.
        """
        tries, asked = self.patience.empty, self.settings.apply_to(prompt)
        return Usage(
            estimate_tokens(asked) * tries, (asked.max_tokens + self._manner.allowance) * (2**tries - 1)
        )

    def __call__(self, prompt: Prompt) -> Reply:
        asking = _Asking(self.settings.apply_to(prompt))
        with _timed(asking):
            reply = self._answer(asking)
        return asking.charged(reply)

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Stream the reply in pieces, and the Reply last. Pieces are empty while the model reasons.

        Requests are retried until the first piece has arrived. After that a broken answer is an error.
        Closing the iterator closes the connection, so that the server can stop. Raises LLMError if the call
        fails.
        """
        asking = _Asking(self.settings.apply_to(prompt), streams=True)
        with _timed(asking):
            reply = yield from self._answer_on(asking)
        yield asking.charged(reply)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _answer(self, asking: _Asking) -> Reply:
        """Request the reply, with retries.

        Raises LLMError if the retries are used up or the refusal is final.
        """
        while True:
            manner = self._manner
            outcome = self._request(asking, manner)
            if isinstance(outcome, Reply):
                return outcome
            self._before_the_next(outcome, manner, asking)

    def _answer_on(self, asking: _Asking) -> Generator[str, None, Reply]:
        """Stream the reply, with retries."""
        while True:
            manner = self._manner
            outcome = yield from self._request_on(asking, manner)
            if isinstance(outcome, Reply):
                return outcome
            self._before_the_next(outcome, manner, asking)

    def _before_the_next(self, outcome: Refusal, manner: RequestFormat, asking: _Asking) -> None:
        """Prepare for a retry after a failed request. Raises LLMError if there is to be none."""
        if outcome.perhaps_charged:
            self._count_worst(asking, manner)
        if self._gave_way(outcome, manner, asking) and not outcome.broke_off:
            return
        if (
            not outcome.again
            or asking.attempt >= self.patience.attempts
            or asking.empty >= self.patience.empty
        ):
            error = LLMError(self._advice(outcome, asking))
            error.status = outcome.status
            raise error
        wait = self._wait(outcome, asking.attempt)
        require_budget_for_retry(wait)
        count = f"request {asking.attempt} of {self._most(asking, outcome)}"
        self._say(self._told(outcome, f"{count}, the next in {wait:.1f} s"))
        self._sleep(wait)
        asking.attempt += 1

    def _most(self, asking: _Asking, refusal: Refusal) -> int:
        """Return the maximum number of requests for a call, if each fails as this one did."""
        empty = asking.empty and not refusal.status and refusal.reason.startswith(_EMPTY)
        return (
            min(self.patience.attempts, asking.attempt + self.patience.empty - asking.empty)
            if empty
            else self.patience.attempts
        )

    def _request(self, asking: _Asking, manner: RequestFormat) -> Reply | Refusal:
        """Send one request, and return its reply or refusal.

        Client errors are not passed on, since they contain the key.
        """
        import openai

        client, body, sending = self._ready(asking, manner)
        try:
            answer = client.post(self._wire.address(self.preset), body=body, cast_to=object)
        except (openai.APIError, UnusableBody, ValueError, RecursionError) as error:
            return classify_error(error, sending)
        return error_in_answer(answer) or self._outcome(
            self._wire.read(answer, thinks=self._thinks), asking, manner
        )

    def _request_on(self, asking: _Asking, manner: RequestFormat) -> Generator[str, None, Reply | Refusal]:
        """Send one streaming request and yield the text of the answer."""
        client, body, sending = self._ready(asking, manner)
        hides = self._thinks and self.settings.reasoning_effort != "none" and not self.preset.thinks_apart
        answer = StreamedAnswer(self._wire, self._client.api_key, hides=hides)
        refusal = yield from answer.pieces(
            client, self._wire.address(self.preset), self._wire.streamed(body, manner), sending
        )
        if refusal is not None:
            return refusal
        outcome = self._outcome(answer.raw(thinks=self._thinks), asking, manner)
        return as_interrupted(outcome) if isinstance(outcome, Refusal) and answer.begun else outcome

    def _ready(self, asking: _Asking, manner: RequestFormat) -> tuple[Any, dict[str, Json], RequestTarget]:
        """Return the client for the next request, its body, and its timeout."""
        with self._lock:
            self.requests += 1
        asked = asking.prompt if self.preset.takes_seed else replace(asking.prompt, seed=None)
        body = self._wire.body(self.model, asked, _room(asking, manner), manner, self.settings)
        seconds = min(self.patience.timeout, max(seconds_left(), MIN_TIMEOUT))
        client = (
            self._client if seconds == self.patience.timeout else self._client.with_options(timeout=seconds)
        )
        return client, body, RequestTarget(self.preset.base_url, seconds, self.patience.longest_asked)

    def _outcome(self, raw: RawReply | str, asking: _Asking, manner: RequestFormat) -> Reply | Refusal:
        """Return the reply in an answer, or the refusal if it has none."""
        if isinstance(raw, str):
            return Refusal(raw, perhaps_charged=True)
        if untold := _untold(raw):  # unknown is not zero
            self._count_worst(asking, manner, untold)
            self._say_untold(untold)
        return self._reply(raw, _room(asking, manner), asking)

    def _say_untold(self, untold: frozenset[str]) -> None:
        """Report once that this server does not count tokens, or only the prompt's or only the reply's."""
        with self._lock:
            said, self._untold = self._untold, True
        if said:
            return
        if untold == _BOTH:
            self._say(
                f"{self.name}: this server does not tell how many tokens a call takes, so neither tokens nor dollars are known"
            )
        else:
            (which,) = untold
            less = "so more tokens and dollars are taken than are told"
            self._say(
                f"{self.name}: this server does not tell how many tokens a call {which}, {less}; a budget counts the most it can be"
            )

    def _count_worst(self, asking: _Asking, manner: RequestFormat, untold: frozenset[str] = _BOTH) -> None:
        """Count the possible cost of a request with unknown usage in budgets.

        The usage of the prompt, the reply, or both is unknown.
        """
        if self.price:
            read = estimate_tokens(asking.prompt) if _READS in untold else 0
            report_possible_charge(self.price.of(read, _room(asking, manner) if _WRITES in untold else 0))

    def _reply(self, raw: RawReply, room: int, asking: _Asking) -> Reply | Refusal:
        """Build the reply, or the refusal for an empty one, whose tokens are charged all the same."""
        cost = raw.charged or (self.price.of(raw.read, raw.written) if self.price else 0.0)
        usage = Usage(raw.read, raw.written, cost=cost, reasoning_tokens=raw.thought)
        if raw.said.strip() and not raw.declined:
            return Reply(
                mask_key(raw.said, self._client.api_key),
                usage,
                cut=raw.ended == "length",
                logprob=raw.logprob,
            )
        asking.spent += usage
        if raw.declined:
            return Refusal(f"it declined: {raw.declined}", advice="Ask in other words, or another model.")
        asking.empty += 1
        return Refusal(f"{_EMPTY}: {_why_empty(raw, room)}", again=True)

    def _gave_way(self, refusal: Refusal, sent: RequestFormat, asking: _Asking) -> bool:
        """Drop a parameter that the server does not support, and return whether one was found.

        Another call may have found it first.
        """
        manner = sent.after(refusal, asking.prompt, asking.attempt, streams=asking.streams)
        if manner is None:
            return False
        with self._lock:
            if self._manner == sent:
                self._manner = manner
                self._say(self._told(refusal, f"from now on without {manner.left_out[-1]}"))
        return True

    def _told(self, refusal: Refusal, then: str) -> ServerMessage:
        return ServerMessage(
            f"{self.name}: {self._keyless(refusal.reason)}; {then}", f"{self.name}: {refusal.kind}; {then}"
        )

    def _wait(self, refusal: Refusal, attempt: int) -> float:
        """Return the seconds to wait: as requested by the server, else exponential backoff with jitter."""
        if refusal.wait is not None:
            return refusal.wait
        return min(
            self.patience.longest_wait, self.patience.first_wait * 2.0 ** (attempt - 1)
        ) * random.uniform(0.5, 1.0)

    def _advice(self, refusal: Refusal, asking: _Asking) -> str:
        tries = f" after {asking.attempt} requests" if asking.attempt > 1 else ""
        reason = self._keyless(refusal.reason).rstrip(". ")
        stop = "" if reason.endswith(("?", "!", "…")) else "."
        advice = refusal.advice or self._what_to_do(refusal, asking)
        what = "broke off its answer" if refusal.broke_off else "did not answer"
        return remove_key(f"{self.name} {what}{tries}: {reason}{stop} {advice}", self._client.api_key)

    def _what_to_do(self, refusal: Refusal, asking: _Asking) -> str:
        if asking.empty and not refusal.status and refusal.again:
            if asking.spent.reasoning_tokens:
                room = f"the allowance to think with (now {self._manner.allowance:,} tokens)"
                return f"Raise {room} in its settings, raise max_tokens, or lower reasoning_effort."
            return f"Raise max_tokens (now {asking.prompt.max_tokens:,}), ask in other words, or use another model."
        seen = " It may read no images." if any(message.images for message in asking.prompt.messages) else ""
        return {
            0: f"Is the server running at {self.preset.base_url}?"
            if refusal.again
            else "Is this the address of an OpenAI-compatible API?",
            400: f"The request does not suit this model: another model or smaller limits may.{seen}",
            401: f"Check the key in the environment variable {self.preset.key_variable}.",
            403: f"The key in {self.preset.key_variable} may not use this model{self._or_the_proxy()}.",
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
        return f"<{self.name}: {self.requests} requests{without}, price {'known' if self.cost_known else 'unknown'}>"


@contextmanager
def _timed(asking: _Asking) -> Iterator[None]:
    """Add the usage of the call to an error."""
    try:
        yield
    except LLMError as error:
        error.spent = replace(asking.spent, seconds=time.perf_counter() - asking.started)
        raise


def _untold(raw: RawReply) -> frozenset[str]:
    """Return which token counts an answer does not report.

    A call always has a prompt, and text always has tokens.
    """
    reads, writes = raw.read == 0, raw.written == 0 and (bool(raw.said.strip()) or raw.read == 0)
    return frozenset(([_READS] if reads else []) + ([_WRITES] if writes else []))


def _why_empty(raw: RawReply, room: int) -> str:
    """Explain how an empty reply ended and what its tokens were used for."""
    if raw.thought:
        return f"{raw.thought:,} of its {raw.written:,} tokens were thought, none was said, and it ended with {raw.ended!r} at {room:,}"
    return f"it ended with {raw.ended!r} after {raw.written:,} of at most {room:,} tokens"


def _room(asking: _Asking, manner: RequestFormat) -> int:
    """Return the most tokens that the next request lets the model generate."""
    return (asking.prompt.max_tokens + manner.allowance) << asking.empty  # doubled after each empty reply
