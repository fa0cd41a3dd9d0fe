"""Ask experts of other instances, and answer their questions, with signed messages and a time limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from kgot_lab.errors import BadInput, LabError, RefusedEnvelope, ToolFailed
from kgot_lab.experts.expert import describe_first_error
from kgot_lab.experts.federation.envelope import (
    CLOCK_SKEW,
    MAX_ENVELOPE_BYTES,
    MAX_LIFETIME,
    REFUSALS,
    Clock,
    Envelope,
    InstanceKey,
    refusal,
)
from kgot_lab.experts.federation.signing import (
    TIMED_OUT,
    HttpReply,
    Peer,
    Peers,
    SeenNonces,
    exchange,
    open_envelope,
    run_with_timeout,
    sign_envelope,
)
from kgot_lab.io.times import utc_now
from kgot_lab.text.cleaning import fence_text, printable_line

# Questions to an expert of another instance, and its answers. Both are validated.

MAX_QUESTION_LENGTH, MAX_ANSWER_LENGTH = 20_000, 200_000  # characters
MAX_SOURCES = 200


def _check_line(text: str) -> str:
    if not text.strip() or printable_line(text) != text:
        raise ValueError("it is blank, or has more than one line")
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is blank")
    return text


def _check_source(text: str) -> str:
    graph, _, node = text.partition(":")
    if not graph or not node:
        raise ValueError("a source is written GRAPH:NODE")
    return text


Line = Annotated[str, Field(max_length=200), AfterValidator(_check_line)]
_Source = Annotated[str, Field(max_length=500), AfterValidator(_check_line), AfterValidator(_check_source)]


class SentValue(BaseModel):
    """A value sent or received: frozen, and without unknown fields. Raises BadInput if it is invalid."""

    model_config: ClassVar[ConfigDict] = {"extra": "forbid", "frozen": True}

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise BadInput(describe_first_error(error)) from None

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON-compatible data."""
        return self.model_dump(mode="json")


class RemoteQuestion(SentValue):
    """A question to an expert, named by its id at its instance."""

    expert: Line
    question: Annotated[str, Field(max_length=MAX_QUESTION_LENGTH), AfterValidator(_check_not_blank)]


class RemoteAnswer(SentValue):
    """The answer of an expert with the nodes it cites as GRAPH:NODE, or no answer and the reason."""

    expert: Line
    answer: Annotated[str, Field(max_length=MAX_ANSWER_LENGTH), AfterValidator(_check_not_blank)] | None
    sources: Annotated[tuple[_Source, ...], Field(max_length=MAX_SOURCES)] = ()
    reason: Annotated[str, Field(max_length=500)] = ""

    @model_validator(mode="after")
    def _check_reason(self) -> RemoteAnswer:
        if self.answer is not None and self.reason:
            raise ValueError("an answer has no reason")
        if self.answer is None and (self.sources or not self.reason.strip()):
            raise ValueError("without an answer there is a reason, and no source")
        return self


# The side that is asked: open the question and sign the answer. Routes of a server only transport the bytes.
#
# A route reads the body unchanged (at most MAX_ENVELOPE_BYTES bytes), and sends `wire` unchanged, because parsing
# and serializing JSON again would break the signature. A refusal is sent as `refusal_reply`.

ASK_PATH = "/federation/ask"
CAPABILITIES_PATH = "/federation/capabilities"


@dataclass(frozen=True)
class Federation:
    """An instance among others: its key, its known peers, and the nonces it has received."""

    key: InstanceKey
    peers: Peers
    seen: SeenNonces
    now: Clock = utc_now

    def open_request(self, data: bytes, kind: str) -> tuple[Envelope, Peer]:
        """Open an envelope of a requesting kind from a peer, once, and return it with the peer.

        Raises RefusedEnvelope if the envelope is not accepted.
        """
        envelope = open_envelope(data, self.peers, self.key.public, kind=kind, now=self.now, seen=self.seen)
        peer = self.peers.with_key(envelope.sender)
        if peer is None:
            raise refusal("unknown sender")
        return envelope, peer

    def sign_reply(self, kind: str, body: Mapping[str, Any], to: Envelope) -> bytes:
        """Return the bytes of a signed reply to an opened envelope."""
        return sign_envelope(kind, body, self.key, to.sender, in_reply_to=to.digest, now=self.now).wire


@dataclass(frozen=True)
class DelegatedQuestion:
    """An accepted question from a peer. It must be answered here and never forwarded."""

    peer: Peer
    asked: RemoteQuestion
    envelope: Envelope


def open_question(data: bytes, federation: Federation) -> DelegatedQuestion:
    """Open the question in the bytes that a peer sent.

    Raises RefusedEnvelope if the envelope is not accepted or its body is no question.
    """
    envelope, peer = federation.open_request(data, "question")
    try:
        return DelegatedQuestion(peer, RemoteQuestion(**envelope.body), envelope)
    except BadInput:
        raise refusal("malformed") from None


def refusal_reply(error: RefusedEnvelope) -> tuple[dict[str, str], int]:
    """Return what is sent to a peer that was refused: the JSON body, and the HTTP status."""
    return {"refused": error.code, "error": str(error)}, REFUSALS[error.code][0]


MAX_EXPERTS = 32  # experts at once


