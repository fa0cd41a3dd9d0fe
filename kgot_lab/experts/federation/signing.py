"""Sign and open envelopes, known peers, received nonces, and an HTTP exchange with a peer."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kgot_lab.errors import (
    BadInput,
    ToolFailed,
    require,
    require_amount,
    require_count,
    require_known,
    short_repr,
)
from kgot_lab.experts.expert import describe_first_error
from kgot_lab.experts.federation.envelope import (
    CLOCK_SKEW,
    ENVELOPE_KINDS,
    MAX_ENVELOPE_BYTES,
    MAX_LIFETIME,
    Clock,
    Envelope,
    InstanceKey,
    canonical_json,
    encode_base64url,
    is_public_key,
    is_signed_by,
    parse_envelope,
    refusal,
    signed_bytes,
)
from kgot_lab.io.files import os_errors_as, read_regular_file, utf8_text
from kgot_lab.io.http_client import UnusableBody, bounded_client, client_library, is_loopback, proxy_options
from kgot_lab.io.times import to_micros, utc_now
from kgot_lab.stores.tables.layout import Layout, TableStorage
from kgot_lab.stores.tables.opening import TableBacked, open_tables

# Received envelopes: each is accepted once, by all processes of an instance that share the file.

_NONCE_TABLE = "CREATE TABLE nonces (sender TEXT NOT NULL, nonce TEXT NOT NULL, gone_at BIGINT NOT NULL, PRIMARY KEY (sender, nonce))"
_NONCE_INDEX = "CREATE INDEX nonces_gone ON nonces (gone_at)"
NONCES_LAYOUT = Layout("seen nonces", 0x6B676C6F, (_NONCE_TABLE,), (_NONCE_INDEX,))  # "kglo"
_DELETE_EXPIRED = "DELETE FROM nonces WHERE gone_at < :now"
_COUNT_NONCE = "SELECT count(*) FROM nonces WHERE sender = :sender AND nonce = :nonce"
_COUNT_OF_SENDER = "SELECT count(*) FROM nonces WHERE sender = :sender"
_INSERT_NONCE = "INSERT INTO nonces (sender, nonce, gone_at) VALUES (:sender, :nonce, :gone_at)"


class SeenNonces(TableBacked):
    """Stores the nonces of envelopes until they expire, a limited number for each sender.

    At the limit, the sender is refused, because forgetting an old nonce would allow a replay. Other senders
    are still accepted.
    """

    def __init__(self, storage: TableStorage, *, limit: int = 10_000) -> None:
        require_count(limit, 1, "limit", "so many nonces of a sender are remembered")
        self.storage, self.limit = storage, limit

    def accept(self, envelope: Envelope, now: datetime) -> None:
        """Store the nonce of an envelope.

        Raises RefusedEnvelope if it was received before, or its sender has reached the limit.
        """
        params = {"sender": envelope.sender, "nonce": envelope.nonce}
        with self.storage.changing():
            self.storage.rows(_DELETE_EXPIRED, {"now": to_micros(now, "now")})
            if self.storage.rows(_COUNT_NONCE, params)[0][0]:
                raise refusal("replayed")
            if self.storage.rows(_COUNT_OF_SENDER, {"sender": envelope.sender})[0][0] >= self.limit:
                raise refusal("too many")
            expires_at = to_micros(envelope.expires_at + CLOCK_SKEW, "when an envelope expires")
            self.storage.rows(_INSERT_NONCE, params | {"gone_at": expires_at})


def open_nonces(location: Path | str = ":memory:", *, limit: int = 10_000) -> SeenNonces:
    """Open the store of received nonces: an SQLite file, in memory, or PostgreSQL by its address.

    Raises what `open_tables` raises.
    """
    return SeenNonces(open_tables(NONCES_LAYOUT, location), limit=limit)


# One HTTP exchange with another server. Redirects are not followed, and time and size are limited.

_Job = TypeVar("_Job")  # the result of one
MAX_SECONDS = 3_600.0
TIMED_OUT = "it did not answer in time"


class HttpReply(NamedTuple):
    """The response of a server: HTTP status and body."""

    status: int
    body: bytes


def is_plain_url(url: str) -> bool:
    """Return whether a text is http(s)://HOST[:PORT][/PATH], without password, query or fragment."""
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # an invalid port
        return False
    has_extras = "@" in parts.netloc or parts.query or parts.fragment
    return bool(has_host) and not has_extras and url.isprintable() and " " not in url


