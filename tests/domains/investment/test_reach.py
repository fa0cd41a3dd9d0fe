"""From an event to assets: by which path, how much is left, and what is not walked."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from support.small_market import (
    BANK,
    BOND,
    CHIPS,
    COIN,
    EQUITIES,
    FIXED,
    FUND,
    LANTERN,
    NOW,
    ORCHARD,
    SHARE,
    TECHNOLOGY,
    event,
    signal,
    with_market,
)

from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.reach import DECAYS, OPTIONAL_DECAYS, reach
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.errors import BadInput
from kgot_lab.graph.validation import Ends
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT, INVESTMENT_WITH_COMPANIES
from kgot_lab.types import Edge


@pytest.fixture
def market(clock):
    with open_investment_graph(now=clock, vocabulary=INVESTMENT_WITH_COMPANIES) as graph:
        yield with_market(graph)


def reached(graph, node, edges, **how):
    graph.write([node], edges)
    return {each.symbol: each for each in reach(graph.view(), node.id, **how)}


def test_an_event_reaches_the_assets_of_its_company_with_its_path(market):
    found = reached(market, *event("Lantern beats its forecast", LANTERN))
    assert set(found) == {"LNTN", "LNTN-31"}
    assert str(found["LNTN"]) == "Lantern beats its forecast -affects-> Lantern Devices <-issued_by- LNTN"
    assert found["LNTN"].weight == pytest.approx(0.9 * 0.9)
    assert found["LNTN"].live_until.isoformat() == "2026-03-07T00:00:00+00:00"


def test_a_sector_reaches_the_assets_of_its_companies_bonds_too(market):
    assert set(reached(market, *event("A tax on devices", TECHNOLOGY))) == {"LNTN", "LNTN-31", "ORCH"}


def test_an_assets_own_class_takes_the_place_of_the_inherited_one(market):
    assert set(reached(market, *event("Stocks fall", EQUITIES))) == {"LNTN", "ORCH"}
    assert set(reached(market, *event("Yields rise", FIXED))) == {"LNTN-31", "BNDX"}
    market.expire((BOND.id, "belongs_to", FIXED.id))
    assert set(reached(market, *event("Stocks fall again", EQUITIES))) == {"LNTN", "ORCH", "LNTN-31"}


def test_an_event_goes_through_one_institution_and_no_further(market):
    market.write(edges=[Edge(BANK.id, "affects", FIXED.id)])
    decided, edges = event("The rate stays", BANK, type="rate_decision", role="issuer")
    found = reached(market, decided, edges)
    assert set(found) == {"LNTN-31", "BNDX"} and found["BNDX"].weight == pytest.approx(0.9 * 0.9 * 0.7)
    assert (
        str(found["BNDX"])
        == "The rate stays -affects-> Bank of Meridia -affects-> Fixed Income <-belongs_to- BNDX"
    )
    other = investment_node("Institution", name="Treasury")
    market.write([other])
    with pytest.raises(BadInput, match="affects does not join Institution to Institution"):
        market.write(edges=[Edge(BANK.id, "affects", other.id)])


def test_where_a_vocabulary_lets_institutions_bear_on_each_other_only_one_is_passed(clock):
    affects = INVESTMENT.edge_type("affects")
    wider = replace(affects, ends=(*affects.ends, Ends("Institution", "Institution")))
    others = tuple(each for each in INVESTMENT.edge_types if each != affects)
    with open_investment_graph(
        now=clock, vocabulary=replace(INVESTMENT, edge_types=(*others, wider))
    ) as market:
        other = investment_node("Institution", name="Treasury")
        decided, edges = event("The treasury decides", other)
        between = [
            Edge(other.id, "affects", BANK.id),
            Edge(BANK.id, "affects", FIXED.id),
            Edge(other.id, "affects", COIN.id),
        ]
        with_market(market).write([other, decided], [*edges, *between])
        assert {each.symbol for each in reach(market.view(), decided.id)} == {"QCN"}
        assert {each.symbol for each in reach(market.view(), BANK.id)} == {"LNTN-31", "BNDX"}


def test_an_insight_about_an_event_reaches_what_the_event_does(market):
    happened, edges = event("The rate stays", FIXED)
    about = investment_node("Insight", type="observation", summary="The bank waits")
    assert set(
        reached(market.write([happened], edges) and market, about, [Edge(about.id, "about", happened.id)])
    ) == {"LNTN-31", "BNDX"}


def test_the_heaviest_path_wins_and_ties_go_by_ids(market):
    found = reached(market, *event("Everything at once", SHARE, LANTERN, TECHNOLOGY, EQUITIES))
    assert [hop.by for hop in found["LNTN"].path] == ["affects"]
    assert [hop.target.id for hop in found["LNTN-31"].path] == [LANTERN.id, BOND.id]
    order = [(-each.weight, len(each.path)) for each in found.values()]
    assert order == sorted(order)


def test_nothing_goes_up_from_a_company_to_its_sector(market):
    assert "ORCH" not in reached(market, *event("Lantern beats its forecast", LANTERN))


def test_companies_are_joined_only_when_asked_and_once(market):
    third = investment_node("Company", name="Sandworks")
    sand = investment_node("Asset", symbol="SAND")
    edges = [
        Edge(LANTERN.id, "supplier", ORCHARD.id),
        Edge(ORCHARD.id, "supplier", third.id),
        Edge(sand.id, "issued_by", third.id),
    ]
    market.write([third, sand], edges)
    told = event("Orchard's works burn", ORCHARD)
    assert set(reached(market, *told)) == {"ORCH"}
    with_suppliers = reached(market, *told, decays=DECAYS | OPTIONAL_DECAYS)
    assert set(with_suppliers) == {"ORCH", "LNTN", "LNTN-31", "SAND"}
    assert with_suppliers["LNTN"].weight == pytest.approx(0.9 * 0.5 * 0.9)
    assert set(reached(market, *event("Lantern's works burn", LANTERN), decays=DECAYS | OPTIONAL_DECAYS)) == {
        "LNTN",
        "LNTN-31",
        "ORCH",
    }


def test_owners_and_competitors_and_correlated_assets_are_joined_when_asked(market):
    market.write(edges=[Edge(LANTERN.id, "competes_with", ORCHARD.id), Edge(CHIPS.id, "correlated", COIN.id)])
    told = event("Lantern beats its forecast", LANTERN)
    assert "ORCH" in reached(market, *told, decays=DECAYS | {"competes_with": 0.3})
    assert set(reached(market, *event("Orchard grows", CHIPS), decays=DECAYS | {"correlated": 0.4})) == {
        "ORCH",
        "QCN",
    }


def test_an_insight_and_news_reach_what_they_are_about(market):
    assert set(reached(market, *signal("Lantern is cheap", LANTERN))) == {"LNTN", "LNTN-31"}
    news = investment_node("News", headline="Devices sell")
    found = reached(market, news, [Edge(news.id, "mentions", FUND.id)])
    assert set(found) == {"BNDX"} and found["BNDX"].weight == 0.6


def test_what_expired_is_not_walked(market, clock):
    happened, edges = event("Lantern beats its forecast", LANTERN)
    market.write([happened], edges)
    market.expire((happened.id, "affects", LANTERN.id))
    assert reach(market.view(), happened.id) == ()
    clock.time = NOW + timedelta(days=40)
    with pytest.raises(BadInput, match="no live node"):
        reach(market.view(), happened.id)
    assert SHARE.id in {node.node.id for node in market.view().nodes("Asset")}


@pytest.mark.parametrize("decay", [0, 1.5, -1, True, "half", float("nan")])
def test_a_decay_is_more_than_nothing_and_at_most_all(market, decay):
    with pytest.raises(BadInput, match=r"the decay of affects must be|each item a number"):
        reach(market.view(), LANTERN.id, decays={"affects": decay})
