"""The investment graph in each engine: what is written, what expires, whose it is, what a name stands for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.small_market import (
    BANK,
    COIN,
    CRYPTO,
    EQUITIES,
    FIXED,
    LANTERN,
    NOW,
    ORCHARD,
    SHARE,
    STANDING,
    STRUCTURE,
    event,
    signal,
    with_market,
)

from kgot_lab.domains.investment import statements
from kgot_lab.domains.investment.graph import InvestmentGraph
from kgot_lab.domains.investment.versions import Lifetime
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.errors import BadInput
from kgot_lab.types import Edge, Node

DAY = timedelta(days=1)


def ids(graph: InvestmentGraph, type: str, **when: object) -> list[str]:
    return [node.node.id for node in graph.view(**when).nodes(type)]


def test_to_write_again_changes_nothing_and_new_properties_go_over_the_old(graph, clock):
    happened, edges = event("Lantern beats its forecast", LANTERN)
    assert with_market(graph).write([happened], edges)
    clock.time += DAY
    again = graph.write([*STANDING, happened], [*STRUCTURE, *edges])
    assert not again and again.unchanged == len(STANDING) + len(STRUCTURE) + 2
    changed = investment_node("Company", name="Lantern Devices", country=None, size="large")
    assert graph.write([changed]).nodes == (LANTERN.id,)
    node = graph.view().node(LANTERN.id)
    assert node.node.properties == {"name": "Lantern Devices", "ticker": "LNTN", "size": "large"}
    assert node.created_at == NOW and len(graph.view().history(LANTERN.id)) == 2
    assert graph.view(at=NOW).node(LANTERN.id).node == LANTERN


def test_a_write_with_an_error_in_it_writes_nothing(graph):
    with pytest.raises(BadInput, match="unknown edge type"):
        graph.write(STANDING, [*STRUCTURE, Edge(SHARE.id, "sold_by", LANTERN.id)])
    with pytest.raises(BadInput, match="not JSON"):
        graph.write([*STANDING, investment_node("Sector", name="Odd", odd={1, 2})])
    assert graph.view().nodes() == ()


def test_lifetimes_are_by_type_by_source_and_by_the_class_an_asset_has_itself(graph):
    happened, edges = event("A bank fails", SHARE, COIN, BANK, date="2026-02-06")
    said, about = signal("Coins rise", COIN, generated_at="2026-02-06")
    with_market(graph).write([happened, said], [*edges, *about, Edge(BANK.id, "affects", EQUITIES.id)])
    lasts = {
        (edge.edge.source, edge.edge.target): edge.expires_at and edge.expires_at - NOW
        for edge in graph.view().edges()
    }
    assert lasts[happened.id, SHARE.id] == lasts[happened.id, BANK.id] == 30 * DAY
    assert lasts[happened.id, COIN.id] == 7 * DAY and lasts[said.id, COIN.id] == 3 * DAY
    assert lasts[BANK.id, EQUITIES.id] is None and lasts[COIN.id, CRYPTO.id] is None
    assert graph.view().node(said.id).expires_at == NOW + 14 * DAY


def test_old_news_is_old_when_it_comes_and_a_date_in_the_future_makes_nothing_fresher(graph):
    old, to_lantern = event("Long ago", LANTERN, date="2025-12-01")
    ahead, _ = event("Not yet", date="2027-01-01")
    with_market(graph).write([old, ahead], to_lantern)
    assert ids(graph, "MarketEvent") == [ahead.id]
    assert graph.view().node(ahead.id).expires_at == NOW + 30 * DAY
    assert graph.view().history(old.id)


def test_a_lifetime_that_is_none_is_refused():
    with pytest.raises(BadInput, match="a number of days"):
        Lifetime("News", 0)


def test_what_is_correlated_is_stored_once_and_read_both_ways(graph):
    with_market(graph)
    forth = Edge(SHARE.id, "correlated", COIN.id)
    back = Edge(COIN.id, "correlated", SHARE.id, {"coefficient": 0.5})
    graph.write(edges=[forth])
    graph.write(edges=[back])
    (edge,) = [edge.edge for edge in graph.view().edges() if edge.edge.type == "correlated"]
    assert (edge.source, edge.target, edge.properties) == (SHARE.id, COIN.id, {"coefficient": 0.5})
    assert graph.view().edges_to([COIN.id], ["correlated"])
    assert graph.view().edges_from([SHARE.id], ["correlated"])


def test_what_is_one_owners_is_not_anothers(graph):
    said, about = signal("Sell all of it", SHARE, owner="a1", action="sell")
    with_market(graph).write([said], about, owner="a1")
    shared = len(STANDING)
    assert len(graph.view("a1").nodes()) == shared + 1 and len(graph.view("a1").edges()) == len(STRUCTURE) + 1
    for other in ("", "b2", "a"):
        view = graph.view(other)
        assert len(view.nodes()) == shared and len(view.edges()) == len(STRUCTURE)
        assert view.history(said.id) == ()
        assert view.edge_history(said.id) == ()
        assert view.nodes_by_id([said.id]) == ()
        with pytest.raises(BadInput, match="no live node"):
            view.node(said.id)
        assert view.named("Sell all of it") == ()
        with pytest.raises(BadInput, match="there is no node"):
            graph.expire(said.id, owner=other)
        with pytest.raises(BadInput, match="there is no node"):
            graph.write(edges=about, owner=other)
    assert [each.node.id for each in graph.view("a1").named("sell  ALL of it")] == [said.id]


def test_an_id_says_whose_a_node_is(graph):
    for node, owner in (
        (SHARE, "a1"),
        (signal("Mine", owner="a1")[0], ""),
        (signal("Mine", owner="a1")[0], "b2"),
    ):
        with pytest.raises(BadInput, match="its id does not say whose it is"):
            graph.write([node], owner=owner)
    with pytest.raises(BadInput, match="without /"):
        graph.view("a/1")


def test_every_question_to_the_graph_names_the_owner():
    reads = {
        name: each
        for name, each in vars(statements).items()
        if isinstance(each, str) and each.startswith("SELECT")
    }
    of_graph = {name: each for name, each in reads.items() if " nodes " in each or " edges " in each}
    assert len(of_graph) == 7 and [name for name, each in of_graph.items() if ":owner" not in each] == []


def test_a_name_stands_for_all_that_it_may_mean(graph):
    with_market(graph)
    view = graph.view()
    for text, node in ((" lntn ", SHARE), ("orch", ORCHARD), ("fixed income", FIXED)):
        assert node in [each.node for each in view.named(text)]
    assert view.named("technology")
    twin = investment_node("Company", name="Lantern Foods", ticker="LNTN")
    graph.write([twin])
    assert [each.node for each in graph.view().named("LNTN")] == [SHARE, LANTERN, twin]
    assert view.named("nowhere") == view.named("") == ()


def test_texts_that_no_database_takes_are_refused_or_not_found(graph):
    with_market(graph)
    for id in ("a\0b", "half \ud800", "x" * 500, " "):
        with pytest.raises(BadInput, match=r"without a NUL|half a surrogate pair|not be blank"):
            graph.write([Node(id, ("Sector",), {"name": "A sector"})])
        with pytest.raises(BadInput):
            graph.write(edges=[Edge(LANTERN.id, "in_sector", id)])
        with pytest.raises(BadInput):
            graph.expire(id)
    graph.write([investment_node("News", headline="x" * 100_000, note="a\0b")])
    assert graph.view().named("x" * 100_000)[0].node.properties["note"] == "a\0b"
    view = graph.view()
    for text in ("a\0b", "half \ud800", "x" * 100_000 + "y"):
        with pytest.raises(BadInput):
            view.node(text)
        assert view.named(text) == ()
    for read in (view.history, view.edge_history):
        assert read("x" * 100_000 + "y") == ()
        for text in ("a\0b", "half \ud800"):
            with pytest.raises(BadInput, match="half a surrogate pair"):
                read(text)


def test_what_is_there_keeps_its_type(graph):
    graph.write([SHARE])
    with pytest.raises(BadInput, match="it is there with the type Asset"):
        graph.write([Node(SHARE.id, ("Company",), {"name": "Lantern"})])
    assert graph.view().node(SHARE.id).node == SHARE


def test_an_expiry_of_what_is_not_written_is_an_error(graph):
    with pytest.raises(BadInput, match="which is not among what is written"):
        graph.write([SHARE], expires_at={LANTERN.id: None})
    assert graph.view().nodes() == ()


def test_what_breaks_in_the_middle_of_a_write_is_taken_back(graph):
    with_market(graph)
    before = graph.view().graph()
    happened, edges = event("Lantern beats its forecast", LANTERN)
    with pytest.raises(RuntimeError), graph.storage.changing():
        graph.write([happened], edges)
        graph.expire(SHARE.id)
        raise RuntimeError
    assert graph.view().graph() == before and len(graph.view().nodes()) == len(STANDING)
