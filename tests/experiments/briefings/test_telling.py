"""The month told: what gold calls for is told and nothing else, and errors, late rounds and other walks show
as what they are.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from support.small_news import prompt_counts

from kgot_lab.domains.investment.monitor.events import ItemWritten, NewsGathered, TickEnded, TickStarted
from kgot_lab.evaluation.significance import proportion
from notebooks.invented_month.month import load_month
from notebooks.invented_month.reader import ReadingErrors, SimulatedReader
from notebooks.invented_month.said import SaidFacts
from notebooks.invented_month.scoring import (
    TOLD_RIGHT,
    JudgedBriefing,
    MonthScore,
    briefing_point,
    score_month,
)
from notebooks.invented_month.stated import stated_reply
from notebooks.invented_month.telling import MonthPlay, ToldBriefing, tell_month

MONTH = load_month()


def part(*ids: str):
    """The month with a few of its items, and the gold of these."""
    briefings = tuple(briefing for briefing in MONTH.briefings if briefing.item in ids)
    items = tuple(item for item in MONTH.items if item.id in ids)
    return replace(MONTH, items=items, changes=(), briefings=briefings)


def kinds(month, llm=None, **options):
    return dict(score_month(month, tell_month(month, llm or SimulatedReader(month), **options).told).kinds)


def told(user="teo", item="n02", action="buy", **more):
    (gold,) = [briefing for briefing in MONTH.briefings if (briefing.user, briefing.item) == ("teo", "n02")]
    return ToldBriefing(
        user, frozenset({item}), action, more.get("paths", gold.paths), more.get("at", gold.since)
    )


def test_with_a_reader_without_errors_all_that_gold_calls_for_is_told_and_nothing_else():
    score = score_month(MONTH, tell_month(MONTH, SimulatedReader(MONTH)).told)
    assert score.kinds == {TOLD_RIGHT: 40}
    assert score.recall.mean == score.precision.mean == 1 and 0.9 < score.recall.low < 1


def test_the_month_runs_through_the_monitor_that_users_run():
    month = part("n01", "n02", "n07")
    with MonthPlay(month, SimulatedReader(month)) as play:
        events = list(play.events())
        expected = [TickStarted, NewsGathered, ItemWritten, TickEnded, TickStarted]
        assert [type(event) for event in events[:5]] == expected
        assert [facts.item for facts in play.places.journal.facts()] == ["n01", "n02", "n07"]
        assert prompt_counts(play.places.journal)[2] == 3
        (entry,) = play.places.accounts.outbox()
        assert (entry.user, entry.sent_at) == ("teo", play.told[0].at) and play.told[0].items == {"n02"}
        supplies = [
            edge.edge.target for edge in play.places.graph.view().edges() if edge.edge.type == "supplier"
        ]
        assert "Company:wexholm glass" in supplies, "what news says between companies is kept"


def test_errors_of_each_kind_cost_briefings_or_make_false_ones():
    month = part("n01", "n02", "n09", "n10")
    assert kinds(month) == {TOLD_RIGHT: 2}
    assert kinds(month, SimulatedReader(month, ReadingErrors(missed=1.0))) == {"not told": 2}
    typed = kinds(month, SimulatedReader(month, ReadingErrors(wrong_type=1.0)))
    assert typed == {"not told": 2, "near miss: no signal": 1, "near miss: rumour": 1, "of nobody's call": 1}
    assert kinds(month, SimulatedReader(month, ReadingErrors(wrong_name=1.0)))["not told"] == 2
    assert sum(kinds(month, SimulatedReader(month, ReadingErrors(invented=1.0))).values()) > 2


def test_each_way_to_be_wrong_has_its_name():
    def kind(*each: ToldBriefing) -> str:
        return score_month(MONTH, each).judged[len(each) - 1].kind

    assert kind(told()) == TOLD_RIGHT
    assert kind(told(), told()) == "told again"
    paths = {"LNFD": "-about-> Company:Lanternfold Devices <-issued_by- Asset:LNFD"}
    assert kind(told(paths=paths)) == "other paths"
    assert kind(told(at=told().at + timedelta(days=2))) == "too late"
    assert kind(told(at=told().at - timedelta(hours=1))) == "too early"
    assert kind(told(action="sell")) == "another action"
    assert kind(told(user="lena")) == "near miss: watchlist off"
    assert kind(told(user="oskar")) == "another person"
    assert kind(told(item="n03")) == "of nobody's call"
    assert kind(replace(told(), items=frozenset())) == "of nobody's call"
    assert score_month(MONTH, ()).kinds == {"not told": 40} and score_month(MONTH, ()).precision.n == 0


def test_a_point_joins_seeds_and_counts_a_month():
    good, none = score_month(MONTH, [told()]), score_month(MONTH, [])
    point = briefing_point(0.1, [good, none])
    assert point.kinds == {"not told": 39.5, TOLD_RIGHT: 0.5}
    assert point.recall.mean == pytest.approx(1 / 80)
    assert point.recall.low < point.recall.mean < point.recall.high
    assert point.precision.mean == 1 and point.precision.n == 1
    twice = [JudgedBriefing("teo", item, "buy", TOLD_RIGHT) for item in ("n02", "n10", "n10")]
    assert briefing_point(0.0, [MonthScore(tuple(twice))] * 5).recall == proportion(2, 2), (
        "the same month again makes an interval no narrower"
    )


def rates(play):
    events = play.places.graph.view().nodes("MarketEvent")
    calls = [event.node.properties for event in events if event.node.properties["type"] == "rate_decision"]
    return sorted({properties["summary"] for properties in calls})


def owned(play):
    return [
        each.edge.target for each in play.places.graph.view().edges_from(["Company:velloro power"], ["owns"])
    ]


def test_the_facts_of_the_month_are_read_and_not_looked_up():
    empty = SimulatedReader(MONTH, spelled=lambda _, item: stated_reply(SaidFacts(), item))
    assert tell_month(part("n02"), empty).told == ()


def test_what_an_item_takes_back_ends_whether_it_is_a_call_an_event_or_a_link():
    month = part("n17", "n18", "n26", "n29", "n31", "n32", "n51")
    with MonthPlay(month, SimulatedReader(month)) as play:
        for event in play.events():
            if isinstance(event, ItemWritten) and event.facts.item == "n31":
                assert len(rates(play)) == 2
            if isinstance(event, ItemWritten) and event.facts.item == "n26":
                assert owned(play) == ["Company:gridhollow networks"]
        assert rates(play) == ["Bank of Meridia lifts its rate to 3.5 percent"] and owned(play) == []
        calls = [
            node.node.properties["summary"]
            for node in play.places.graph.view(at=month.items[1].published_at).nodes("Insight")
        ]
        assert calls == ["Alder & Finch: sell Oatmere Foods shares"]


def test_what_the_vocabulary_refuses_is_left_out_and_said():
    month = part("n26")
    reader = SimulatedReader(
        month, spelled=lambda facts, item: stated_reply(facts, item).replace('"owns"', '"by"')
    )
    found = tell_month(month, reader)
    assert [id for id, _ in found.refused] == ["n26"] and "no edge type" in found.refused[0][1]
