"""The loop in asyncio: `async for event in lab.athink(…)`."""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import aclosing
from contextvars import ContextVar

import pytest
from support.loop_script import ADA, FEW, WRITE, call, of, scripted, votes
from support.waiting import AMPLE

import kgot_lab as lab
from kgot_lab.errors import BadInput, LLMError
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.approval import Deny
from kgot_lab.loop.events import Answered, Asked, ToolReturned
from kgot_lab.loop.replay.replay import same_event
from kgot_lab.retrieval.lexical import bm25

QUESTION = "In which year was Ada Lovelace born?"
TOOL = lab.search(ADA, bm25(ADA))


def model():
    return scripted(vote=votes(*"IIIRRR"), tools=call(), write=WRITE, parse={"answer": "1815"})


class Held:
    """A model that waits to be let go on, call by call."""

    def __init__(self, llm):
        self.name, self._llm, self.asked = llm.name, llm, 0
        self.waits, self.go_on = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, prompt):
        self.asked += 1
        self.waits.release()
        assert self.go_on.acquire(timeout=AMPLE)
        return self._llm(prompt)


async def until_asked(llm):
    assert await asyncio.to_thread(llm.waits.acquire, timeout=AMPLE)


async def events_of(*args, **options):
    return [event async for event in lab.athink(*args, **options)]


def test_a_question_is_answered_in_an_event_loop(store):
    async def answer():
        async for event in lab.athink(QUESTION, model(), store, [TOOL], FEW):
            if isinstance(event, Answered):
                return event.text

    assert asyncio.run(answer()) == "1815"


def test_the_events_and_arguments_are_those_of_think(store):
    events = asyncio.run(events_of(QUESTION, model(), store, [TOOL], limits=FEW))
    store.write("G.clear()")
    plain = list(lab.think(QUESTION, model(), store, [TOOL], FEW))
    assert len(events) == len(plain) and all(map(same_event, events, plain))
    assert lab.verify(events) is None
    assert inspect.signature(lab.athink) == inspect.signature(lab.think)


def test_the_event_loop_goes_on_while_the_model_answers(store):
    """A call that waits for the event loop would wait for ever if it blocked it."""

    async def answer():
        llm = Held(model())
        run = asyncio.create_task(events_of(QUESTION, llm, store, [TOOL], FEW))
        while not run.done():
            llm.go_on.release()
            await asyncio.sleep(0)
        return await run

    assert asyncio.run(answer())[-1].text == "1815"


def test_two_questions_are_answered_at_once(store):
    both = threading.Barrier(2, timeout=AMPLE)

    def together(prompt):
        both.wait()  # neither goes on alone
        return '{"answer": "1815"}'

    async def answer():
        with lab.open_store("in_memory") as other:
            store.write('add("Ada", "born in", "1815")')
            other.write('add("Ada", "born in", "1815")')
            limits = FEW.but(steps=1, reading="whole graph")
            runs = (events_of(QUESTION, Scripted(together), each, [], limits) for each in (store, other))
            return await asyncio.gather(*runs)

    assert [events[-1].text for events in asyncio.run(answer())] == ["1815", "1815"]


def test_a_cancelled_run_stops_at_the_next_event_and_has_let_go_of_its_store(store):
    async def cancel():
        llm, seen = Held(model()), []

        async def run():
            async for event in lab.athink(QUESTION, llm, store, [TOOL], FEW):
                seen.append(event)

        task = asyncio.create_task(run())
        await until_asked(llm)
        before = len(seen)
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()  # a request is not torn off in the middle
        llm.go_on.release(100)
        with pytest.raises(asyncio.CancelledError):
            await task
        return llm, before, seen

    llm, before, seen = asyncio.run(cancel())
    assert len(seen) == before and llm.asked == 1  # nothing more is asked
    for thread in (each for each in threading.enumerate() if each.name.startswith("think")):
        thread.join(AMPLE)
        assert not thread.is_alive()