def exchange(url: str, seconds: float, max_bytes: int, *, body: bytes | None = None) -> HttpReply:
    """Send a GET, or a POST if `body` has a JSON body, and return the response.

    Raises ToolFailed with a reason that does not contain the address. Redirects are not followed.
    """
    library = client_library()
    headers = {"content-type": "application/json", "accept": "application/json"}
    try:
        with bounded_client(seconds, max_bytes, redirects=0, **proxy_options(url)) as client:
            method = "GET" if body is None else "POST"
            response = client.request(method, url, content=body, headers=headers, timeout=seconds)
    except (library.TimeoutException, TimeoutError):
        raise ToolFailed(TIMED_OUT, again=True) from None
    except UnusableBody as error:
        raise ToolFailed(f"what it said cannot be used: {error}") from None
    except BadInput as error:  # an invalid proxy
        raise ToolFailed(str(error)) from None
    except (library.HTTPError, library.InvalidURL, OSError, UnicodeError) as error:
        raise ToolFailed(f"it cannot be reached ({type(error).__name__})", again=True) from None
    if 300 <= response.status_code < 400:
        raise ToolFailed("it redirects, which is not followed: name the address where it answers")
    return HttpReply(response.status_code, response.content)


def run_with_timeout(jobs: Sequence[Callable[[], _Job]], seconds: float) -> list[_Job | Exception | None]:
    """Run jobs in parallel threads and return what each returned or raised.

    A job that is not done after `seconds` gives None. It is left in a daemon thread, because a name lookup
    cannot be stopped. The program does not wait for it at exit.
    """
    require_amount(seconds, "the seconds to wait", positive=True)
    if seconds > MAX_SECONDS:
        raise BadInput(f"the seconds to wait are at most {MAX_SECONDS:g}")
    client_library()  # loading it does not count towards the server's time
    results: list[_Job | Exception | None] = [None] * len(jobs)

    def run(index: int) -> None:
        try:
            results[index] = jobs[index]()
        except Exception as error:  # returned to the caller
            results[index] = error

    deadline = time.monotonic() + seconds
    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    return list(results)


# The known instances, by name and by key. No other is asked or answered.

_MAX_PEERS_FILE_BYTES, _MAX_PEERS = 1_000_000, 100  # each is asked in its own thread


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

    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        is_printable = isinstance(self.name, str) and self.name.isprintable()
        if not is_printable or not 1 <= len(self.name.strip()) <= 100:
            raise BadInput("the name of a peer is 1 to 100 characters on one line")
        if not is_public_key(self.public_key):
            form = "43 characters of base64url, as its instance shows it"
            raise BadInput(f"the public key of the peer {short_repr(self.name)} is {form}")
        require(self.url, str, "the url of a peer is a text")
        url = f"the url of the peer {short_repr(self.name)}"
        if not is_plain_url(self.url):
            raise BadInput(f"{url} is https://HOST[:PORT][/PATH], without a password or a query")
        if self.url.casefold().startswith("http:") and not self.plain_http and not is_loopback(self.url):
            advice = "use https, or say plain_http where the network between is yours"
            raise BadInput(f"{url} begins with http://, and a question may be private: {advice}")

    def url_for(self, path: str) -> str:
        """Return the address of one of the peer's routes."""
        return self.url.rstrip("/") + path


class _PeersFile(BaseModel):
    peers: Annotated[list[Peer], Field(max_length=_MAX_PEERS)]


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

    def with_name(self, name: str) -> Peer:
        """Return a peer by its name.

        Raises UnknownName if there is none.
        """
        require_known("peer", self._named, name)
        return self._named[name]

    def with_key(self, public: str) -> Peer | None:
        """Return the peer with a public key, or None for an unknown key."""
        return self._keyed.get(public)


