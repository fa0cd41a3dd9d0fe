"""Sign and open envelopes, known peers, received nonces, and an HTTP exchange with a peer."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from kgot_lab.errors import (
    BadInput,
    ToolFailed,
    UnknownName,
    require,
    require_amount,
    require_count,
    short_repr,
)
from kgot_lab.experts.federation.envelope import (
    CLOCK_SKEW,
    ENVELOPE_KINDS,
    LONGEST_LIFE,
    MOST_ENVELOPE,
    Envelope,
    InstanceKey,
    canonical_json,
    is_public_key,
    is_signed_by,
    read_envelope,
    refused,
    signed_part,
    text_of_bytes,
)
from kgot_lab.io.files import read_regular_file, utf8_text
from kgot_lab.io.http_client import UnusableBody, bounded_client, client_library, is_loopback, proxy_options
from kgot_lab.memory.claims.claim import to_micros, utc_now
from kgot_lab.memory.sqlite_tables import open_tables
from kgot_lab.memory.tables import Layout, TableBacked, TableStorage

# Received envelopes: each is accepted once, by all processes of an instance that share the file.

NONCES_LAYOUT = Layout(
    "seen nonces",
    0x6B676C6F,  # "kglo"
    (
        "CREATE TABLE nonces (sender TEXT NOT NULL, nonce TEXT NOT NULL, gone_at BIGINT NOT NULL, PRIMARY KEY (sender, nonce))",
    ),
    ("CREATE INDEX nonces_gone ON nonces (gone_at)",),
)
_FORGET = "DELETE FROM nonces WHERE gone_at < :now"
_SEEN = "SELECT count(*) FROM nonces WHERE sender = :sender AND nonce = :nonce"
_HELD = "SELECT count(*) FROM nonces WHERE sender = :sender"
_KEEP = "INSERT INTO nonces (sender, nonce, gone_at) VALUES (:sender, :nonce, :gone_at)"


class SeenNonces(TableBacked):
    """Stores the nonces of envelopes until they expire, a limited number for each sender.

    At the limit, the sender is refused, because forgetting an old nonce would allow a replay. Other senders
    are still accepted.
    """

    def __init__(self, storage: TableStorage, *, most: int = 10_000) -> None:
        require_count(most, 1, "most", "so many nonces of a sender are remembered")
        self.storage, self.most = storage, most

    def take(self, envelope: Envelope, now: datetime) -> None:
        """Store the nonce of an envelope.

        Raises RefusedEnvelope if it was received before, or its sender has reached the limit.
        """
        own = {"sender": envelope.sender, "nonce": envelope.nonce}
        with self.storage.changing():
            self.storage.rows(_FORGET, {"now": to_micros(now, "now")})
            if self.storage.rows(_SEEN, own)[0][0]:
                raise refused("replayed")
            if self.storage.rows(_HELD, {"sender": envelope.sender})[0][0] >= self.most:
                raise refused("too many")
            gone = to_micros(envelope.expires_at + CLOCK_SKEW, "when an envelope expires")
            self.storage.rows(_KEEP, own | {"gone_at": gone})


def open_nonces(place: Path | str = ":memory:", *, most: int = 10_000) -> SeenNonces:
    """Open the store of received nonces: an SQLite file, in memory, or PostgreSQL by its address.

    Raises what `open_tables` raises.
    """
    return SeenNonces(open_tables(NONCES_LAYOUT, place), most=most)


# One HTTP exchange with another server. Redirects are not followed, and time and size are limited.

_Made = TypeVar("_Made")
MOST_SECONDS = 3_600.0
NOT_IN_TIME = "it did not answer in time"


class Exchanged(NamedTuple):
    """The response of a server: HTTP status and body."""

    status: int
    body: bytes


def is_plain_url(url: str) -> bool:
    """Return whether a text is http(s)://HOST[:PORT][/PATH], without password, query or fragment."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # an invalid port
        return False
    more = "@" in parts.netloc or parts.query or parts.fragment
    return bool(whole) and not more and url.isprintable() and " " not in url


