"""What the investment vocabulary says of nodes and edges, and that it says what to do."""

from __future__ import annotations

import pytest
from support.every import every
from support.small_market import BANK, EQUITIES, LANTERN, SHARE, STANDING, STRUCTURE, event

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.kgos.schemas.check import find_faults, refuse_errors
from kgot_lab.kgos.schemas.vocabularies import BETWEEN_COMPANIES, INVESTMENT, INVESTMENT_WITH_COMPANIES
from kgot_lab.types import Edge, Node

HAPPENED, TIES = event("The rate stays", LANTERN)


def said(*things: Node | Edge) -> list[str]:
    nodes = [*STANDING, HAPPENED, *(each for each in things if isinstance(each, Node))]
    return list(map(str, find_faults(INVESTMENT, nodes, [each for each in things if isinstance(each, Edge)])))


def insight(**properties: object) -> Node:
    return Node("i", ("Insight",), {"summary": "It rises", **properties})


def test_the_vocabulary_has_eight_types_of_nodes_and_eight_of_edges():
    assert len(INVESTMENT.node_types) == len(INVESTMENT.edge_types) == 8
    assert len(INVESTMENT_WITH_COMPANIES.edge_types) == 8 + len(BETWEEN_COMPANIES)
    assert INVESTMENT.edge_type("correlated").symmetric
    with pytest.raises(UnknownName, match="Known: Asset, AssetClass"):
        INVESTMENT.node_type("Stock")


@every(
    "thing",
    [
        *(*STRUCTURE, *TIES),
        Edge(HAPPENED.id, "affects", BANK.id, {"role": "issuer"}),
        Edge(BANK.id, "affects", LANTERN.id, {"role": "regulates"}),
        Edge(BANK.id, "affects", EQUITIES.id),
        insight(type="signal", action="buy"),
        insight(type="pattern", action=None),
        insight(type="pattern"),
    ],
)
def test_what_is_as_it_should_be_has_no_fault(thing):
    assert said(thing) == []


@every(
    "thing, message",
    [
        (Edge(HAPPENED.id, "by", BANK.id), "-affects-> Institution with the property role 'issuer'"),
        (Edge(BANK.id, "regulates", LANTERN.id), "-affects-> with the property role 'regulates'"),
        (
            Edge(HAPPENED.id, "affects", LANTERN.id, {"role": "issuer"}),
            "role is 'issuer' between MarketEvent and Company; leave it out",
        ),
        (Edge(BANK.id, "affects", LANTERN.id, {"role": "issuer"}), "write 'regulates'"),
        (Edge(SHARE.id, "sold_by", LANTERN.id), "unknown edge type of the investment vocabulary 'sold_by'"),
        (
            Edge(LANTERN.id, "issued_by", SHARE.id),
            "issued_by does not join Company to Asset; it joins Asset to Company",
        ),
        (Edge(SHARE.id, "issued_by", "nobody"), "there is no node 'nobody'; write the node first"),
        (Edge(SHARE.id, "correlated", SHARE.id), "joins a node with itself"),
        (Edge(SHARE.id, "correlated", "Asset:BNDX"), "write 'Asset:BNDX' -correlated-> 'Asset:LNTN'"),
        (Edge(LANTERN.id, "supplier", LANTERN.id), "unknown edge type"),
        (
            insight(type="observation", action="sell"),
            "action belongs to type 'signal', and this is type 'observation'",
        ),
        (insight(type="signal", action="short"), "write one of buy, sell, hold"),
        (insight(type="observation", strength=1.5), "write a number from 0 to 1"),
        (insight(type="observation", strength="much"), "write a number"),
        (insight(type="observation", strength=True), "write a number"),
        (insight(type="observation", generated_at="soon"), "write a date such as"),
        (insight(type="observation", generated_at="2026-02-05T10:00"), "a time with its zone"),
        (insight(type="observation", summary=3), "write a text"),
        (insight(type="observation", summary=""), "it has no summary"),
    ],
)
def test_what_does_not_fit_is_told_with_what_to_write(thing, message):
    (fault,) = said(thing)
    assert fault.startswith("error at ") and message in fault


def test_an_error_stops_and_names_all_errors_and_a_warning_does_not():
    signal = insight(type="signal")
    found = find_faults(INVESTMENT, [signal, Node("a", ("Asset",)), Node("b", ("Stock",)), Node("c")])
    with pytest.raises(BadInput, match="it has no symbol; give it symbol") as told:
        refuse_errors(found)
    assert str(told.value).count("error at node") == 3
    assert [error.level for error in refuse_errors(found[:1])] == ["warning"]
    assert said(insight(type="signal", action=None)) == said(signal) and said(signal)[0].startswith("warning")
