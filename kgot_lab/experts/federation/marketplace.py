"""The signed offers of peers, and a marketplace: a folder or address with exported experts.

Offers are matched to a question. The index of a marketplace has the hash and the scores of each expert. The
hash proves that a file is the one in the index, not that either is honest: whoever can write the index can
write both. Import experts only from a marketplace that you trust. What is fetched is external text, validated
like any expert.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable, ToolFailed, UnknownName, require
from kgot_lab.experts.federation.delegation import (
    CAPABILITIES_PATH,
    Federation,
    Line,
    SentValue,
    reason_for,
    reply_of,
)
from kgot_lab.experts.federation.envelope import InstanceKey
from kgot_lab.experts.federation.signing import Peer, all_in_time, exchanged, is_plain_url, signed_envelope
from kgot_lab.io.files import read_regular_file, write_atomically
from kgot_lab.memory.claims.claim import utc_now
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.text.words import content_words
from kgot_lab.types import Document

# The signed offer of an instance to its peers, and the expert on offer that fits a question best, by words
# and without a model.

_Count = Annotated[int, Field(strict=True, ge=0)]
Description = Annotated[str, Field(max_length=2_000)]
MeasuredScores = (
    Annotated[dict[Line, Annotated[float, Field(strict=True, allow_inf_nan=False)]], Field(max_length=100)]
    | None
)


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
    """The signed offer of a peer and its time, or nothing and the reason."""

    peer: Peer
    experts: tuple[AdvertisedExpert, ...] = ()
    signed_at: datetime | None = None
    digest: str = ""
    reason: str = ""


class FittingExpert(NamedTuple):
    """An expert of a peer that fits a question, with its BM25 score, comparable within one selection only."""

    peer: Peer
    expert: AdvertisedExpert
    score: float


def sign_capabilities(data: bytes, federation: Federation, experts: Iterable[AdvertisedExpert]) -> bytes:
    """Return the signed list of offered experts, in reply to the introduction of a peer.

    Raises RefusedEnvelope if the introduction is not accepted.
    """
    envelope, _ = federation.opened(data, "introduction")
    return federation.reply("capabilities", {"experts": [each.to_json() for each in experts]}, envelope)


def capabilities_of(
    peers: Iterable[Peer], key: InstanceKey, *, timeout: float = 10.0, now: Callable[[], datetime] = utc_now
) -> tuple[Advertised, ...]:
    """Ask all peers at once what they offer.

    A peer that gives no valid reply within `timeout` seconds has a reason instead.
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
    """Return the advertised expert that matches a question best by BM25.

    Its name, topics, description and graphs are compared. Returns None if no content word is shared.
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
    """Return the content words of a text. Underscores separate words."""
    return " ".join(content_words(text.replace("_", " ")))


INDEX = "index.json"
MOST_EXPERT, MOST_INDEX = 5_000_000, 5_000_000  # bytes
HASH_MISMATCH = "the exported expert is not the one that the index of the marketplace speaks of: its hash is another, and nothing was taken over"
_FILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}\.json")  # so that no name leaves the folder
_DESCRIPTION = 2_000


def _check_file(name: str) -> str:
    if not _FILE.fullmatch(name) or name == INDEX:
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
    scores: MeasuredScores = None


class _Index(SentValue):
    version: int = 1
    experts: Annotated[tuple[ListedExpert, ...], Field(max_length=10_000)]

    @model_validator(mode="after")
    def _check_names(self) -> _Index:
        if len({each.name for each in self.experts}) < len(self.experts):
            raise ValueError("it names an expert twice")
        return self


def list_marketplace(place: Path | str, *, timeout: float = 30.0) -> tuple[ListedExpert, ...]:
    """Return the experts of a marketplace, by name.

    Raises BadInput if `place` is no marketplace, and StoreUnavailable if it cannot be reached in time.
    """
    return _of_index(_read(place, INDEX, MOST_INDEX, timeout))


def fetch_from_marketplace(place: Path | str, name: str, *, timeout: float = 30.0) -> dict[str, Any]:
    """Fetch an exported expert by its name, as JSON, and verify its hash against the index.

    Raises UnknownName if the name is not listed, StoreDamaged if the hash differs (always with the same
    message), and what `list_marketplace` raises.
    """
    experts = {each.name: each for each in list_marketplace(place, timeout=timeout)}
    if name not in experts:
        raise UnknownName("expert of the marketplace", name, experts)
    data = _read(place, experts[name].file, MOST_EXPERT, timeout)
    if not hmac.compare_digest(hashlib.sha256(data).hexdigest(), experts[name].sha256):
        raise StoreDamaged(HASH_MISMATCH)
    return _object(data, "the exported expert")


def publish_to_marketplace(
    folder: Path | str, expert_json: str, scores: MeasuredScores = None
) -> ListedExpert:
    """Add an exported expert to the marketplace in a folder, replacing one of the same name.

    The index is complete at any time. The file is named by its hash and written before the index, so that
    readers of the old index find the old file. Raises BadInput if the expert is invalid.
    """
    require(expert_json, str, "an exported expert is a text of JSON")
    data = expert_json.encode("utf-8", "backslashreplace")
    if len(data) > MOST_EXPERT:
        raise BadInput(f"an exported expert has at most {MOST_EXPERT // 1_000_000} MB")
    told = _object(data, "the exported expert")
    name: Any = told.get("name")
    sha256 = hashlib.sha256(data).hexdigest()
    start = re.sub(r"[^a-z0-9]+", "_", str(name).casefold()).strip("_")[:60] or "expert"
    said = told.get("description", "")
    about = said[:_DESCRIPTION] if isinstance(said, str) else ""
    added = ListedExpert(
        name=name, file=f"{start}-{sha256[:16]}.json", sha256=sha256, description=about, scores=scores
    )
    place = Path(folder)
    with _alone(place):
        there = _of_index(_from_folder(place, INDEX, MOST_INDEX)) if (place / INDEX).exists() else ()
        all_of_it = sorted(
            [*(each for each in there if each.name != name), added], key=lambda each: each.name
        )
        index = {"version": 1, "experts": [each.to_json() for each in all_of_it]}
        if (place / added.file).is_symlink() or (place / INDEX).is_symlink():
            raise BadInput("a marketplace has no links: take them out of its folder")
        write_atomically(place / added.file, data, "the exported expert")
        write_atomically(
            place / INDEX,
            json.dumps(index, ensure_ascii=False, indent=1, allow_nan=False) + "\n",
            "the index of the marketplace",
        )
    return added


def _read(place: Path | str, file: str, most: int, seconds: float) -> bytes:
    if isinstance(place, str) and "://" in place:
        return _from_address(place, file, most, seconds)
    return _from_folder(Path(place), file, most)


def _from_address(place: str, file: str, most: int, seconds: float) -> bytes:
    if not is_plain_url(place):
        raise BadInput(
            "a marketplace is a folder or an address: https://HOST/PATH, without a password or a query"
        )
    (came,) = all_in_time([lambda: exchanged(f"{place.rstrip('/')}/{file}", seconds, most)], seconds)
    if came is None:
        raise StoreUnavailable("the marketplace did not answer in time: try again later")
    if isinstance(came, ToolFailed):
        raise StoreUnavailable(f"the marketplace: {came}") from None
    if isinstance(came, Exception):
        raise came
    if came.status != 200:
        raise StoreUnavailable(f"the marketplace answered with HTTP {came.status} where {file} should be")
    return came.body


def _from_folder(folder: Path, file: str, most: int) -> bytes:
    path = folder / file
    if path.is_symlink():
        raise BadInput(
            f"{file} of the marketplace is a link, which may lead anywhere: put the file itself there"
        )
    try:
        return read_regular_file(path, most)
    except OSError as error:
        raise StoreUnavailable(
            f"{file} of the marketplace cannot be read: {error.strerror or type(error).__name__}"
        ) from None


def _of_index(data: bytes) -> tuple[ListedExpert, ...]:
    told = _object(data, "the index of the marketplace")
    try:
        index = _Index(**told)
    except BadInput as error:
        raise BadInput(f"the index of the marketplace: {error}") from None
    return tuple(sorted(index.experts, key=lambda each: each.name))


def _object(data: bytes, what: str) -> dict[str, Any]:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadInput(f"{what} is no JSON object")
    return told


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder against other publishing processes, whose additions could be lost otherwise."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("ab")
    except OSError as error:
        raise BadInput(f"the folder of the marketplace cannot be written to: {error.strerror}") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
