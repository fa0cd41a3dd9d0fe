"""Differences between servers with the OpenAI protocol, and their prices, as data."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.types import Prompt


@dataclass(frozen=True)
class Endpoint:
    """A kind of server. `schema_ways` lists the ways to request JSON with a schema, best first.

    A way that the server refuses is not tried again. json_schema: response_format of that type (OpenAI).
    json_object: that type with the schema next to it (llama-cpp-python's server). format: the schema itself
    (Ollama). words: the schema in the prompt.
    """

    name: str
    base_url: str
    key_variable: str  # the environment variable that holds the key
    key_needed: bool = True
    schema_ways: tuple[str, ...] = ("json_schema", "words")
    takes_seed: bool = True
    max_tokens_name: str = "max_tokens"
    wire: str = "chat completions"  # or "ollama"
    # whether answers contain no reasoning, so that they can be streamed at once
    thinks_apart: bool = False


def _endpoint(name: str, schema_ways: Iterable[str] = Endpoint.schema_ways, **fields: Any) -> Endpoint:
    return Endpoint(name, schema_ways=tuple(schema_ways), **fields)


_SERVERS = tomllib.loads(Path(__file__).with_name("endpoints.toml").read_text(encoding="utf-8"))
ENDPOINTS = {name: _endpoint(name, **fields) for name, fields in _SERVERS.items()}

# a separate variable, so that no other key is sent to a typed address
SERVER_KEY = "KGOT_LAB_SERVER_KEY"


def server_at(address: str) -> tuple[Endpoint, str]:
    """Parse the server and model in "http://host:port/v1#model".

    Raises BadInput for an invalid address, without showing any password in it.
    """
    # first, so that no error shows a possible password
    if "@" in address.partition("#")[0] or "?" in address.partition("#")[0]:
        what = "user name, a password or anything after a question mark"
        raise BadInput(f"leave out of the address a {what}; a key goes into the variable {SERVER_KEY}")
    parts = _parts(address)
    if not parts.hostname or not parts.fragment:
        raise BadInput(f"a server is named by its address and a model: {parts.scheme}://HOST:PORT/v1#MODEL")
    where, ways = parts._replace(fragment="").geturl(), ("json_schema", "json_object", "words")
    return Endpoint(parts.netloc, where, SERVER_KEY, False, ways), parts.fragment


def ollama_address() -> str:
    """Return the address of Ollama: OLLAMA_HOST, read as its own clients do, or this computer."""
    value = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/")
    if not value:
        return ENDPOINTS["ollama"].base_url
    try:
        parts = _parts(value if "://" in value else f"http://{value}")
    except BadInput as error:
        raise BadInput(f"the environment variable OLLAMA_HOST: {error}") from None
    usual = {"https": 443, "http": 80}.get(parts.scheme if "://" in value else "", 11434)
    host = "localhost" if parts.hostname in {None, "0.0.0.0", "::"} else str(parts.hostname)
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{parts.port or usual}{parts.path}/v1"


def _parts(address: str) -> SplitResult:
    """Split the address of a server.

    Raises BadInput, which says what is wrong, for an invalid one.
    """
    is_shown = "@" not in address  # it may contain a password
    problem = "that is no address of a server, and may hold a password"
    if is_shown:
        problem = f"{address!r:.200} is no address of a server"
    if not address.isprintable() or " " in address.partition("#")[0]:
        raise BadInput(f"{problem}: it holds a space or a letter that cannot be seen")
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018  # it is read only now
        host = parts.hostname or ""
        if "[" in parts.netloc:
            ipaddress.IPv6Address(host)
        elif not re.fullmatch(r"[a-z0-9._-]*", host.encode("idna").decode().lower()):
            raise ValueError("a name of a host is letters, digits, dots and dashes")
    except ValueError as error:  # including UnicodeError
        raise BadInput(f"{problem}: {error}" if is_shown else problem) from None
    return parts


@dataclass(frozen=True)
class Price(CheckedRecord):
    """US dollars per million tokens. Raises BadInput for an invalid price."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of tokens, in US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


# the file says which prices these are, and when they were read
_PRICE_LIST = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
PRICES = {model: Price(*dollars) for model, dollars in _PRICE_LIST["prices"].items()}
FREE = Price(0.0, 0.0)
_OWN_NETWORK = (".localhost", ".local", ".internal", ".home.arpa")  # suffixes that no public server has


def price_of(preset: Endpoint, model: str) -> Price | None:
    """Return the price of a model.

    Free in the local network, from the table for a known host, and None otherwise. A date at the end of the
    model's name is ignored, unless the table has it.
    """
    host = _host(preset.base_url)
    if _in_own_network(host):
        return FREE
    if host not in {_host(known.base_url) for known in ENDPOINTS.values()}:
        return None
    bare_name = model.rsplit("/", 1)[-1]
    return PRICES.get(bare_name) or PRICES.get(re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", bare_name))


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").rstrip(".")


def _in_own_network(host: str) -> bool:
    """Return whether a host is this computer or in a private network, by its address or name."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_OWN_NETWORK))


# The most likely server of a bare model name: the model's maker.
_LIKELY = (
    (r".*\.gguf", "local:{}"),
    (r"(gpt-|chatgpt-|o[134](-|$)).*", "openai:{}"),
    (r"claude-.*", "anthropic:{}"),
    (r"gemini-.*", "gemini:{}"),
    (r"[\w.-]+:\d+/.*#.*", "http://{}"),
    (r"[\w.-]+/[\w.:-]+", "openrouter:{}"),
    (r"[\w.-]+:(latest|\d+(\.\d+)?[bm].*)", "ollama:{}"),
)


def guess_spec(model: str) -> str:
    """Return the full name that a bare model name most likely means, as openai:gpt-4o for gpt-4o, or ""."""
    name = model.strip().lower()
    return next((full.format(model) for pattern, full in _LIKELY if re.fullmatch(pattern, name)), "")


# Settings of a model for all prompts, and limits of retries.

# Tokens for reasoning, by reasoning effort; "" is the models' default. They are a limit, not a cost: only
# tokens used are charged. OpenAI recommends 25,000 for hard tasks.
ALLOWANCES = {
    "none": 0, "minimal": 1_000, "low": 4_000, "medium": 8_000, "high": 25_000, "xhigh": 50_000, "max": 100_000, "": 8_000,
}  # fmt: skip


@dataclass(frozen=True)
class Settings(CheckedRecord):
    """Settings of a model. None or "" leaves a value to the prompt or the model.

    Raises BadInput for an invalid number and UnknownName for an unknown value.
    """

    temperature: float | None = bounded(None, 0, 2)  # overrides that of every prompt
    temperature_scale: float = bounded(1.0, 0, 2)  # multiplies that of every prompt
    max_tokens: int | None = bounded(None, 1)  # overrides that of every prompt
    reasoning_effort: str = ""
    # tokens for reasoning on top of max_tokens; the default depends on the model's name and effort
    allowance: int | None = None
    num_ctx: int | None = bounded(None, 1)  # the context that Ollama loads a model with

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reasoning_effort not in ALLOWANCES:
            known = [effort for effort in ALLOWANCES if effort]
            raise UnknownName("reasoning_effort", self.reasoning_effort, known)

    @property
    def suffix(self) -> str:
        """The settings that differ from the defaults, for the name of a model, or "".

        Other settings give other replies.
        """
        values, defaults = vars(self), vars(Settings())
        changed = {name: value for name, value in values.items() if value != defaults[name]}  # 0.0 equals 0
        parts = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in changed.items()
        ]
        return f" [{', '.join(parts)}]" if parts else ""

    def apply_to(self, prompt: Prompt) -> Prompt:
        """Return the prompt with these settings applied."""
        temperature = self.temperature
        if temperature is None:
            temperature = min(2.0, prompt.temperature * self.temperature_scale)
        return replace(prompt, temperature=temperature, max_tokens=self.max_tokens or prompt.max_tokens)

    def reasoning_allowance(self, reasons: bool) -> int:
        """Return how many tokens the model may reason with.

        `reasons` says whether it is known to reason before it answers.
        """
        if self.allowance is not None:
            return self.allowance
        return ALLOWANCES[self.reasoning_effort] if reasons or self.reasoning_effort else 0


@dataclass(frozen=True)
class RetryPolicy(CheckedRecord):
    """Limits of retries, with times in seconds. Raises BadInput for an invalid number."""

    attempts: int = bounded(6, 1)  # requests in all
    timeout: float = bounded(120.0, POSITIVE)  # of one request
    first_wait: float = 1.0
    longest_wait: float = 60.0
    longest_asked: float = 300.0  # if a server requests a longer wait, the call fails
    empty: int = bounded(2, 1)  # maximum number of empty replies; each is charged
