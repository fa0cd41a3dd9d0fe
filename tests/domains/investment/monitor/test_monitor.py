"""One tick after the other: news in, facts in the graph, briefings out; what fails is told, tried again, and
nothing is lost.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from support.every import every
from support.small_news import (
    ITEMS,
    LANTERN,
    ORCHARD,
    REPLIES,
    SLIDES,
    item,
    prompt_counts,
    put_on_file,
    reply_on,
    simulated_reader,
)

from kgot_lab.domains.investment.briefing import DISCLAIMER
from kgot_lab.domains.investment.monitor.events import (
    BriefingPosted,
    BriefingSent,
    BriefingsStale,
    ClockBehind,
    ItemsWait,
    ItemWritten,
    NewsGathered,
    StageFailed,
    TickEnded,
    TickStarted,
)
from kgot_lab.domains.investment.monitor.monitor import Monitor
from kgot_lab.domains.investment.monitor.news import FeedResult, read_news_file
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.errors import BadInput, LLMError, ToolFailed
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Edge

HOUR = timedelta(hours=1)


class Told:
    """A monitor of some items with one user who holds two shares; what it delivers is a list."""

    def __init__(self, places, items=ITEMS, model=None, **how):
        self.places, self.items, self.sent = places, list(items), []
        self.model = model or Scripted(simulated_reader)
        if not places.accounts.users():
            places.accounts.set_profile("ada")
            places.accounts.set_position("ada", "LNTN", 1, 1)
            places.accounts.set_position("ada", "ORCH", 1, 1)
        self.monitor = Monitor(places, self.model, lambda: FeedResult(tuple(self.items)), self.deliver, **how)
        self.down = None

    def deliver(self, entry):
        if self.down:
            raise self.down
        self.sent.append(entry)

    def tick(self):
        return list(self.monitor.tick(self.places.journal.next_tick(HOUR)))


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def test_a_tick_gathers_reads_writes_decides_and_delivers(places, clock):
    clock.time = SLIDES.published_at
    told = Told(places)
    events = told.tick()
    posted_and_sent = [BriefingPosted, BriefingPosted, BriefingSent, BriefingSent]
    assert [type(event) for event in events] == [
        TickStarted,
        NewsGathered,
        *[ItemWritten] * 3,
        *posted_and_sent,
        TickEnded,
    ]
    assert len(told.model.asked) == 3 and of(StageFailed, events) == []
    buy = next(entry.body for entry in told.sent if entry.body["action"] == "buy")
    assert buy["symbols"] == ["LNTN"]
    assert len(buy["evidence"]) == 2
    assert buy["paths"]
    assert buy["live_until"]
    assert DISCLAIMER in buy["text"]
    assert {entry.user for entry in told.sent} == {"ada"} and places.accounts.outbox(unsent=True) == ()


def test_the_next_tick_asks_nothing_and_sends_nothing_where_there_is_nothing_new(places, clock):
    clock.time = SLIDES.published_at
    told = Told(places)
    told.tick()
    before = places.graph.view().graph()
    clock.time += HOUR
    assert [type(each) for each in told.tick()] == [TickStarted, NewsGathered, TickEnded]
    assert len(told.model.asked) == 3 and len(told.sent) == 2 and places.graph.view().graph() == before


def test_items_dated_later_than_now_wait_for_their_time_and_late_ones_are_taken(places, clock):
    told = Told(places, [SLIDES, LANTERN])
    assert of(NewsGathered, told.tick()) == [NewsGathered(1, 1)]
    told.items.append(ORCHARD)
    clock.time = SLIDES.published_at
    assert of(NewsGathered, told.tick()) == [NewsGathered(2)] and len(places.journal.facts()) == 3


def test_of_two_items_with_one_id_that_come_together_the_first_is_taken_and_the_other_told(places, clock):
    clock.time = SLIDES.published_at
    # the same item twice is one item
    told = Told(places, [LANTERN, LANTERN, replace(ORCHARD, id=LANTERN.id)])
    for new in (1, 0):
        (gathered,) = of(NewsGathered, told.tick())
        assert gathered.new == new
        assert len(gathered.refused) == 1
        assert "give it one of its own" in gathered.refused[0]
    (asked,) = told.model.asked
    assert LANTERN.headline in str(asked) and ORCHARD.headline not in str(asked)


def test_a_tick_reads_so_many_items_and_says_how_many_wait(places, clock):
    clock.time = SLIDES.published_at
    told = Told(places, most=2)
    assert of(ItemsWait, told.tick()) == [ItemsWait(1)]
    assert of(ItemsWait, told.tick()) == [] and len(told.model.asked) == 3


def test_a_model_that_is_away_is_told_and_what_waits_in_the_outbox_is_sent_all_the_same(places, clock):
    clock.time = LANTERN.published_at
    told = Told(places, [LANTERN])
    told.down = ToolFailed("the receiver is away", again=True)
    assert of(StageFailed, told.tick()) == [
        StageFailed("deliver", "the receiver is away; 1 briefing in the outbox")
    ]
    told.down, told.monitor = None, Monitor(places, Scripted([]), told.monitor.feed, told.deliver)
    told.items += [ORCHARD]
    clock.time = ORCHARD.published_at
    events = told.tick()
    (failed,) = of(StageFailed, events)
    assert failed.stage == "update" and "no reply left" in failed.reason
    assert len(of(BriefingSent, events)) == 1
    told.monitor = Monitor(places, Scripted(simulated_reader), told.monitor.feed, told.deliver)
    assert len(of(ItemWritten, told.tick())) == 1


def test_a_clock_that_went_back_is_told_and_a_small_step_is_not(places, clock):
    clock.time = SLIDES.published_at
    told = Told(places)
    told.tick()
    clock.time -= timedelta(seconds=30)
    assert of(ClockBehind, told.tick()) == []
    clock.time -= HOUR
    assert of(ClockBehind, told.tick()) == [ClockBehind(clock.time, SLIDES.published_at)]


def test_an_item_that_no_model_can_read_does_not_hold_up_the_others(places, clock):
    clock.time = SLIDES.published_at

    def reader(prompt):
        if LANTERN.headline in prompt.messages[1].text:
            raise LLMError("too hard")
        return simulated_reader(prompt)

    told = Told(places, model=Scripted(reader))
    assert of(ItemWritten, told.tick()) == []
    assert len(of(ItemWritten, told.tick())) == 2 and places.journal.count_to_read() == 1


def test_a_receiver_that_refuses_one_briefing_gets_the_others(places, clock):
    clock.time = SLIDES.published_at
    told = Told(places)
    told.down = ToolFailed("it answers 422")
    failed = of(StageFailed, told.tick())
    assert len(failed) == 2 and len(places.accounts.outbox(unsent=True)) == 2
    told.down = None
    assert len(of(BriefingSent, told.tick())) == 2


def test_a_briefing_that_was_not_sent_while_it_was_fresh_is_not_sent(places, clock):
    clock.time = LANTERN.published_at
    told = Told(places, [LANTERN])
    told.down = ToolFailed("the receiver is away", again=True)
    told.tick()
    told.down = None
    clock.time += timedelta(days=30)
    assert of(BriefingsStale, told.tick()) == [BriefingsStale(1)]
    assert told.sent == []
    assert len(places.accounts.outbox()) == 1


def test_old_news_after_a_long_pause_is_read_and_briefs_nobody(places, clock):
    clock.time = LANTERN.published_at + timedelta(days=60)
    told = Told(places)
    events = told.tick()
    assert len(of(ItemWritten, events)) == 3 and of(BriefingPosted, events) == []


def test_wishes_that_cannot_be_used_are_told_and_the_other_users_are_briefed(places, clock):
    places.accounts.set_profile("aaron", preferences={"briefings": {"loud": True}})
    clock.time = LANTERN.published_at
    told = Told(places, [LANTERN])
    places.accounts.set_profile("ada")
    places.accounts.set_position("ada", "LNTN", 1, 1)
    (failed,) = of(StageFailed, events := told.tick())
    assert failed.stage == "decide" and "account 1 of 2" in failed.reason and "aaron" not in failed.reason
    assert len(of(BriefingPosted, events)) == 1


def test_two_items_with_one_headline_are_both_written(places, clock):
    clock.time = LANTERN.published_at
    twin = replace(LANTERN, id="twin", source="Another Wire")
    written = of(ItemWritten, Told(places, [LANTERN, twin]).tick())
    assert [each.facts.item for each in written] == ["n1", "twin"] and written[1].nodes == 1, (
        "the source of the item is new"
    )
    assert len(places.accounts.outbox()) == 1


def test_facts_that_were_written_before_a_kill_are_not_written_again_later(places, clock):
    """An edge without a date of its own would live longer if it were."""
    clock.time = SLIDES.published_at
    told = Told(places, [LANTERN])
    told.tick()
    (facts,) = places.journal.facts()
    other = investment_node("Asset", symbol="ORCH")
    undated = Edge("Asset:LNTN", "correlated", other.id)
    more = replace(
        facts,
        item="n7",
        nodes=(investment_node("News", headline="Twins", item="n7"), other),
        edges=(undated,),
    )
    places.journal.add([replace(LANTERN, id="n7")])
    places.journal.store_facts(more)
    told.tick()
    before = places.graph.view().graph(), places.graph.storage.rows("SELECT * FROM edges")
    places.journal.storage.rows("UPDATE items SET written_at = NULL WHERE id = 'n7'")
    clock.time += timedelta(days=3)
    (written,) = of(ItemWritten, told.tick())
    assert (written.nodes, written.edges) == (0, 0) and places.journal.facts_to_write() == ()
    assert (places.graph.view().graph(), places.graph.storage.rows("SELECT * FROM edges")) == before


def test_a_feed_that_cannot_be_reached_holds_nothing_else_up(places, tmp_path):
    told = Told(places, [LANTERN])
    told.deliver, told.monitor.feed = None, lambda: read_news_file(tmp_path / "nothing.jsonl")
    events = told.tick()
    assert [each.stage for each in of(StageFailed, events)] == ["gather"]
    assert isinstance(events[-1], TickEnded)


def test_events_are_lines_that_can_be_read(places, clock):
    clock.time = SLIDES.published_at
    told = Told(places, [*ITEMS, replace(ITEMS[0], id="later", published_at=clock.time + HOUR)])
    lines = "\n".join(map(str, told.tick()))
    for part in (
        "tick 1, due 2026-02-05T16:00",
        "gather: 3 new items, 1 dated later",
        "update: n1: 5 nodes and",
        "decide: briefing",
    ):
        assert part in lines
    assert "deliver: briefing" in lines and "tick 1 done" in lines


# --- the file of news ---


def test_a_file_of_news_tells_the_lines_that_are_none_and_leaves_one_that_is_being_written(tmp_path):
    path = put_on_file(tmp_path / "news.jsonl", LANTERN, ORCHARD)
    bad = [
        '{"id": "x"}',
        "{",
        '{"id": "x", "headline": "h", "published_at": "2026-02-05T10:00:00"}',
        '{"id": "x", "colour": 1}',
    ]
    with path.open("a") as file:
        file.write("\n".join(bad) + '\n{"id": "n3", "headl')
    read = read_news_file(path)
    assert read.items == (LANTERN, ORCHARD)
    assert [line.split(str(path))[0] for line in read.refused] == [
        "line 3 of ",
        "line 4 of ",
        "line 5 of ",
        "line 6 of ",
    ]
    assert "with its zone" in read.refused[2] and "no field 'colour'" in read.refused[3]


@every(
    "changed",
    [
        {"id": " "},
        {"id": "x" * 201},
        {"id": "a\0"},
        {"id": "\ud800"},
        {"headline": ""},
        {"text": None},
        {"published_at": "today"},
    ],
)
def test_an_item_that_is_none_is_refused(changed):
    with pytest.raises(BadInput):
        replace(LANTERN, **changed)


def test_a_model_that_changes_its_mind_is_not_asked_twice(places, clock):
    """The reply that was paid for first counts, whatever another asking would bring."""
    clock.time = LANTERN.published_at
    minds = iter(
        [
            json.dumps(REPLIES[LANTERN.headline]),
            json.dumps(reply_on("Lantern Devices", "LNTN", "falls", action="sell")),
        ]
    )
    told = Told(places, [LANTERN, replace(LANTERN, id="again")], model=Scripted(lambda _: next(minds)))
    told.tick()
    assert len(told.model.asked) == 1 and prompt_counts(places.journal) == (1, 1, 1)
    told.items.append(item(9, "Lantern Devices", "LNTN", "falls"))
    told.tick()
    assert prompt_counts(places.journal) == (2, 2, 2)
