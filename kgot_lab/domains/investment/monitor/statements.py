"""All SQL of the journal, in what SQLite and PostgreSQL have in common: items, replies that were paid for,
ticks. It holds no user.
"""

from __future__ import annotations

from kgot_lab.memory.tables import Layout

JOURNAL_LAYOUT = Layout(
    "investment news",
    0x6B676C6E,  # "kgln"
    (
        """CREATE TABLE items (id TEXT PRIMARY KEY, body TEXT NOT NULL, published_at BIGINT NOT NULL, arrived_at BIGINT NOT NULL,
             failed BIGINT NOT NULL, facts TEXT, written_at BIGINT)""",
        "CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, asked BIGINT NOT NULL, reply TEXT)",
        """CREATE TABLE ticks (id BIGINT PRIMARY KEY, due BIGINT NOT NULL, missed BIGINT NOT NULL, begun_at BIGINT NOT NULL,
             ended_at BIGINT)""",
    ),
    (
        "CREATE INDEX items_to_read ON items (failed, published_at, id) WHERE facts IS NULL",
        "CREATE INDEX items_to_write ON items (published_at, id) WHERE written_at IS NULL",
    ),
)

BODIES = "SELECT id, body FROM items WHERE id = ANY(:ids)"
ADD_ITEM = "INSERT INTO items (id, body, published_at, arrived_at, failed) VALUES (:id, :body, :published_at, :at, 0)"
TO_READ = "SELECT body FROM items WHERE facts IS NULL ORDER BY failed, published_at, id LIMIT :most"
COUNT_TO_READ = "SELECT count(*) FROM items WHERE facts IS NULL"
PUT_BACK = "UPDATE items SET failed = failed + 1 WHERE id = :id"
KEEP_FACTS = "UPDATE items SET facts = :facts WHERE id = :id AND facts IS NULL"
TO_WRITE = "SELECT facts FROM items WHERE facts IS NOT NULL AND written_at IS NULL ORDER BY published_at, id"
MARK_WRITTEN = "UPDATE items SET written_at = :at WHERE id = :id AND written_at IS NULL"
FACTS = "SELECT facts FROM items WHERE facts IS NOT NULL ORDER BY published_at, id"

REPLY = "SELECT reply FROM replies WHERE key = :key AND reply IS NOT NULL"
ASK = """INSERT INTO replies (key, model, asked) VALUES (:key, :model, 1)
  ON CONFLICT (key) DO UPDATE SET asked = replies.asked + 1"""
KEEP_REPLY = "UPDATE replies SET reply = :reply WHERE key = :key AND reply IS NULL"
ASKED = "SELECT count(*), coalesce(sum(asked), 0), count(reply) FROM replies"

LAST_TICK = "SELECT id, due, missed, begun_at, ended_at FROM ticks ORDER BY id DESC LIMIT 1"
BEGIN_TICK = "INSERT INTO ticks (id, due, missed, begun_at) VALUES (:id, :due, :missed, :at) ON CONFLICT (id) DO NOTHING"
END_TICK = "UPDATE ticks SET ended_at = :at WHERE id = :id AND ended_at IS NULL"
