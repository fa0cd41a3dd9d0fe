"""What of a model's reading becomes a fact: what the item says, in types of the vocabulary, with names that
stand for one thing.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.small_market import BOND, LANTERN, ORCHARD, SHARE, STRUCTURE, with_market
from support.small_news import FIRST, MULTI_LEVEL, simulated_reader

from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.monitor.entity_resolution import (
    contains_name,
    contains_symbol,
    unsupported_names,
)
from kgot_lab.domains.investment.monitor.news import NewsItem, StatedNews, facts_from_json, news_prompt
from kgot_lab.domains.investment.monitor.news_reader import filter_facts, read_item
from kgot_lab.domains.investment.reach import reach
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.errors import LLMError
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT_WITH_COMPANIES
from kgot_lab.llm.recorded import Scripted

SAYS = NewsItem(
    "i1",
    "Lantern Devices beats its forecast",
    FIRST,
    "The Lantern Devices Inc. (LNTN) beat its forecast of 12 lanterns. Orchard Chips (ORCH) supplies it. The Bank of Meridia held rates.",
)


@pytest.fixture
def market(clock):
    with open_investment_graph(now=clock, vocabulary=INVESTMENT_WITH_COMPANIES) as graph:
        yield with_market(graph)


def facts_of(graph, item=SAYS, **stated):
    return filter_facts(StatedNews.model_validate({"things": [], **stated}), item, graph.view())


def thing(type, name, symbol=""):
    return {"type": type, "name": name, "symbol": symbol}


def links(facts):
    return {(edge.source, edge.type, edge.target) for edge in facts.edges if edge.type != "mentions"}


# --- the document's example ---


def test_the_multi_level_example_becomes_the_nodes_and_edges_of_its_document(clock):
    """The reader is simulated: its reply was written beforehand."""
    with open_investment_graph(now=clock) as graph:
        facts = read_item(Scripted(simulated_reader), MULTI_LEVEL, graph.view())
        graph.write(facts.nodes, facts.edges)
        view = graph.view()
        (news,), (insight,) = view.nodes("News"), view.nodes("Insight")
        beat, hold = (
            each.node.id
            for each in sorted(view.nodes("MarketEvent"), key=lambda node: node.node.properties["type"])
        )
        apple, share, bank = "Company:apple inc.", "Asset:AAPL", "Institution:federal reserve"
        technology, equities = "Sector:technology", "AssetClass:equities"
        assert {(edge.edge.source, edge.edge.type, edge.edge.target) for edge in view.edges()} == {
            (share, "issued_by", apple), (apple, "in_sector", technology), (technology, "belongs_to", equities),
            (beat, "affects", apple), (hold, "affects", bank), (bank, "affects", equities),
            (insight.node.id, "about", share), (insight.node.id, "derived_from", beat), (insight.node.id, "derived_from", hold),
            (insight.node.id, "derived_from", news.node.id),
            *((news.node.id, "mentions", each) for each in (apple, share, bank, technology, equities)),
        }  # fmt: skip
        assert (facts.refused, facts.warnings) == ((), ())
        assert news.node.properties["sentiment"] == "positive" and insight.node.properties["action"] == "buy"
        assert [edge.properties for edge in facts.edges if (edge.source, edge.target) == (hold, bank)] == [
            {"role": "issuer"}
        ]
        assert [each.symbol for each in reach(view, hold)] == ["AAPL"], (
            "the decision reaches the share through bank, class and sector"
        )


# --- grounded in the item ---


def test_a_thing_that_the_item_does_not_name_is_refused_and_said(market):
    facts = facts_of(
        market, things=[thing("Company", "Beacon Lights"), thing("Company", "Lantern Devices", "LNTN")]
    )
    assert [edge.target for edge in facts.edges] == [LANTERN.id]
    (line,) = facts.refused
    assert "'Beacon Lights'" in line and "does not stand in the item" in line


def test_a_symbol_that_the_item_does_not_give_is_not_taken_from_the_model(market):
    facts = facts_of(
        market, things=[thing("Asset", "Lantern Devices", "LNT"), thing("Company", "Orchard Chips", "OCHP")]
    )
    assert [edge.target for edge in facts.edges] == [ORCHARD.id]
    assert [line.split(":")[0] for line in facts.refused] == [
        "the symbol 'LNT' of Asset 'Lantern Devices'", "Asset 'Lantern Devices'", "the symbol 'OCHP' of Company 'Orchard Chips'",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("summary", "unsaid"),
    [
        ("Lantern Devices fined by Gloria", "Gloria"),
        ("Lantern Devices sold 13 lanterns", "13"),
        ("Forecast beaten", ""),
    ],
)
def test_an_event_whose_names_and_numbers_are_not_in_the_item_is_refused(market, summary, unsaid):
    facts = facts_of(
        market, events=[{"type": "earnings", "summary": summary, "affects": ["Lantern Devices"]}]
    )
    assert bool(links(facts)) == (not unsaid)
    assert [unsaid in line for line in facts.refused] == [True] * bool(unsaid)


def test_an_event_that_affects_nothing_that_is_named_is_refused(market):
    facts = facts_of(
        market, events=[{"type": "earnings", "summary": "Beats its forecast", "affects": ["Beacon Lights"]}]
    )
    assert links(facts) == set() and len(facts.nodes) == 1
    assert "Beacon Lights" in facts.refused[0] and "nothing that it affects" in facts.refused[1]


def test_a_signal_about_what_the_graph_knows_and_the_item_does_not_name_is_refused(market):
    told = {"type": "signal", "summary": "Cheap", "action": "buy", "about": ["QCN"]}
    facts = facts_of(market, insights=[told])
    assert market.view().named("QCN") and links(facts) == set()
    assert "nothing that it is about" in facts.refused[-1]


def test_what_a_text_says_is_told_by_words_and_symbols_by_letters():
    assert contains_name("Shares of Apple's rivals fell", "Apple Inc.")
    assert not contains_name("Pineapple rose", "Apple")
    assert not contains_name("The company fell", "The Company, Inc.")
    assert contains_symbol("Apple (AAPL) rose", "AAPL")
    assert not contains_symbol("It fell", "IT")
    assert not contains_symbol("AAPLX", "AAPL")
    assert contains_symbol("Sell SAL.", "SAL")
    assert not contains_symbol("Sell SAL.MD and SAL-29 and X.SAL", "SAL")
    assert unsupported_names("apple beat 3 rivals", "The Apple beat 4 Rivals of Sony") == ["4", "Sony"]


# --- names that are resolved ---


def test_a_name_is_resolved_by_symbol_then_ticker_then_name(market):
    stated = {"type": "signal", "summary": "Cheap", "action": "buy", "strength": 0.6, "because": []}
    about = {
        name: facts_of(market, insights=[{**stated, "about": [name]}])
        for name in ("LNTN", "Lantern Devices", "Orchard Chips")
    }
    assert {name: [edge.target for edge in facts.edges if edge.type == "about"] for name, facts in about.items()} == {
        "LNTN": [SHARE.id], "Lantern Devices": [LANTERN.id], "Orchard Chips": [ORCHARD.id],
    }  # fmt: skip
    market.expire(SHARE.id)
    (edge,) = (
        edge
        for edge in facts_of(market, insights=[{**stated, "about": ["LNTN"]}]).edges
        if edge.type == "about"
    )
    assert edge.target == LANTERN.id, "without the share it is the ticker of the company"


def test_a_company_with_another_legal_form_is_the_one_of_the_graph_and_keeps_its_name(market):
    facts = facts_of(market, things=[thing("Company", "The Lantern Devices Inc.", "LNTN")])
    assert [edge.target for edge in facts.edges] == [LANTERN.id] and len(facts.nodes) == 1, (
        "nothing is new but the item"
    )
    facts = facts_of(market, things=[thing("Company", "Lantern Devices Inc.")])
    assert [edge.target for edge in facts.edges] == [LANTERN.id]


def test_a_ticker_that_two_companies_share_is_refused_and_both_are_named(market):
    market.write([investment_node("Company", name="Lantern Mining", ticker="LNTN")])
    market.expire(SHARE.id)
    item = replace(SAYS, headline="LNTN beats its forecast", text="Who is meant was not said.")
    facts = facts_of(
        market, item, insights=[{"type": "signal", "summary": "Cheap", "action": "buy", "about": ["LNTN"]}]
    )
    assert links(facts) == set()
    assert "Lantern Devices" in facts.refused[0]
    assert "Lantern Mining" in facts.refused[0]
    assert "which is meant is not said" in facts.refused[0]


@pytest.mark.parametrize("named", ["SAL", "Saltern Airways"])
def test_a_shared_ticker_is_settled_where_the_item_names_one_of_its_companies_in_full(market, named):
    airways, lithium = (
        investment_node("Company", name=name, ticker="SAL")
        for name in ("Saltern Airways", "Saltmarch Lithium")
    )
    market.write([airways, lithium])
    item = replace(
        SAYS, headline="SAL cancels flights", text="Saltern Airways, whose ticker is SAL, cancelled flights."
    )
    event = {"type": "operations", "summary": "SAL cancels flights", "affects": ["SAL"]}
    facts = facts_of(market, item, things=[thing("Company", named, "SAL")], events=[event])
    assert facts.refused == () and {edge.target for edge in facts.edges} == {airways.id}
    both = replace(item, text=f"{item.text} It is not Saltmarch Lithium.")
    assert "which is meant is not said" in facts_of(market, both, events=[event]).refused[0]
    neither = replace(item, text="SAL cancelled flights.")
    assert "Saltern Airways" in facts_of(market, neither, events=[event]).refused[0]
    assert links(facts_of(market, neither)) == set()


def test_a_company_that_claims_the_ticker_of_another_is_refused(market):
    facts = facts_of(market, things=[thing("Company", "Orchard Chips", "LNTN")])
    assert facts.edges == () and "is that of Lantern Devices" in facts.refused[0]


def test_an_asset_is_known_by_its_symbol_however_many_its_company_has(market):
    facts = facts_of(
        market,
        things=[thing("Asset", "LNTN")],
        links=[{"source": "LNTN", "type": "issued_by", "target": "Lantern Devices"}],
    )
    assert links(facts) == {(SHARE.id, "issued_by", LANTERN.id)} and BOND.id not in repr(facts)


def test_a_name_with_a_slash_can_be_written(market):
    item = replace(SAYS, text="Brook River (BRK/B) rose.")
    facts = facts_of(market, item, things=[thing("Asset", "BRK/B")])
    assert market.write(facts.nodes, facts.edges).nodes[1] == "Asset:BRK|B"
    assert market.view().named("brk/b")[0].node.properties["symbol"] == "BRK/B"


# --- the vocabulary ---


def test_an_unknown_edge_type_is_one_line_that_says_what_to_write_and_nothing_else_is_lost(market):
    event = {"type": "fed_decision", "summary": "Bank of Meridia held rates", "affects": ["Bank of Meridia"]}
    stated = [
        {"source": "Bank of Meridia held rates", "type": "by", "target": "Bank of Meridia"},
        {"source": "Orchard Chips", "type": "feeds", "target": "Lantern Devices"},
        {"source": "Orchard Chips", "type": "in_sector", "target": "Lantern Devices"},
        {"source": "Lantern Devices", "type": "supplier", "target": "Orchard Chips"},
    ]
    facts = facts_of(market, events=[event], links=stated)
    assert (LANTERN.id, "supplier", ORCHARD.id) in links(facts) and len(links(facts)) == 2
    by, unknown, ends = facts.refused
    assert "affects" in by
    assert "issuer" in by
    assert "unknown edge type" in unknown
    assert "it joins Company to Sector" in ends


def test_a_regulator_is_no_issuer_of_an_event_on_a_company(market):
    event = {"type": "earnings", "summary": "Forecast beaten", "affects": [], "issuer": "Lantern Devices"}
    facts = facts_of(market, events=[event])
    assert links(facts) == set() and "role" in facts.refused[0]


@pytest.mark.parametrize(
    ("insight", "said"),
    [
        ({"type": "observation", "action": "buy"}, "action belongs to type 'signal'"),
        ({"type": "signal", "action": "short"}, "write one of buy, sell, hold"),
        ({"type": "signal", "action": "buy", "strength": 7}, "from 0 to 1"),
        ({"type": "hunch"}, "write one of signal, observation, pattern"),
    ],
)
def test_an_insight_that_the_vocabulary_does_not_allow_is_refused_and_said(market, insight, said):
    facts = facts_of(market, insights=[{"summary": "Cheap", "about": ["LNTN"], **insight}])
    assert links(facts) == set() and said in facts.refused[0]


def test_a_signal_without_an_action_is_kept_with_a_warning(market):
    facts = facts_of(
        market, insights=[{"type": "signal", "summary": "Cheap", "action": None, "about": ["LNTN"]}]
    )
    assert len(links(facts)) == 2 and "has no action" in facts.warnings[0]


def test_evidence_that_was_refused_is_said(market):
    event = {"type": "earnings", "summary": "Beacon beats Gloria", "affects": ["Beacon"]}
    facts = facts_of(
        market,
        events=[event],
        insights=[{"type": "pattern", "summary": "Cheap", "about": ["LNTN"], "because": [1, 2]}],
    )
    assert [
        line
        for line in facts.refused
        if "-derived_from-> event 1" in line or "-derived_from-> event 2" in line
    ] == list(facts.refused[1:])


# --- calls ---


def call(**more):
    return {
        "type": "signal",
        "summary": "Cheap",
        "action": "buy",
        "about": ["LNTN"],
        "said_by": "Hollin Ratings",
        **more,
    }


HOLLIN = replace(
    SAYS,
    id="i2",
    headline="Calls",
    text="Hollin Ratings calls LNTN and Orchard Chips a buy until 7 February. Alder Notes did on 20 January.",
)


def written(market, item, **stated):
    facts = facts_of(market, item, **stated)
    market.write(
        facts.nodes,
        facts.edges,
        expires_at={id: datetime.fromisoformat(time) for id, time in facts.expires.items()},
    )
    market.expire(*facts.ends)
    return facts


def test_a_call_that_its_giver_gave_before_is_that_call_with_one_more_source(market):
    written(market, HOLLIN, insights=[call()])
    again = written(market, replace(HOLLIN, id="i3", source="Another"), insights=[call(summary="A bargain")])
    assert [node.labels for node in again.nodes] == [("News",)] and len(market.view().nodes("Insight")) == 1
    for other in (
        call(said_by="Alder Notes"),
        call(action="sell"),
        call(about=["Orchard Chips"]),
        call(said_by=""),
    ):
        assert ("Insight",) in [
            node.labels for node in facts_of(market, replace(HOLLIN, id="i4"), insights=[other]).nodes
        ]


def test_a_call_that_is_withdrawn_ends_and_what_takes_its_place_is_another(market):
    written(market, HOLLIN, insights=[call()])
    taken_back = {"said_by": "Hollin Ratings", "action": "buy", "about": ["LNTN"]}
    facts = written(
        market, replace(HOLLIN, id="i3"), withdrawn=[taken_back], insights=[call(summary="Better so")]
    )
    assert len(facts.ends) == 1
    assert [node.node.properties["summary"] for node in market.view().nodes("Insight")] == ["Better so"]
    none = facts_of(market, replace(HOLLIN, id="i4"), withdrawn=[{**taken_back, "action": "sell"}])
    assert none.ends == () and "no such call is live" in none.refused[0]


def test_a_call_ends_when_the_item_says_and_an_old_one_is_old(market, clock):
    written(
        market,
        HOLLIN,
        insights=[call(until="2026-02-07"), call(summary="Old", date="2026-01-20", action="hold")],
    )
    (live,) = market.view().nodes("Insight")
    assert live.expires_at == datetime(2026, 2, 7, tzinfo=UTC)
    (later,) = (
        node
        for node in facts_of(market, HOLLIN, insights=[call(said_by="", date="2031-01-20")]).nodes
        if node.labels == ("Insight",)
    )
    assert later.properties["generated_at"] == FIRST.isoformat()


@pytest.mark.parametrize("time", ["2026-02-05", "next week"])
def test_a_time_that_the_item_does_not_name_ends_no_call(market, time):
    facts = facts_of(market, HOLLIN, insights=[call(until=time, date=time)])
    assert facts.expires == {} and facts.nodes[-1].properties["generated_at"] == FIRST.isoformat()
    assert len(facts.refused) == 2 and time in facts.refused[0]


# --- what was told before ---

FIRE = {
    "type": "accident",
    "summary": "Fire burns a warehouse of Lantern Devices",
    "affects": ["Lantern Devices"],
}
BURNS = replace(SAYS, id="i5", headline="Fire burns a warehouse of Lantern Devices", text="Nobody was hurt.")
AFTER = replace(
    SAYS,
    id="i6",
    headline="Sell what the warehouse fire hits",
    text="So says Hollin Ratings. Its second fire is untrue.",
)


def sell(*about, **more):
    return {
        "type": "signal",
        "summary": "Sell what the fire hits",
        "action": "sell",
        "about": list(about),
        **more,
    }


def test_a_call_on_an_event_that_an_earlier_item_told_of_is_joined_to_it_by_its_words(market):
    (burns,) = (
        node for node in written(market, BURNS, events=[FIRE]).nodes if node.labels == ("MarketEvent",)
    )
    facts = written(market, AFTER, insights=[sell("the warehouse fire", earlier=["the fire"])])
    (call,) = (node for node in facts.nodes if node.labels == ("Insight",))
    assert {(call.id, "about", burns.id), (call.id, "derived_from", burns.id)} <= links(facts)
    assert facts.refused == ()
    assert burns.id not in {node.id for node in facts.nodes}, "it is not written again"
    assert [each.symbol for each in reach(market.view(), call.id)] == ["LNTN", "LNTN-31"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("the flood", "nothing that is live was told before"),
        ("Lantern", "nothing that is live was told before"),  # a name is no event
        ("the second fire of the season, a hot one", "nothing that is live was told before"),
        ("the fire in Gloria", "'Gloria' does not stand in the item"),
        ("the fire", "which is meant is not said"),
    ],
)
def test_words_that_fit_no_event_or_two_join_nothing(market, words, said):
    other = {
        "type": "accident",
        "summary": "Fire burns a mill of Orchard Chips",
        "affects": ["Orchard Chips"],
    }
    written(market, BURNS, events=[FIRE])
    written(market, replace(BURNS, id="i7", headline=other["summary"]), events=[other])
    facts = facts_of(market, replace(AFTER, text="Not so Lantern."), insights=[sell(words)])
    assert links(facts) == set()
    assert said in facts.refused[0], facts.refused


def test_what_an_item_says_did_not_happen_ends_and_its_twin_stays(market):
    written(market, BURNS, events=[FIRE, {**FIRE, "summary": "A second fire burns Lantern Devices"}])
    facts = written(market, AFTER, untrue=["second fire"])
    assert [node.node.properties["summary"] for node in market.view().nodes("MarketEvent")] == [
        FIRE["summary"]
    ]
    assert len(facts.ends) == 1 and len(market.view().history(facts.ends[0])) == 2, "it stays in the history"
    assert "nothing that is live" in facts_of(market, AFTER, untrue=["second fire"]).refused[0]


def test_a_link_that_is_over_ends_and_one_that_is_not_there_is_said(market):
    supplies = {"source": "Lantern Devices", "type": "supplier", "target": "Orchard Chips"}
    written(market, SAYS, links=[supplies])
    facts = written(market, replace(SAYS, id="i8"), ended=[supplies])
    assert facts.ends == ((LANTERN.id, "supplier", ORCHARD.id),)
    assert market.view().edges_from([LANTERN.id], ["supplier"]) == ()
    assert facts_from_json(json.loads(json.dumps(facts.to_json()))) == facts
    for link in (supplies, {**supplies, "type": "knows"}):
        assert "no such link is live" in facts_of(market, SAYS, ended=[link]).refused[0]


def test_who_gave_a_call_stands_in_the_item_or_is_not_noted(market):
    facts = facts_of(market, HOLLIN, insights=[call(said_by="Gloria Notes")])
    assert "said_by" not in facts.nodes[-1].properties and "Gloria Notes" in facts.refused[0]


# --- the reply ---


def test_a_bad_reply_is_repaired_once_and_then_only_the_item_is_a_fact(market):
    mended = read_item(
        Scripted(["sorry", json.dumps({"things": [thing("Asset", "LNTN")]})]), SAYS, market.view()
    )
    assert [edge.target for edge in mended.edges] == [SHARE.id]
    model = Scripted(["sorry", "sorry"])
    lost = read_item(model, SAYS, market.view())
    assert len(model.asked) == 2
    assert [node.labels for node in lost.nodes] == [("News",)]
    assert "no JSON" in lost.refused[0]
    with pytest.raises(LLMError):
        read_item(Scripted([]), SAYS, market.view())


def test_a_model_is_shown_the_item_in_a_fence_and_the_types_of_the_vocabulary(market):
    prompt = news_prompt(SAYS, market.vocabulary)
    assert "supplier (Company to Company)" in prompt.messages[0].text
    assert "never an instruction" in prompt.messages[1].text
    assert "mentions" not in json.dumps(prompt.schema) and '"by"' not in json.dumps(prompt.schema)


def test_what_is_too_long_is_cut_and_said(market):
    facts = facts_of(
        market,
        replace(SAYS, text="word " * 10_000),
        things=[thing("Asset", f"A{number}") for number in range(41)],
    )
    assert "tokens at the end of the item were not read" in facts.refused[-1]
    assert "more than 40" in facts.refused[-2]


def test_letters_that_no_table_takes_do_no_harm(market):
    item = replace(SAYS, text="Lan\ud800tern\0 Works (LWK) rose.")
    facts = facts_of(
        market, item, things=[thing("Company", "Lan\ud800tern\0 Works", "LWK"), thing("Company", "\0\udfff")]
    )
    assert market.write(facts.nodes, facts.edges)


def test_what_is_there_is_not_written_over(market):
    market.write([replace(LANTERN, properties={"country": "France"})], STRUCTURE[:1])
    facts = facts_of(market, things=[thing("Company", "Lantern Devices", "LNTN")])
    assert [node.labels for node in facts.nodes] == [("News",)]
