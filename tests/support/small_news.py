"""Invented news of a small market, and a simulated reader of it: what a careful model would reply, written
beforehand.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kgot_lab.domains.investment.monitor.news import NewsItem
from kgot_lab.types import Json, Prompt

# the multi-level example of the investment document, as an item of news
MULTI_LEVEL = NewsItem(
    "example-1",
    "Tech rallies on Apple earnings, Fed hold",
    datetime(2026, 2, 5, 14, tzinfo=UTC),
    "Apple Inc. (AAPL) beat estimates for the quarter. The Federal Reserve held rates. Technology shares rallied, and so did equities.",
    "Example Wire",
)
FIRST = datetime(2026, 2, 5, 14, tzinfo=UTC)

MULTI_LEVEL_REPLY: dict[str, Json] = {
    "sentiment": "positive",
    "things": [
        {"type": "Company", "name": "Apple Inc.", "symbol": "AAPL"},
        {"type": "Asset", "name": "AAPL", "symbol": "AAPL"},
        {"type": "Sector", "name": "Technology"},
        {"type": "Institution", "name": "Federal Reserve"},
        {"type": "AssetClass", "name": "Equities"},
    ],
    "events": [
        {"type": "earnings", "summary": "Apple beats estimates", "affects": ["Apple Inc."]},
        {"type": "fed decision", "summary": "Fed holds rates", "affects": [], "issuer": "Federal Reserve"},
    ],
    "links": [
        {"source": "AAPL", "type": "issued_by", "target": "Apple Inc."},
        {"source": "Apple Inc.", "type": "in_sector", "target": "Technology"},
        {"source": "Technology", "type": "belongs_to", "target": "Equities"},
        {"source": "Federal Reserve", "type": "affects", "target": "Equities"},
    ],
    "insights": [
        {
            "type": "signal",
            "summary": "AAPL bullish on earnings beat and Fed hold",
            "action": "buy",
            "strength": 0.8,
            "about": ["AAPL"],
            "because": [1, 2],
        }
    ],
}


def item(number: int, company: str, symbol: str, says: str, *, after: timedelta = timedelta()) -> NewsItem:
    """An item on one company."""
    return NewsItem(
        f"n{number}", f"{company} {says}", FIRST + after, f"{company} ({symbol}) {says}.", "Example Wire"
    )


def reply_on(
    company: str, symbol: str, says: str, *, action: str = "", strength: float = 0.7
) -> dict[str, Json]:
    """What a careful reader notes of such an item: the company, its share, an event, and a signal where there
    is an action.
    """
    signal = {
        "type": "signal",
        "summary": f"{company} {says}",
        "action": action,
        "strength": strength,
        "about": [symbol],
        "because": [1],
    }
    return {
        "things": [
            {"type": "Company", "name": company, "symbol": symbol},
            {"type": "Asset", "name": symbol, "symbol": symbol},
        ],
        "events": [{"type": "news", "summary": f"{company} {says}", "affects": [company]}],
        "links": [{"source": symbol, "type": "issued_by", "target": company}],
        "insights": [signal] if action else [],
    }


LANTERN = item(1, "Lantern Devices", "LNTN", "beats its forecast")
ORCHARD = item(2, "Orchard Chips", "ORCH", "opens a plant", after=timedelta(hours=1))
SLIDES = item(3, "Orchard Chips", "ORCH", "loses a customer", after=timedelta(hours=2))
ITEMS = (LANTERN, ORCHARD, SLIDES)
REPLIES = {
    MULTI_LEVEL.headline: MULTI_LEVEL_REPLY,
    LANTERN.headline: reply_on("Lantern Devices", "LNTN", "beats its forecast", action="buy"),
    ORCHARD.headline: reply_on("Orchard Chips", "ORCH", "opens a plant"),
    SLIDES.headline: reply_on("Orchard Chips", "ORCH", "loses a customer", action="sell"),
}


def simulated_reader(prompt: Prompt) -> str:
    """The reply to the item in a prompt."""
    asked = prompt.messages[1].text
    return json.dumps(next(reply for headline, reply in REPLIES.items() if f"\n{headline}\n" in asked))


def put_on_file(path: Path, *items: NewsItem) -> Path:
    """Add items to a file, a line each."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(each.to_json()) + "\n" for each in items)
    return path


def prompt_counts(journal: Any) -> tuple[int, ...]:
    """How many prompts a journal of news holds, how many requests were made for them, and how many have a reply."""
    counted = journal.storage.rows("SELECT count(*), coalesce(sum(asked), 0), count(reply) FROM replies")
    return tuple(map(int, counted[0]))
