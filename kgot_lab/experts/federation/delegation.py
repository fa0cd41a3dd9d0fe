"""The side that asks: a question goes to experts of other instances, and each comes back in time with an
answer or a reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kgot_lab.errors import BadInput, LabError, RefusedEnvelope, ToolFailed
from kgot_lab.experts.federation.delegation import ASK_PATH, RemoteAnswer, RemoteQuestion
from kgot_lab.experts.federation.envelope import (
    CLOCK_SKEW,
    LONGEST_LIFE,
    MOST_ENVELOPE,
    REFUSALS,
    Envelope,
    InstanceKey,
)
from kgot_lab.experts.federation.signing import (
    NOT_IN_TIME,
    Exchanged,
    Peer,
    Peers,
    all_in_time,
    exchanged,
    opened_envelope,
    signed_envelope,
)
from kgot_lab.memory.claims.claim import utc_now
from kgot_lab.text.fence import fenced
from kgot_lab.text.harmless import harmless

MOST_ASKED = 32  # experts at once


@dataclass(frozen=True)
class DelegationProvenance:
    """Where an answer is from: which instance said it with which key, which expert, what it cites, and what
    it signed when.

    The instance's name is ours for it; `digest` is SHA-256 of the signed answer, `question_digest` that of
    the signed question.
    """

    instance: str
    public_key: str
    expert: str
    sources: tuple[str, ...]
    digest: str
    question_digest: str
    answered_at: datetime

    def to_json(self) -> dict[str, Any]:
        """The same as JSON has it, to be kept with a message of a chat."""
        return asdict(self) | {"sources": list(self.sources), "answered_at": self.answered_at.isoformat()}


@dataclass(frozen=True)
class DelegatedAnswer:
    """What came of asking an expert elsewhere: `answer` for a model, fenced; or None, and the reason.

    `text` is the same without the fence, for people, and as untrusted as any page of the web: whatever shows
    it escapes it. `signed` are the bytes that were signed, by which the answer can be shown to be the
    instance's.
    """

    instance: str
    expert: str
    answer: str | None = None
    text: str = field(default="", repr=False)
    reason: str = ""
    provenance: DelegationProvenance | None = None
    signed: bytes = field(default=b"", repr=False)

    def to_json(self) -> dict[str, Any]:
        """The answer as people see it, with its provenance."""
        origin = None if self.provenance is None else self.provenance.to_json()
        return {
            "instance": self.instance,
            "expert": self.expert,
            "text": self.text,
            "reason": self.reason,
            "provenance": origin,
        }


def delegate(
    question: str,
    peer: Peer,
    key: InstanceKey,
    *,
    expert: str,
    timeout: float = 30.0,
    now: Callable[[], datetime] = utc_now,
) -> DelegatedAnswer:
    """What an expert of a peer answers within so many seconds; a peer that is dead, slow, broken or lies
    gives a reason instead.

    Raises BadInput only for what is asked: a question or an id of an expert that is none, or no time.
    """
    return delegate_to_all(question, [(peer, expert)], key, timeout=timeout, now=now)[0]


def delegate_to_all(
    question: str,
    experts: Sequence[tuple[Peer, str]],
    key: InstanceKey,
    *,
    timeout: float = 30.0,
    now: Callable[[], datetime] = utc_now,
) -> tuple[DelegatedAnswer, ...]:
    """The same of several experts at once, each with its peer, in their order; all have the same time, and
    none waits for another.
    """
    if len(experts) > MOST_ASKED:
        raise BadInput(f"at most {MOST_ASKED} experts are asked at once: choose among them")
    asked = [RemoteQuestion(expert=expert, question=question) for _, expert in experts]

    def job(peer: Peer, one: RemoteQuestion) -> Callable[[], DelegatedAnswer]:
        return lambda: _asked(one, peer, _question(one, peer, key, timeout, now), timeout, now)

    came = all_in_time([job(peer, one) for (peer, _), one in zip(experts, asked, strict=True)], timeout)
    return tuple(
        each
        if isinstance(each, DelegatedAnswer)
        else DelegatedAnswer(peer.name, expert, reason=reason_for(each))
        for each, (peer, expert) in zip(came, experts, strict=True)
    )


def joined_answers(answers: Iterable[DelegatedAnswer]) -> str:
    """The answers of several experts as one text for a model, each in its fence, and a line for each that
    gave none.
    """
    return "\n\n".join(each.answer or f"No answer from {each.instance}/{each.expert}." for each in answers)


def reason_for(came: object) -> str:
    """Why there is no answer, in words: of what was raised, or where nothing came in time."""
    if isinstance(came, RefusedEnvelope):
        return f"what it sent is refused: {came.code}"
    if isinstance(came, LabError):
        return str(came)
    return NOT_IN_TIME if came is None else f"it could not be asked ({type(came).__name__})"


def reply_of(
    peer: Peer, sent: Envelope, path: str, kind: str, seconds: float, now: Callable[[], datetime]
) -> Envelope:
    """The signed reply of a peer to an envelope; raises ToolFailed and RefusedEnvelope."""
    came = exchanged(peer.at(path), seconds, MOST_ENVELOPE, sent=sent.wire)
    if came.status != 200:
        raise ToolFailed(_refusal(came), again=came.status >= 500)
    return opened_envelope(came.body, Peers(peer), sent.sender, kind=kind, now=now, in_reply_to=sent.digest)


def _question(
    one: RemoteQuestion, peer: Peer, key: InstanceKey, seconds: float, now: Callable[[], datetime]
) -> Envelope:
    life = min(timedelta(seconds=seconds) + CLOCK_SKEW, LONGEST_LIFE)
    return signed_envelope("question", one.to_json(), key, peer.public_key, life=life, now=now)


def _asked(
    one: RemoteQuestion, peer: Peer, sent: Envelope, seconds: float, now: Callable[[], datetime]
) -> DelegatedAnswer:
    reply = reply_of(peer, sent, ASK_PATH, "answer", seconds, now)
    try:
        said = RemoteAnswer(**reply.body)
    except BadInput:
        return DelegatedAnswer(peer.name, one.expert, reason="what it sent is no answer", signed=reply.wire)
    if said.expert != one.expert:
        return DelegatedAnswer(peer.name, one.expert, reason="another expert answered", signed=reply.wire)
    if said.answer is None:
        return DelegatedAnswer(
            peer.name, one.expert, reason=f"it says: {harmless(said.reason)}", signed=reply.wire
        )
    origin = DelegationProvenance(
        peer.name, reply.sender, one.expert, said.sources, reply.digest, sent.digest, reply.issued_at
    )
    fence = fenced(said.answer, f"{peer.name}/{one.expert}, another instance")
    return DelegatedAnswer(peer.name, one.expert, fence, said.answer, provenance=origin, signed=reply.wire)


def _refusal(came: Exchanged) -> str:
    """What a peer that refuses says, of which only the codes that we know are repeated."""
    try:
        told = json.loads(came.body)
        code = told.get("refused") if isinstance(told, dict) else None
    except (ValueError, RecursionError):
        code = None
    known = isinstance(code, str) and code in REFUSALS
    return f"it refused what was asked: {code}" if known else f"it answered with HTTP {came.status}"
