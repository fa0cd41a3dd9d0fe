"""Which envelopes were received: each counts once, for all processes of an instance that share the file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from kgot_lab.errors import require_count
from kgot_lab.experts.federation.envelope import CLOCK_SKEW, Envelope, refused
from kgot_lab.memory.claims.claim import instant
from kgot_lab.memory.sqlite_tables import open_tables
from kgot_lab.memory.tables import Layout, TableStorage

NONCES_LAYOUT = Layout(
    "seen nonces",
    0x6B676C78,  # "kglx"
    (
        "CREATE TABLE nonces (sender TEXT NOT NULL, nonce TEXT NOT NULL, gone_at BIGINT NOT NULL, PRIMARY KEY (sender, nonce))",
    ),
    ("CREATE INDEX nonces_gone ON nonces (gone_at)",),
)
_FORGET = "DELETE FROM nonces WHERE gone_at < :now"
_SEEN = "SELECT count(*) FROM nonces WHERE sender = :sender AND nonce = :nonce"
_HELD = "SELECT count(*) FROM nonces WHERE sender = :sender"
_KEEP = "INSERT INTO nonces (sender, nonce, gone_at) VALUES (:sender, :nonce, :gone_at)"


class SeenNonces:
    """Remembers the nonces of envelopes until these have expired, at most so many of a sender at a time.

    Where it is full, that sender is refused rather than an old nonce forgotten, which could be replayed then;
    others are still heard.
    """

    def __init__(self, storage: TableStorage, *, most: int = 10_000) -> None:
        require_count(most, 1, "most", "so many nonces of a sender are remembered")
        self.storage, self.most = storage, most

    def __repr__(self) -> str:
        return f"<SeenNonces in {self.storage!r}>"

    def take(self, envelope: Envelope, now: datetime) -> None:
        """Note an envelope; raises RefusedEnvelope where it was received before, or its sender has sent too
        many.
        """
        own = {"sender": envelope.sender, "nonce": envelope.nonce}
        with self.storage.changing():
            self.storage.rows(_FORGET, {"now": instant(now, "now")})
            if self.storage.rows(_SEEN, own)[0][0]:
                raise refused("replayed")
            if self.storage.rows(_HELD, {"sender": envelope.sender})[0][0] >= self.most:
                raise refused("too many")
            gone = instant(envelope.expires_at + CLOCK_SKEW, "when an envelope expires")
            self.storage.rows(_KEEP, own | {"gone_at": gone})

    def close(self) -> None:
        """Let go of the file."""
        self.storage.close()


def open_nonces(place: Path | str = ":memory:", *, most: int = 10_000) -> SeenNonces:
    """The memory of nonces in an SQLite file, in memory, or in PostgreSQL by its address; raises what
    `open_tables` does.
    """
    return SeenNonces(open_tables(NONCES_LAYOUT, place), most=most)
