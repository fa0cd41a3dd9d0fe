"""The side that is asked: a question that came is opened, and what is answered is signed. Routes of a server
only carry the bytes.

A route reads the body as it came (of at most MOST_ENVELOPE bytes), and sends `wire` as it is: whoever parses
and writes JSON again breaks the signature. A refusal is `refusal_json` with the status `refusal_status`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kgot_lab.errors import BadInput, RefusedEnvelope
from kgot_lab.experts.federation.delegation import RemoteAnswer, RemoteQuestion
from kgot_lab.experts.federation.envelope import REFUSALS, Envelope, InstanceKey, refused
from kgot_lab.experts.federation.signing import Peer, Peers, SeenNonces, opened_envelope, signed_envelope
from kgot_lab.memory.claims.claim import utc_now

ASK_PATH = "/federation/ask"
CAPABILITIES_PATH = "/federation/capabilities"


@dataclass(frozen=True)
class Federation:
    """An instance among others: its key, whom it knows, and what it has received."""

    key: InstanceKey
    peers: Peers
    seen: SeenNonces
    now: Callable[[], datetime] = utc_now

    def opened(self, data: bytes, kind: str) -> tuple[Envelope, Peer]:
        """What a peer sent, once, of a kind that asks, and the peer; raises RefusedEnvelope."""
        envelope = opened_envelope(data, self.peers, self.key.public, kind=kind, now=self.now, seen=self.seen)
        peer = self.peers.with_key(envelope.sender)
        if peer is None:
            raise refused("unknown sender")
        return envelope, peer

    def reply(self, kind: str, body: Mapping[str, Any], to: Envelope) -> bytes:
        """The bytes of a signed reply to what was opened."""
        return signed_envelope(kind, body, self.key, to.sender, in_reply_to=to.digest, now=self.now).wire


@dataclass(frozen=True)
class DelegatedQuestion:
    """A question that a peer asked, and that may be answered: it is to be answered here, never passed on."""

    peer: Peer
    asked: RemoteQuestion
    envelope: Envelope


def accepted_question(data: bytes, federation: Federation) -> DelegatedQuestion:
    """The question in the bytes that a peer sent; raises RefusedEnvelope."""
    envelope, peer = federation.opened(data, "question")
    try:
        return DelegatedQuestion(peer, RemoteQuestion(**envelope.body), envelope)
    except BadInput:
        raise refused("malformed") from None


def signed_answer(answer: RemoteAnswer, to: DelegatedQuestion, federation: Federation) -> bytes:
    """The bytes that answer a question."""
    return federation.reply("answer", answer.to_json(), to.envelope)


def refusal_json(error: RefusedEnvelope) -> dict[str, str]:
    """What a peer that was refused is told."""
    return {"refused": error.code, "error": str(error)}


def refusal_status(error: RefusedEnvelope) -> int:
    """The HTTP status of a refusal."""
    return REFUSALS[error.code][0]
