"""The signed offers of peers, and a marketplace: a folder or address with exported experts.

Offers are matched to a question. The index of a marketplace has the hash and the scores of each expert. The
hash proves that a file is the one in the index, not that either is honest: anyone who can write the index can
write both. Import experts only from a marketplace that you trust. What is fetched is external text, validated
like any expert.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from kgot_lab.arguments import check_arguments, parse_json
from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable, ToolFailed, require_known
from kgot_lab.experts.expert import slugify
from kgot_lab.experts.federation.delegation import (
    CAPABILITIES_PATH,
    Federation,
    Line,
    SentValue,
    failure_reason,
    request_reply,
)
from kgot_lab.experts.federation.envelope import InstanceKey
from kgot_lab.experts.federation.signing import Peer, exchange, is_plain_url, run_with_timeout, sign_envelope
from kgot_lab.io.files import os_errors_as, read_regular_file, write_atomically
from kgot_lab.io.processes import exclusive_lock
from kgot_lab.io.times import utc_now
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.text.words import content_words
from kgot_lab.types import Document

# The signed offer of an instance to its peers, and the expert on offer that fits a question best, by words
# and without a model.

_Count = Annotated[int, Field(strict=True, ge=0)]
Description = Annotated[str, Field(max_length=2_000)]
_Score = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Scores = Annotated[dict[Line, _Score], Field(max_length=100)] | None


class AdvertisedGraph(SentValue):
    """A graph of an expert, and its size in nodes and edges. Raises BadInput if it is invalid."""

    name: Line
    nodes: _Count
    edges: _Count


class AdvertisedExpert(SentValue):
    """An expert as its instance offers it. Raises BadInput if it is invalid.

    `scores` were measured there, and only that instance vouches for them. They may be None.
    """

    id: Line
    name: Line
    description: Description = ""
    topics: Annotated[tuple[Line, ...], Field(max_length=100)] = ()
    graphs: Annotated[tuple[AdvertisedGraph, ...], Field(max_length=100)] = ()
    schema_version: Annotated[int, Field(strict=True, ge=1)] = 1
    scores: Scores = None

    @property
    def is_unread(self) -> bool:
        """Whether a graph of it is still being read there, so that its topics are not known."""
        return any(graph.nodes == 0 for graph in self.graphs)


class _Offer(SentValue):
    experts: Annotated[tuple[AdvertisedExpert, ...], Field(max_length=200)]

    @model_validator(mode="after")
    def _check_ids(self) -> _Offer:
        if len({expert.id for expert in self.experts}) < len(self.experts):
            raise ValueError("two experts have one id")
        return self


@dataclass(frozen=True)
class PeerOffer:
    """The signed offer of a peer and its time, or nothing and the reason."""

    peer: Peer
    experts: tuple[AdvertisedExpert, ...] = ()
    signed_at: datetime | None = None
    digest: str = ""
    reason: str = ""


def sign_capabilities(data: bytes, federation: Federation, experts: Iterable[AdvertisedExpert]) -> bytes:
    """Return the signed list of offered experts, in reply to the introduction of a peer.

    Raises RefusedEnvelope if the introduction is not accepted.
    """
    envelope, _ = federation.open_request(data, "introduction")
    body = {"experts": [expert.to_json() for expert in experts]}
    return federation.sign_reply("capabilities", body, envelope)


def request_offers(
    peers: Iterable[Peer], key: InstanceKey, *, timeout: float = 10.0
) -> tuple[PeerOffer, ...]:
    """Ask all peers at once what they offer.

    A peer that gives no valid reply within `timeout` seconds has a reason instead.
    """
    asked_peers = list(peers)
    outcomes = run_with_timeout(
        [partial(_request_offer, peer, key, timeout) for peer in asked_peers], timeout
    )
    return tuple(
        each if isinstance(each, PeerOffer) else PeerOffer(peer, reason=failure_reason(each))
        for each, peer in zip(outcomes, asked_peers, strict=True)
    )


def best_match(question: str, advertised: Iterable[PeerOffer]) -> tuple[Peer, AdvertisedExpert] | None:
    """Return the advertised expert that matches a question best by BM25, with its peer.

    Its name, topics, description and graphs are compared. Returns None if no content word is shared.
    """
    offers = [(each.peer, expert) for each in advertised for expert in each.experts]
    texts = (_content_text(_describe(expert)) for _, expert in offers)
    documents = [Document(f"{number:06}", text) for number, text in enumerate(texts)]
    hits = bm25(documents).search(_content_text(question)).hits if documents else ()
    return offers[int(hits[0].id)] if hits else None


def _request_offer(peer: Peer, key: InstanceKey, seconds: float) -> PeerOffer:
    sent = sign_envelope("introduction", {}, key, peer.public_key)
    reply = request_reply(peer, sent, CAPABILITIES_PATH, "capabilities", seconds, utc_now)
    try:
        experts = _Offer(**reply.body).experts
    except BadInput:
        return PeerOffer(peer, reason="what it sent are no capabilities")
    return PeerOffer(peer, experts, reply.issued_at, reply.digest)


def _describe(expert: AdvertisedExpert) -> str:
    graphs = (graph.name for graph in expert.graphs)
    return " ".join([expert.name, *expert.topics, expert.description, *graphs])


def _content_text(text: str) -> str:
    """Return the content words of a text. Underscores separate words."""
    return " ".join(content_words(text.replace("_", " ")))


INDEX_FILE = "index.json"
MAX_EXPERT_BYTES, MAX_INDEX_BYTES = 5_000_000, 5_000_000  # bytes
HASH_MISMATCH = "the exported expert is not the one that the index of the marketplace speaks of: its hash is another, and nothing was taken over"
_FILE_NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}\.json")  # so that no name leaves the folder
_MAX_DESCRIPTION_LENGTH = 2_000


def _check_file(name: str) -> str:
    if not _FILE_NAME_PATTERN.fullmatch(name) or name == INDEX_FILE:
        raise ValueError("a file of a marketplace is called such as an_expert.json")
    return name


class ListedExpert(SentValue):
    """An expert of a marketplace: its name, its file with SHA-256, and its scores.

    The scores are those its publisher measured, or None.
    """

    name: Line
    file: Annotated[str, AfterValidator(_check_file)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    description: Description = ""
    scores: Scores = None


class _Index(SentValue):
    version: int = 1
    experts: Annotated[tuple[ListedExpert, ...], Field(max_length=10_000)]

    @model_validator(mode="after")
    def _check_names(self) -> _Index:
        if len({expert.name for expert in self.experts}) < len(self.experts):
            raise ValueError("it names an expert twice")
        return self


def list_marketplace(location: Path | str, *, timeout: float = 30.0) -> tuple[ListedExpert, ...]:
    """Return the experts of a marketplace, by name.

    Raises BadInput if `location` is no marketplace, and StoreUnavailable if it cannot be reached in time.
    """
    return _parse_index(_read_file(location, INDEX_FILE, MAX_INDEX_BYTES, timeout))


def fetch_from_marketplace(location: Path | str, name: str, *, timeout: float = 30.0) -> dict[str, Any]:
    """Fetch an exported expert by its name, as JSON, and verify its hash against the index.

    Raises UnknownName if the name is not listed, StoreDamaged if the hash differs (always with the same
    message), and what `list_marketplace` raises.
    """
    experts = {each.name: each for each in list_marketplace(location, timeout=timeout)}
    require_known("expert of the marketplace", experts, name)
    data = _read_file(location, experts[name].file, MAX_EXPERT_BYTES, timeout)
    if not hmac.compare_digest(hashlib.sha256(data).hexdigest(), experts[name].sha256):
        raise StoreDamaged(HASH_MISMATCH)
    return _parse_object(data, "the exported expert")


@check_arguments
def publish_to_marketplace(folder: Path | str, expert_json: str, scores: Scores = None) -> ListedExpert:
    """Add an exported expert to the marketplace in a folder, replacing one of the same name.

    The index is complete at any time. The file is named by its hash and written before the index, so that
    readers of the old index find the old file. Raises BadInput if the expert is invalid.
    """
    data = expert_json.encode("utf-8", "backslashreplace")
    if len(data) > MAX_EXPERT_BYTES:
        raise BadInput(f"an exported expert has at most {MAX_EXPERT_BYTES // 1_000_000} MB")
    document = _parse_object(data, "the exported expert")
    name: Any = document.get("name")
    sha256 = hashlib.sha256(data).hexdigest()
    description = document.get("description", "")
    short_description = description[:_MAX_DESCRIPTION_LENGTH] if isinstance(description, str) else ""
    file = f"{slugify(str(name))}-{sha256[:16]}.json"
    added = ListedExpert(name=name, file=file, sha256=sha256, description=short_description, scores=scores)
    path = Path(folder)
    with exclusive_lock(path / INDEX_FILE):  # an addition of another process would be lost otherwise
        existing: tuple[ListedExpert, ...] = ()
        if (path / INDEX_FILE).exists():
            existing = _parse_index(_read_from_folder(path, INDEX_FILE, MAX_INDEX_BYTES))
        others = (each for each in existing if each.name != name)
        entries = sorted([*others, added], key=lambda each: each.name)
        index = {"version": 1, "experts": [entry.to_json() for entry in entries]}
        if (path / added.file).is_symlink() or (path / INDEX_FILE).is_symlink():
            raise BadInput("a marketplace has no links: take them out of its folder")
        write_atomically(path / added.file, data, "the exported expert")
        text = json.dumps(index, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        write_atomically(path / INDEX_FILE, text, "the index of the marketplace")
    return added


def _read_file(location: Path | str, file: str, max_bytes: int, seconds: float) -> bytes:
    if isinstance(location, str) and "://" in location:
        return _fetch_file(location, file, max_bytes, seconds)
    return _read_from_folder(Path(location), file, max_bytes)


def _fetch_file(address: str, file: str, max_bytes: int, seconds: float) -> bytes:
    if not is_plain_url(address):
        raise BadInput("a marketplace is a folder or https://HOST/PATH, without a password or a query")
    url = f"{address.rstrip('/')}/{file}"
    (outcome,) = run_with_timeout([lambda: exchange(url, seconds, max_bytes)], seconds)
    if outcome is None:
        raise StoreUnavailable("the marketplace did not answer in time: try again later")
    if isinstance(outcome, ToolFailed):
        raise StoreUnavailable(f"the marketplace: {outcome}") from None
    if isinstance(outcome, Exception):
        raise outcome
    if outcome.status != 200:
        raise StoreUnavailable(f"the marketplace answered with HTTP {outcome.status} where {file} should be")
    return outcome.body


def _read_from_folder(folder: Path, file: str, max_bytes: int) -> bytes:
    path = folder / file
    if path.is_symlink():
        raise BadInput(f"{file} of the marketplace is a link, which may lead anywhere: put the file there")
    with os_errors_as(f"{file} of the marketplace cannot be read", StoreUnavailable):
        return read_regular_file(path, max_bytes)


def _parse_index(data: bytes) -> tuple[ListedExpert, ...]:
    document = _parse_object(data, "the index of the marketplace")
    try:
        index = _Index(**document)
    except BadInput as error:
        raise BadInput(f"the index of the marketplace: {error}") from None
    return tuple(sorted(index.experts, key=lambda expert: expert.name))


def _parse_object(data: bytes, label: str) -> dict[str, Any]:
    try:
        document = parse_json(data)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{label} is no JSON object: {error}") from None
    if not isinstance(document, dict):
        raise BadInput(f"{label} is no JSON object")
    return document
