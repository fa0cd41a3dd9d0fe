"""The multi-level example of the investment document, as an item of news that names what the example names,
and its edges.
"""

from __future__ import annotations

from datetime import UTC, datetime

from kgot_lab.domains.investment.monitor.news import NewsItem

MULTI_LEVEL = NewsItem(
    "example-1",
    "Tech rallies on Apple earnings, Fed hold",
    datetime(2026, 2, 5, 14, tzinfo=UTC),
    "Apple Inc. (AAPL) beat estimates for the quarter. The Federal Reserve held rates. Technology shares rallied, and so did equities.",
    "Example Wire",
)
_COMPANY, _BANK, _SECTOR = "Company:apple inc.", "Institution:federal reserve", "Sector:technology"
MULTI_LEVEL_EDGES = (  # as the document lists them; what happened and what follows by type, since its words are the reader's
    ("Asset:AAPL", "issued_by", _COMPANY),
    (_COMPANY, "in_sector", _SECTOR),
    ("MarketEvent", "affects", _COMPANY),
    ("MarketEvent", "affects", _BANK),
    (_BANK, "affects", "AssetClass:equities"),
    ("News", "mentions", _COMPANY),
    ("News", "mentions", _BANK),
    ("News", "mentions", _SECTOR),
    ("Insight:buy", "about", "Asset:AAPL"),
    ("Insight:buy", "derived_from", "MarketEvent"),
    ("Insight:buy", "derived_from", "MarketEvent"),
)
