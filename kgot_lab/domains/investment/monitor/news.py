"""News as it comes in: items, and a file of them, a line of JSON each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from kgot_lab.domains.investment.view import LONGEST_ID, storable_text
from kgot_lab.errors import BadInput, described_value, require
from kgot_lab.io.files import read_regular, utf8_text
from kgot_lab.kgos.schemas.check import time_of
from kgot_lab.llm.structured import json_fault
from kgot_lab.memory.claims.claim import instant
from kgot_lab.text.surrogates import whole
from kgot_lab.text.tokens import shorten, tokens
from kgot_lab.types import Json

_MOST_TOKENS = 3000  # of an item that a model is shown


@dataclass(frozen=True)
class NewsItem:
    """An item of news: its id, which is its own for ever, what it says, who says so, and when it was
    published. Raises BadInput.
    """

    id: str
    headline: str
    published_at: datetime
    text: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("id", "headline", "text", "source"):
            require(getattr(self, name), str, f"the {name} of an item of news is a text")
        if not self.id.strip() or len(self.id) > LONGEST_ID or storable_text(self.id) != self.id:
            raise BadInput(
                f"an item of news has an id, a text of at most {LONGEST_ID} characters that every table takes"
            )
        if not self.headline.strip():
            raise BadInput("an item of news has a headline; give it one")
        instant(self.published_at, "the time an item was published")

    @property
    def shown(self) -> str:
        """What a model is shown of it: its headline, then its text, as far as it is not too long."""
        return shorten(self._words, _MOST_TOKENS)

    @property
    def tokens_left_out(self) -> int:
        """About how many tokens at its end a model is not shown."""
        return tokens(self._words) - tokens(self.shown) if self.shown != self._words else 0

    @property
    def _words(self) -> str:
        return f"{self.headline}\n\n{self.text}".strip()

    def to_json(self) -> dict[str, Json]:
        """The item as a line of a file holds it."""
        told = {"id": self.id, "headline": self.headline, "text": self.text, "source": self.source}
        return {**told, "published_at": self.published_at.isoformat()}


class NewsRead(NamedTuple):
    """What a feed gave: items, and why others are none."""

    items: tuple[NewsItem, ...]
    refused: tuple[str, ...] = ()


# all items there are, or the latest: those that were given before are passed over
Feed = Callable[[], NewsRead]


def news_item(told: Mapping[str, Json]) -> NewsItem:
    """The item that plain JSON values tell; raises BadInput for what is none, such as one without a time and
    a zone.
    """
    require(told, Mapping, "an item of news is id, headline, text, source and published_at")
    if strange := sorted(told.keys() - {"id", "headline", "text", "source", "published_at"}):
        raise BadInput(
            f"an item of news has no field {strange[0]!r:.60}: it has id, headline, text, source and published_at"
        )
    time = time_of(told.get("published_at"))
    if time is None:
        do = "write a time with its zone, such as 2026-02-05T14:00:00+00:00"
        raise BadInput(f"published_at is {described_value(told.get('published_at'))}: {do}")
    texts = {name: whole(told.get(name, "")) for name in ("id", "headline", "text", "source")}
    return NewsItem(**texts, published_at=time)


def news_on_file(path: Path | str) -> NewsRead:
    """The items in a file, a line of JSON each, and the lines that are none; a last line that is still being
    written is left for later.
    """
    try:
        lines = utf8_text(read_regular(path), path).split("\n")
    except OSError as error:
        raise BadInput(f"the news in {path} cannot be read: {error.strerror or error}") from None
    items, refused = list[NewsItem](), list[str]()
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                items.append(news_item(json.loads(line)))
        except (ValueError, RecursionError) as error:
            if number < len(lines):
                refused.append(f"line {number} of {path} is not JSON ({json_fault(error)})")
        except BadInput as error:
            refused.append(f"line {number} of {path}: {error}")
    return NewsRead(tuple(items), tuple(refused))
