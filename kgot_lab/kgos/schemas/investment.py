"""The investment vocabulary: eight node types and eight edge types, and three more edge types that a graph
may add.

What its document leaves open is decided here. An event is not `by` an institution, it `affects` it with the
role issuer, since there are eight edge types; a regulator `affects` what it regulates with the role
regulates; an asset may belong to an asset class itself.
"""

from __future__ import annotations

from kgot_lab.graph.validation import ANY_TYPE, EdgeType, Ends, NodeType, PropertyRule, Vocabulary

_NAME = PropertyRule("name", required=True)
_SENTIMENT = PropertyRule("sentiment", values=("positive", "negative", "neutral"))

_NODE_TYPES = (
    NodeType(
        "Asset", "a financial instrument", (PropertyRule("symbol", required=True), PropertyRule("type"))
    ),
    NodeType(
        "Company",
        "a legal entity that issues securities",
        (_NAME, PropertyRule("ticker"), PropertyRule("country")),
    ),
    NodeType("Sector", "a group of industry", (_NAME, PropertyRule("trend"))),
    NodeType("AssetClass", "a category of the highest level", (_NAME, PropertyRule("risk_sentiment"))),
    NodeType(
        "Institution",
        "a central bank, a regulator, an international body",
        (_NAME, PropertyRule("type"), PropertyRule("country")),
    ),
    NodeType(
        "MarketEvent",
        "something significant that happened",
        (
            PropertyRule("type", required=True),
            PropertyRule("summary", required=True),
            PropertyRule("date", "time"),
        ),
    ),
    NodeType(
        "News",
        "an item of information",
        (
            PropertyRule("headline", required=True),
            PropertyRule("source"),
            _SENTIMENT,
            PropertyRule("published_at", "time"),
        ),
    ),
    NodeType(
        "Insight",
        "an analysis that was derived",
        (
            PropertyRule("type", required=True, values=("signal", "observation", "pattern")),
            PropertyRule("summary", required=True),
            PropertyRule("action", values=("buy", "sell", "hold"), goes_with=("type", "signal")),
            PropertyRule("strength", "number", bounds=(0, 1)),
            PropertyRule("generated_at", "time"),
        ),
    ),
)

_STANDING = ("Asset", "Company", "Sector", "AssetClass")  # what an event or an institution may bear upon
_NO_ROLE: dict[str, tuple[str, ...]] = {"role": ()}
_DIRECTION = PropertyRule("direction", values=("positive", "negative"))
_EDGE_TYPES = (
    EdgeType("issued_by", "an asset is issued by a company", (Ends("Asset", "Company"),), single=True),
    EdgeType("in_sector", "a company works in a sector", (Ends("Company", "Sector"),)),
    EdgeType(
        "belongs_to",
        "membership in an asset class",
        (Ends("Sector", "AssetClass"), Ends("Asset", "AssetClass")),
    ),
    EdgeType(
        "affects",
        "an event or an institution bears upon something",
        (
            *(Ends("MarketEvent", each, _NO_ROLE) for each in _STANDING),
            Ends("MarketEvent", "Institution", {"role": ("issuer",)}),
            *(Ends("Institution", each, {"role": ("regulates",)}) for each in _STANDING),
        ),
        (PropertyRule("role", values=("issuer", "regulates")), _DIRECTION),
    ),
    EdgeType("mentions", "news names something", (Ends("News", ANY_TYPE),)),
    EdgeType("about", "an insight concerns something", (Ends("Insight", ANY_TYPE),)),
    EdgeType(
        "derived_from",
        "an insight has its source in",
        (Ends("Insight", "MarketEvent"), Ends("Insight", "News")),
    ),
    EdgeType(
        "correlated",
        "two assets move together",
        (Ends("Asset", "Asset"),),
        (PropertyRule("coefficient", "number", bounds=(-1, 1)),),
        symmetric=True,
    ),
)

INVESTMENT = Vocabulary(
    "the investment vocabulary",
    _NODE_TYPES,
    _EDGE_TYPES,
    {
        "by": "write MarketEvent -affects-> Institution with the property role 'issuer'",
        "regulates": "write Institution -affects-> with the property role 'regulates'",
    },
)

BETWEEN_COMPANIES = (
    EdgeType("supplier", "a company has another as its supplier", (Ends("Company", "Company"),)),
    EdgeType("competes_with", "two companies compete", (Ends("Company", "Company"),), symmetric=True),
    EdgeType("owns", "a company owns another, or a part of it", (Ends("Company", "Company"),)),
)
INVESTMENT_WITH_COMPANIES = INVESTMENT.extended(*BETWEEN_COMPANIES)