def exchanged(url: str, seconds: float, most: int, *, sent: bytes | None = None) -> Exchanged:
    """Send a GET, or a POST if `sent` has a JSON body, and return the response.

    Raises ToolFailed with a reason that does not contain the address. Redirects are not followed.
    """
    library = client_library()
    headers = {"content-type": "application/json", "accept": "application/json"}
    try:
        with bounded_client(seconds, most, redirects=0, **proxy_options(url)) as client:
            answer = client.request(
                "GET" if sent is None else "POST", url, content=sent, headers=headers, timeout=seconds
            )
    except (library.TimeoutException, TimeoutError):
        raise ToolFailed(NOT_IN_TIME, again=True) from None
    except UnusableBody as error:
        raise ToolFailed(f"what it said cannot be used: {error}") from None
    except BadInput as error:  # an invalid proxy
        raise ToolFailed(str(error)) from None
    except (library.HTTPError, library.InvalidURL, OSError, UnicodeError) as error:
        raise ToolFailed(f"it cannot be reached ({type(error).__name__})", again=True) from None
    if 300 <= answer.status_code < 400:
        raise ToolFailed(
            "it redirects to another address, which is not followed: name the address where it answers"
        )
    return Exchanged(answer.status_code, answer.content)


def all_in_time(jobs: Sequence[Callable[[], _Made]], seconds: float) -> list[_Made | Exception | None]:
    """Run jobs in parallel threads and return what each returned or raised.

    A job that is not done after `seconds` gives None. It is left in a daemon thread, because a name lookup
    cannot be stopped. The program does not wait for it at exit.
    """
    require_amount(seconds, "the seconds to wait", positive=True)
    if seconds > MOST_SECONDS:
        raise BadInput(f"the seconds to wait are at most {MOST_SECONDS:g}")
    client_library()  # loading it does not count towards the server's time
    found: list[_Made | Exception | None] = [None] * len(jobs)

    def do(number: int) -> None:
        try:
            found[number] = jobs[number]()
        except Exception as error:  # returned to the caller
            found[number] = error

    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=do, args=(number,), daemon=True, name=f"delegation-{number}")
        for number in range(len(jobs))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return list(found)


# The known instances, by name and by key. No other is asked or answered.

_MOST_FILE, _MOST_PEERS = 1_000_000, 100  # each is asked in its own thread
_FIELDS = {"name", "url", "public_key", "plain_http"}


@dataclass(frozen=True)
class Peer:
    """Another instance: our name for it, its address, and its public key.

    A question may be private, so an address other than this computer's must begin with https, unless
    `plain_http` allows http, as in a closed network. Raises BadInput if the peer is invalid.
    """

    name: str
    url: str
    public_key: str
    plain_http: bool = False

    def __post_init__(self) -> None:
        if (
            not isinstance(self.name, str)
            or not self.name.isprintable()
            or not 1 <= len(self.name.strip()) <= 100
        ):
            raise BadInput("the name of a peer is 1 to 100 characters on one line")
        if not is_public_key(self.public_key):
            raise BadInput(
                f"the public key of the peer {short_repr(self.name)} is 43 characters of base64url, as its instance shows it"
            )
        require(self.url, str, "the url of a peer is a text")
        if not is_plain_url(self.url):
            raise BadInput(
                f"the url of the peer {short_repr(self.name)} is https://HOST[:PORT][/PATH], without a password or a query"
            )
        if self.url.casefold().startswith("http:") and not self.plain_http and not is_loopback(self.url):
            told = (
                "a question may be private: use https, or say plain_http where the network between is yours"
            )
            raise BadInput(f"the url of the peer {short_repr(self.name)} begins with http://; {told}")

    def at(self, path: str) -> str:
        """Return the address of one of the peer's routes."""
        return self.url.rstrip("/") + path


class Peers:
    """Peers with unique names and keys. Raises BadInput if two share a name or a key."""

    def __init__(self, *peers: Peer) -> None:
        self._named = {peer.name: peer for peer in peers}
        self._keyed = {peer.public_key: peer for peer in peers}
        if not len(self._named) == len(self._keyed) == len(peers):
            raise BadInput("two peers have one name or one public key: give each its own")

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._named.values())

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        return f"<Peers {', '.join(sorted(self._named)) or 'none'}>"

    def named(self, name: str) -> Peer:
        """Return a peer by its name.

        Raises UnknownName if there is none.
        """
        if name not in self._named:
            raise UnknownName("peer", name, self._named)
        return self._named[name]

    def with_key(self, public: str) -> Peer | None:
        """Return the peer with a public key, or None for an unknown key."""
        return self._keyed.get(public)


def read_peers(path: Path | str) -> Peers:
    """Read the peers of a file `peers.json`: {"peers": [{"name", "url", "public_key"}, …]}.

    Raises BadInput if the file is missing or not of this form.
    """
    try:
        told: Any = json.loads(utf8_text(read_regular_file(path, _MOST_FILE), "peers.json"))
    except OSError as error:
        raise BadInput(
            f"the file of peers cannot be read: {error.strerror or type(error).__name__}"
        ) from None
    except (ValueError, RecursionError):
        raise BadInput("the file of peers is no JSON") from None
    return peers_from_json(told)