def test_a_time_limit_ends_a_run_and_what_it_recorded_can_be_used(store):
    async def limited():
        llm, seen = Held(model()), []

        async def expire(limit):
            await until_asked(llm)
            limit.reschedule(0)
            llm.go_on.release()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(AMPLE) as limit:
                expiring = asyncio.create_task(expire(limit))
                async for event in lab.athink(QUESTION, llm, store, [TOOL], FEW):
                    seen.append(event)
        await expiring
        return seen

    seen = asyncio.run(limited())
    assert seen and not of(Answered, seen) and lab.verify(seen) is None


def test_a_run_that_is_left_early_is_closed(store):
    closed = []

    def events():
        try:
            yield from range(10)
        finally:
            closed.append(threading.current_thread().name)

    async def first():
        from kgot_lab.api.asynchronous import iterate_in_thread

        async with aclosing(iterate_in_thread(events)()) as items:
            async for item in items:
                return item

    assert asyncio.run(first()) == 0 and len(closed) == 1 and closed[0].startswith("events")


@pytest.mark.parametrize(
    "error", [LLMError("no answer"), ZeroDivisionError("a bug"), StopIteration("odd")], ids=repr
)
def test_an_error_arrives_as_itself(store, error):
    def fails(prompt):
        raise error

    with pytest.raises(type(error) if not isinstance(error, StopIteration) else RuntimeError) as caught:
        asyncio.run(events_of(QUESTION, Scripted(fails), store, [TOOL], FEW))
    assert error in (caught.value, caught.value.__cause__)


def test_bad_input_is_told_at_the_first_event(store):
    events = lab.athink("  ", model(), store, [TOOL], FEW)
    with pytest.raises(BadInput, match="the question is blank"):
        asyncio.run(anext(events))


def test_the_thread_sees_the_context_of_the_caller(store):
    who: ContextVar[str] = ContextVar("who", default="nobody")
    seen = set()

    def look(prompt):
        seen.add(who.get())
        return "?"

    async def ask():
        who.set("Ada")
        with pytest.raises(LLMError):
            await events_of(QUESTION, Scripted(look), store, [TOOL], FEW)

    asyncio.run(ask())
    assert seen == {"Ada"}


@pytest.mark.parametrize("kind", ["in_memory", "sqlite"])
def test_a_store_of_the_caller_is_used_in_the_thread(tmp_path, kind):
    with lab.open_store(
        kind, path=tmp_path / ("graph.sqlite" if kind == "sqlite" else "graph.log")
    ) as opened:
        opened.apply(
            lab.Diff(
                added_nodes=(lab.Node("Ada"), lab.Node("1815")),
                added_edges=(lab.Edge("Ada", "born in", "1815"),),
            )
        )
        limits = FEW.but(steps=1, reading="whole graph")
        events = asyncio.run(
            events_of(QUESTION, Scripted(lambda prompt: '{"answer": "1815"}'), opened, [], limits)
        )
        assert events[-1].text == "1815" and of(Asked, events)
        assert len(opened.graph()) == 2  # it is still open


# --- coroutines of tools and models, in the event loop of the caller

LOOKS = scripted(
    vote=votes("I"), tools=call(tool="looks"), write={"statements": []}, guess={"answer": "1815"}
)
ONCE = FEW.but(steps=1, votes=1, reading="whole graph")


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_coroutine_of_a_tool_runs_in_the_event_loop_of_the_caller_and_may_share_its_locks(store, parallel):
    async def answer():
        lock, seen = asyncio.Lock(), []

        async def looks(query: str) -> str:
            async with lock:
                await asyncio.sleep(0)
            seen.append(asyncio.get_running_loop())
            return "In 1815."

        calls = {"calls": [call(query=name, tool="looks")["calls"][0] for name in ("Ada", "Babbage")]}
        llm = scripted(vote=votes("I"), tools=calls, write={"statements": []}, guess={"answer": "1815"})
        async with lock:  # held while the run begins, so both wait in this loop
            run = asyncio.create_task(events_of(QUESTION, llm, store, [looks], ONCE, parallel=parallel))
            await asyncio.sleep(0.05)
        events = await run
        assert seen == [asyncio.get_running_loop()] * 2 and not any(
            e.failed for e in of(ToolReturned, events)
        )
        return events

    assert lab.verify(asyncio.run(answer())) is None


