"""What an instance offers its peers, signed; and which of all the experts on offer fits a question, by words
and without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from pydantic import Field, model_validator

from kgot_lab.errors import BadInput
from kgot_lab.experts.federation.delegation import (
    CAPABILITIES_PATH,
    Federation,
    Line,
    SentValue,
    reason_for,
    reply_of,
)
from kgot_lab.experts.federation.envelope import InstanceKey
from kgot_lab.experts.federation.signing import Peer, all_in_time, signed_envelope
from kgot_lab.memory.claims.claim import utc_now
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.text.words import content_words
from kgot_lab.types import Document

_Count = Annotated[int, Field(strict=True, ge=0)]
Description = Annotated[str, Field(max_length=2_000)]
MeasuredScores = (
    Annotated[dict[Line, Annotated[float, Field(strict=True, allow_inf_nan=False)]], Field(max_length=100)]
    | None
)


class AdvertisedGraph(SentValue):
    """A graph that an expert knows, and its size in nodes and edges; raises BadInput."""

    name: Line
    nodes: _Count
    edges: _Count


class AdvertisedExpert(SentValue):
    """An expert as its instance offers it; `scores` are what was measured of it there, which only that
    instance vouches for, or None.

    Raises BadInput.
    """

    id: Line
    name: Line
    description: Description = ""
    topics: Annotated[tuple[Line, ...], Field(max_length=100)] = ()
    graphs: Annotated[tuple[AdvertisedGraph, ...], Field(max_length=100)] = ()
    schema_version: Annotated[int, Field(strict=True, ge=1)] = 1
    scores: MeasuredScores = None


class _Offer(SentValue):
    experts: Annotated[tuple[AdvertisedExpert, ...], Field(max_length=200)]

    @model_validator(mode="after")
    def _check_ids(self) -> _Offer:
        if len({expert.id for expert in self.experts}) < len(self.experts):
            raise ValueError("two experts have one id")
        return self


@dataclass(frozen=True)
class Advertised:
    """What a peer offers, as it signed it at a time; or nothing, and the reason."""

    peer: Peer
    experts: tuple[AdvertisedExpert, ...] = ()
    signed_at: datetime | None = None
    digest: str = ""
    reason: str = ""


class FittingExpert(NamedTuple):
    """An expert of a peer that fits a question, and how well: a score of BM25, comparable within one choice
    only.
    """

    peer: Peer
    expert: AdvertisedExpert
    score: float


def signed_capabilities(data: bytes, federation: Federation, experts: Iterable[AdvertisedExpert]) -> bytes:
    """The signed document of what is offered, in reply to a peer that introduced itself; raises
    RefusedEnvelope.
    """
    envelope, _ = federation.opened(data, "introduction")
    return federation.reply("capabilities", {"experts": [each.to_json() for each in experts]}, envelope)


def capabilities_of(
    peers: Iterable[Peer], key: InstanceKey, *, timeout: float = 10.0, now: Callable[[], datetime] = utc_now
) -> tuple[Advertised, ...]:
    """What each peer offers, asked all at once; one that gives nothing sound within so many seconds has a
    reason instead.
    """
    asked = list(peers)

    def job(peer: Peer) -> Callable[[], Advertised]:
        return lambda: _offered(peer, key, timeout, now)

    came = all_in_time([job(peer) for peer in asked], timeout)
    return tuple(
        each if isinstance(each, Advertised) else Advertised(peer, reason=reason_for(each))
        for each, peer in zip(came, asked, strict=True)
    )


def best_peer(question: str, advertised: Iterable[Advertised]) -> FittingExpert | None:
    """The expert on offer whose name, topics, description and graphs share most with a question; None where
    no telling word is shared.
    """
    offers = [(each.peer, expert) for each in advertised for expert in each.experts]
    documents = [
        Document(f"{number:06}", _words(_described(expert))) for number, (_, expert) in enumerate(offers)
    ]
    hits = bm25(documents).search(_words(question)).hits if documents else ()
    if not hits:
        return None
    peer, expert = offers[int(hits[0].id)]
    return FittingExpert(peer, expert, hits[0].score)


def _offered(peer: Peer, key: InstanceKey, seconds: float, now: Callable[[], datetime]) -> Advertised:
    sent = signed_envelope("introduction", {}, key, peer.public_key, now=now)
    reply = reply_of(peer, sent, CAPABILITIES_PATH, "capabilities", seconds, now)
    try:
        experts = _Offer(**reply.body).experts
    except BadInput:
        return Advertised(peer, reason="what it sent are no capabilities")
    return Advertised(peer, experts, reply.issued_at, reply.digest)


def _described(expert: AdvertisedExpert) -> str:
    return " ".join(
        [expert.name, *expert.topics, expert.description, *(graph.name for graph in expert.graphs)]
    )


def _words(text: str) -> str:
    """The telling words of a text, also those within a name that is joined by underscores."""
    return " ".join(content_words(text.replace("_", " ")))