@dataclass(frozen=True)
class DelegationProvenance:
    """The origin of an answer: instance, key, expert, cited nodes, and digest and time of the signed answer.

    The instance's name is our name for it. `digest` is SHA-256 of the signed answer, `question_digest` that
    of the signed question.
    """

    instance: str
    public_key: str
    expert: str
    sources: tuple[str, ...]
    digest: str
    question_digest: str
    answered_at: datetime

    def to_json(self) -> dict[str, Any]:
        """Return the provenance as JSON-compatible data, to be stored with a chat message."""
        return asdict(self) | {"sources": list(self.sources), "answered_at": self.answered_at.isoformat()}


@dataclass(frozen=True)
class DelegatedAnswer:
    """The result of asking a remote expert: `answer` is fenced for a model, or None with the reason.

    `text` is the same without the fence, for people. It is untrusted like any web page, and must be escaped
    when shown. `signed` are the signed bytes, which prove that the answer is the instance's.
    """

    instance: str
    expert: str
    answer: str | None = None
    text: str = field(default="", repr=False)
    reason: str = ""
    provenance: DelegationProvenance | None = None
    signed: bytes = field(default=b"", repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as people see it, with its provenance."""
        origin = None if self.provenance is None else self.provenance.to_json()
        names = ("instance", "expert", "text", "reason")
        return {name: getattr(self, name) for name in names} | {"provenance": origin}


def delegate_to_all(
    question: str,
    experts: Sequence[tuple[Peer, str]],
    key: InstanceKey,
    *,
    timeout: float = 30.0,
    now: Clock = utc_now,
) -> tuple[DelegatedAnswer, ...]:
    """Ask several experts at once, each with its peer, and return their answers in the same order.

    All have the same `timeout` in seconds and none waits for another. If a peer is down, slow, broken or
    dishonest, its result has a reason instead of an answer. Raises BadInput only for the request itself: an
    invalid question or expert id, too many experts, or an invalid timeout.
    """
    if len(experts) > MAX_EXPERTS:
        raise BadInput(f"at most {MAX_EXPERTS} experts are asked at once: choose among them")
    questions = [RemoteQuestion(expert=expert, question=question) for _, expert in experts]

    asked = zip(questions, experts, strict=True)
    jobs = [partial(_ask, question, peer, key, timeout, now) for question, (peer, _) in asked]
    outcomes = zip(run_with_timeout(jobs, timeout), experts, strict=True)
    return tuple(
        each
        if isinstance(each, DelegatedAnswer)
        else DelegatedAnswer(peer.name, expert, reason=failure_reason(each))
        for each, (peer, expert) in outcomes
    )


def join_answers(answers: Iterable[DelegatedAnswer]) -> str:
    """Join the answers of several experts into one text for a model.

    Each answer is in its fence. An expert that gave none has one line.
    """
    texts = (answer.answer or f"No answer from {answer.instance}/{answer.expert}." for answer in answers)
    return "\n\n".join(texts)


def failure_reason(outcome: object) -> str:
    """Explain why there is no answer: the error that was raised, or that nothing came in time."""
    if isinstance(outcome, RefusedEnvelope):
        return f"what it sent is refused: {outcome.code}"
    if isinstance(outcome, LabError):
        return str(outcome)
    return TIMED_OUT if outcome is None else f"it could not be asked ({type(outcome).__name__})"


def request_reply(peer: Peer, sent: Envelope, path: str, kind: str, seconds: float, now: Clock) -> Envelope:
    """Send an envelope to a peer and return its signed reply.

    Raises ToolFailed if the exchange fails, and RefusedEnvelope if the reply is not accepted.
    """
    response = exchange(peer.url_for(path), seconds, MAX_ENVELOPE_BYTES, body=sent.wire)
    if response.status != 200:
        raise ToolFailed(_describe_refusal(response), again=response.status >= 500)
    return open_envelope(response.body, Peers(peer), sent.sender, kind=kind, now=now, in_reply_to=sent.digest)


def _ask(
    question: RemoteQuestion, peer: Peer, key: InstanceKey, seconds: float, now: Clock
) -> DelegatedAnswer:
    lifetime = min(timedelta(seconds=seconds) + CLOCK_SKEW, MAX_LIFETIME)
    sent = sign_envelope("question", question.to_json(), key, peer.public_key, lifetime=lifetime, now=now)
    reply = request_reply(peer, sent, ASK_PATH, "answer", seconds, now)
    answer_of = partial(DelegatedAnswer, peer.name, question.expert, signed=reply.wire)
    try:
        answer = RemoteAnswer(**reply.body)
    except BadInput:
        return answer_of(reason="what it sent is no answer")
    if answer.expert != question.expert:
        return answer_of(reason="another expert answered")
    if answer.answer is None:
        return answer_of(reason=f"it says: {printable_line(answer.reason)}")
    digests = reply.digest, sent.digest
    asked = peer.name, reply.sender, question.expert
    provenance = DelegationProvenance(*asked, answer.sources, *digests, reply.issued_at)
    fence = fence_text(answer.answer, f"{peer.name}/{question.expert}, another instance")
    return answer_of(fence, answer.answer, provenance=provenance)


def _describe_refusal(response: HttpReply) -> str:
    """Describe the refusal of a peer. Only known refusal codes are repeated."""
    try:
        body = json.loads(response.body)
        code = body.get("refused") if isinstance(body, dict) else None
    except (ValueError, RecursionError):
        code = None
    is_known = isinstance(code, str) and code in REFUSALS
    return f"it refused what was asked: {code}" if is_known else f"it answered with HTTP {response.status}"