def test_a_coroutine_of_a_model_runs_there_too(store):
    async def answer():
        loops = set()

        async def speak(text: str, temperature: float = 0, seed: int = 0) -> str:
            loops.add(asyncio.get_running_loop())
            return '{"answer": "1815", "choice": "RETRIEVE", "text": "1815"}'

        store.write('add("Ada", "born in", "1815")')
        events = await events_of(QUESTION, speak, store, [TOOL], ONCE)
        return events[-1].text, loops == {asyncio.get_running_loop()}

    assert asyncio.run(answer()) == ("1815", True)


@pytest.mark.parametrize("count", [1, 2])
def test_a_cancelled_run_cancels_the_coroutines_of_its_tools_and_waits_for_their_end(store, count):
    async def cancel():
        begun, ended = asyncio.Semaphore(0), []

        async def looks(query: str) -> str:
            begun.release()
            try:
                await asyncio.sleep(AMPLE)
            finally:
                await asyncio.sleep(0)
                ended.append(query)
            return "too late"

        calls = {"calls": [call(query=str(number), tool="looks")["calls"][0] for number in range(count)]}
        llm = scripted(vote=votes("I"), tools=calls, write={"statements": []})
        task = asyncio.create_task(events_of(QUESTION, llm, store, [looks], ONCE))
        for _ in range(count):
            await begun.acquire()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.05)
        return sorted(ended)

    assert asyncio.run(cancel()) == [str(number) for number in range(count)]


def test_a_tool_that_is_cancelled_by_itself_has_failed_and_the_run_goes_on(store):
    async def answer():
        async def looks(query: str) -> str:
            raise asyncio.CancelledError

        return await events_of(QUESTION, LOOKS, store, [looks], ONCE)

    events = asyncio.run(answer())
    assert "it was cancelled" in of(ToolReturned, events)[0].text and of(Answered, events)


def test_a_coroutine_that_approves_runs_there_too(store):
    async def answer():
        seen = set()

        async def approve(proposal):
            await asyncio.sleep(0)
            seen.add(asyncio.get_running_loop())
            return Deny("closed") if proposal.what == "tool call" else True

        llm = scripted(vote=votes("I"), tools=call(), guess={"answer": "1815"})
        events = await events_of(QUESTION, llm, store, [TOOL], ONCE, approve=approve)
        assert of(ToolReturned, events)[0].text == "denied: closed" and seen == {asyncio.get_running_loop()}
        return events

    assert lab.verify(asyncio.run(answer())) is None


def test_without_athink_a_coroutine_has_a_loop_of_its_own(store):
    async def looks(query: str) -> str:
        await asyncio.sleep(0)
        return "In 1815."

    assert not of(ToolReturned, list(lab.think(QUESTION, LOOKS, store, [looks], ONCE)))[0].failed


def test_a_cancelled_run_on_file_is_resumed_in_the_event_loop(tmp_path, store):
    path, held = tmp_path / "run.jsonl", Held(model())

    async def stop_and_go_on():
        run = asyncio.create_task(events_of(QUESTION, held, store, [TOOL], FEW, trace=path))
        await until_asked(held)
        held.go_on.release()
        await until_asked(held)
        run.cancel()
        held.go_on.release()
        with pytest.raises(asyncio.CancelledError):
            await run
        stopped = lab.load_run(path)
        assert not stopped.finished and of(Asked, stopped.events)
        live = lab.Resources([TOOL], model())
        return [event async for event in lab.aresume(path, lab.open_store("in_memory"), live)]

    events = asyncio.run(stop_and_go_on())
    assert events[-1].text == "1815" and list(lab.load_run(path).events) == events