def peers_from_json(told: object) -> Peers:
    """Parse peers from a JSON value.

    Raises BadInput with the expected form.
    """
    listed = told.get("peers") if isinstance(told, Mapping) else None
    if (
        not isinstance(listed, list)
        or len(listed) > _MOST_PEERS
        or not all(isinstance(each, dict) for each in listed)
    ):
        raise BadInput(
            f'peers are {{"peers": [{{"name", "url", "public_key"}}, …]}}, at most {_MOST_PEERS:,}'
        )
    for each in listed:
        if not {"name", "url", "public_key"} <= set(each) <= _FIELDS or not isinstance(
            each.get("plain_http", False), bool
        ):
            raise BadInput(
                "a peer has name, url and public_key, perhaps plain_http (true or false), and nothing else"
            )
    return Peers(*(Peer(**each) for each in listed))


def signed_envelope(
    kind: str,
    body: Mapping[str, Any],
    key: InstanceKey,
    recipient: str,
    *,
    in_reply_to: str = "",
    life: timedelta = timedelta(minutes=5),
    now: Callable[[], datetime] = utc_now,
) -> Envelope:
    """Create a signed envelope of a kind of ENVELOPE_KINDS for the public key of a recipient.

    Its `wire` is sent unchanged. Raises BadInput for another kind, a body that is no JSON or has more than
    MOST_ENVELOPE bytes, an invalid recipient key, or a life longer than LONGEST_LIFE.
    """
    if (
        kind not in ENVELOPE_KINDS
        or ENVELOPE_KINDS[kind] != bool(in_reply_to)
        or not is_public_key(recipient)
    ):
        raise BadInput(
            f"an envelope is one of {', '.join(ENVELOPE_KINDS)}, for a public key; answer and capabilities reply to a digest"
        )
    if not timedelta(0) < life <= LONGEST_LIFE:
        raise BadInput(f"an envelope lives more than 0 and at most {LONGEST_LIFE.total_seconds():g} seconds")
    begin, nonce = now(), text_of_bytes(secrets.token_bytes(16))
    fields: dict[str, Any] = {
        "body": dict(body), "expires_at": to_micros(begin + life, "when it expires"), "in_reply_to": in_reply_to,
        "issued_at": to_micros(begin, "now"), "kind": kind, "nonce": nonce, "recipient": recipient, "sender": key.public, "version": 1,
    }  # fmt: skip
    wire = canonical_json(fields | {"signature": key.sign(signed_part(fields))})
    if len(wire) > MOST_ENVELOPE:
        raise BadInput(f"an envelope has at most {MOST_ENVELOPE:,} bytes: send less")
    return Envelope(
        key.public, recipient, kind, fields["body"], begin, begin + life, nonce, in_reply_to, wire
    )


def opened_envelope(
    data: bytes,
    peers: Peers,
    me: str,
    *,
    kind: str,
    now: Callable[[], datetime] = utc_now,
    seen: SeenNonces | None = None,
    in_reply_to: str = "",
) -> Envelope:
    """Verify an envelope and return it.

    It must be signed by one of `peers`, addressed to `me`, of this kind, unexpired and new. Only a reply may
    be opened without `seen`, because it is bound to the digest of a question that was asked once. Only the
    sender is looked at before the signature is verified. Raises RefusedEnvelope with one of the codes of
    REFUSALS.
    """
    if ENVELOPE_KINDS.get(kind) != bool(in_reply_to) or (seen is None and not in_reply_to):
        raise BadInput(
            "what asks is opened with a memory of nonces, what replies with the digest of what was asked"
        )
    envelope, signature, part = read_envelope(data)
    if peers.with_key(envelope.sender) is None:
        raise refused("unknown sender")
    if not is_signed_by(envelope.sender, signature, part):
        raise refused("tampered")
    if not hmac.compare_digest(envelope.recipient, me):
        raise refused("another recipient")
    if envelope.kind != kind:
        raise refused("another kind")
    if not hmac.compare_digest(envelope.in_reply_to, in_reply_to):
        raise refused("another question")
    time = now()
    if envelope.issued_at > time + CLOCK_SKEW:
        raise refused("from the future")
    if envelope.expires_at <= time:
        raise refused("expired")
    if seen is not None:
        seen.take(envelope, time)
    return envelope
