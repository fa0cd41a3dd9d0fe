"""Running on by a clock: when ticks are due, what becomes of those that were missed, and how a run ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from datetime import timedelta

import pytest
from support.every import every
from support.small_market import NOW, SetClock
from support.small_news import ITEMS, simulated_reader
from support.waiting import until

from kgot_lab.domains.investment.monitor.events import (
    BriefingPosted,
    ItemWritten,
    StageFailed,
    TickEnded,
    TickStarted,
)
from kgot_lab.domains.investment.monitor.journal import Tick, next_tick_after
from kgot_lab.domains.investment.monitor.monitor import (
    Monitor,
    StopRequest,
    open_places,
    run_scheduled,
    stop_on_signals,
)
from kgot_lab.domains.investment.monitor.news import FeedResult
from kgot_lab.errors import BadInput
from kgot_lab.llm.recorded import Scripted

HOUR = timedelta(hours=1)
DONE = Tick(3, NOW, ended_at=NOW)


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def places(tmp_path, clock):
    with open_places(tmp_path, now=clock) as opened:
        yield opened


def monitor_of(places, items=(), model=None):
    return Monitor(
        places, model or Scripted(simulated_reader), lambda: FeedResult(tuple(items)), lambda entry: None
    )


# --- when a tick is due ---


@every(
    ("last", "now", "tick"),
    [
        (None, NOW, Tick(1, NOW)),
        (DONE, NOW, Tick(4, NOW + HOUR)),
        (DONE, NOW + HOUR, Tick(4, NOW + HOUR)),
        (DONE, NOW + 1.9 * HOUR, Tick(4, NOW + HOUR)),
        (DONE, NOW + 2 * HOUR, Tick(4, NOW + 2 * HOUR, missed=1)),
        (DONE, NOW + 24.5 * HOUR, Tick(4, NOW + 24 * HOUR, missed=23)),
        (Tick(3, NOW, 2), NOW + 9 * HOUR, Tick(3, NOW, 2, resumed=True)),
        (DONE, NOW - 24 * HOUR, Tick(4, NOW - 24 * HOUR)),
    ],
    ids=["first", "not yet", "now", "late", "one missed", "a day missed", "stopped", "clock went back"],
)
def test_the_next_tick_is_the_last_that_is_due(last, now, tick):
    assert next_tick_after(last, now, HOUR) == tick


# --- running ---


def run(places, clock, ticks, *, pause=lambda seconds: timedelta(seconds=seconds), items=ITEMS):
    """The events of so many ticks; `pause` says by how much the clock goes on when somebody waits."""
    ending, events, waits = StopRequest(), [], []

    def wait(seconds):
        waits.append(seconds)
        clock.time += pause(seconds)

    for event in run_scheduled(monitor_of(places, items), HOUR, ending, wait=wait):
        events.append(event)
        if sum(isinstance(event, TickEnded) for event in events) == ticks:
            ending.request()
    return events, waits


def begun(events):
    return [event.tick for event in events if isinstance(event, TickStarted)]


def test_after_a_pause_there_is_one_tick_for_all_that_were_missed(places, clock):
    slept = iter([timedelta(hours=9.5)])
    events, _ = run(places, clock, 3, pause=lambda seconds: next(slept, timedelta(seconds=seconds)))
    assert [(tick.due, tick.missed) for tick in begun(events)] == [
        (NOW, 0),
        (NOW + 9 * HOUR, 8),
        (NOW + 10 * HOUR, 0),
    ]


def test_a_clock_that_goes_back_stalls_nothing(places, clock):
    back = iter([timedelta(days=-3)])
    events, waits = run(places, clock, 3, pause=lambda seconds: next(back, timedelta(seconds=seconds)))
    assert [tick.due for tick in begun(events)] == [
        NOW,
        NOW - timedelta(days=3),
        NOW - timedelta(days=3) + HOUR,
    ]
    assert len(waits) == 61


def test_the_end_is_heard_between_two_events_and_the_tick_is_gone_on_with(places, clock):
    clock.time = ITEMS[-1].published_at
    places.accounts.set_profile("ada")
    places.accounts.set_position("ada", "LNTN", 1, 1)
    ending, events, model = StopRequest(), [], Scripted(simulated_reader)
    for event in run_scheduled(monitor_of(places, ITEMS, model), HOUR, ending):
        events.append(event)
        if isinstance(event, ItemWritten):
            ending.request()
    assert isinstance(events[-1], ItemWritten) and len(model.asked) == 1
    ending, model = StopRequest(), Scripted(simulated_reader)
    for event in run_scheduled(monitor_of(places, ITEMS, model), HOUR, ending):
        events.append(event)
        if isinstance(event, TickEnded):
            ending.request()
    assert [tick.resumed for tick in begun(events)] == [False, True] and len(model.asked) == 2
    assert sum(isinstance(event, BriefingPosted) for event in events) == 1


def test_a_journal_that_is_away_is_told_and_waited_for(places, clock):
    ending, told = StopRequest(), []
    places.journal.close()

    def wait(seconds):
        told.append(seconds)
        ending.request()

    (failed,) = run_scheduled(monitor_of(places), HOUR, ending, wait=wait)
    assert isinstance(failed, StageFailed) and "was closed" in failed.reason and told == [60.0]


@pytest.mark.parametrize("every", [timedelta(), -HOUR, 60])
def test_an_interval_that_is_none_is_refused(places, every):
    with pytest.raises(BadInput, match="more than 0"):
        list(run_scheduled(monitor_of(places), every, StopRequest()))


# --- how it ends ---


def test_a_wait_ends_when_another_thread_asks_for_the_end(places):
    ending, events = StopRequest(), []
    thread = threading.Thread(
        target=lambda: events.extend(run_scheduled(monitor_of(places), HOUR, ending)), daemon=True
    )
    thread.start()
    until(lambda: events, "the first event came")
    ending.request()
    thread.join(timeout=120)
    assert not thread.is_alive()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_and_what_heard_signals_before_hears_them_again(places, number):
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    with stop_on_signals() as ending:
        for event in run_scheduled(monitor_of(places), HOUR, ending):
            if isinstance(event, TickStarted):
                os.kill(os.getpid(), number)
            assert not isinstance(event, TickEnded)
    assert {each: signal.getsignal(each) for each in before} == before
