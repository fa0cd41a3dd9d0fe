"""Values of the layers: log entries and who heard them, texts and who may know them, and queries on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.npc.models import Entity, check_bounded_depth, check_id, check_short_text
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.embedding.embedder import Matrix
from kgot_lab.errors import require_count, require_probability
from kgot_lab.io.times import to_utc
from kgot_lab.text.cleaning import checked_text

Audience = tuple[str, ...] | None  # the ids of those it is for; None: everyone


@dataclass(frozen=True)
class LogEntry:
    """A verbatim entry of a session, heard by its speaker and its audience.

    No speaker means the game master.
    """

    session_id: str
    text: str
    audience: Audience
    speaker_id: str | None = None
    at: datetime | None = None  # None: when it is appended

    def __post_init__(self) -> None:
        session = check_short_text(self.session_id, "the session of an entry", blank=True)
        object.__setattr__(self, "session_id", session)
        object.__setattr__(self, "text", checked_text(self.text, "the text of an entry"))
        object.__setattr__(self, "audience", check_audience(self.audience))
        if self.speaker_id is not None:
            object.__setattr__(self, "speaker_id", check_id(self.speaker_id))
        if self.at is not None:
            object.__setattr__(self, "at", to_utc(self.at, "the time of an entry"))


@dataclass(frozen=True)
class Chunk:
    """A text about an entity. Of those who see the entity, its audience may know it.

    The entity itself is not included by default.
    """

    entity_id: str
    text: str
    audience: Audience
    id: str = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        object.__setattr__(self, "entity_id", check_id(self.entity_id))
        object.__setattr__(self, "text", checked_text(self.text, "the text of a chunk"))
        object.__setattr__(self, "audience", check_audience(self.audience))
        object.__setattr__(self, "id", check_id(self.id))


@dataclass(frozen=True)
class ChunkMatch:
    """A chunk that was found, with its cosine with the query, to six digits."""

    chunk: Chunk
    similarity: float


@dataclass(frozen=True)
class ContextRanking:
    """The ranking of texts: score = similarity · w + (1 − w) / (1 + steps).

    Steps are counted outwards from the character over what it sees, and from a place to who is there. Only
    texts of entities within `hops` steps are found. With None those further away are found too, and beyond FARTHEST steps, or without a path,
    the second term is 0.
    """

    hops: int | None = 2
    limit: int = 10
    weight: float = 0.7  # w

    def __post_init__(self) -> None:
        if self.hops is not None:
            check_bounded_depth(self.hops, "hops", "how many steps away a text may be")
        require_count(self.limit, 1, "limit", "how many texts are found")
        object.__setattr__(self, "weight", require_probability(self.weight, "the weight of similarity"))

    @property
    def steps(self) -> int:
        """The number of steps to walk."""
        return self.hops or MAX_STEPS

    def score(self, similarity: float, hops: int | None) -> float:
        """Return the ranking score of a text from its similarity and its distance in hops."""
        return self.weight * similarity + (1 - self.weight) * (0 if hops is None else 1 / (1 + hops))


MAX_STEPS = 8  # steps; one more would change a score by less than .004
DEFAULT_RANKING = ContextRanking()


@dataclass(frozen=True, eq=False)
class ContextQuery:
    """A query of a character: a vector and its embedder, the entities to search, and the ranking.

    Entities are None to search all.
    """

    npc_id: str
    vector: Matrix
    embedder: str
    scope: tuple[str, ...] | None = None
    ranking: ContextRanking = DEFAULT_RANKING
    policy: VisibilityPolicy = DEFAULT_POLICY


@dataclass(frozen=True)
class ContextResult:
    """A text that was found: its entity as seen, similarity, number of steps (None: too many), and score."""

    entity: Entity
    text: str
    similarity: float
    hops: int | None
    score: float


def check_audience(audience: Audience) -> Audience:
    """Validate the ids of an audience and remove duplicates. None means everyone.

    Raises BadInput if an id is invalid.
    """
    return None if audience is None else check_ids(audience, "an audience")


@check_arguments
def check_ids(ids: Iterable[str], what: str) -> tuple[str, ...]:
    """Validate ids and remove duplicates.

    Raises BadInput if one is invalid.
    """
    return tuple(dict.fromkeys(map(check_id, ids)))


def may_know(audience: Audience, npc_id: str) -> bool:
    """Return whether a character belongs to an audience."""
    return audience is None or npc_id in audience
