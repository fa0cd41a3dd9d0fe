"""The values of a world of characters, validated on creation: entities, relationships, filters and results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar, get_args
from uuid import UUID, uuid4

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require, require_count, require_known, require_probability, short_repr
from kgot_lab.graph.property_graph import Direction
from kgot_lab.io.times import to_utc
from kgot_lab.stores.sql import json_text, refuse_null
from kgot_lab.text.cleaning import checked_text
from kgot_lab.types import Json

# Validation of input to a world: ids, types, depths and attributes. Anything that a storage cannot hold is
# refused with a clear error.

TEXT_LISTS = ("public", "knowledge_scope")  # attributes that are lists of texts
MAX_RULE_STEPS = 100  # of a rule
_MAX_NAME_LENGTH = 400  # characters of a name or type, so that an index can hold it


def check_id(id: str) -> str:
    """Validate the id of an entity and return its canonical form.

    Raises BadInput if it is no UUID.
    """
    require(id, (str, UUID), "the id of an entity is a UUID in a text")
    try:
        return str(UUID(str(id)))
    except ValueError:
        expected = f"the id of an entity is a UUID, such as {UUID(int=2**127)}"
        raise BadInput(f"{expected}, which {short_repr(id)} is not") from None


def check_types(types: tuple[str, ...]) -> tuple[str, ...]:
    """Validate types and remove duplicates.

    Raises BadInput if they are no tuple of texts.
    """
    require(types, (tuple, list, set, frozenset), "types are texts in a tuple")
    return tuple(dict.fromkeys(checked_text(type, "a type") for type in types))


def check_direction(direction: Direction) -> None:
    """Raise BadInput unless the value is a direction."""
    require_known("direction", ("out", "in", "both"), direction)


def check_bounded_depth(depth: int, name: str, what: str) -> None:
    """Raise BadInput unless the value is a number of steps within the bound of a rule.

    Without a bound, a rule would follow a cycle for every step.
    """
    require_count(depth, 1, name, what, maximum=MAX_RULE_STEPS)


def check_attributes(
    attributes: Mapping[str, Json],
    of: str,
    *,
    marks: tuple[str, ...] = (),
    lists: tuple[str, ...] = TEXT_LISTS,
) -> dict[str, Json]:
    """Validate attributes for storage.

    Raises BadInput if they are no JSON, a name in `marks` has no boolean, or a name in `lists` has no list of
    texts.
    """
    require(attributes, Mapping, f"the attributes of {of} are a dictionary")
    for name in attributes:
        checked_text(name, f"the name of an attribute of {of}")
    checked: dict[str, Json] = dict(attributes)
    refuse_null(json_text(checked, f"the attributes of {of}"), f"one of the attributes of {of}")
    for mark in marks:
        require(checked.get(mark), (bool, type(None)), f"the attribute {mark!r} of {of} is true or false")
    for name in lists:
        value = checked.get(name)
        is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
        if value is not None and not is_texts:
            raise BadInput(f"the attribute {name!r} of {of} is a list of texts, not {short_repr(value)}")
    return checked


def check_short_text(text: str, what: str, *, blank: bool = False) -> str:
    """Validate a text that an index can hold.

    Raises BadInput if it is too long, and as `checked_text` does.
    """
    text = checked_text(text, what, blank=blank)
    if len(text) > _MAX_NAME_LENGTH:
        problem = f"{what} has {len(text):,} characters"
        raise BadInput(f"{problem}: say it in {_MAX_NAME_LENGTH} or fewer, and the rest in an attribute")
    return text


Built = TypeVar("Built")

# adding or deleting one direction does it for both
SYMMETRIC_TYPES = frozenset({"ALLIED_WITH", "HOSTILE_TO"})
# boolean attributes of a relationship: with one of them, it is shown to nobody in the world
SECRET_MARKS = ("secret", "hidden")

# ended: a later statement has another place
RelationshipStanding = Literal["accepted", "queued", "rejected", "ended"]


@check_arguments
@dataclass(frozen=True)
class Provenance:
    """The origin of a relationship: session, time, confidence, and whether the game master confirmed it."""

    session_id: str = ""
    timestamp: datetime | None = None  # None: when it is added
    confidence: float = 1.0
    source: str = "stated"
    dm_confirmed: bool = False

    def __post_init__(self) -> None:
        session = check_short_text(self.session_id, "the session of a provenance", blank=True)
        confidence = require_probability(self.confidence, "the confidence of a provenance")
        object.__setattr__(self, "session_id", session)
        object.__setattr__(self, "confidence", confidence)
        if self.timestamp is not None:
            object.__setattr__(self, "timestamp", to_utc(self.timestamp, "the timestamp of a provenance"))
        require_known("source of a provenance", ("stated", "inferred"), self.source)
        require(self.dm_confirmed, bool, "dm_confirmed is true or false")


NO_PROVENANCE = Provenance()


@check_arguments
@dataclass(frozen=True)
class Entity:
    """A person or thing in a world.

    An attribute of None is absent. Adding an entity again with it removes the attribute.
    """

    type: str
    name: str
    attributes: Mapping[str, Json] = field(default_factory=dict, hash=False)
    id: str = field(default_factory=lambda: str(uuid4()))
    created_at: datetime | None = field(default=None, compare=False)  # output only
    updated_at: datetime | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", check_short_text(self.type, "the type of an entity"))
        object.__setattr__(self, "name", check_short_text(self.name, "the name of an entity"))
        object.__setattr__(self, "attributes", check_attributes(self.attributes, "an entity"))
        object.__setattr__(self, "id", check_id(self.id))


@check_arguments
@dataclass(frozen=True)
class Relationship:
    """A directed relationship between entities. `standing` and the times are output only."""

    source_id: str
    target_id: str
    type: str
    attributes: Mapping[str, Json] = field(default_factory=dict, hash=False)
    provenance: Provenance = Provenance()
    standing: RelationshipStanding = field(default="accepted", compare=False)
    created_at: datetime | None = field(default=None, compare=False)
    updated_at: datetime | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_id", check_id(self.source_id))
        object.__setattr__(self, "target_id", check_id(self.target_id))
        object.__setattr__(self, "type", check_short_text(self.type, "the type of a relationship"))
        attributes = check_attributes(self.attributes, "a relationship", marks=SECRET_MARKS)
        object.__setattr__(self, "attributes", attributes)
        expected = "the provenance of a relationship is a Provenance(session_id, timestamp, confidence, …)"
        require(self.provenance, Provenance, expected)
        require_known("standing", get_args(RelationshipStanding), self.standing)

    @property
    def key(self) -> tuple[str, str, str]:
        """Its identity: the ids of its ends, and its type."""
        return self.source_id, self.target_id, self.type


@dataclass(frozen=True)
class EntityFilter:
    """A filter of entities by types, exact name, substring of the name (ignoring case), and attributes."""

    types: tuple[str, ...] = ()
    name: str = ""
    contains: str = ""
    attributes: Mapping[str, Json] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", check_types(self.types))
        object.__setattr__(self, "name", checked_text(self.name, "the name in a filter", blank=True))
        contains = checked_text(self.contains, "the part of a name in a filter", blank=True)
        object.__setattr__(self, "contains", contains)
        object.__setattr__(self, "attributes", check_attributes(self.attributes, "a filter", lists=()))

    def matches(self, entity: Entity) -> bool:
        """Return whether an entity matches the filter."""
        name = entity.name
        if (self.name or name) != name or self.contains.casefold() not in name.casefold():
            return False
        if self.types and entity.type not in self.types:
            return False
        wanted = self.attributes.items()
        return all(_equal_values(entity.attributes.get(name), value) for name, value in wanted)


@dataclass(frozen=True)
class RelationshipFilter:
    """A filter of an entity's relationships by direction, types, minimal confidence, and standing."""

    direction: Direction = "out"
    types: tuple[str, ...] = ()
    min_confidence: float = 0.0
    standing: RelationshipStanding | None = None  # None: any

    def __post_init__(self) -> None:
        check_direction(self.direction)
        object.__setattr__(self, "types", check_types(self.types))
        object.__setattr__(self, "min_confidence", require_probability(self.min_confidence, "min_confidence"))
        if self.standing is not None:
            require_known("standing", get_args(RelationshipStanding), self.standing)

    def matches(self, relationship: Relationship, entity_id: str) -> bool:
        """Return whether a relationship of an entity matches the filter."""
        source, target = relationship.source_id, relationship.target_id
        ends = {"out": (source,), "in": (target,), "both": (source, target)}[self.direction]
        if entity_id not in ends or self.standing not in (None, relationship.standing):
            return False
        is_confident = relationship.provenance.confidence >= self.min_confidence
        return is_confident and (not self.types or relationship.type in self.types)


@dataclass(frozen=True)
class Neighbour:
    """An entity that was reached, and the least number of steps to it."""

    entity: Entity
    depth: int


@dataclass(frozen=True)
class VisibleWorld:
    """What one entity may see: itself and others, and the relationships between them."""

    entities: tuple[Entity, ...]
    relationships: tuple[Relationship, ...]


@dataclass(frozen=True)
class Tie:
    """One relationship of an identity snapshot, with its other end."""

    type: str
    target: Entity
    attributes: Mapping[str, Json] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class IdentitySnapshot:
    """A character for a prompt: all its own attributes, and the relationships that it knows of."""

    entity: Entity
    ties: tuple[Tie, ...] = ()


def build_unchecked(kind: type[Built], **values: Any) -> Built:
    """Create an object without validation, from values that were validated when they were stored.

    Validating them again would take longer than reading them.
    """
    instance = object.__new__(kind)
    vars(instance).update(values)
    return instance


def _equal_values(one: Json, other: Json) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return json_text(one, "") == json_text(other, "")
    return bool(one == other)
