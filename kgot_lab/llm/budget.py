"""Budgets for calls of models, and cost estimates."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded, check_arguments
from kgot_lab.errors import BadInput, LLMError, OverBudget
from kgot_lab.llm.presets import FREE, Price
from kgot_lab.llm.streaming import run_in_steps, stream_reply
from kgot_lab.llm.structured import StepwiseRecord, checked_reply, record_once
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import LLM, FromFile, Prompt, Reply, Usage

IMAGE_TOKENS = 48_200  # maximum tokens of an image: 8 tiles of gpt-4o-mini; other models use 5,000 or less
MIN_TIMEOUT = 0.001  # timeout of a request when the budget is used up: clients do not accept 0
# low on purpose, so that prompts are never underestimated; English has about 4
CHARACTERS_PER_TOKEN = 3


@dataclass(frozen=True)
class Budget(CheckedRecord):
    """The limits of calls, tokens (read and written), seconds and US dollars, None for no limit.

    Raises BadInput for an invalid limit.
    """

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    dollars: float | None = None


@dataclass(frozen=True)
class Rate(CheckedRecord):
    """The speed of a model, in tokens a second, and its price, None if unknown.

    Raises BadInput for an invalid number.
    """

    reading: float = bounded(130.0, POSITIVE)  # the local 1.5B model on two cores
    writing: float = bounded(30.0, POSITIVE)
    price: Price | None = FREE

    def seconds(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Estimate the duration of a call of this size."""
        return prompt_tokens / self.reading + completion_tokens / self.writing


