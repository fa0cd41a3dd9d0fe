"""What docs/extending.md shows: a mode, prompts, approval and calls side by side, each as one would write it."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.every import every
from support.loop_script import ADA, FEW, WRITE, call, kinds, of, scripted, votes
from support.waiting import until

import kgot_lab as lab
from kgot_lab.errors import BadInput, BadReply, TraceError, UnknownName, UnsupportedQuestion
from kgot_lab.llm.presets import Price
from kgot_lab.loop.approval import Deny, NotApproved, Proposal
from kgot_lab.loop.call_pool import THREAD_NAME
from kgot_lab.loop.events import Answered, Asked, Decided, Refused, TextDelta, ToolReturned, Wrote, is_early
from kgot_lab.loop.limits import preset
from kgot_lab.loop.modes.voting import Voting
from kgot_lab.loop.prompts import TEMPLATES, Answer
from kgot_lab.loop.render import join_lines, row_lines
from kgot_lab.loop.replay.replay import Resources, replay, resume, same_event, verify
from kgot_lab.loop.retrieve import answer_with_evidence
from kgot_lab.loop.run_context import ask_structured
from kgot_lab.loop.state import ledger
from kgot_lab.loop.trace import Trace, load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.tools.tool import Result, TextTool, ask_model
from kgot_lab.types import Usage

QUESTION = "Where was Ada Lovelace born?"
SAID = {
    "vote": votes("I", "I", "I", "R"), "tools": call(), "write": WRITE, "parse": {"answer": "London"}, "guess": {"answer": "?"},
    "forced": {"statement": "result = facts()"}, "reread": {"statement": "result = facts()"}, "merge": {"reason": "more"},
}  # fmt: skip


def search():
    return lab.search(ADA, bm25(ADA), k=2)


def run(llm=None, tools: Sequence = (), limits=FEW, store=None, **options):
    return list(
        lab.think(
            QUESTION, llm or scripted(**SAID), store or InMemory(), tools or [search()], limits, **options
        )
    )


# --- a mode of one's own ---


class Agreement(Voting):
    """Both models answer from what was read, and only what they agree on is given."""

    def conclude(self, candidates):
        run = self.run
        facts = join_lines(line for candidate in candidates for line in row_lines(candidate.rows))
        messages = run.prompts("parse", question=run.state.question, facts=facts, format="A few words.")
        first = yield from ask_structured(run, "parse", messages, Answer)
        second = yield from ask_structured(run, "parse", messages, Answer, execution=True)
        if first.answer == second.answer:
            yield from answer_with_evidence(run, candidates, first.answer)
        else:
            yield run.record(Answered, text=f"{first.answer} or {second.answer}", forced=True)


@every(("second", "answer"), [("London", "London"), ("Paris", "London or Paris")])
def test_a_mode_asks_two_models_and_takes_what_they_agree_on(second, answer):
    other = scripted("second", tools=call(), parse={"answer": second})
    events = run(execution=other, mode=Agreement)
    assert (events[-1].text, events[-1].forced) == (answer, "or" in answer)
    assert ("Ada Lovelace --[born in]--> London" in map(str, events[-1].evidence)) == (second == "London")
    assert [event.model for event in of(Asked, events) if event.role == "parse"] == ["scripted", "second"]


def test_a_run_in_a_mode_of_ones_own_is_resumed_with_its_class_alone(tmp_path):
    path, store = tmp_path / "run.jsonl", InMemory()
    options = {"execution": scripted("second", tools=call(), parse={"answer": "Rome"}), "mode": Agreement}
    walk = record(lab.think(QUESTION, scripted(**SAID), store, [search()], FEW, **options), path)
    for event in walk:
        if isinstance(event, Wrote):
            break
    walk.close()
    live = [search()], scripted(**{**SAID, "vote": votes("R")}), options["execution"]
    with pytest.raises(TraceError, match=r"in the mode Agreement: give its class, mode=Agreement"):
        resume(path, store, Resources(*live))
    events = list(resume(path, store, Resources(*live, mode=Agreement)))
    assert events[-1].text == "London or Rome"
    with pytest.raises(TraceError, match="give its class, mode=Agreement"):
        verify(events)
    assert verify(events, mode=Agreement) is None
    assert list(replay(events, mode=Agreement))[-1].text == "London or Rome"


class Silent(Voting):
    """A mode that forgets to answer."""

    def conclude(self, candidates):
        yield from ()


class Chatty(Voting):
    """A mode that yields what is no event."""

    def conclude(self, candidates):
        yield "done"


class Forgetful(Voting):
    """A mode that records its answer and does not yield it."""

    def conclude(self, candidates):
        self.run.record(Answered, text="noon", forced=False)
        yield from ()


class Doubtful(Voting):
    """A mode that answers twice."""

    def conclude(self, candidates):
        yield from super().conclude(candidates)
        yield self.run.record(Answered, text="noon", forced=False)


class Counting(Voting):
    """A mode whose answer is a number."""

    def conclude(self, candidates):
        yield self.run.record(Answered, text=42, forced=False)


@every(
    ("mode", "limits", "message"),
    [
        (5, FEW, "class made from"),
        (dict, FEW, "class made from"),
        (Agreement, preset("paths"), "votes, and these limits read paths"),
        (Silent, FEW, "the mode Silent ended without yielding an Answered event"),
        (Forgetful, FEW, "the mode Forgetful ended without yielding an Answered event"),
        (Doubtful, FEW, "the mode Doubtful yielded a second answer: 'noon'"),
        (Counting, FEW, "the mode Counting yielded an answer that is no text: 42"),
        (Chatty, FEW, "the mode Chatty yielded a str"),
    ],
)
def test_what_is_no_mode_or_does_not_answer_is_refused(mode, limits, message):
    with pytest.raises(BadInput, match=message):
        run(limits=limits, mode=mode)


# --- prompts of one's own ---


def test_a_prompt_of_ones_own_is_sent_and_stands_in_the_first_event(tmp_path):
    own = {"parse": 'Read: $facts\n\nNow: $question ($format)\nFacts:\nReply as JSON: {"answer": "..."}'}
    events = run(prompts=own)
    asked = [event.prompt.messages[-1].text for event in of(Asked, events) if event.role == "parse"]
    assert asked and all(text.startswith("Read: ") and QUESTION in text for text in asked)
    assert events[0].custom == {"prompts": own}
    assert verify(events) is None, "a run is verified with the prompts that it was made with"


@every(
    ("own", "error", "message"),
    [
        ({"vot": "$situation"}, UnknownName, "did you mean 'vote'"),
        (
            {"vote": "What next?"},
            BadInput,
            r"must hold the fields \$calls, \$retrieve, \$situation; it lacks calls",
        ),
        ({"merge": "$reasons and $facts"}, BadInput, "has besides facts"),
        ({"merge": "$reasons for 5 $"}, BadInput, r"a \$ that names no field"),
        (["vote"], BadInput, "names|dictionary"),
        ({"merge": 5}, BadInput, "each item a text"),
    ],
)
def test_a_prompt_is_checked_for_its_fields_before_anything_is_asked(own, error, message):
    with pytest.raises(error, match=message):
        run(scripted(), prompts=own)


def test_the_fields_of_every_prompt_are_those_that_the_loop_fills():
    assert all(
        "$situation" in text or "$facts" in text or name in ("merge", "mend")
        for name, text in TEMPLATES.items()
    )


# --- a person in the loop ---


def test_somebody_approves_what_is_called_and_written_and_may_change_or_deny_it():
    seen = []

    def approve(proposal: Proposal) -> bool | str | Deny:
        seen.append(proposal.what)
        if proposal.what == "tool call":
            return json.dumps({"query": "Charles Babbage"})
        return Deny("this is not said") if "1815" in proposal.text else True

    events = run(approve=approve)
    assert of(ToolReturned, events)[0].call.arguments == {"query": "Charles Babbage"}
    assert of(Refused, events)[0].reason == "denied: this is not said" and not of(Wrote, events)
    assert [(e.what, e.decision) for e in of(Decided, events)][:2] == [
        ("tool call", "changed"),
        ("write", "denied"),
    ]
    assert set(seen) == {"tool call", "write"}, "a model without a price is not asked for"


def test_what_was_decided_is_replayed_verified_and_resumed_without_asking_again(tmp_path):
    path, store, asked = tmp_path / "run.jsonl", InMemory(), []

    def approve(proposal):
        asked.append(proposal.text)
        return True

    walk = record(lab.think(QUESTION, scripted(**SAID), store, [search()], FEW, approve=approve), path)
    for event in walk:
        if isinstance(event, Wrote):
            break
    walk.close()
    before = list(asked)
    live = Resources([search()], scripted(**{**SAID, "vote": votes("R")}), approve=approve)
    events = list(resume(path, store, live))
    assert isinstance(events[-1], Answered) and asked[: len(before)] == before
    assert len(asked) == len(of(Decided, events)) == len(set(asked)), "nothing was asked twice"
    assert verify(events) is None
    again = list(replay(Trace("r", "", tuple(events))))
    assert all(same_event(was, now) for was, now in zip(events, again, strict=True))


def test_a_denied_call_is_a_failure_that_the_model_sees_and_the_run_goes_on():
    events = run(approve=lambda proposal: proposal.what != "tool call")
    assert of(ToolReturned, events)[0].text == "denied: not approved" and of(ToolReturned, events)[0].failed
    assert isinstance(events[-1], Answered)


def test_a_paid_call_is_approved_with_the_most_it_can_cost_and_stops_the_run_where_it_is_denied(tmp_path):
    class Paid:
        name, price = "paid", Price(1.0, 2.0)

        def __init__(self):
            self.model = scripted(**SAID)

        def __call__(self, prompt):
            return self.model(prompt)

    shown = []

    def approve(proposal):
        shown.append(proposal)
        return len(shown) < 3

    with pytest.raises(NotApproved):
        list(
            record(
                lab.think(QUESTION, Paid(), InMemory(), [search()], FEW, approve=approve),
                tmp_path / "r.jsonl",
            )
        )
    assert (
        shown[0].what == "model call"
        and shown[0].about.startswith("paid, at most ")
        and "$0.00" in shown[0].about
    )
    assert [type(event).__name__ for event in load_run(tmp_path / "r.jsonl").events][-1] == "Decided"


@every("what", ["write", "tool call"])
def test_a_text_that_was_emptied_is_a_denial(what):
    events = run(approve=lambda proposal: "" if proposal.what == what else True)
    assert {e.decision for e in of(Decided, events) if e.what == what} == {"denied"}
    assert not (
        of(Wrote, events) if what == "write" else [e for e in of(ToolReturned, events) if not e.failed]
    )


def test_a_wrong_change_is_no_decision_so_the_run_can_be_resumed(tmp_path):
    path, store = tmp_path / "run.jsonl", InMemory()
    with pytest.raises(BadInput, match="JSON object"):
        list(
            record(lab.think(QUESTION, scripted(**SAID), store, [search()], FEW, approve=lambda p: "x"), path)
        )
    live = Resources([search()], scripted(**{**SAID, "vote": votes("R")}), approve=lambda proposal: True)
    assert isinstance(list(resume(path, store, live))[-1], Answered)


def test_why_a_call_failed_or_was_denied_is_told_to_the_model():
    def approve(proposal):
        return Deny("the archive is closed") if proposal.what == "tool call" else True

    events = run(scripted(**{**SAID, "vote": votes("I")}), approve=approve)
    asked = [event.prompt.messages[-1].text for event in of(Asked, events) if event.role.purpose == "vote"]
    assert "failed: denied: the archive is closed" in asked[-1]


def test_a_run_recorded_before_prompts_told_why_a_call_failed_is_verified_as_it_was():
    limits = FEW.but(tell_failures=False)
    events = run(
        scripted(**{**SAID, "vote": votes("I")}), limits=limits, approve=lambda p: p.what != "tool call"
    )
    assert "tell_failures" not in events[0].limits and verify(events) is None
    assert not any("failed: denied" in event.prompt.messages[-1].text for event in of(Asked, events))


@every("answer", [None, 3, {"query": "x"}])
def test_an_answer_that_decides_nothing_is_refused(answer):
    with pytest.raises(BadInput, match=r"it returns True, False, Deny\(reason\), or the text"):
        run(approve=lambda proposal: answer)


def test_what_cannot_be_asked_is_refused_before_a_model_is():
    with pytest.raises(BadInput, match="is a function"):
        run(scripted(), approve="yes")


def test_a_changed_tool_call_must_be_arguments():
    with pytest.raises(BadInput, match="its text is a JSON object of the arguments"):
        run(approve=lambda proposal: "Babbage" if proposal.what == "tool call" else True)


# --- side by side ---


def meeting(count: int, seconds: float = 20.0) -> list[TextTool]:
    """Tools that each wait until all of them have been called."""
    barrier = threading.Barrier(count, timeout=seconds)

    def tool(name: str) -> TextTool:
        def meet(query: str) -> Result:
            barrier.wait()
            return Result(f"{name} says {query}.")

        return TextTool(name, "meets the others", {"query": "anything"}, meet)

    return [tool(f"tool{number}") for number in range(count)]


FOUR = {"calls": [{"tool": f"tool{number}", "arguments": {"query": "x"}} for number in range(4)]}


def test_the_tool_calls_of_a_turn_run_at_once_and_are_recorded_in_the_order_chosen():
    events = run(scripted(**{**SAID, "tools": FOUR}), meeting(4))
    assert [event.call.tool for event in of(ToolReturned, events)[:4]] == [f"tool{n}" for n in range(4)]
    assert not any(event.failed for event in of(ToolReturned, events)) and verify(events) is None


def test_one_at_a_time_is_the_way_back():
    threads = set()

    def here(query: str) -> Result:
        threads.add(threading.get_ident())
        return Result("x")

    tools = [TextTool(f"tool{number}", "tells", {"query": "anything"}, here) for number in range(4)]
    run(scripted(**{**SAID, "tools": FOUR}), tools, parallel=1)
    assert threads == {threading.get_ident()}


def test_votes_of_a_model_that_takes_several_calls_are_sampled_at_once_and_no_more_than_are_needed():
    barrier, lock, count = threading.Barrier(2, timeout=20.0), threading.Lock(), []
    model = scripted(**SAID)

    class Server:
        name, concurrent = "server", True

        def __call__(self, prompt):
            is_vote = "What next? RETRIEVE" in prompt.messages[-1].text
            with lock:
                count.extend([prompt.seed] * is_vote)
            if is_vote and 1 < prompt.seed < 4:  # once it has replied
                barrier.wait()
            with lock:
                return model(prompt)

    events = run(Server())
    samples = [event.prompt.seed for event in of(Asked, events) if event.role == "vote"]
    assert samples == sorted(samples) and sorted(count) == samples
    assert kinds(events)[:5] == ["Started", "Vote", "Vote", "Vote", "Voted"]


def test_a_tool_that_fails_at_once_with_others_is_recorded_in_its_turn():
    def broken(query: str) -> Result:
        raise RuntimeError("no")

    tools = [*meeting(3), TextTool("tool3", "is broken", {"query": "anything"}, broken)]
    returned = of(ToolReturned, run(scripted(**{**SAID, "tools": FOUR}), tools))[:4]
    assert [(event.call.tool, event.failed) for event in returned][-1] == ("tool3", True)
    assert "RuntimeError: no" in returned[-1].text


class Interrupted:
    """Is called side by side with others, and interrupts the run once those have ended."""

    def __init__(self) -> None:
        self.made = []

    def make(self, what: str, after: set[str]) -> None:
        def others_ended():
            threads = [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]
            return after <= set(self.made) and len(threads) == 1

        if after:
            until(others_ended, "the other calls have ended")
            raise KeyboardInterrupt
        self.made.append(what)

    def stopped(self, path, llm, tools):
        with pytest.raises(KeyboardInterrupt):
            list(record(lab.think(QUESTION, llm, InMemory(), tools, FEW), path))
        stopped = load_run(path)
        assert verify(stopped) is None and "early" in "\n".join(map(repr, stopped.events))
        return stopped


def test_replies_that_came_before_their_turn_are_kept_by_an_interrupted_run_and_count_once(tmp_path):
    path, model, calls = tmp_path / "run.jsonl", scripted(**SAID), Interrupted()

    class Server:
        name, concurrent, price = "server", True, Price(1.0, 1.0)
        after = frozenset({"True 3"})

        def __call__(self, prompt):
            is_vote = "What next? RETRIEVE" in prompt.messages[-1].text
            calls.make(f"{is_vote} {prompt.seed}", self.after if is_vote and prompt.seed == 2 else set())
            return replace(model(prompt), usage=Usage(100, 10, cost=0.01))

    server = Server()
    stopped = calls.stopped(path, server, [search()])
    early = [event for event in of(Asked, stopped.events) if event.role == "vote, early"]
    assert [event.prompt.seed for event in early] == [3]
    assert ledger(stopped.events).total.cost == pytest.approx(0.01 * len(calls.made))
    for at, event in enumerate(stopped.events):
        if event in early:
            with pytest.raises(BadInput, match="was not used"):
                lab.fork(stopped, at, "x")
    server.after = set()
    finished = list(resume(path, InMemory(), Resources([search()], server)))
    assert len(calls.made) == len(of(Asked, finished))  # none was made twice
    assert list(load_run(path).events) == finished and verify(finished) is None
    assert not any(map(is_early, finished))


def test_results_of_tools_that_came_before_their_turn_are_kept_with_the_calls_made_inside_them(tmp_path):
    path, calls = tmp_path / "run.jsonl", Interrupted()
    inner = lab.connect(lambda prompt: "Ada was born in London.")

    def tool(name: str, after: Sequence[str] = ()) -> TextTool:
        asked = ask_model(inner, name=name)

        def told(query: str) -> Result:
            calls.make(name, set(after))
            return asked(query=query) if name == "tool2" else Result(f"{name} says {query}.")

        return TextTool(name, "tells", {"query": "anything"}, told)

    tools = [tool(f"tool{number}") for number in range(4)]
    said = {**SAID, "tools": FOUR}
    stopped = calls.stopped(
        path, scripted(**said), [tools[0], tool("tool1", ["tool0", "tool2", "tool3"]), *tools[2:]]
    )
    returned = [(event.call.tool, event.early) for event in of(ToolReturned, stopped.events)]
    assert returned == [("tool0", False), ("tool2", True), ("tool3", True)]
    assert [event.role for event in of(Asked, stopped.events) if event.role.is_inside] == [
        "inside tool2, early"
    ]
    finished = list(resume(path, InMemory(), Resources(tools, scripted(**said))))
    assert sorted(calls.made) == ["tool0", "tool1", "tool2", "tool3"]
    assert [event.call.tool for event in of(ToolReturned, finished)[:4]] == sorted(calls.made)
    assert list(load_run(path).events) == finished and verify(finished) is None
    assert ledger(finished).by_role()["inside tool2"][0] == 1


@every("options", [{"paralel": 2}, {"parallel": 0}, {"parallel": "many"}])
def test_options_that_do_not_exist_or_fit_are_refused(options):
    with pytest.raises(BadInput, match="parallel"):
        run(**options)


# --- words as they are written ---


def test_the_words_of_a_reply_come_before_its_event_and_are_in_no_trace(tmp_path):
    path = tmp_path / "run.jsonl"
    model = scripted(**SAID)
    walk = lab.think(QUESTION, model, InMemory(), [search()], FEW, stream=True)
    words, replies = "", []
    for event in record(walk, path):
        if isinstance(event, TextDelta):
            words += event.text
        elif isinstance(event, Asked):
            replies.append(event.reply)
            assert words == event.reply
            words = ""
    assert (
        verify(list(lab.think(QUESTION, scripted(**SAID), InMemory(), [search()], FEW, stream=True))) is None
    )
    stored = load_run(path).events
    assert replies == [event.reply for event in of(Asked, stored)] and not of(TextDelta, stored)
    assert verify(stored) is None


def test_what_the_mode_paths_cannot_use_is_told():
    limits, tools = preset("paths"), [search(), TextTool("own", "tells", {"query": "anything"}, Result)]
    with pytest.raises(UnsupportedQuestion, match="no prompts of these names"):
        lab.think(QUESTION, scripted(), InMemory(), tools, limits, prompts={"guess": TEMPLATES["guess"]})
    with pytest.warns(UserWarning, match="does not call own: take the preset local"):
        lab.think(QUESTION, scripted(), InMemory(), tools, limits)


# --- runs that end in an error, or beside one another ---


@every("bad", ["parse", "guess", "tools"])
def test_a_run_that_unusable_replies_ended_asks_for_them_again_when_it_goes_on(tmp_path, bad):
    path = tmp_path / f"{bad}.jsonl"
    said = {**SAID, "vote": votes("I", "R")} if bad == "parse" else {**SAID, "write": {"statements": []}}
    asked = {"preset": FEW, "tools": [search()], "trace": path, "mode": Agreement if bad == "parse" else None}
    babbling = scripted(**{**said, bad: "hm"})
    if bad == "tools":  # nothing is called, so the answer is a guess
        babbling = scripted(**{**said, "tools": "hm", "guess": "hm"})
    with pytest.raises(
        BadReply, match=r"^scripted, asked to (parse|guess): the model's reply is not"
    ) as raised:
        lab.ask(QUESTION, model=babbling, **asked)
    assert "the same call goes on with it" in raised.value.__notes__[0]
    asked_before = len(of(Asked, load_run(path).events))
    finished = lab.ask(QUESTION, model=scripted(**said), **asked)
    failed = [event for event in of(Asked, finished.events) if event.role.is_failed]
    assert finished.finished and len(failed) == 2 and len(of(Asked, finished.events)) > asked_before
    assert verify(load_run(path), mode=asked["mode"]) is None


@every("refused", ["denied", "unusable"])
def test_a_paid_call_that_ended_a_run_is_decided_again_when_it_goes_on(tmp_path, refused):
    path, decided = tmp_path / f"{refused}.jsonl", []

    def approve(step, answer=True):
        decided.append(step)
        return answer

    asked = {"preset": FEW, "tools": [search()], "trace": path}
    bad = scripted(**{**SAID, "write": {"statements": []}, "guess": "hm"})
    bad.price = Price(1.0, 1.0)
    deny = (lambda step: approve(step, Deny("too dear"))) if refused == "denied" else approve
    with pytest.raises((NotApproved, BadReply)) as raised:
        lab.ask(QUESTION, model=bad, approve=deny, **asked)
    assert "the same call goes on with it" in raised.value.__notes__[0]
    decided.clear()
    good = scripted(**{**SAID, "write": {"statements": []}})
    good.price = bad.price
    finished = lab.ask(QUESTION, model=good, approve=approve, **asked)
    calls = [event for event in finished.events if isinstance(event, Asked) and not event.role.is_failed]
    paid = [event for event in of(Decided, finished.events) if event.what == "model call"]
    assert finished.finished and len(paid) == len(calls) and decided
    assert verify(load_run(path)) is None


def test_events_with_the_words_of_replies_are_forked_by_their_own_numbers():
    events = run(stream=True)
    at = next(number for number, event in enumerate(events) if isinstance(event, ToolReturned))
    forked = lab.fork(events, at, "Ada Lovelace was born in Paris.")
    assert next(iter(of(ToolReturned, forked.events))).text == "Ada Lovelace was born in Paris."
    word = next(number for number, event in enumerate(events) if isinstance(event, TextDelta))
    with pytest.raises(BadInput, match=f"event {word} is a part of a reply"):
        lab.fork(events, word, "x")


def test_one_model_in_place_of_two_is_told_when_a_run_goes_on(tmp_path):
    path, store = tmp_path / "run.jsonl", InMemory()
    other = scripted("second", tools=call(), parse={"answer": "Rome"})
    walk = record(lab.think(QUESTION, scripted(**SAID), store, [search()], FEW, execution=other), path)
    next(walk)
    walk.close()
    with pytest.warns(UserWarning, match="goes on with scripted; it was begun with scripted and second"):
        list(resume(path, store, Resources([search()], scripted(**SAID))))


def test_two_runs_at_once_in_one_store_are_refused_and_one_after_the_other_are_not():
    store = InMemory()
    first = lab.think(QUESTION, scripted(**SAID), store, [search()], FEW)
    next(first)
    with pytest.raises(BadInput, match="another run goes on in this store"):
        run(store=store)
    first.close()
    assert run(store=store)[-1].text == "London"


def test_a_prompt_of_ones_own_may_hold_half_a_character():
    events = run(prompts={"guess": TEMPLATES["guess"] + "\ud800"})
    assert "\ud800" not in events[0].custom["prompts"]["guess"] and verify(events) is None
