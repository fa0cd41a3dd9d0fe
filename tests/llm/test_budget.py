"""Budgets stop before they are passed, and estimates add up."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.answering_server import answering_server
from support.every import every
from support.loopback import QuietHandler, serving
from support.openai_server import openai_server, refuses
from support.waiting import AMPLE, until

from kgot_lab.errors import BadInput, LLMError, OverBudget
from kgot_lab.llm import connect
from kgot_lab.llm.budget import (
    Budget,
    Budgeted,
    Rate,
    Spending,
    estimate,
    estimate_tokens,
    report_possible_charge,
    requested_price,
    require_budget_for_retry,
)
from kgot_lab.llm.engine_xllamacpp import Xllamacpp, _client
from kgot_lab.llm.local import Local
from kgot_lab.llm.presets import Price, RetryPolicy
from kgot_lab.llm.recorded import Recorder, Scripted
from kgot_lab.types import Message, Prompt, Reply, Usage

PROMPT = Prompt((Message("user", "word " * 20),), max_tokens=100)


class Metered:
    """A model with a price that takes two seconds a call on its own clock and uses less than it might."""

    name = "metered"
    price: Price | None = Price(1.0, 10.0)

    def __init__(self) -> None:
        self.calls, self.time = 0, 0.0

    def clock(self) -> float:
        return self.time

    def __call__(self, prompt: Prompt) -> Reply:
        self.calls, self.time = self.calls + 1, self.time + 2.0
        return Reply("ok", Usage(20, 10, 2.0, self.price.of(20, 10) if self.price else 0.0))


@pytest.mark.parametrize(
    ("budget", "what", "calls"),
    [
        (Budget(calls=3), "calls", 3),
        (Budget(tokens=200), "tokens", 2),  # a call uses 30 and could use 141: 60 + 141 > 200
        # a call takes 2 s, however long its reply could be: 14 + 2 > 15
        (
            Budget(seconds=15),
            "seconds",
            7,
        ),
        (Budget(seconds=2), "seconds", 1),
        (Budget(seconds=0), "seconds", 0),
        # a call costs $0.00012 and could cost $0.00104: 0.00036 + 0.00104 > 0.0014
        (
            Budget(dollars=0.0014),
            "dollars",
            3,
        ),
    ],
    ids=lambda value: str(value),
)
def test_the_call_that_could_pass_the_budget_is_not_sent(budget: Budget, what: str, calls: int) -> None:
    live = Metered()
    llm = Budgeted(live, Spending(budget, clock=live.clock))
    with pytest.raises(OverBudget, match=what):
        for _ in range(100):
            llm(PROMPT)
    assert live.calls == llm.calls == calls
    assert llm.spent == Usage(20 * calls, 10 * calls, 0, pytest.approx(0.00012 * calls))


class Varied(Metered):
    """A model whose calls take the listed seconds, the last for ever, and report none of them."""

    def __init__(self, *seconds: float) -> None:
        super().__init__()
        self.left = list(seconds)

    def __call__(self, prompt: Prompt) -> Reply:
        self.calls += 1
        self.time += self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return Reply("ok")


@pytest.mark.parametrize(
    ("seconds", "calls"),
    [
        ((30, 3), 11),  # the first loads the model, and says nothing of the others
        ((3, 30, 9), 5),  # after a long one a short one may still come
        ((1, 58.5), 2),  # half a second is too little for any
        ((100,), 1),  # nobody could stop it
    ],
)
def test_a_call_begins_while_as_much_time_is_left_as_the_shortest_took(
    seconds: tuple[float, ...], calls: int
) -> None:
    live = Varied(*seconds)
    llm = Budgeted(live, Spending(Budget(seconds=60), clock=live.clock))
    with pytest.raises(OverBudget, match="of 60 seconds are spent"):
        for _ in range(100):
            llm(replace(PROMPT, max_tokens=1_000_000))
    assert live.calls == calls


def test_dollars_cannot_be_limited_without_a_price() -> None:
    live = Metered()
    live.price = None
    with pytest.raises(OverBudget, match=r"price of metered is not known.*Price\(dollars, dollars\)"):
        Budgeted(live, Budget(dollars=1))(PROMPT)
    assert live.calls == 0


def test_a_model_that_does_not_speak_of_a_price_is_not_taken_for_free() -> None:
    class Mute:
        name = "mute"

        def __call__(self, prompt: Prompt) -> Reply:
            raise AssertionError("asked although its price is unknown")

    with pytest.raises(OverBudget, match="price of mute is not known"):
        Budgeted(Mute(), Budget(dollars=1))(PROMPT)
    assert Budgeted(Scripted(["hello"]), Budget(dollars=1))(PROMPT).text == "hello"


def test_a_recording_and_another_budget_around_a_model_do_not_hide_its_price(tmp_path: Path) -> None:
    unknown = Metered()
    unknown.price = None
    for around in (
        Recorder(unknown, tmp_path / "a.jsonl"),
        Budgeted(unknown, Budget()),
        Budgeted(Recorder(unknown, tmp_path / "b"), Budget()),
    ):
        with pytest.raises(OverBudget, match="price"):
            Budgeted(around, Budget(dollars=1))(PROMPT)
    assert requested_price(Recorder(Metered(), tmp_path / "c")) == Metered.price
    assert unknown.calls == 0


def test_what_a_tool_spent_inside_counts_against_the_same_budget() -> None:
    spending = Spending(Budget(dollars=1.0))
    llm = Budgeted(Metered(), spending)
    llm(PROMPT)
    spending.charge(Usage(5, 5, 1.0, 0.9999))
    with pytest.raises(OverBudget, match="dollars"):
        llm(PROMPT)
    assert spending.calls == 2


def test_a_model_is_not_counted_twice_in_one_budget() -> None:
    spending = Spending(Budget(calls=3))
    with pytest.raises(BadInput, match="counted twice"):
        Budgeted(Budgeted(Metered(), spending), spending)


def test_a_budget_shows_what_is_spent_of_it() -> None:
    spending = Spending(Budget(calls=50, dollars=0.5))
    spending.charge(Usage(1000, 500, 2.0, 0.25), calls=3)
    assert repr(spending) == "<spent: 3 calls of 50, 1,500 tokens, 2 s, $0.25 of 0.5>"


class Gated:
    """A model that answers when it is let, and says when it is asked."""

    name, price = "gated", Price(0.0, 1_000_000.0)  # a dollar a token

    def __init__(self) -> None:
        self.asked, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, prompt: Prompt) -> Reply:
        self.asked.release()
        assert self.open.acquire(timeout=AMPLE)
        return Reply("ok", Usage(1, 1, 5.0, 1.0))


def test_calls_at_once_cannot_pass_a_budget_together_and_wait_for_each_other_where_that_helps() -> None:
    """Each could cost 3 dollars and costs 1: of 5 dollars two would take 6, so the second waits until the
    first has cost 1.
    """
    live, asked = Gated(), replace(PROMPT, max_tokens=3)
    llm = Budgeted(live, Budget(dollars=5.0))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(llm, asked)
        assert live.asked.acquire(timeout=AMPLE)
        second = pool.submit(llm, asked)
        until(lambda: llm.spending._changed._waiters, "the second call waits")  # type: ignore[attr-defined]
        assert not live.asked.acquire(blocking=False)  # it is not sent
        live.open.release(2)
        assert (first.result(AMPLE).text, second.result(AMPLE).text) == ("ok", "ok")
    assert llm.spent.cost == 2.0
    llm.spending.charge(Usage(cost=0.5))
    with pytest.raises(OverBudget):
        llm(asked)


def test_seconds_of_calls_at_once_are_counted_once() -> None:
    live, now = Gated(), [0.0]
    spending = Spending(Budget(), clock=lambda: now[0])
    llm = Budgeted(live, spending)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(llm, PROMPT) for _ in range(2)]
        for _ in calls:
            assert live.asked.acquire(timeout=AMPLE)
        now[0] = 10.0
        assert spending.spent.seconds == 10.0  # both are still under way
        live.open.release(2)
        for call in calls:
            call.result(AMPLE)
    now[0] = 99.0
    assert spending.spent.seconds == 10.0


def test_no_call_of_many_threads_is_lost() -> None:
    spending = Spending(Budget())
    llms = [Budgeted(Scripted(lambda prompt: "one two"), spending) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: llms[number % 4](PROMPT), range(400)))
    assert spending.calls == 400
    assert spending.spent.completion_tokens == 800


def test_a_call_that_failed_is_counted_with_what_it_cost() -> None:
    class Failing(Metered):
        def __call__(self, prompt: Prompt) -> Reply:
            error = LLMError("nothing came back")
            error.spent = Usage(20, 10, 2.0, 0.5)
            raise error

    llm = Budgeted(Failing(), Budget(dollars=0.6))
    with pytest.raises(LLMError, match="nothing came back"):
        llm(PROMPT)
    assert (llm.calls, llm.spent.cost) == (1, 0.5)
    assert llm.spending.spent.cost == 0.5


@every("name", ["calls", "tokens", "seconds", "dollars"])
@every("value", [float("nan"), float("inf"), -1, "3", True, [1]], ids=str)
def test_a_budget_of_what_is_no_number_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadInput, match=name):
        Budget(**{name: value})  # type: ignore[arg-type]


def test_calls_and_tokens_are_whole_and_nothing_at_all_is_a_budget_too() -> None:
    for name in ("calls", "tokens"):
        with pytest.raises(BadInput, match=r"a whole number or None, not 2\.5"):
            Budget(**{name: 2.5})  # type: ignore[arg-type]
    assert Budget(0, 0, 0, 0) == Budget(0, 0, 0.0, 0.0)
    assert Budget(seconds=2.5, dollars=0.01).calls is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, "3", None])
def test_prices_and_rates_are_numbers_too(value: float) -> None:
    with pytest.raises(BadInput, match="prompt"):
        Price(value, 1)
    with pytest.raises(BadInput, match="completion"):
        Price(1, value)
    with pytest.raises(BadInput, match="reading"):
        Rate(reading=value)


class TimingOut(Metered):
    """A model whose requests each may have cost ten cents and are not answered; it asks three times for a
    reply.
    """

    def __call__(self, prompt: Prompt) -> Reply:
        for attempt in range(3):
            if attempt:
                require_budget_for_retry()
            self.calls += 1
            report_possible_charge(0.1)
        raise LLMError("no answer")


def test_what_a_request_without_an_answer_may_have_cost_is_counted_where_dollars_are_limited() -> None:
    llm = Budgeted(TimingOut(), Budget(dollars=1.0))
    with pytest.raises(LLMError, match="no answer"):
        llm(PROMPT)
    assert llm.spent.cost == llm.spending.spent.cost == llm.spending.unanswered == pytest.approx(0.3)
    assert (
        repr(llm.spending)
        == "<spent: 1 call, 0 tokens, 0 s, $0.30 of 1, of which $0.30 for requests without an answer>"
    )
    free = Budgeted(TimingOut(), Budget(calls=5))
    with pytest.raises(LLMError):
        free(PROMPT)
    assert free.spending.spent.cost == free.spending.unanswered == 0


def test_a_request_is_not_sent_again_where_those_without_an_answer_could_pass_the_budget(
    tmp_path: Path,
) -> None:
    live = TimingOut()
    llm = Budgeted(Recorder(Budgeted(live, Budget()), tmp_path / "recording"), Budget(dollars=0.15))
    with pytest.raises(OverBudget, match=r"may have cost \$0.2, and asking once more"):
        llm(PROMPT)
    assert live.calls == 2


def test_a_server_that_does_not_answer_is_given_no_more_than_the_seconds_of_the_budget() -> None:
    with answering_server(lambda prompt: "too late") as server:
        server.hold_after(0)
        with closing(connect(f"{server.url}#m", patience=RetryPolicy(timeout=10 * AMPLE))) as live:
            llm = Budgeted(live, Budget(seconds=0.3))
            with pytest.raises(OverBudget, match=r"of the 0\.3 seconds of the budget 0 are left"):
                llm(PROMPT)
            assert (live.requests, llm.spending.calls) == (1, 1) and 0.3 <= llm.spending.spent.seconds < AMPLE


def test_quick_replies_of_a_server_are_not_stopped_by_how_long_they_could_be() -> None:
    with (
        answering_server(lambda prompt: "soon") as server,
        closing(connect(f"{server.url}#m")) as live,
    ):
        llm = Budgeted(live, Budget(seconds=AMPLE))
        texts = [llm(replace(PROMPT, max_tokens=10**7)).text for _ in range(5)]
    assert texts == ["soon"] * 5


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_call_of_the_local_model_ends_with_the_seconds_of_the_budget(tmp_path: Path, way: str) -> None:
    """Its engine is a server inside this process, which stops when the connection is closed."""
    gone_on = threading.Event()

    class Engine(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if body.get("n_predict"):  # it writes, a word now and then
                self.send_response(200)
                self.end_headers()
                while body.get("stream") and not gone_on.wait(0.02):
                    self.wfile.write(b'data: {"content": "well "}\n\n')
                gone_on.wait(AMPLE)
            else:
                self.respond(200, b'{"prompt": "a", "tokens": [1, 2]}', {"content-length": "33"})

    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    local, engine = Local(tmp_path / "a.gguf"), object.__new__(Xllamacpp)
    local._loaded = engine
    with serving(Engine) as address, closing(_client(address, tmp_path, "key")) as engine._client:
        llm = Budgeted(local, Budget(seconds=0.5))
        try:
            with pytest.raises(OverBudget, match=r"of the 0\.5 seconds of the budget 0 are left"):
                llm(PROMPT) if way == "whole" else list(llm.stream(PROMPT))
        finally:
            gone_on.set()
    assert 0.5 <= llm.spending.spent.seconds < AMPLE


def test_no_wait_for_a_server_is_longer_than_the_seconds_of_the_budget() -> None:
    with (
        openai_server(refuses(429, "slow down", {"retry-after": "50"})) as server,
        closing(connect(f"{server.url}#m", sleep=lambda seconds: pytest.fail("it waits"))) as live,
        pytest.raises(OverBudget, match="in time"),
    ):
        Budgeted(live, Budget(seconds=20))(PROMPT)


def test_a_call_that_was_interrupted_counts_as_the_most_it_may_have_cost() -> None:
    class Interrupted(Metered):
        def __call__(self, prompt: Prompt) -> Reply:
            raise KeyboardInterrupt

    llm = Budgeted(Interrupted(), Budget(dollars=1.0))
    with pytest.raises(KeyboardInterrupt):
        llm(PROMPT)
    assert llm.spending.spent.cost == llm.spending.unanswered == llm.worst(PROMPT).cost > 0
    assert llm.spending.calls == 1
    report_possible_charge(1.0)  # no call is under way, so nobody counts it
    assert llm.spending.spent.cost < 1


def test_an_image_is_reckoned_at_the_most_it_can_count() -> None:
    seen = Prompt((Message("user", "What is this?", ("data:image/png;base64,AA==",)),))
    assert estimate_tokens(seen) > 48_000


def test_an_estimate_adds_up_the_roles() -> None:
    sizes = {"vote": (400, 50), "answer": (1300, 50)}
    total = estimate({"vote": 10, "answer": 2}, sizes, Rate(reading=100, writing=30, price=Price(1, 10)))
    assert (total.calls, total.prompt_tokens, total.completion_tokens) == (12, 6600, 600)
    assert total.seconds == pytest.approx(66 + 20)
    assert total.dollars == pytest.approx(0.0126)
    assert repr(total) == "about 12 calls, 6,600 + 600 tokens, 86 s, $0.01"


def test_several_models_share_one_budget() -> None:
    spending = Spending(Budget(calls=3))
    planning, execution = Budgeted(Metered(), spending), Budgeted(Metered(), spending)
    for llm in (planning, execution, planning):
        llm(PROMPT)
    with pytest.raises(OverBudget, match="3 of 3 calls"):
        execution(PROMPT)
    assert (planning.calls, execution.calls, spending.calls) == (2, 1, 3)
    assert spending.spent == planning.spent + execution.spent