@dataclass(frozen=True)
class CostEstimate:
    """The estimated cost of calls. Dollars are None if the price is unknown."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    dollars: float | None

    def __repr__(self) -> str:
        tokens = f"{self.prompt_tokens:,} + {format_count(self.completion_tokens, 'token')}"
        dollars = "at a price that is not known" if self.dollars is None else f"${self.dollars:,.2f}"
        return f"about {format_count(self.calls, 'call')}, {tokens}, {_duration(self.seconds)}, {dollars}"


def estimate(
    calls: Mapping[str, int], sizes: Mapping[str, tuple[int, int]], rate: Rate = Rate()
) -> CostEstimate:
    """Estimate the cost of calls from their number and usual tokens (read, written) by role."""
    read = sum(count * sizes[role][0] for role, count in calls.items())
    written = sum(count * sizes[role][1] for role, count in calls.items())
    dollars = rate.price.of(read, written) if rate.price else None
    return CostEstimate(sum(calls.values()), read, written, rate.seconds(read, written), dollars)


def charged_account(llm: LLM | None) -> Spending | None:
    """Return the account that calls of a model are charged to, its `spending`, through any wrappers, or None."""
    account: Spending | None = getattr(llm, "spending", None)
    return account


def requested_price(llm: LLM | None) -> Price | None:
    """Return the `price` of a model, through any wrappers.

    None if the price is unknown, which is not the same as free.
    """
    price: Price | None = getattr(llm, "price", None)
    return price


def maximum_usage(llm: LLM, prompt: Prompt) -> Usage:
    """Return the most tokens that one call of a model can use, and their cost if the price is known.

    A model that may send several requests for one reply has a `worst` that says how many they are.
    """
    bound: Callable[[Prompt], Usage] | None = getattr(llm, "worst", None)
    usage = bound(prompt) if bound else Usage(estimate_tokens(prompt), prompt.max_tokens)
    price = requested_price(llm) or FREE
    return replace(usage, cost=price.of(usage.prompt_tokens, usage.completion_tokens))


class Spending:
    """The usage under one budget, by any number of models and threads.

    Running calls count with their maximum. Seconds are those in which at least one call was running, so two
    simultaneous calls count once. How long a call will take is not known before it: it begins while as much
    time is left as the shortest call so far took. A request to a server and a call of the local model end
    when the time is over, and no other model can be stopped.
    """

    def __init__(self, budget: Budget, *, clock: Callable[[], float] = time.monotonic):
        self.budget = budget
        self._clock = clock
        self._changed = threading.Condition()
        self.calls, self._spent, self._busy = 0, Usage(), 0.0
        self.unanswered = 0.0  # dollars spent on requests without an answer, as an upper bound
        self._shortest = 0.0  # seconds of a call
        self._running: list[Usage] = []  # the maximum usage of each running call
        self._since = 0.0  # start of the first running call

    @property
    def spent(self) -> Usage:
        """The usage so far, without running calls except for their time."""
        with self._changed:
            return replace(self._spent, seconds=self._seconds())

    def count_unanswered(self, dollars: float) -> None:
        """Count the maximum cost of a request whose cost is unknown. Only if dollars are limited."""
        if self.budget.dollars is not None:
            with self._changed:
                self.unanswered += dollars
                self._spent += Usage(cost=dollars)

    @property
    def seconds_left(self) -> float:
        """The seconds that running calls may still take, infinite without a limit."""
        if self.budget.seconds is None:
            return math.inf
        with self._changed:
            return max(0.0, self.budget.seconds - self._seconds())

    def require_retry_budget(self, worst: Usage, wait: float = 0.0) -> None:
        """Raise OverBudget if a retry of a running call, after a wait in seconds, could pass the budget.

        Its earlier requests may have cost more than the call's estimate.
        """
        if (remaining := self.seconds_left) <= wait:
            reason = f"the server did not answer in time: of the {self.budget.seconds:,.6g} seconds of the budget {remaining:,.3g} are left"
            raise OverBudget(f"{reason}. Raise the budget, or ask a server that answers sooner.")
        with self._changed:
            running = Usage.total(self._running).cost  # includes this call's maximum
            limit = math.inf if self.budget.dollars is None else self.budget.dollars
            if self.unanswered and self._spent.cost + running > limit:
                reason = f"requests that were not answered may have cost ${self.unanswered:,.6g}"
                consequence = f"asking once more, for up to ${worst.cost:,.6g}, could pass the ${limit:,.6g} of the budget"
                advice = "Raise the budget, or give the server more time."
                raise OverBudget(f"{reason}, and {consequence}. {advice}")

    def charge(self, usage: Usage, *, calls: int = 1) -> None:
        """Count usage from elsewhere, as of a model inside a tool.

        It never raises, since the usage is already spent.
        """
        with self._changed:
            self._add(usage, calls)
            self._busy += usage.seconds

    @contextmanager
    def call(self, worst: Usage) -> Iterator[Callable[[Usage], None]]:
        """Reserve budget for a call, and yield a function that records its actual usage.

        The call uses at most `worst`. It waits while only running calls stand in the way, since they rarely
        use their maximum. Raises OverBudget if the call would pass the budget.
        """
        with record_once(self) as used, self.reserve(worst, used):
            yield used.append

    @contextmanager
    def reserve(self, worst: Usage, used: Sequence[Usage]) -> Iterator[None]:
        """Reserve budget for a call that is recorded elsewhere, such as a streamed one.

        The actual usage is in `used` at the end.
        """
        with self._changed:
            while self._over(worst, self._running):
                if over := self._over(worst, ()):
                    raise OverBudget(f"{over}: nothing was sent. Raise the budget, or ask for less.")
                self._changed.wait()
            began = self._clock()
            if not self._running:
                self._since = began
            self._running.append(worst)
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(worst)
                seconds = self._clock() - began
                self._shortest = min(seconds, self._shortest or seconds)
                if not self._running:
                    self._busy += self._clock() - self._since
                self._add(Usage.total(used), 1)
                self._changed.notify_all()

    def _add(self, usage: Usage, calls: int) -> None:
        self.calls, self._spent = self.calls + calls, self._spent + usage

    def _seconds(self) -> float:
        """Return the seconds in which a call was running, including those that still are."""
        return self._busy + (self._clock() - self._since if self._running else 0.0)

    def _over(self, worst: Usage, running: Sequence[Usage]) -> str:
        """Return the limit that a call could pass together with the running ones, or "".

        Running calls add up, except for their seconds.
        """
        budget, spent, reserved = self.budget, self._spent, Usage.total(running)
        used_tokens = spent.prompt_tokens + spent.completion_tokens
        reserved_tokens = reserved.prompt_tokens + reserved.completion_tokens
        tokens = worst.prompt_tokens + worst.completion_tokens
        for name, amount, next_amount, limit in (
            ("calls", self.calls + len(running), 1, budget.calls),
            ("tokens", used_tokens + reserved_tokens, tokens, budget.tokens),
            ("seconds", self._seconds(), self._shortest or MIN_TIMEOUT, budget.seconds),
            ("dollars", spent.cost + reserved.cost, worst.cost, budget.dollars),
        ):
            if limit is not None and amount + next_amount > limit:
                return f"{amount:,.6g} of {limit:,.6g} {name} are spent and the next call could take {next_amount:,.6g}"
        return ""

    def __repr__(self) -> str:
        spent, budget = self.spent, self.budget
        counts = (
            ("{:,} call" + "s" * (self.calls != 1), self.calls, budget.calls),
            ("{:,} tokens", spent.prompt_tokens + spent.completion_tokens, budget.tokens),
            ("{:,.0f} s", spent.seconds, budget.seconds),
            ("${:,.2f}", spent.cost, budget.dollars),
        )
        parts = (
            template.format(used) + (f" of {limit:,g}" if limit is not None else "")
            for template, used, limit in counts
        )
        dollars = f"${self.unanswered:,.2f} for requests without an answer"
        unanswered = f", of which {dollars}" if self.unanswered else ""
        return f"<spent: {', '.join(parts)}{unanswered}>"


# The running calls of this context, with their maximum usage: a model does not know the budgets around it.
_UNDER_WAY: ContextVar[tuple[tuple[Budgeted, Usage], ...]] = ContextVar("under_way", default=())


def report_possible_charge(dollars: float, tokens: Usage = Usage()) -> None:
    """Report the possible cost of a request to the budgets around a model, if its server does not.

    `tokens` are those of an answer, estimated, and count if tokens are limited.
    """
    for llm, _ in _UNDER_WAY.get():
        llm.count_unanswered(dollars)
        if llm.budget.tokens is not None:
            llm.spending.charge(tokens, calls=0)


def require_budget_for_retry(wait: float = 0.0) -> None:
    """Raise OverBudget if a retry, after a wait in seconds, could pass a surrounding budget."""
    for llm, worst in _UNDER_WAY.get():
        llm.spending.require_retry_budget(worst, wait)


def seconds_left() -> float:
    """Return how many seconds a request may take within the budgets around its model.

    Infinite if none limits them.
    """
    return min((llm.spending.seconds_left for llm, _ in _UNDER_WAY.get()), default=math.inf)


def request_timeout() -> float | None:
    """Return the timeout of a request without one of its own: the seconds left, or None without a limit."""
    return max(left, MIN_TIMEOUT) if (left := seconds_left()) < math.inf else None


class WrappedLLM:
    """The name, price and bounds of a wrapped model."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self._llm.name

    @property
    def price(self) -> Price | None:
        """The price of the wrapped model."""
        return requested_price(self._llm)

    def worst(self, prompt: Prompt) -> Usage:
        """Return the maximum usage of one call."""
        return maximum_usage(self._llm, prompt)


class Budgeted(WrappedLLM):
    """A model with a budget. OverBudget is raised before a call that could exceed it.

    The next call is estimated at its maximum: the length of the prompt and the longest reply. Models share a
    budget through a common Spending. If dollars are limited, a request without an answer, after a time-out or
    an interrupt, counts with its maximum cost, since the server may charge it all the same.
    """

    def __init__(self, llm: LLM, budget: Budget | Spending):
        self.spending = budget if isinstance(budget, Spending) else Spending(budget)
        if isinstance(llm, Budgeted) and llm.spending is self.spending:
            raise BadInput(f"{llm.name} is kept to this budget already, and would be counted twice")
        super().__init__(llm)
        self.calls, self.spent = 0, Usage()  # its own usage
        self._lock = threading.Lock()

    @property
    def budget(self) -> Budget:
        """The budget of this model and of all that share its Spending."""
        return self.spending.budget

    @property
    def concurrent(self) -> bool:
        """Whether the wrapped model takes several calls at once."""
        return bool(getattr(self._llm, "concurrent", False))

    @property
    def engine(self) -> str:
        """The engine of the wrapped model, for the header of a recording."""
        return self._llm.engine if isinstance(self._llm, FromFile) else ""

    @property
    def sha256(self) -> str:
        """The hash of the wrapped model, for the header of a recording."""
        return self._llm.sha256 if isinstance(self._llm, FromFile) else ""

    @check_arguments
    def __call__(self, prompt: Prompt) -> Reply:
        worst = self._affordable(prompt)
        with self.spending.call(worst) as record_usage:
            try:
                with self._around(worst):
                    reply = checked_reply(self._llm, prompt)
            except LLMError as error:
                record_usage(error.spent or Usage())
                self._count(error.spent or Usage())
                raise
            except BaseException:  # interrupted, perhaps while a server was generating
                self.count_unanswered(worst.cost)
                raise
            record_usage(reply.usage)
        self._count(reply.usage)
        return reply

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Stream the reply in pieces, or word by word if the model cannot stream, and the Reply last.

        A stream that is closed early or breaks off counts with its maximum usage, because the actual usage is
        unknown. Until then other calls are limited as if it used that, so close a stream that is not read to
        its end.
        """
        worst = self._affordable(prompt)
        notes, reply, begun = StepwiseRecord(self.spending), None, False
        try:
            with self.spending.reserve(worst, notes.used):
                try:
                    steps = run_in_steps(stream_reply(self._llm, prompt), lambda: self._step(worst, notes))
                    with closing(steps) as parts:
                        for part in parts:
                            if isinstance(part, Reply):
                                reply = part
                            else:
                                begun = begun or bool(part)
                                yield part
                    assert reply is not None
                    notes.used.append(reply.usage)
                except LLMError as error:  # possible cost is counted by the model that sent the request
                    spent = error.spent or Usage()
                    used = replace(worst, seconds=spent.seconds, cost=spent.cost) if begun else spent
                    notes.used.append(used)
                    raise
                except BaseException:  # closed, perhaps while a server was generating
                    notes.used.append(replace(worst, cost=0.0))
                    self.count_unanswered(worst.cost)
                    raise
                finally:
                    self._count(Usage.total(notes.used))
        finally:
            notes.finish()
        yield reply

    def _affordable(self, prompt: Prompt) -> Usage:
        """Return the maximum usage of one call.

        Raises OverBudget if dollars are limited but the price is unknown.
        """
        if self.budget.dollars is not None and self.price is None:
            advice = "give it one, as Price(dollars, dollars) a million tokens read and written, or limit calls or tokens"
            raise OverBudget(f"the price of {self.name} is not known: {advice}. Nothing was sent.")
        return self.worst(prompt)

    @contextmanager
    def _around(self, worst: Usage) -> Iterator[None]:
        """Mark requests made inside as parts of a call of this model."""
        token = _UNDER_WAY.set((*_UNDER_WAY.get(), (self, worst)))
        try:
            yield
        finally:
            _UNDER_WAY.reset(token)

    @contextmanager
    def _step(self, worst: Usage, notes: StepwiseRecord) -> Iterator[None]:
        with self._around(worst), notes.step():
            yield

    def count_unanswered(self, dollars: float) -> None:
        """Count the possible cost of a request without an answer, if dollars are limited."""
        self.spending.count_unanswered(dollars)
        if self.budget.dollars is not None:
            with self._lock:
                self.spent += Usage(cost=dollars)

    def _count(self, usage: Usage) -> None:
        with self._lock:
            self.calls, self.spent = self.calls + 1, self.spent + usage

    def __repr__(self) -> str:
        spent = self.spent
        tokens = f"{spent.prompt_tokens:,} + {format_count(spent.completion_tokens, 'token')}"
        return f"<{self.name}: {format_count(self.calls, 'call')}, {tokens}, {_duration(spent.seconds)}, ${spent.cost:,.2f} spent>"


def estimate_tokens(prompt: Prompt) -> int:
    """Estimate the maximum number of tokens of a prompt from its length."""
    images = sum(len(message.images) for message in prompt.messages)
    return text_tokens(prompt) + IMAGE_TOKENS * images


def text_tokens(prompt: Prompt) -> int:
    """Estimate the maximum number of tokens of a prompt without its images."""
    characters = sum(len(message.text.encode(errors="replace")) for message in prompt.messages)
    return (characters + len(str(prompt.schema or ""))) // CHARACTERS_PER_TOKEN + 8 * len(prompt.messages)


def _duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 180 else f"{seconds / 60:,.0f} min"
