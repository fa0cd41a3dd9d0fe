"""Who is to hear of what: a briefing needs a signal that is live and reaches what the user holds or watches."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from support.small_market import EQUITIES, LANTERN, NOW, SHARE, TECHNOLOGY, event, signal, with_market

from kgot_lab.domains.investment.briefing import (
    DISCLAIMER,
    Briefing,
    Holdings,
    Signal,
    Wishes,
    Withheld,
    briefings,
    decide,
    signals,
)
from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.reach import reach
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.errors import BadInput
from kgot_lab.types import Edge

ANYTHING = Wishes()
HOLDER = Holdings("ada", frozenset({"LNTN"}), frozenset({"ORCH"}))


@pytest.fixture
def market(clock):
    with open_investment_graph(now=clock) as graph:
        yield with_market(graph)


def told(graph, holdings=HOLDER, wishes=ANYTHING, owner=""):
    return list(briefings(graph.view(owner), holdings, wishes))


def written(market, summary, *about, **more):
    said, edges = signal(summary, *about, **more)
    market.write([said], edges)
    return said


def test_a_signal_on_what_is_held_is_a_briefing_with_evidence_path_and_freshness(market):
    happened, affects = event("Lantern beats its forecast", LANTERN)
    said, about = signal("Lantern is cheap", LANTERN, strength=0.8)
    market.write([happened, said], [*affects, *about, Edge(said.id, "derived_from", happened.id)])
    (briefing,) = told(market)
    assert (briefing.signal, briefing.action, briefing.strength, briefing.evidence) == (
        said.id,
        "buy",
        0.8,
        (happened,),
    )
    assert [str(each) for each in briefing.reached] == [
        "Lantern is cheap -about-> Lantern Devices <-issued_by- LNTN"
    ]
    assert briefing.generated_at == NOW and briefing.live_until == NOW + timedelta(days=14)
    for part in ("buy signal", "0.80", "LNTN (held)", "Lantern beats its forecast", "2026-02-20", DISCLAIMER):
        assert part in briefing.text
    assert briefing.to_json()["paths"] == [
        [[said.id, "about", LANTERN.id, True], [LANTERN.id, "issued_by", SHARE.id, False]]
    ]


def test_without_a_signal_there_is_no_briefing_whatever_happens(market):
    happened, affects = event("Everything falls", SHARE, LANTERN, EQUITIES)
    watched = [
        investment_node("Insight", type=type, summary=f"It is a {type}")
        for type in ("observation", "pattern")
    ]
    silent, about = signal("No action", SHARE, action=None)
    market.write(
        [happened, *watched, silent],
        [*affects, *about, *(Edge(each.id, "about", SHARE.id) for each in watched)],
    )
    assert reach(market.view(), happened.id) and told(market) == [] and signals(market.view()) == ()
    for node in (happened, silent, *watched):
        view = market.view()
        assert decide(Signal(view.node(node.id)), reach(view, node.id), HOLDER) == Withheld(
            "it is no signal with an action"
        )


def test_who_holds_nothing_of_it_hears_nothing(market):
    written(market, "Lantern is cheap", LANTERN)
    assert told(market, Holdings("bob", frozenset({"BNDX"}))) == []
    assert told(market, Holdings("eve", frozenset())) == []


def test_what_is_watched_counts_unless_the_user_says_no(market):
    written(market, "Chips are cheap", TECHNOLOGY)
    assert [[asset.symbol for asset in each.reached] for each in told(market)] == [["LNTN", "ORCH"]]
    assert "ORCH (watched)" in told(market)[0].text
    assert [
        [asset.symbol for asset in each.reached] for each in told(market, wishes=Wishes(watchlist=False))
    ] == [["LNTN"]]


@pytest.mark.parametrize(
    ("preferences", "reason"),
    [
        ({"least_strength": 0.9}, "weaker than"),
        ({"least_weight": 0.95}, "too far away"),
        ({"muted": ["lntn"]}, "holds or watches"),
        ({"actions": ["sell"]}, "this action"),
    ],
)
def test_wishes_hold_a_briefing_back_and_say_why(market, preferences, reason):
    said = written(market, "Lantern is cheap", LANTERN, strength=0.8)
    view = market.view()
    wishes = Wishes.of({"esg": True, "briefings": preferences})
    decided = decide(signals(view)[0], reach(view, said.id), HOLDER, wishes)
    assert isinstance(decided, Withheld) and reason in decided.reason
    assert isinstance(
        decide(signals(view)[0], reach(view, said.id), HOLDER, Wishes.of({"esg": True})), Briefing
    )


@pytest.mark.parametrize("given", [{"loud": True}, {"least_strength": "much"}, {"muted": 3}, [1]])
def test_wishes_that_are_none_are_an_error(given):
    with pytest.raises(BadInput, match="preferences for briefings are least_strength"):
        Wishes.of({"briefings": given})


def test_an_expired_signal_is_no_signal(market, clock):
    said = written(market, "Lantern is cheap", SHARE)
    view = market.view()
    (live,) = signals(view)
    late = replace(live, asked_at=NOW + timedelta(days=14))
    assert decide(late, reach(view, said.id), HOLDER) == Withheld("the signal has expired")
    clock.time = NOW + timedelta(days=14)
    assert told(market) == []


def test_one_users_signal_is_never_anothers(market):
    said, about = signal("Only for Ada", SHARE, owner="a1")
    market.write([said], about, owner="a1")
    assert [each.signal for each in told(market, owner="a1")] == [said.id]
    assert told(market, owner="b2") == told(market) == []


def test_to_decide_again_gives_the_same_key_and_another_action_another(market, clock):
    said = written(market, "Lantern moves", SHARE, strength=0.5)
    (first,) = told(market)
    clock.time += timedelta(days=1)
    market.write([replace(said, properties={"strength": 0.9})])
    (second,) = told(market)
    assert second.key == first.key and second.strength == 0.9
    assert told(market, Holdings("bob", frozenset({"LNTN"})))[0].key != first.key
    market.write([replace(said, properties={"action": "sell"})])
    assert told(market)[0].key != first.key


def test_a_printed_briefing_does_not_show_whose_it_is(market):
    written(market, "Lantern moves", SHARE)
    assert not re.search(r"(?<![0-9a-f])ada(?![0-9a-f])", repr(told(market))), (
        "three letters may stand by chance in an id"
    )
