"""Limits on what may be spent, and an estimate beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kgot_lab.errors import OverBudget
from kgot_lab.llm.presets import FREE, Price
from kgot_lab.types import LLM, FromFile, Prompt, Reply, Usage

IMAGE_TOKENS = 48_200  # the most that one image counts with the models we know: 8 tiles of gpt-4o-mini; others count 5,000 or less
LETTERS_PER_TOKEN = 3  # low on purpose, so that a prompt is never reckoned smaller than it is; English has about 4


@dataclass(frozen=True)
class Budget:
    """The most that may be spent: calls, tokens (read and written), seconds, US dollars; None means no limit."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    dollars: float | None = None


@dataclass(frozen=True)
class Rate:
    """How fast a model is, in tokens a second, and what it charges."""

    reading: float = 130.0  # the local 1.5B model on two cores
    writing: float = 30.0
    price: Price = FREE

    def seconds(self, prompt_tokens: float, completion_tokens: float) -> float:
        """How long a call of this size takes."""
        return prompt_tokens / self.reading + completion_tokens / self.writing


@dataclass(frozen=True)
class CostEstimate:
    """What a number of calls will take."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    dollars: float

    def __repr__(self) -> str:
        tokens = f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        return f"about {self.calls:,} calls, {tokens}, {_duration(self.seconds)}, ${self.dollars:,.2f}"


def estimate(calls: Mapping[str, int], sizes: Mapping[str, tuple[int, int]], rate: Rate = Rate()) -> CostEstimate:
    """What calls will take, from how many there are of each role, and each role's usual tokens (read, written)."""
    read = sum(count * sizes[role][0] for role, count in calls.items())
    written = sum(count * sizes[role][1] for role, count in calls.items())
    return CostEstimate(sum(calls.values()), read, written, rate.seconds(read, written), rate.price.of(read, written))


@runtime_checkable
class Priced(Protocol):
    """A model that asks a price of so much for a token; None where nobody knows it. A model without one is free."""

    @property
    def price(self) -> Price | None: ...


class Budgeted:
    """A model that stops before it would spend too much: OverBudget is raised before the call that could pass the budget.

    The next call is reckoned at its worst: the prompt's length, all of max_tokens, and the seconds a token has taken so far.
    """

    def __init__(self, llm: LLM, budget: Budget):
        self._llm, self.budget = llm, budget
        self.calls, self.spent = 0, Usage()

    @property
    def name(self) -> str:
        """The name of the model behind it."""
        return self._llm.name

    @property
    def engine(self) -> str:
        """What runs the model behind it, for the head of a tape."""
        return self._llm.engine if isinstance(self._llm, FromFile) else ""

    @property
    def sha256(self) -> str:
        """The hash of the model behind it, for the head of a tape."""
        return self._llm.sha256 if isinstance(self._llm, FromFile) else ""

    def __call__(self, prompt: Prompt) -> Reply:
        self._refuse_if_over(prompt)
        reply = self._llm(prompt)
        self.calls, self.spent = self.calls + 1, self.spent + reply.usage
        return reply

    def _refuse_if_over(self, prompt: Prompt) -> None:
        worst, budget, spent = self._worst(prompt), self.budget, self.spent
        tokens = worst.prompt_tokens + worst.completion_tokens
        for what, used, more, limit in (
            ("calls", self.calls, 1, budget.calls),
            ("tokens", spent.prompt_tokens + spent.completion_tokens, tokens, budget.tokens),
            ("seconds", spent.seconds, worst.seconds, budget.seconds),
            ("dollars", spent.cost, worst.cost, budget.dollars),
        ):
            if limit is not None and used + more > limit:
                spent_so_far = f"{used:,.6g} of {limit:,.6g} {what} are spent and the next call could take {more:,.6g}"
                raise OverBudget(f"{spent_so_far}: nothing was sent. Raise the budget, or ask for less.")

    def _worst(self, prompt: Prompt) -> Usage:
        """The most the next call can take; a model whose price is unknown cannot be kept to a budget of dollars."""
        read, written = tokens_of(prompt), prompt.max_tokens
        seen = self.spent.prompt_tokens + self.spent.completion_tokens
        seconds = (read + written) * self.spent.seconds / seen if seen else 0.0
        price = self._llm.price if isinstance(self._llm, Priced) else FREE
        if self.budget.dollars is not None and price is None:
            raise OverBudget(f"the price of {self.name} is not known, so dollars cannot be limited: give it a price, or limit tokens")
        return Usage(read, written, seconds, (price or FREE).of(read, written))

    def __repr__(self) -> str:
        spent = self.spent
        tokens = f"{spent.prompt_tokens:,} + {spent.completion_tokens:,} tokens"
        return f"<{self.name}: {self.calls:,} calls, {tokens}, {_duration(spent.seconds)}, ${spent.cost:,.2f} spent>"


def tokens_of(prompt: Prompt) -> int:
    """How many tokens a prompt has at most, reckoned from its letters."""
    letters = sum(len(message.text.encode()) for message in prompt.messages) + len(str(prompt.schema or ""))
    images = sum(len(message.images) for message in prompt.messages)
    return letters // LETTERS_PER_TOKEN + 8 * len(prompt.messages) + IMAGE_TOKENS * images


def _duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 180 else f"{seconds / 60:,.0f} min"
