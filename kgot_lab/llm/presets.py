"""What differs between servers that speak the OpenAI protocol, and what they charge: data, not code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from kgot_lab.errors import BadInput


@dataclass(frozen=True)
class Endpoint:
    """One kind of server. `schema_ways` says how to ask for JSON of a shape, best first: what the server refuses is tried no more.

    json_schema: response_format of that type (OpenAI). json_object: that type with the schema beside it (llama-cpp-python's server).
    format: the schema itself (Ollama). words: the schema is written into the prompt.
    """

    name: str
    base_url: str
    key_variable: str  # the environment variable that holds the key
    key_needed: bool = True
    schema_ways: tuple[str, ...] = ("json_schema", "words")
    takes_seed: bool = True
    max_tokens_name: str = "max_tokens"
    wire: str = "chat completions"  # or "ollama"


# Read in November 2026: platform.openai.com (max_tokens is deprecated there and refused by reasoning models),
# platform.claude.com "OpenAI SDK compatibility" (response_format and seed are ignored, so neither is sent),
# ai.google.dev "OpenAI compatibility", openrouter.ai/docs, docs.ollama.com (its own API, since its OpenAI one cannot set num_ctx).
ENDPOINTS = {
    preset.name: preset
    for preset in (
        Endpoint("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", max_tokens_name="max_completion_tokens"),
        Endpoint("anthropic", "https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY", schema_ways=("words",), takes_seed=False),
        Endpoint("gemini", "https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY"),
        Endpoint("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Endpoint(
            "ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY", key_needed=False, schema_ways=("format", "words"), wire="ollama"
        ),
    )
}

SERVER_KEY = "KGOT_LAB_SERVER_KEY"  # its own variable, so that no other key is ever sent to an address someone typed


def server_at(address: str) -> tuple[Endpoint, str]:
    """The preset and model of "http://host:port/v1#model"; the name leaves out any password in it. Raises BadInput."""
    parts = urlsplit(address)
    if not parts.hostname or not parts.fragment:
        raise BadInput(f"a server is named by its address and a model: {parts.scheme}://HOST:PORT/v1#MODEL")
    if parts.username or parts.password:
        raise BadInput(f"leave the user name and password out of the address; a key goes into the environment variable {SERVER_KEY}")
    where = parts._replace(fragment="").geturl()
    return Endpoint(parts.netloc, where, SERVER_KEY, False, ("json_schema", "json_object", "words")), parts.fragment


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What so many tokens cost, in US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


PRICES_READ = "2026-11-21"  # list prices of the standard tier, without discounts for batches or cached prompts
PRICES = {
    "gpt-4o": Price(2.50, 10.00),
    "gpt-4o-mini": Price(0.15, 0.60),
    "gpt-4.1": Price(2.00, 8.00),
    "gpt-4.1-mini": Price(0.40, 1.60),
    "gpt-4.1-nano": Price(0.10, 0.40),
    "gpt-5-mini": Price(0.25, 2.00),
    "gpt-5.4": Price(2.50, 15.00),
    "gpt-5.4-mini": Price(0.75, 4.50),
    "gpt-5.4-nano": Price(0.20, 1.25),
    "claude-haiku-4-5": Price(1.00, 5.00),
    "claude-sonnet-5-5": Price(2.00, 10.00),
    "claude-opus-5-5": Price(4.00, 20.00),
    "gemini-2.5-flash": Price(0.30, 2.50),
    "gemini-2.5-flash-lite": Price(0.10, 0.40),
    "gemini-3.5-flash": Price(1.50, 9.00),
}
FREE = Price(0.0, 0.0)


def price_of(preset: Endpoint, model: str) -> Price | None:
    """The price of a model, or None where the table does not have it; a date at the end of its name does not matter."""
    if not preset.key_needed:
        return FREE
    plain = re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", model.rsplit("/", 1)[-1])
    return PRICES.get(plain)
