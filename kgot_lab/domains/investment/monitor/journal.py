"""The journal: items received, facts read in them, replies of models, and ticks. It has no user data.

A reply is stored before it is used, and the facts of an item before the graph is written, so that a repeat
after an interruption gives the same result without another model call. One window remains: a reply that has
arrived but was not stored when the process was killed is requested again. `asked` counts every request, so
that this is visible.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kgot_lab.domains.investment.monitor.news import NewsFacts, NewsItem, facts_from_json, news_item_from_json
from kgot_lab.io.files import read_statements
from kgot_lab.io.times import from_micros, from_micros_or_none, to_micros
from kgot_lab.llm.recorded import prompt_key, reply_from_json, reply_to_json
from kgot_lab.llm.structured import checked_reply, record_replayed
from kgot_lab.stores.tables.layout import Layout
from kgot_lab.stores.tables.opening import TableBacked
from kgot_lab.types import LLM, Prompt, Reply

# All SQL of the journal, common to SQLite and PostgreSQL: items, replies of models, ticks. It has no user
# data.

JOURNAL_LAYOUT = Layout("investment news", 0x6B676C6E, **read_statements(__file__, "journal.sql"))  # "kgln"

ITEM_BODIES = "SELECT id, body FROM items WHERE id = ANY(:ids)"
ADD_ITEM = "INSERT INTO items (id, body, published_at, arrived_at, failed) VALUES (:id, :body, :published_at, :at, 0)"
ITEMS_TO_READ = "SELECT body FROM items WHERE facts IS NULL ORDER BY failed, published_at, id LIMIT :most"
COUNT_TO_READ = "SELECT count(*) FROM items WHERE facts IS NULL"
COUNT_FAILURE = "UPDATE items SET failed = failed + 1 WHERE id = :id"
STORE_FACTS = "UPDATE items SET facts = :facts WHERE id = :id AND facts IS NULL"
_BY_DATE = "ORDER BY published_at, id"
FACTS_TO_WRITE = f"SELECT facts FROM items WHERE facts IS NOT NULL AND written_at IS NULL {_BY_DATE}"
MARK_WRITTEN = "UPDATE items SET written_at = :at WHERE id = :id AND written_at IS NULL"
FACTS = f"SELECT facts FROM items WHERE facts IS NOT NULL {_BY_DATE}"

REPLY = "SELECT reply FROM replies WHERE key = :key AND reply IS NOT NULL"
RECORD_REQUEST = """INSERT INTO replies (key, model, asked) VALUES (:key, :model, 1)
  ON CONFLICT (key) DO UPDATE SET asked = replies.asked + 1"""
STORE_REPLY = "UPDATE replies SET reply = :reply WHERE key = :key AND reply IS NULL"

LAST_TICK = "SELECT id, due, missed, begun_at, ended_at FROM ticks ORDER BY id DESC LIMIT 1"
BEGIN_TICK = "INSERT INTO ticks (id, due, missed, begun_at) VALUES (:id, :due, :missed, :at) ON CONFLICT (id) DO NOTHING"
END_TICK = "UPDATE ticks SET ended_at = :at WHERE id = :id AND ended_at IS NULL"


@dataclass(frozen=True)
class Tick:
    """One round of all stages: when it was due, and how many before it were missed.

    Missed ticks are not repeated.
    """

    id: int
    due: datetime
    missed: int = 0
    ended_at: datetime | None = None
    resumed: bool = False  # it was started before and interrupted


class NewsJournal(TableBacked):
    """The journal in tables."""

    layout = JOURNAL_LAYOUT

    # --- items ---

    def add(self, items: Iterable[NewsItem]) -> tuple[tuple[NewsItem, ...], tuple[NewsItem, ...]]:
        """Store new items, and return them and those whose id an earlier item has, which is not changed."""
        received, by_id = list(items), dict[str, NewsItem]()
        for item in received:
            by_id.setdefault(item.id, item)
        with self.storage.changing():
            rows = self.storage.rows(ITEM_BODIES, {"ids": sorted(by_id)})
            stored = {id: news_item_from_json(json.loads(body)) for id, body in rows}
            new = tuple(item for item in by_id.values() if item.id not in stored)
            for item in new:
                published_at = to_micros(item.published_at, "the time of an item")
                times = {"published_at": published_at, "at": to_micros(self.now(), "now")}
                self.storage.rows(ADD_ITEM, {"id": item.id, "body": json.dumps(item.to_json())} | times)
        kept_by_id = by_id | stored
        return new, tuple(dict.fromkeys(item for item in received if kept_by_id[item.id] != item))

    def items_to_read(self, most: int) -> tuple[NewsItem, ...]:
        """Return at most `most` items that no model has read yet.

        Those with fewer failures come first, then the earliest.
        """
        rows = self.storage.rows(ITEMS_TO_READ, {"most": most})
        return tuple(news_item_from_json(json.loads(body)) for (body,) in rows)

    def record_failure(self, item: NewsItem) -> None:
        """Record that an item could not be read. Others go first now, so that it blocks nothing."""
        with self.storage.changing():
            self.storage.rows(COUNT_FAILURE, {"id": item.id})

    def count_to_read(self) -> int:
        """Return the number of items that wait for a model."""
        return int(self.storage.rows(COUNT_TO_READ)[0][0])

    def store_facts(self, facts: NewsFacts) -> None:
        """Store the facts of an item. The first ones count."""
        with self.storage.changing():
            self.storage.rows(STORE_FACTS, {"id": facts.item, "facts": json.dumps(facts.to_json())})

    def facts_to_write(self) -> tuple[NewsFacts, ...]:
        """Return the facts that are not in the graph yet, the earliest first."""
        return tuple(facts_from_json(json.loads(facts)) for (facts,) in self.storage.rows(FACTS_TO_WRITE))

    def mark_written(self, facts: NewsFacts) -> None:
        """Record that the facts of an item are in the graph. The first time counts."""
        with self.storage.changing():
            self.storage.rows(MARK_WRITTEN, {"id": facts.item, "at": to_micros(self.now(), "now")})

    def facts(self) -> tuple[NewsFacts, ...]:
        """Return the facts of all items with what was refused, the earliest first."""
        return tuple(facts_from_json(json.loads(facts)) for (facts,) in self.storage.rows(FACTS))

    # --- replies ---

    def reply(self, key: str) -> Reply | None:
        """Return the stored reply to a prompt, by its key, or None."""
        for (reply,) in self.storage.rows(REPLY, {"key": key}):
            return reply_from_json(json.loads(reply))
        return None

    def record_request(self, key: str, model: str) -> None:
        """Record that a model is about to be called."""
        with self.storage.changing():
            self.storage.rows(RECORD_REQUEST, {"key": key, "model": model})

    def store_reply(self, key: str, reply: Reply) -> None:
        """Store the reply of a model. The first one counts."""
        with self.storage.changing():
            self.storage.rows(STORE_REPLY, {"key": key, "reply": json.dumps(reply_to_json(reply))})

    # --- ticks ---

    def next_tick(self, every: timedelta) -> Tick:
        """Return the next tick: an interrupted one, else the latest that is due, else the next one."""
        last = None
        for id, due, missed, _, ended in self.storage.rows(LAST_TICK):
            last = Tick(id, from_micros(due), missed, from_micros_or_none(ended))
        return next_tick_after(last, self.now(), every)

    def begin(self, tick: Tick) -> None:
        """Record that a tick begins."""
        times = {"due": to_micros(tick.due, "when a tick is due"), "at": to_micros(self.now(), "now")}
        values = {"id": tick.id, "missed": tick.missed, **times}
        with self.storage.changing():
            self.storage.rows(BEGIN_TICK, values)

    def end(self, tick: Tick) -> None:
        """Record that a tick has ended."""
        with self.storage.changing():
            self.storage.rows(END_TICK, {"id": tick.id, "at": to_micros(self.now(), "now")})


class CachedReplies:
    """A model that is asked each prompt only once.

    Its reply is stored in the journal before use, and read from there later.
    """

    def __init__(self, llm: LLM, journal: NewsJournal) -> None:
        self._llm, self._journal = llm, journal

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._llm.name

    def __call__(self, prompt: Prompt) -> Reply:
        key = prompt_key(prompt, self.name)
        if (stored := self._journal.reply(key)) is not None:
            record_replayed(stored.usage)
            return stored
        self._journal.record_request(key, self.name)
        reply = checked_reply(self._llm, prompt)
        self._journal.store_reply(key, reply)
        return reply


def next_tick_after(last: Tick | None, now: datetime, every: timedelta) -> Tick:
    """Return the tick after another, with the number of ticks missed between them.

    A tick that did not end is resumed. If the clock went back behind the last tick, the next is due now, and
    the schedule continues from there.
    """
    if last is None:
        return Tick(1, now)
    if last.ended_at is None:
        return Tick(last.id, last.due, last.missed, resumed=True)
    if now < last.due:
        return Tick(last.id + 1, now)
    missed = max((now - last.due) // every - 1, 0)
    return Tick(last.id + 1, last.due + (missed + 1) * every, missed)


open_journal = NewsJournal.open
