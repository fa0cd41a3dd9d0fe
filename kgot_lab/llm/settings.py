"""What may be said of a model once and for all, rather than with each prompt: how it is asked, and how long
it is tried.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from kgot_lab.errors import BadInput, UnknownName, require_amount, require_count
from kgot_lab.types import Prompt

# Tokens a model may think with before it says anything, by its reasoning effort; "" is what models do when
# they are not told. They are room, not cost: only what is thought is charged. OpenAI advises 25,000 for hard
# work.
ALLOWANCES = {
    "none": 0, "minimal": 1_000, "low": 4_000, "medium": 8_000, "high": 25_000, "xhigh": 50_000, "max": 100_000, "": 8_000,
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """How a model is asked; None or "" leaves it to the prompt or to the model. Raises BadInput, UnknownName."""

    temperature: float | None = None  # in place of every prompt's own
    temperature_scale: float = 1.0  # times every prompt's own
    max_tokens: int | None = None  # in place of every prompt's own
    reasoning_effort: str = ""
    allowance: int | None = (
        None  # tokens to think with, on top of max_tokens; by default what the model's name and effort suggest
    )
    num_ctx: int | None = None  # the context that Ollama loads a model with

    def __post_init__(self) -> None:
        if self.reasoning_effort not in ALLOWANCES:
            raise UnknownName(
                "reasoning_effort", self.reasoning_effort, [effort for effort in ALLOWANCES if effort]
            )
        for name, value in (("temperature", self.temperature), ("temperature_scale", self.temperature_scale)):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2
            ):
                raise BadInput(f"{name} must be between 0 and 2, not {value!r}")
        for name, number, least in (
            ("max_tokens", self.max_tokens, 1),
            ("allowance", self.allowance, 0),
            ("num_ctx", self.num_ctx, 1),
        ):
            if number is not None:
                require_count(number, least, name)

    @property
    def suffix(self) -> str:
        """What differs from the usual, for the name of a model: other settings, other replies; "" where
        nothing does.
        """
        usual = Settings()
        told = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != getattr(usual, field.name)
        }
        parts = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in told.items()
        ]  # 0.0 is 0
        return f" [{', '.join(parts)}]" if parts else ""

    def applied(self, prompt: Prompt) -> Prompt:
        """The prompt as this model is to be asked."""
        temperature = (
            min(2.0, prompt.temperature * self.temperature_scale)
            if self.temperature is None
            else self.temperature
        )
        return replace(prompt, temperature=temperature, max_tokens=self.max_tokens or prompt.max_tokens)

    def room(self, reasons: bool) -> int:
        """How many tokens the model may think with; `reasons` says whether it is known to think before it
        speaks.
        """
        if self.allowance is not None:
            return self.allowance
        return ALLOWANCES[self.reasoning_effort] if reasons or self.reasoning_effort else 0


@dataclass(frozen=True)
class Patience:
    """How long to try; times in seconds. Raises BadInput."""

    attempts: int = 6  # requests in all
    timeout: float = 120.0  # of one request
    first_wait: float = 1.0
    longest_wait: float = 60.0
    longest_asked: float = 300.0  # a server that asks to wait longer is not waited for
    empty: int = 2  # replies in all that may come back empty; each is paid for

    def __post_init__(self) -> None:
        require_count(self.attempts, 1, "patience.attempts")
        require_count(self.empty, 1, "patience.empty")
        require_amount(self.timeout, "patience.timeout", some=True)
        for name in ("first_wait", "longest_wait", "longest_asked"):
            require_amount(getattr(self, name), f"patience.{name}")
