"""How a server is asked, as far as it is known by now: what it refused is not sent again."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime

from kgot_lab.types import Prompt

_UNKNOWN = (
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|deprecated|only the default|(may|can) only be"
    r"|must be verified"
)
# Parameters a server may refuse, and how its words name them; Ollama's error says only that the model "does not support thinking".
_OPTIONAL = {"temperature": "temperature", "seed": "seed", "reasoning_effort": "reasoning_effort|reasoning effort|thinking"}

# The same of what only an answer that comes piece by piece is asked with; OpenAI lets some models stream to verified organizations alone.
_STREAMING = {"stream_options": "stream_options|include_usage", "stream": r"\bstream(ing)?\b"}

# OpenAI says 403 where a model tells no logprobs, and llama-cpp-python's server 500; asked for or not is all there is to refuse.
_NO_LOGPROBS = {400, 403, 422, 500, 501}


@dataclass(frozen=True)
class Refusal:
    """Why one request failed, and whether trying again may help; `wait` is what the server asked for, in seconds.

    The reason may hold the key, which servers and clients repeat: it is taken out where the reason is told.
    """

    reason: str
    status: int = 0  # HTTP status, 0 if there was no answer
    again: bool = False
    wait: float | None = None
    advice: str = ""  # what to do, where that is known better than by the status
    perhaps_charged: bool = False  # whether the server may have answered all the same, and have its price
    broke_off: bool = False  # whether something of the answer was told before


@dataclass(frozen=True)
class Manner:
    """The ways of asking for a schema that are left, best first, what max_tokens is called, what is left out, and the room to think."""

    ways: tuple[str, ...]
    max_tokens_name: str
    allowance: int = 0
    left_out: tuple[str, ...] = ()

    def after(self, refusal: Refusal, prompt: Prompt, attempt: int, *, streams: bool = False) -> Manner | None:
        """The next manner to try with a prompt, or None where nothing that the server does not take was found."""
        told, refused = refusal.reason.lower(), refusal.status in {400, 422}
        if prompt.likelihood and "logprobs" not in self.left_out and refusal.status in _NO_LOGPROBS and "logprob" in told:
            return replace(self, left_out=(*self.left_out, "logprobs"))
        if prompt.schema is not None and len(self.ways) > 1:
            schema_refused = refused and re.search("response_format|json_schema|json_object|schema|grammar", told)
            # llama-cpp-python's server refuses json_schema with a 500
            stuck = refusal.status == 500 and attempt >= 2 and self.ways[0] == "json_schema" and "json_object" in self.ways
            if schema_refused or stuck:
                return replace(self, ways=self.ways[1:], left_out=(*self.left_out, self.ways[0]))
        other = "max_tokens" if self.max_tokens_name == "max_completion_tokens" else "max_completion_tokens"
        if _refused(refusal, r"max_(completion_)?tokens") and other in told and other not in self.left_out:
            return replace(self, max_tokens_name=other, left_out=(*self.left_out, self.max_tokens_name))
        for name, words in (_OPTIONAL | (_STREAMING if streams else {})).items():
            if name not in self.left_out and _refused(refusal, words):
                return replace(self, left_out=(*self.left_out, name))
        if self.allowance and refused and re.search(r"max_(completion_)?tokens|context length|context window|output tokens", told):
            return replace(self, allowance=0, left_out=(*self.left_out, "allowance"))  # it asks for more than the model can ever write
        return None


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds in a Retry-After header: a number, or an HTTP date (RFC 9110, 10.2.3)."""
    told = headers.get("retry-after", "")
    if re.fullmatch(r"\d+(\.\d*)?", told, re.ASCII):
        return float(told)
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _refused(refusal: Refusal, name: str) -> bool:
    """Whether a server says that it does not take a parameter, as against not taking its value as too large."""
    told = refusal.reason.lower()
    return refusal.status in {400, 422} and re.search(name, told) is not None and re.search(_UNKNOWN, told) is not None
