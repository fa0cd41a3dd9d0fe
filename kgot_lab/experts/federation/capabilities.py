"""What an instance offers its peers, signed; and which of all the experts on offer fits a question, by words
and without a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.experts.federation.answering import CAPABILITIES_PATH, Federation
from kgot_lab.experts.federation.asking import reason_for, reply_of
from kgot_lab.experts.federation.exchange import all_in_time
from kgot_lab.experts.federation.keys import InstanceKey
from kgot_lab.experts.federation.messages import single_line, texts
from kgot_lab.experts.federation.peers import Peer
from kgot_lab.experts.federation.signing import signed_envelope
from kgot_lab.memory.claims.times import utc_now
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.text.words import content_words
from kgot_lab.types import Document

_MOST_EXPERTS, _MOST_LIST, _MOST_TEXT, _NAME = 200, 100, 2_000, 200


@dataclass(frozen=True)
class AdvertisedGraph:
    """A graph that an expert knows, and its size in nodes and edges; raises BadInput."""

    name: str
    nodes: int
    edges: int

    def __post_init__(self) -> None:
        single_line(self.name, "the name of a graph", _NAME)
        require_count(self.nodes, 0, "the nodes of a graph")
        require_count(self.edges, 0, "the edges of a graph")


@dataclass(frozen=True)
class AdvertisedExpert:
    """An expert as its instance offers it; `scores` are what was measured of it there, which only that
    instance vouches for, or None.

    Raises BadInput.
    """

    id: str
    name: str
    description: str = ""
    topics: tuple[str, ...] = ()
    graphs: tuple[AdvertisedGraph, ...] = ()
    schema_version: int = 1
    scores: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        single_line(self.id, "the id of an expert", _NAME)
        single_line(self.name, "the name of an expert", _NAME)
        require(self.description, str, "a description is a text")
        if len(self.description) > _MOST_TEXT or max(len(self.topics), len(self.graphs)) > _MOST_LIST:
            raise BadInput(
                f"an expert is described in {_MOST_TEXT:,} characters, {_MOST_LIST} topics and as many graphs at most"
            )
        for topic in self.topics:
            single_line(topic, "a topic", _NAME)
        require_count(self.schema_version, 1, "schema_version")
        measured_scores(self.scores)

    def to_json(self) -> dict[str, Any]:
        """The expert as it stands in the signed document."""
        scores = None if self.scores is None else dict(self.scores)
        graphs = [asdict(graph) for graph in self.graphs]
        return dict(vars(self)) | {"topics": list(self.topics), "graphs": graphs, "scores": scores}


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


def measured_scores(scores: object) -> dict[str, float] | None:
    """Scores that were measured, by name, or None; raises BadInput for what is no finite number."""
    if scores is None:
        return None
    if not isinstance(scores, Mapping) or len(scores) > _MOST_LIST:
        raise BadInput(f"scores are at most {_MOST_LIST} numbers by name, or None")
    for name, score in scores.items():
        single_line(name, "the name of a score", _NAME)
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            raise BadInput("a score is a finite number")
    return {name: float(score) for name, score in scores.items()}


def _offered(peer: Peer, key: InstanceKey, seconds: float, now: Callable[[], datetime]) -> Advertised:
    sent = signed_envelope("introduction", {}, key, peer.public_key, now=now)
    reply = reply_of(peer, sent, CAPABILITIES_PATH, "capabilities", seconds, now)
    try:
        experts = _experts(reply.body)
    except (BadInput, TypeError):  # a field that is missing, or not known
        return Advertised(peer, reason="what it sent are no capabilities")
    return Advertised(peer, experts, reply.issued_at, reply.digest)


def _experts(body: Mapping[str, Any]) -> tuple[AdvertisedExpert, ...]:
    found = [_expert(told) for told in _objects(body.get("experts"), _MOST_EXPERTS)]
    if len({expert.id for expert in found}) < len(found):
        raise BadInput("two experts have one id")
    return tuple(found)


def _expert(told: Mapping[str, Any]) -> AdvertisedExpert:
    graphs = tuple(AdvertisedGraph(**graph) for graph in _objects(told.get("graphs"), _MOST_LIST))
    return AdvertisedExpert(**{**told, "topics": texts(told.get("topics"), "topics"), "graphs": graphs})


def _objects(value: object, most: int) -> Sequence[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > most or not all(isinstance(each, dict) for each in value):
        raise BadInput(f"this is a list of at most {most} objects")
    return value


def _described(expert: AdvertisedExpert) -> str:
    return " ".join(
        [expert.name, *expert.topics, expert.description, *(graph.name for graph in expert.graphs)]
    )


def _words(text: str) -> str:
    """The telling words of a text, also those within a name that is joined by underscores."""
    return " ".join(content_words(text.replace("_", " ")))
