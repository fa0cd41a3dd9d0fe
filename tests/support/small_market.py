"""A small invented market: two companies, a bond, a central bank and what it decided; and the edges between
them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kgot_lab.domains.investment.graph import InvestmentGraph
from kgot_lab.domains.investment.view import investment_node
from kgot_lab.types import Edge, Json, Node

NOW = datetime(2026, 2, 6, tzinfo=UTC)


class SetClock:
    """A clock that stands still until a test sets it."""

    def __init__(self, time: datetime = NOW) -> None:
        self.time = time

    def __call__(self) -> datetime:
        return self.time


LANTERN = investment_node("Company", name="Lantern Devices", ticker="LNTN", country="USA")
ORCHARD = investment_node("Company", name="Orchard Chips", ticker="ORCH")
SHARE = investment_node("Asset", symbol="LNTN", type="stock")
BOND = investment_node("Asset", symbol="LNTN-31", type="bond")
CHIPS = investment_node("Asset", symbol="ORCH", type="stock")
FUND = investment_node("Asset", symbol="BNDX", type="fund")
COIN = investment_node("Asset", symbol="QCN", type="coin")
TECHNOLOGY = investment_node("Sector", name="Technology")
EQUITIES = investment_node("AssetClass", name="Equities")
FIXED = investment_node("AssetClass", name="Fixed Income")
CRYPTO = investment_node("AssetClass", name="Crypto")
BANK = investment_node("Institution", name="Bank of Meridia", type="central_bank")
STANDING = (LANTERN, ORCHARD, SHARE, BOND, CHIPS, FUND, COIN, TECHNOLOGY, EQUITIES, FIXED, CRYPTO, BANK)
STRUCTURE = (
    Edge(SHARE.id, "issued_by", LANTERN.id),
    Edge(BOND.id, "issued_by", LANTERN.id),
    Edge(CHIPS.id, "issued_by", ORCHARD.id),
    Edge(LANTERN.id, "in_sector", TECHNOLOGY.id),
    Edge(ORCHARD.id, "in_sector", TECHNOLOGY.id),
    Edge(TECHNOLOGY.id, "belongs_to", EQUITIES.id),
    Edge(BOND.id, "belongs_to", FIXED.id),
    Edge(FUND.id, "belongs_to", FIXED.id),
    Edge(COIN.id, "belongs_to", CRYPTO.id),
)


def event(
    summary: str, *affected: Node, type: str = "earnings", date: str = "2026-02-05", **role: Json
) -> tuple[Node, list[Edge]]:
    """Something that happened, and its edges to what it affects."""
    node = investment_node("MarketEvent", type=type, summary=summary, date=date)
    return node, [Edge(node.id, "affects", each.id, role) for each in affected]


def signal(
    summary: str, *about: Node, owner: str = "", action: str | None = "buy", **more: Json
) -> tuple[Node, list[Edge]]:
    """A signal, and its edges to what it is about."""
    node = investment_node("Insight", owner=owner, type="signal", summary=summary, action=action, **more)
    return node, [Edge(node.id, "about", each.id) for each in about]


def with_market(graph: InvestmentGraph) -> InvestmentGraph:
    """A graph with what stands in the market."""
    graph.write(STANDING, STRUCTURE)
    return graph
