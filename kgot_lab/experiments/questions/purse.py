"""One budget for all questions of a run: several models and several threads spend from it."""

from __future__ import annotations

import threading

from kgot_lab.errors import OverBudget
from kgot_lab.llm.budget import Budget, Priced, tokens_of
from kgot_lab.llm.presets import FREE
from kgot_lab.types import LLM, FromFile, Prompt, Reply, Usage


class Purse:
    """What has been spent of a budget, and what calls under way may yet take: together they never pass it.

    `calls` and `spent` are of all sittings; it begins with what earlier ones spent. `model` gives a model that pays from it.
    """

    def __init__(self, budget: Budget, calls: int = 0, spent: Usage = Usage()):
        self.budget, self.calls, self.spent = budget, calls, spent
        self._under_way: list[Usage] = []
        self._lock = threading.Lock()

    def model(self, llm: LLM) -> Paying:
        """The same model, paying from this purse."""
        return Paying(llm, self)

    def ask(self, llm: LLM, prompt: Prompt) -> Reply:
        """Ask a model, unless the call could pass the budget, reckoned at its worst: then OverBudget is raised and nothing is sent."""
        with self._lock:
            worst = self._worst(llm, prompt)
            self._refuse_if_over(worst)
            self._under_way.append(worst)
        used = Usage()
        try:
            reply = llm(prompt)
            used = reply.usage
            return reply
        finally:
            with self._lock:
                self._under_way.remove(worst)
                self.calls, self.spent = self.calls + 1, self.spent + used

    def _worst(self, llm: LLM, prompt: Prompt) -> Usage:
        """The most a call can take: the prompt's length, all of its reply, and the seconds a token has taken so far."""
        price = llm.price if isinstance(llm, Priced) else FREE
        if self.budget.dollars is not None and price is None:
            raise OverBudget(f"the price of {llm.name} is not known, so dollars cannot be limited: give it a price, or limit tokens")
        read, written = tokens_of(prompt), prompt.max_tokens
        seen = self.spent.prompt_tokens + self.spent.completion_tokens
        seconds = (read + written) * self.spent.seconds / seen if seen else 0.0
        return Usage(read, written, seconds, (price or FREE).of(read, written))

    def _refuse_if_over(self, worst: Usage) -> None:
        budget, waiting = self.budget, Usage.total(self._under_way)
        for what, used, reserved, more, limit in (
            ("calls", self.calls, len(self._under_way), 1, budget.calls),
            ("tokens", _tokens(self.spent), _tokens(waiting), _tokens(worst), budget.tokens),
            ("seconds", self.spent.seconds, waiting.seconds, worst.seconds, budget.seconds),
            ("dollars", self.spent.cost, waiting.cost, worst.cost, budget.dollars),
        ):
            if limit is not None and used + reserved + more > limit:
                under_way = f", calls under way could take {reserved:,.6g}" if reserved else ""
                told = f"{used:,.6g} of {limit:,.6g} {what} are spent{under_way} and the next call could take {more:,.6g}"
                raise OverBudget(f"{told}: nothing was sent. Raise the budget, or ask for less.")


class Paying:
    """A model that pays from a purse; it goes by the same name, and says the same of its file."""

    def __init__(self, llm: LLM, purse: Purse):
        self._llm, self._purse = llm, purse

    @property
    def name(self) -> str:
        """The name of the model behind it."""
        return self._llm.name

    @property
    def engine(self) -> str:
        """What runs the model behind it, for the head of a trace."""
        return self._llm.engine if isinstance(self._llm, FromFile) else ""

    @property
    def sha256(self) -> str:
        """The hash of the model behind it, for the head of a trace."""
        return self._llm.sha256 if isinstance(self._llm, FromFile) else ""

    def __call__(self, prompt: Prompt) -> Reply:
        return self._purse.ask(self._llm, prompt)


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens
