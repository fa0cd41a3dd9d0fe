"""Budgets stop before they are passed, and estimates add up."""

import pytest

from kgot_lab.errors import OverBudget
from kgot_lab.llm.budget import Budget, Budgeted, Rate, estimate, tokens_of
from kgot_lab.llm.presets import Price
from kgot_lab.types import Message, Prompt, Reply, Usage

PROMPT = Prompt((Message("user", "word " * 20),), max_tokens=100)


class Metered:
    """A model with a price that takes two seconds a call and uses less than it might."""

    name = "metered"
    price: Price | None = Price(1.0, 10.0)

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, prompt: Prompt) -> Reply:
        self.calls += 1
        return Reply("ok", Usage(20, 10, 2.0, self.price.of(20, 10)))


@pytest.mark.parametrize(
    ("budget", "what", "calls"),
    [
        (Budget(calls=3), "calls", 3),
        (Budget(tokens=200), "tokens", 2),  # a call uses 30 and could use 141: 60 + 141 > 200
        (Budget(seconds=15), "seconds", 3),  # at 1/15 s a token a call takes 2 s and could take 9.4 s: 6 + 9.4 > 15
        (Budget(dollars=0.0014), "dollars", 3),  # a call costs $0.00012 and could cost $0.00104: 0.00036 + 0.00104 > 0.0014
    ],
    ids=lambda value: str(value),
)
def test_the_call_that_could_pass_the_budget_is_not_sent(budget: Budget, what: str, calls: int) -> None:
    live = Metered()
    llm = Budgeted(live, budget)
    with pytest.raises(OverBudget, match=what):
        for _ in range(100):
            llm(PROMPT)
    assert live.calls == llm.calls == calls
    assert llm.spent == Usage(20 * calls, 10 * calls, 0, pytest.approx(0.00012 * calls))


def test_without_limits_everything_is_asked_and_counted() -> None:
    llm = Budgeted(Metered(), Budget())
    for _ in range(50):
        llm(PROMPT)
    assert repr(llm) == "<metered: 50 calls, 1,000 + 500 tokens, 100 s, $0.01 spent>"
    assert llm.name == "metered"


def test_dollars_cannot_be_limited_without_a_price() -> None:
    live = Metered()
    live.price = None
    with pytest.raises(OverBudget, match="price of metered is not known"):
        Budgeted(live, Budget(dollars=1))(PROMPT)
    assert live.calls == 0


def test_a_prompt_is_reckoned_larger_than_it_is() -> None:
    assert tokens_of(PROMPT) > 20


def test_an_estimate_adds_up_the_roles() -> None:
    sizes = {"vote": (400, 50), "answer": (1300, 50)}
    total = estimate({"vote": 10, "answer": 2}, sizes, Rate(reading=100, writing=30, price=Price(1, 10)))
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (12, 6600, 600)
    assert total.seconds == pytest.approx(66 + 20)
    assert total.dollars == pytest.approx(0.0126)
    assert repr(total) == "about 12 calls, 6,600 + 600 tokens, 86 s, $0.01"
