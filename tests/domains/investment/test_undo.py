"""What was written to an investment graph or expired is taken back, and the views of before stay."""

from __future__ import annotations

import sqlite3
from datetime import timedelta

import pytest
from support.small_market import LANTERN, NOW, ORCHARD, SHARE, event, signal, with_market

from kgot_lab.domains.investment.graph import open_investment_graph
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.errors import BadInput
from kgot_lab.types import Edge

DAY = timedelta(days=1)


def state(graph, owner=""):
    view = graph.view(owner)
    nodes = {each.node: (each.created, each.expires) for each in view.nodes()}
    return nodes, {each.edge: (each.created, each.expires) for each in view.edges()}


def test_a_write_is_taken_back_and_brought_back_and_views_of_before_stay(graph, clock):
    before = state(with_market(graph))
    happened, edges = event("Lantern beats its forecast", LANTERN)
    changed = investment_node("Company", name="Lantern Devices", country=None, size="large")
    clock.time += DAY
    written = graph.write([happened, changed], edges, by="news 7")
    after, time = state(graph), clock.time
    clock.time += DAY
    undone = graph.undo(written.change, by="Grace")
    assert state(graph) == before
    clock.time += DAY
    graph.undo(undone.change)
    assert state(graph) == after
    assert graph.view(at=time).node(LANTERN.id).node.properties["size"] == "large"
    assert "size" not in graph.view(at=time + DAY).node(LANTERN.id).node.properties
    log = [(each.action, each.by, each.undoes) for each in graph.log()[1:]]
    assert log == [("write", "news 7", None), ("undo", "Grace", 2), ("undo", "", 3)]


def test_what_was_expired_and_what_is_an_owners_is_taken_back(graph):
    said, about = signal("Sell all of it", SHARE, owner="a1", action="sell")
    with_market(graph).write([said], about, owner="a1")
    before = state(graph, "a1")
    ended = graph.expire(said.id, owner="a1")
    assert state(graph, "a1") != before
    graph.undo(ended.change)
    assert state(graph, "a1") == before
    graph.undo(ended.change - 1)
    assert state(graph, "a1") == state(graph)


def test_what_is_an_owners_is_erased_with_its_history_and_nothing_else_is(graph):
    shared = state(with_market(graph))
    written = {}
    for owner in ("a1", "a11"):
        said, about = signal("Sell all of it", SHARE, owner=owner, action="sell")
        written[owner] = said, graph.write([said], about, owner=owner).change
    other = state(graph, "a11")
    said, change = written["a1"]
    erased = graph.erase_owner("a1", by="Grace")
    assert (state(graph, "a1"), state(graph, "a11"), state(graph)) == (shared, other, shared)
    assert graph.view("a1").history(said.id) == graph.view("a1").edge_history(said.id) == ()
    assert [each.erased for each in graph.log()] == [0, 2, 0, 0] and graph.erase_owner("a1") is None
    with pytest.raises(BadInput, match="erased something, which nothing brings back"):
        graph.undo(erased)
    assert graph.undo(change).erased == 2 and state(graph) == shared
    with pytest.raises(BadInput, match="what all share is of no owner"):
        graph.erase_owner("")


def test_an_undo_names_the_later_changes_that_must_be_undone_first(graph):
    happened, edges = event("Lantern beats its forecast", LANTERN)
    added = with_market(graph).write([happened], edges)
    tied = graph.write(edges=[Edge(happened.id, "affects", ORCHARD.id)])
    with pytest.raises(BadInput, match=rf"on which change {tied.change} builds: undo that first"):
        graph.undo(added.change)
    undone = graph.undo(tied.change)
    graph.undo(added.change)
    with pytest.raises(BadInput, match="there is no node 'MarketEvent:"):
        graph.undo(undone.change)
    one, two = (
        graph.write([investment_node("Company", name=name, size=size) for name in names])
        for size, names in ((1, ("Lantern Devices", "Orchard Chips")), (2, ("Lantern Devices",)))
    )
    with pytest.raises(BadInput, match=f"was changed again since, by {two.change}: undo that first"):
        graph.undo(one.change)
    for change in (two.change, one.change):
        graph.undo(change)
    assert "size" not in graph.view().node(LANTERN.id).node.properties


def test_what_cannot_be_undone_is_one_error(graph):
    with_market(graph)
    first = graph.write([investment_node("Company", name="Lantern Devices", size=1)])
    assert graph.write([investment_node("Company", name="Lantern Devices", size=1)]).change is None
    undone = graph.undo(first.change)
    with pytest.raises(BadInput, match=f"was undone, last by change {undone.change}"):
        graph.undo(first.change)
    with pytest.raises(BadInput, match="there is no change 99: the log"):
        graph.undo(99)


def test_changes_are_undone_in_a_file_of_the_version_before_after_it_was_opened_again(tmp_path, clock):
    path = tmp_path / "graph.db"
    with open_investment_graph(path, now=clock) as graph:
        before = state(with_market(graph))
    with sqlite3.connect(path) as file:  # as version 1 left it
        file.execute("DROP TABLE versions")
        file.execute("DROP TABLE changes")
        file.execute(
            "CREATE TABLE changes (id BIGINT PRIMARY KEY, at BIGINT NOT NULL, clock BIGINT NOT NULL)"
        )
        time = int(NOW.timestamp() * 1_000_000)
        file.execute("INSERT INTO changes VALUES (1, ?, ?)", (time, time))
        file.execute("DELETE FROM checksums WHERE name LIKE 'definition%' OR name IN ('changes', 'versions')")
        file.execute("PRAGMA user_version = 1")
    file.close()
    with open_investment_graph(path, now=clock) as graph:
        assert state(graph) == before and [each.action for each in graph.log()] == ["write"]
        ended = graph.expire(LANTERN.id)
        changed = graph.write([investment_node("Company", name="Orchard Chips", size=1)])
    with open_investment_graph(path, now=clock) as graph:
        for update in (ended, changed):
            graph.undo(update.change)
        assert state(graph) == before
