"""What models behind a tool cost is on file and in the budget, however the tool ends."""

from collections.abc import Iterable

import pytest
from support.loop_script import FEW, WRITE, call, of, scripted, votes

from kgot_lab.errors import LLMError, OverBudget, ToolFailed
from kgot_lab.llm.budget import Budget, Budgeted, Spending
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Asked, ToolReturned
from kgot_lab.loop.replay.replay import Resources, fork, resume, verify
from kgot_lab.loop.state import ledger
from kgot_lab.loop.trace import load_run, record
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.tools.tool import Result, TextTool, ask_model
from kgot_lab.types import Document, Message, Prompt, Reply, Usage

ONCE = FEW.but(steps=1, votes=1, tool_wait=0, forced_reads=1, rereads=0)
SCRIPT = {
    "vote": votes("I"),
    "tools": call(tool="own"),
    "write": WRITE,
    "forced": {"statement": "result = facts()"},
}
SCRIPT |= {"choose": {"answer": "London"}, "parse": {"answer": "London"}, "guess": {"answer": "London"}}


class Counted:
    """A model whose every reply costs ten tokens and a cent; what it is told to raise comes after that many
    replies.
    """

    name = "counted"

    def __init__(self, replies: int = 99, then: type[BaseException] = LLMError):
        self.left, self.then = replies, then

    def __call__(self, prompt: Prompt) -> Reply:
        if not self.left:
            raise self.then("the model is gone")
        self.left -= 1
        return Reply("something", Usage(7, 3, cost=0.01))


def own(function) -> TextTool:
    """A tool of somebody's own."""
    return TextTool("own", "Knows it.", {"query": "what to look for"}, function)


def asking(llm, times: int, ends: Result | Exception | None = None):
    """A tool that asks a model several times, and ends so."""

    def run(query: str) -> Result:
        for number in range(times):
            llm(Prompt((Message("user", f"{query} {number}"),)))
        if isinstance(ends, Exception):
            raise ends
        return ends or Result("Ada Lovelace was born in London.")

    return own(run)


def stopped(tmp_path, tool, llm=None) -> tuple[list, BaseException | None]:
    """The events on file of a run with a tool, and what stopped it."""
    path, error = tmp_path / "run.jsonl", None
    try:
        for _ in record(think("Where?", llm or scripted(**SCRIPT), InMemory(), [tool], ONCE), path):
            pass
    except (LLMError, KeyboardInterrupt) as raised:
        error = raised
    return list(load_run(path).events), error


def inside(events: Iterable) -> list[Asked]:
    return [event for event in of(Asked, list(events)) if event.role.startswith("inside own")]


@pytest.mark.parametrize("kept", [False, True], ids=["a plain model", "a model with a budget"])
@pytest.mark.parametrize("stop", [LLMError, KeyboardInterrupt])
def test_calls_made_in_a_tool_before_a_stop_are_on_file_one_by_one(tmp_path, stop, kept):
    model = Counted(3, stop)
    tool = ask_model(Budgeted(model, Budget(calls=99)) if kept else model, name="own")

    def run(query: str) -> Result:
        for _ in range(5):
            tool(query=query)
        return Result("never")

    events, error = stopped(tmp_path, own(run))
    assert isinstance(error, stop) and not of(ToolReturned, events)
    told = [event.usage.cost for event in inside(events) if event.usage.cost]
    assert told == [0.01] * 3 and all(event.role.is_failed for event in inside(events))
    assert ledger(events).total.cost == pytest.approx(0.03)


def test_a_run_stopped_in_a_tool_by_its_budget_resumes_with_what_was_spent(tmp_path):
    spending = Spending(Budget(calls=4))
    llm = Budgeted(scripted(**SCRIPT), spending)
    events, error = stopped(tmp_path, asking(Budgeted(Counted(), spending), 5), llm)
    assert isinstance(error, OverBudget) and len(inside(events)) == 2, (
        "a vote and a choice of tools came before"
    )
    assert len(ledger(events).entries) == spending.calls == 4 and verify(events) is None
    live = Resources(
        [asking(Counted(), 5, Result("x", (), (Usage(7, 3, cost=0.01),) * 5))], scripted(**SCRIPT)
    )
    everything = list(resume(tmp_path / "run.jsonl", InMemory(), live))
    assert len(inside(everything)) == 7 and verify(load_run(tmp_path / "run.jsonl")) is None
    assert list(load_run(tmp_path / "run.jsonl").events) == everything


def test_calls_that_a_tool_does_not_report_are_on_file_too(tmp_path):
    silent, _ = stopped(tmp_path, asking(Budgeted(Counted(), Budget(calls=99)), 2))
    assert [event.usage.cost for event in inside(silent)] == [0.01] * 2 and verify(silent) is None


@pytest.mark.parametrize("fault", [RuntimeError("it broke"), ToolFailed("nothing is there")])
def test_calls_of_a_tool_that_fails_are_on_file(tmp_path, fault):
    events, _ = stopped(tmp_path, asking(Budgeted(Counted(), Budget(calls=99)), 2, fault))
    assert len(inside(events)) == 2
    assert not any(event.role.is_failed for event in inside(events))
    assert of(ToolReturned, events)[0].failed


