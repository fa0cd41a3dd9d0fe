"""What the investment vocabulary says of nodes and edges, and that it says what to do."""

from __future__ import annotations

import pytest
from support.every import every
from support.small_market import BANK, EQUITIES, LANTERN, SHARE, STANDING, STRUCTURE, event

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.check import faults, faults_of_graph, refuse_faulty
from kgot_lab.kgos.schemas.vocabularies import BETWEEN_COMPANIES, INVESTMENT, INVESTMENT_WITH_COMPANIES
from kgot_lab.types import Edge, Node


def said(*things: Node | Edge) -> list[str]:
    nodes = [*STANDING, *(each for each in things if isinstance(each, Node))]
    return list(map(str, faults(INVESTMENT, nodes, [each for each in things if isinstance(each, Edge)])))


def insight(**properties: object) -> Node:
    return Node("i", ("Insight",), {"summary": "It rises", **properties})


def test_the_vocabulary_has_eight_types_of_nodes_and_eight_of_edges():
    assert len(INVESTMENT.node_types) == len(INVESTMENT.edge_types) == 8
    assert len(INVESTMENT_WITH_COMPANIES.edge_types) == 8 + len(BETWEEN_COMPANIES)


def test_a_graph_as_it_should_be_has_no_fault():
    happened, edges = event("Lantern beats its forecast", LANTERN)
    assert faults_of_graph(INVESTMENT, PropertyGraph.of([*STANDING, happened], [*STRUCTURE, *edges])) == ()


def test_by_and_regulates_are_refused_with_what_to_write():
    happened, _ = event("The rate stays")
    (by,) = said(happened, Edge(happened.id, "by", BANK.id))
    assert (
        by.startswith("error at edge")
        and "write MarketEvent -affects-> Institution with the property role 'issuer'" in by
    )
    (regulates,) = said(Edge(BANK.id, "regulates", LANTERN.id))
    assert "-affects-> with the property role 'regulates'" in regulates


def test_roles_belong_to_some_ends_only():
    happened, _ = event("The rate stays")
    assert said(happened, Edge(happened.id, "affects", BANK.id, {"role": "issuer"})) == []
    assert (
        said(
            Edge(BANK.id, "affects", LANTERN.id, {"role": "regulates"}), Edge(BANK.id, "affects", EQUITIES.id)
        )
        == []
    )
    (wrong,) = said(happened, Edge(happened.id, "affects", LANTERN.id, {"role": "issuer"}))
    assert "role is 'issuer' between MarketEvent and Company; leave it out" in wrong
    (other,) = said(Edge(BANK.id, "affects", LANTERN.id, {"role": "issuer"}))
    assert "write 'regulates'" in other


@every(
    ("edge", "message"),
    [
        (
            Edge(SHARE.id, "sold_by", LANTERN.id),
            "unknown edge type of the investment vocabulary 'sold_by'.* Known: about, affects",
        ),
        (
            Edge(LANTERN.id, "issued_by", SHARE.id),
            "issued_by does not join Company to Asset; it joins Asset to Company",
        ),
        (Edge(SHARE.id, "issued_by", "nobody"), "there is no node 'nobody'; write the node first"),
        (Edge(SHARE.id, "correlated", SHARE.id), "joins a node with itself"),
        (
            Edge(SHARE.id, "correlated", "Asset:BNDX"),
            "in the order of ids; write 'Asset:BNDX' -correlated-> 'Asset:LNTN'",
        ),
        (Edge(LANTERN.id, "supplier", LANTERN.id), "unknown edge type"),
    ],
)
def test_an_edge_that_does_not_fit_is_told(edge, message):
    with pytest.raises(BadInput, match=message):
        refuse_faulty(faults(INVESTMENT, STANDING, [edge]))


def test_an_action_belongs_to_signals():
    assert said(insight(type="signal", action="buy")) == []
    assert said(insight(type="pattern", action=None)) == said(insight(type="pattern")) == []
    (error,) = said(insight(type="observation", action="sell"))
    assert (
        error.startswith("error")
        and "action belongs to type 'signal', and this is type 'observation'" in error
    )
    (warning,) = said(insight(type="signal", action=None))
    assert warning.startswith("warning") and said(insight(type="signal")) == [warning]
    (unknown,) = said(insight(type="signal", action="short"))
    assert "write one of buy, sell, hold" in unknown


def test_an_error_stops_and_names_all_errors_and_a_warning_does_not():
    found = faults(
        INVESTMENT, [insight(type="signal"), Node("a", ("Asset",)), Node("b", ("Stock",)), Node("c")]
    )
    with pytest.raises(BadInput) as told:
        refuse_faulty(found)
    assert str(told.value).count("error at node") == 3 and "it has no symbol; give it symbol" in str(
        told.value
    )
    assert [each.level for each in refuse_faulty(found[:1])] == ["warning"]


@every(
    ("given", "message"),
    [
        ({"strength": 1.5}, "write a number from 0 to 1"),
        ({"strength": "much"}, "write a number"),
        ({"strength": True}, "write a number"),
        ({"generated_at": "soon"}, "write a date such as"),
        ({"generated_at": "2026-02-05T10:00"}, "a time with its zone"),
        ({"summary": 3}, "write a text"),
        ({"summary": ""}, "it has no summary"),
    ],
)
def test_a_property_of_another_kind_is_told(given, message):
    assert any(message in each for each in said(insight(**{"type": "observation", **given})))


def test_a_type_is_found_by_name_and_otherwise_all_are_named():
    assert INVESTMENT.edge_type("correlated").symmetric
    with pytest.raises(UnknownName, match="Known: Asset, AssetClass"):
        INVESTMENT.node_type("Stock")
