"""What is told no more: a signal whose evidence fell, a call that a later one replaced, a denial in other words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from support.every import every
from support.small_market import LANTERN, TECHNOLOGY, SetClock, event, signal, with_market
from support.small_news import FIRST

from kgot_lab.domains.investment.briefing import Holdings, briefings
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.monitor.events import BriefingsStale
from kgot_lab.domains.investment.monitor.monitor import Monitor
from kgot_lab.domains.investment.monitor.news import FeedResult, NewsItem, StatedNews
from kgot_lab.domains.investment.monitor.news_reader import filter_facts
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT_WITH_COMPANIES
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Edge

HOLDER = Holdings("ada", frozenset({"LNTN", "LNTN-31", "ORCH"}))
NEWS = NewsItem(
    "i1", "Lantern Devices (LNTN)", FIRST, "Mara Quill of Hollin Ratings speaks on Orchard Chips too."
)


@pytest.fixture
def market(clock):
    with open_investment_graph(now=clock, vocabulary=INVESTMENT_WITH_COMPANIES) as graph:
        yield with_market(graph)


def read(market, number, **stated):
    """Read an item on Lantern Devices of this number, an hour after the one before."""
    item = replace(NEWS, id=f"i{number}", published_at=FIRST + timedelta(hours=number))
    facts = filter_facts(StatedNews.model_validate({"things": [], **stated}), item, market.view())
    times = {id: datetime.fromisoformat(time) for id, time in facts.expires.items()}
    market.write(facts.nodes, facts.edges, expires_at=times)
    market.expire(*facts.ends)
    return facts


def happened(summary, *affects):
    return {"type": "news", "summary": summary, "affects": list(affects or ["Lantern Devices"])}


def call(action, *about, **more):
    said = {"summary": f"It is a {action}", "said_by": "Mara Quill", "about": list(about or ["LNTN"])}
    return {"type": "signal", "action": action, **said, **more}


def told(market):
    return [each.action for each in briefings(market.view(), HOLDER)]


def test_a_signal_falls_with_the_event_that_it_rests_on_and_so_does_a_view_on_a_class(market):
    observation = {"type": "observation", "summary": "Equities suffer", "about": ["Lantern Devices"]}
    read(market, 1, events=[happened("They strike")], insights=[
        call("sell", because=[1]), {**observation, "because": [1]},
    ])  # fmt: skip
    assert told(market) == ["sell"] and len(market.view().nodes("Insight")) == 2
    read(market, 2, untrue=["the strike"])
    assert told(market) == [] and market.view().nodes("Insight") == ()


def test_a_signal_stays_while_one_of_its_events_does_and_shows_what_is_left(market):
    read(
        market,
        1,
        events=[happened("They strike"), happened("A fire burns")],
        insights=[call("sell", because=[1, 2])],
    )
    read(market, 2, untrue=["the strike"])
    (briefing,) = briefings(market.view(), HOLDER)
    assert [
        each.properties.get("summary") for each in briefing.evidence if each.labels == ("MarketEvent",)
    ] == ["A fire burns"]


def test_a_signal_on_news_alone_ends_with_the_news_and_says_so_before(market, clock):
    read(market, 1, insights=[call("buy")])
    (briefing,) = briefings(market.view(), HOLDER)
    assert briefing.live_until == FIRST + timedelta(days=7)
    clock.time = briefing.live_until
    assert told(market) == []


def test_a_signal_of_an_owner_falls_with_an_event_of_all(market):
    struck, affects = event("They strike", LANTERN)
    said, about = signal("Only for Ada", LANTERN, owner="a1")
    market.write([struck], affects)
    market.write([said], [*about, Edge(said.id, "derived_from", struck.id)], owner="a1")
    assert [each.signal for each in briefings(market.view("a1"), HOLDER)] == [said.id]
    market.expire(struck.id)
    assert list(briefings(market.view("a1"), HOLDER)) == []


def test_a_briefing_that_waits_is_not_sent_once_its_signal_has_fallen(places):
    graph, accounts = places.graph, places.accounts
    accounts.set_profile("ada")
    accounts.set_position("ada", "LNTN", 1, 1)
    struck, affects = event("They strike", LANTERN)
    said, about = signal("Sell it", LANTERN, action="sell")
    with_market(graph).write([struck, said], [*affects, *about, Edge(said.id, "derived_from", struck.id)])
    (briefing,) = briefings(graph.view(), HOLDER)
    accounts.post(briefing)
    graph.expire(struck.id)
    sent = []
    events = list(Monitor(places, Scripted([]), lambda: FeedResult(()), sent.append).tick(
        places.journal.next_tick(timedelta(hours=1))
    ))  # fmt: skip
    assert sent == [] and BriefingsStale(1) in events and not places.holds(accounts.outbox()[0])


def test_a_briefing_holds_no_longer_once_the_path_to_what_is_held_was_undone(places):
    graph, accounts = places.graph, places.accounts
    accounts.set_profile("ada")
    accounts.set_position("ada", "LNTN", 1, 1)
    said, about = signal("Sell it", LANTERN, action="sell")
    with_market(graph).write([said])
    joined = graph.write(edges=about).change
    (briefing,) = briefings(graph.view(), HOLDER)
    accounts.post(briefing)
    (entry,) = accounts.outbox()
    assert places.holds(entry)
    undone = graph.undo(joined)
    assert [fact.relation for fact in undone.facts] == ["about"] and not places.holds(entry)
    assert graph.undo(undone.change).risen == undone.facts and places.holds(entry)


@every(
    "earlier,later,left",
    [
        (call("buy"), call("sell"), ["sell"]),
        (call("buy"), call("hold"), ["hold"]),
        (call("buy", "Lantern Devices"), call("sell", "LNTN"), ["sell"]),
        (call("buy", "LNTN"), call("sell", "Lantern Devices"), ["sell"]),
        (call("buy"), call("sell", said_by="Quill"), ["sell"]),
        (call("buy"), call("sell", said_by="Hollin Ratings"), ["buy", "sell"]),
        (call("buy"), call("sell", "Orchard Chips"), ["buy", "sell"]),
        (call("buy", "LNTN", "Orchard Chips"), call("sell"), ["buy", "sell"]),
        (call("buy", said_by=""), call("sell", said_by=""), ["buy", "sell"]),
    ],
)
def test_a_later_call_of_the_same_giver_on_the_same_thing_ends_the_earlier(earlier, later, left):
    with open_investment_graph(now=SetClock(), vocabulary=INVESTMENT_WITH_COMPANIES) as market:
        with_market(market)
        read(market, 1, insights=[earlier])
        read(market, 2, insights=[later])
        assert sorted(told(market)) == left
        for briefing in briefings(market.view(), HOLDER):
            if left == ["buy", "sell"] and briefing.action == "buy" and len(earlier["about"]) == 2:
                assert [each.symbol for each in briefing.reached] == ["ORCH"]


def test_an_older_call_that_arrives_late_does_not_end_the_later(market):
    read(market, 2, insights=[call("sell")])
    late = read(market, 1, insights=[call("buy")])
    assert told(market) == ["sell"] and "a later call of the same giver" in late.refused[0]


@every(
    "summary,denial",
    [
        ("Workers walked out", "no walkout"),
        ("Workers walked out at Lantern Devices", "There was no strike"),
        ("Staff are on strike", "the walk-out never happened"),
        ("A work stoppage began", "they did not strike"),
        ("The chief stepped down", "the chief did not resign"),
        ("Its chief resigned", "no resignation"),
        ("Its chief quit", "the departure of its chief is untrue"),
        ("A fire burns a mill", "no blaze"),
        ("A mill burnt", "there was no fire"),
        ("It laid off workers", "no layoffs"),
        ("It dismissed workers", "the workers were not laid off"),
        ("It took over a rival", "no takeover"),
        ("It acquired a rival", "the acquisition of a rival was wrongly reported"),
        ("It bought out a rival", "no buyout of a rival"),
        ("It merged with a rival", "no merger"),
        ("It recalled its lamps", "there is no recall"),
        ("Its network was hacked", "no breach"),
        ("Thieves broke in", "no break-in"),
        ("A rival sued", "no lawsuit"),
        ("Regulators investigate it", "there is no probe"),
        ("It shut down a plant", "the plant was not closed"),
        ("It closed a plant", "no plant closure"),
        ("It postponed its launch", "no delay of its launch"),
        ("It cut its dividend", "no dividend reduction"),
        ("It raised its prices", "no price increase"),
        ("A blast hit its mill", "no explosion"),
        ("It filed for bankruptcy", "it is not insolvent"),
        ("It lays off 300 workers", "no job cuts"),
        ("Its chief executive quit", "its chief executive remains in post"),
        ("Workers began industrial action", "no strike took place"),
        ("It closes its mill", "the mill stays open"),
        ("Hackers breached its systems", "there was no data breach"),
        ("It was fined 4 million", "no penalty was imposed"),
    ],
)
def test_a_denial_in_other_words_is_matched(summary, denial):
    with open_investment_graph(now=SetClock(), vocabulary=INVESTMENT_WITH_COMPANIES) as market:
        with_market(market)
        read(market, 1, events=[happened(summary)])
        facts = read(market, 2, untrue=[denial])
        assert market.view().nodes("MarketEvent") == (), facts.refused


@every(
    "denial",
    [
        "no flood",
        "no rise in profit",
        "Lantern Devices denies",
        "not",
        "no walkout in the north of the country",
    ],
)
def test_a_denial_of_something_else_ends_nothing(denial):
    with open_investment_graph(now=SetClock(), vocabulary=INVESTMENT_WITH_COMPANIES) as market:
        with_market(market)
        read(market, 1, events=[happened("Workers walked out")])
        assert read(market, 2, untrue=[denial]).refused and len(market.view().nodes("MarketEvent")) == 1


def test_of_two_strikes_the_one_at_what_the_item_names_is_denied(market):
    text = "Brook Mills (BRKM) strikes."
    brook = replace(NEWS, id="b", headline=text, text=text)
    stated = {
        "things": [{"type": "Company", "name": "Brook Mills", "symbol": "BRKM"}],
        "events": [happened("A strike began", "Brook Mills")],
    }
    facts = filter_facts(StatedNews.model_validate(stated), brook, market.view())
    market.write(facts.nodes, facts.edges)
    read(market, 1, events=[happened("Workers walked out")])
    read(market, 2, untrue=["no walkout"])
    assert [each.node.properties["summary"] for each in market.view().nodes("MarketEvent")] == [
        "A strike began"
    ]


def test_a_buy_of_a_sector_reaches_its_shares_and_no_bond(market):
    said, about = signal("Buy devices", TECHNOLOGY)
    market.write([said], about)
    (briefing,) = briefings(market.view(), HOLDER)
    assert [each.symbol for each in briefing.reached] == ["LNTN", "ORCH"]
    assert list(briefings(market.view(), Holdings("bob", frozenset({"LNTN-31"})))) == []


def test_a_share_of_the_class_of_its_sector_is_reached_by_a_buy_of_the_sector(market):
    fund = investment_node("Asset", symbol="LNTN-B", type="stock")
    market.write(
        [fund], [Edge(fund.id, "issued_by", LANTERN.id), Edge(fund.id, "belongs_to", "AssetClass:equities")]
    )
    said, about = signal("Buy devices", TECHNOLOGY)
    market.write([said], about)
    assert [each.signal for each in briefings(market.view(), Holdings("bob", frozenset({"LNTN-B"})))] == [
        said.id
    ]
