"""Signing an envelope for one recipient, and opening one that came."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kgot_lab.errors import BadInput
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
from kgot_lab.experts.federation.signing import Peers, SeenNonces
from kgot_lab.memory.claims.claim import instant, utc_now


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
    """An envelope of a kind of ENVELOPE_KINDS for the public key of a recipient, signed; `wire` is what is
    sent, as it is.

    Raises BadInput for what cannot be signed: another kind, no JSON, more than MOST_ENVELOPE bytes, a life
    longer than LONGEST_LIFE.
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
        "body": dict(body), "expires_at": instant(begin + life, "when it expires"), "in_reply_to": in_reply_to,
        "issued_at": instant(begin, "now"), "kind": kind, "nonce": nonce, "recipient": recipient, "sender": key.public, "version": 1,
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
    """The envelope in some bytes, where all of it holds: its signature is a peer's, it is for `me`, of this
    kind, in time, and new.

    Only what is a reply may be opened without `seen`: it is bound to the digest of a question that was asked
    once. Raises RefusedEnvelope with one of the codes of REFUSALS. Nothing but its sender is looked at before
    the signature is known to be right.
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
