"""The invented month: its items, accounts and gold, as they lie in data/invented-month, whose GUIDE.md says
what they mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kgot_lab.domains.investment.monitor.news import NewsItem
from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path
from kgot_lab.types import Json

from .said import SaidEdge, SaidFacts, SaidThing

INVENTED_MONTH = "invented-month"


@dataclass(frozen=True)
class AccountChange:
    """A user who takes or ends a position (0 shares) at a time, or, with no shares said, takes a symbol off
    the watchlist.
    """

    at: datetime
    user: str = field(repr=False)
    symbol: str = field(repr=False)
    shares: str = field(default="", repr=False)
    average_cost: str = field(default="0", repr=False)


@dataclass(frozen=True)
class GoldBriefing:
    """What a user must hear: of which item's call, by which paths (by symbol), from when on and at the
    latest.

    `doubt` says what is doubtful about the line.
    """

    user: str
    item: str
    action: str
    paths: Mapping[str, str] = field(hash=False)
    since: datetime
    by: datetime
    doubt: str = ""


@dataclass(frozen=True)
class GoldSilence:
    """What a user must not hear, and of which kind that near miss is."""

    user: str
    item: str
    kind: str
    why: str


@dataclass(frozen=True)
class GoldMonth:
    """A month: what is known before, news in order of time, users and what they change, and the gold of it."""

    begins: datetime
    standing: SaidFacts
    items: tuple[NewsItem, ...]
    facts: Mapping[str, SaidFacts] = field(hash=False)  # by item
    users: tuple[Mapping[str, Json], ...] = field(repr=False)
    changes: tuple[AccountChange, ...]
    briefings: tuple[GoldBriefing, ...]
    silences: tuple[GoldSilence, ...]

    def __repr__(self) -> str:
        return f"<invented month: {len(self.items)} items, {len(self.users)} users, {len(self.briefings)} briefings>"


def load_month(folder: Path | None = None) -> GoldMonth:
    """The bundled month, or one in the same form from a folder; raises BadInput for a fact that names what
    nobody said.
    """
    folder = folder or bundled_path(INVENTED_MONTH)
    standing, accounts = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in ("standing.json", "accounts.json")
    )
    items = tuple(NewsItem(**_timed(row, "published_at")) for row in _rows(folder / "news.jsonl"))
    known = {row.pop("ref"): row for row in standing["nodes"]}
    before = SaidFacts(dict(known), tuple(SaidEdge(*edge) for edge in standing["edges"]))
    return GoldMonth(
        datetime.fromisoformat(standing["at"]),
        before,
        items,
        _facts(_rows(folder / "gold_facts.jsonl"), {item.id: item for item in items}, known),
        tuple(accounts["users"]),
        tuple(_change(_timed(row, "at")) for row in accounts["changes"]),
        tuple(_briefing(_timed(row, "since", "by")) for row in _rows(folder / "gold_briefings.jsonl")),
        tuple(GoldSilence(**row) for row in _rows(folder / "gold_silences.jsonl")),
    )


def _facts(
    rows: Iterable[Json], items: Mapping[str, NewsItem], known: dict[str, SaidThing]
) -> dict[str, SaidFacts]:
    """The facts of each item, with all that they name told again in each."""
    found = {}
    for row in rows:
        said = []
        for node in row["nodes"]:
            ref = node.pop("again", None) or node.pop("ref")
            said.append(ref)
            if node:
                written_at = (
                    {"generated_at": items[row["item"]].published_at.isoformat()}
                    if node["is"] == "Insight"
                    else {}
                )
                known[ref] = written_at | node
        edges = tuple(SaidEdge(*edge) for edge in row["edges"])
        ends = tuple(end if isinstance(end, str) else SaidEdge(*end) for end in row.get("ends", ()))
        named = [*said, *row["mentions"], *(end for end in ends if isinstance(end, str))]
        named += [
            end
            for edge in (*edges, *(end for end in ends if isinstance(end, SaidEdge)))
            for end in (edge.source, edge.target)
        ]
        if strange := [ref for ref in named if ref not in known]:
            raise BadInput(
                f"the gold of {row['item']} names {strange[0]}, of which nothing was said before; add it to the item's nodes"
            )
        things = {ref: known[ref] for ref in dict.fromkeys(named)}
        found[row["item"]] = SaidFacts(
            things, edges, tuple(said), tuple(row["mentions"]), row["sentiment"], row.get("expires", {}), ends
        )
    return found


def _change(row: Mapping[str, Json]) -> AccountChange:
    symbol = row.get("hold") or row["unwatch"]
    return AccountChange(row["at"], row["user"], symbol, row.get("shares", ""), row.get("average_cost", "0"))


def _briefing(row: Mapping[str, Json]) -> GoldBriefing:
    """An event in a path is known by its type and by what it affects; its words are the reader's."""
    paths = {symbol: re.sub(r"MarketEvent:\w+", "MarketEvent", path) for symbol, path in row["paths"].items()}
    return GoldBriefing(**{**row, "paths": paths})


def _rows(path: Path) -> Sequence[Json]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _timed(row: Mapping[str, Json], *names: str) -> dict[str, Json]:
    return {**row, **{name: datetime.fromisoformat(row[name]) for name in names}}