def read_peers(path: Path | str) -> Peers:
    """Read the peers of a file `peers.json`: {"peers": [{"name", "url", "public_key"}, …]}.

    Raises BadInput if the file is missing or not of this form.
    """
    with os_errors_as(f"the file of peers {path} cannot be read"):
        data = utf8_text(read_regular_file(path, _MAX_PEERS_FILE_BYTES), "peers.json")
    try:
        return Peers(*_PeersFile.model_validate_json(data, strict=True).peers)
    except ValidationError as error:
        form = f'{{"peers": [{{"name", "url", "public_key"}}, …]}}, at most {_MAX_PEERS:,}'
        detail = f"a peer may also have plain_http (a boolean), and no more: {describe_first_error(error)}"
        raise BadInput(f"the file of peers is not JSON of the form {form}; {detail}") from None


def sign_envelope(
    kind: str,
    body: Mapping[str, Any],
    key: InstanceKey,
    recipient: str,
    *,
    in_reply_to: str = "",
    lifetime: timedelta = timedelta(minutes=5),
    now: Clock = utc_now,
) -> Envelope:
    """Create a signed envelope of a kind of ENVELOPE_KINDS for the public key of a recipient.

    Its `wire` is sent unchanged. Raises BadInput for another kind, a body that is no JSON or has more than
    MAX_ENVELOPE_BYTES bytes, an invalid recipient key, or a life longer than MAX_LIFETIME.
    """
    has_valid_kind = kind in ENVELOPE_KINDS and ENVELOPE_KINDS[kind] == bool(in_reply_to)
    if not has_valid_kind or not is_public_key(recipient):
        rules = "for a public key; answer and capabilities reply to a digest"
        raise BadInput(f"an envelope is one of {', '.join(ENVELOPE_KINDS)}, {rules}")
    if not timedelta(0) < lifetime <= MAX_LIFETIME:
        raise BadInput(f"an envelope lives more than 0 and at most {MAX_LIFETIME.total_seconds():g} seconds")
    issued_at, nonce = now(), encode_base64url(secrets.token_bytes(16))
    fields: dict[str, Any] = {
        "body": dict(body), "expires_at": to_micros(issued_at + lifetime, "when it expires"), "in_reply_to": in_reply_to,
        "issued_at": to_micros(issued_at, "now"), "kind": kind, "nonce": nonce, "recipient": recipient, "sender": key.public, "version": 1,
    }  # fmt: skip
    wire = canonical_json(fields | {"signature": key.sign(signed_bytes(fields))})
    if len(wire) > MAX_ENVELOPE_BYTES:
        raise BadInput(f"an envelope has at most {MAX_ENVELOPE_BYTES:,} bytes: send less")
    times = issued_at, issued_at + lifetime
    return Envelope(key.public, recipient, kind, fields["body"], *times, nonce, in_reply_to, wire)


def open_envelope(
    data: bytes,
    peers: Peers,
    recipient: str,
    *,
    kind: str,
    now: Clock = utc_now,
    seen: SeenNonces | None = None,
    in_reply_to: str = "",
) -> Envelope:
    """Verify an envelope and return it.

    It must be signed by one of `peers`, addressed to `recipient`, of this kind, unexpired and new. Only a reply may
    be opened without `seen`, because it is bound to the digest of a question that was asked once. Only the
    sender is looked at before the signature is verified. Raises RefusedEnvelope with one of the codes of
    REFUSALS.
    """
    if ENVELOPE_KINDS.get(kind) != bool(in_reply_to) or (seen is None and not in_reply_to):
        raise BadInput("a request is opened with a memory of nonces, a reply with the digest of the request")
    envelope, signature, signed = parse_envelope(data)
    if peers.with_key(envelope.sender) is None:
        raise refusal("unknown sender")
    if not is_signed_by(envelope.sender, signature, signed):
        raise refusal("tampered")
    if not hmac.compare_digest(envelope.recipient, recipient):
        raise refusal("another recipient")
    if envelope.kind != kind:
        raise refusal("another kind")
    if not hmac.compare_digest(envelope.in_reply_to, in_reply_to):
        raise refusal("another question")
    current_time = now()
    if envelope.issued_at > current_time + CLOCK_SKEW:
        raise refusal("from the future")
    if envelope.expires_at <= current_time:
        raise refusal("expired")
    if seen is not None:
        seen.accept(envelope, current_time)
    return envelope