def test_the_sum_that_a_tool_reports_of_calls_that_were_seen_counts_once(tmp_path):
    summed = Result("Ada Lovelace was born in London.", (), (Usage(14, 6, cost=0.02),))
    events, _ = stopped(tmp_path, asking(Budgeted(Counted(), Budget(calls=99)), 2, summed))
    assert ledger(inside(events)).total == Usage(14, 6, cost=0.02)


def test_what_an_own_tool_spends_elsewhere_stops_the_next_call(tmp_path):
    spending = Spending(Budget(dollars=3.0))
    llm = Budgeted(scripted(**SCRIPT), spending)
    tool = own(lambda query: Result("Ada Lovelace was born in London.", (), (Usage(cost=3.25),)))
    events, error = stopped(tmp_path, tool, llm)
    assert isinstance(error, OverBudget) and "3.25 of 3 dollars" in str(error)
    assert spending.spent.cost == ledger(events).total.cost == 3.25 and len(of(ToolReturned, events)) == 1


def test_what_was_charged_once_is_not_charged_again_when_a_run_is_walked_again(tmp_path):
    tool = own(lambda query: Result("Ada Lovelace was born in London.", (), (Usage(cost=3.25),)))
    stopped(tmp_path, tool)
    (tmp_path / "cut.jsonl").write_text(
        "".join((tmp_path / "run.jsonl").read_text().splitlines(keepends=True)[:-2])
    )
    spending = Spending(Budget(calls=99))
    list(
        resume(tmp_path / "cut.jsonl", InMemory(), Resources([tool], Budgeted(scripted(**SCRIPT), spending)))
    )
    assert spending.spent.cost == 0


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (Result("x", (), (3.25,)), "the usage of a Result are a tuple of Usage, not 3.25"),
        (Result("x", (), (Usage(cost=-1.0),)), "usage.cost is -1.0"),
        (Result("x", ("d1",)), "the sources of a Result are a tuple of Document"),
        (None, "a tool returns a text, or a Result with a text, not None"),
    ],
)
def test_a_result_that_is_none_is_the_tools_mistake_and_no_stack_trace(tmp_path, result, told):
    events, error = stopped(tmp_path, own(lambda query: result))
    assert error is None and told in of(ToolReturned, events)[0].text and of(ToolReturned, events)[0].failed


def test_a_plain_text_is_a_result(tmp_path):
    events, _ = stopped(tmp_path, own(lambda query: "Ada Lovelace was born in London."))
    assert (returned := of(ToolReturned, events)[0]).text == "Ada Lovelace was born in London."
    assert not returned.failed


KEY = "zx81-spectrum-key"


@pytest.mark.parametrize(
    "how",
    [RuntimeError(f"401 for Bearer {KEY}"), ToolFailed(f"401 for Bearer {KEY}"), ConnectionError(KEY), KEY],
)
def test_a_key_that_comes_back_from_a_tool_is_not_on_file(tmp_path, monkeypatch, how):
    monkeypatch.setenv("SPECTRUM_API_KEY", KEY)

    def run(query: str) -> Result:
        if isinstance(how, Exception):
            raise how
        return Result(f"Ada Lovelace has {how}.", (Document(how, f"Ada has {how.upper()}."),))

    events, _ = stopped(tmp_path, own(run))
    assert "…" in of(ToolReturned, events)[0].text and KEY not in (tmp_path / "run.jsonl").read_text().lower()


@pytest.mark.parametrize("how", [RuntimeError(f"401 for {KEY}"), ToolFailed(f"401 for {KEY}"), KEY])
@pytest.mark.parametrize(
    "then", [True, False], ids=["a key that is no longer set", "a key that is set only later"]
)
def test_a_run_is_verified_and_forked_alike_whatever_keys_the_environment_has_by_then(
    tmp_path, monkeypatch, how, then
):
    def run(query: str) -> Result:
        if isinstance(how, Exception):
            raise how
        return Result(f"Ada Lovelace has {how}.", (Document(how, f"Ada has {how}."),))

    if then:
        monkeypatch.setenv("SPECTRUM_API_KEY", KEY)
    events, _ = stopped(tmp_path, own(run))
    returned = of(ToolReturned, events)[0]
    assert (KEY in returned.text) is not then
    if then:
        monkeypatch.delenv("SPECTRUM_API_KEY")
    else:
        monkeypatch.setenv("SPECTRUM_API_KEY", KEY)
    assert verify(load_run(tmp_path / "run.jsonl")) is None
    at = max(number for number, event in enumerate(events) if isinstance(event, Asked))
    assert of(ToolReturned, list(fork(events, at, '{"answer": "Paris"}').events)) == [returned]


def test_what_a_person_puts_in_the_place_of_a_result_is_masked_as_a_result_is(tmp_path, monkeypatch):
    events, _ = stopped(tmp_path, own(lambda query: Result("Ada Lovelace was born in London.")))
    monkeypatch.setenv("SPECTRUM_API_KEY", KEY)
    at = next(number for number, event in enumerate(events) if isinstance(event, ToolReturned))
    assert of(ToolReturned, list(fork(events, at, f"Ada has {KEY}.").events))[0].text == "Ada has …."
