"""What a character in a world may know: one policy, in SQL (`VISIBLE`) and in Python (`visible_in_python`).

1. Itself, with all its attributes.
2. The targets of its own relationships, except those marked secret or hidden, and those not accepted.
3. From those reached by a spreading type (KNOWS, LOCATED_AT, MEMBER_OF, ALLIED_WITH), the targets of
   spreading types in turn. KNOWS is followed for one step only: what an acquaintance knows stays theirs.
4. A relationship between two visible entities, if it is its own or of a public type. If it is not its own, it
   is shown without provenance, and with only the attributes that its own attribute `public` names.
5. Of others, their name and type, the public attributes of their type, and those that their attribute
   `public` names. The time of their last change is hidden, because it would reveal that something changed.
6. Those beside it: characters and players whose LOCATED_AT, accepted and not secret, leads to where its own
   leads. That they are here is perceived as long as they are. They lead no further.
7. Of all this, only what lies in its attribute `knowledge_scope` if it has one: a list of types and ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.npc import models
from kgot_lab.domains.npc.models import Entity, Relationship, check_bounded_depth, check_types
from kgot_lab.errors import BadInput, require
from kgot_lab.types import Json

SPREADING_TYPES = ("KNOWS", "LOCATED_AT", "MEMBER_OF", "ALLIED_WITH")
# of the four, those that others can see; KNOWS is not among them
PUBLIC_TYPES = ("LOCATED_AT", "MEMBER_OF", "ALLIED_WITH")
# by usual type, the attributes visible to everyone who sees the entity
_NamesByType = Mapping[str, tuple[str, ...]]
PUBLIC_ATTRIBUTES: _NamesByType = MappingProxyType(
    {
        "npc": ("appearance", "occupation", "speaking_style"),
        "player": ("class", "race", "notable_traits"),
        "location": ("description", "atmosphere", "notable_features"),
        "item": ("type",),
        "faction": ("alignment", "influence"),
        "event": ("date",),
        "quest": ("status", "objectives"),
        "concept": ("common_knowledge",),
    }
)
# attributes that nobody else sees, whatever a policy or `public` says
NEVER_PUBLIC = ("secret_knowledge", "knowledge_scope", "public")


@check_arguments
@dataclass(frozen=True)
class VisibilityPolicy:
    """The rules of visibility: types that spread, are public and are perceived, public attributes, depth of KNOWS."""

    spreading: tuple[str, ...] = SPREADING_TYPES
    public_types: tuple[str, ...] = PUBLIC_TYPES
    public_attributes: _NamesByType = field(default_factory=lambda: PUBLIC_ATTRIBUTES, hash=False)
    knows_depth: int = 1
    perceived_types: tuple[str, ...] = ("npc", "player")  # of those whom one at the same place perceives

    def __post_init__(self) -> None:
        for name in ("spreading", "public_types", "perceived_types"):
            object.__setattr__(self, name, check_types(getattr(self, name)))
        check_bounded_depth(self.knows_depth, "knows_depth", "how many steps KNOWS leads, its own the first")
        expected = "public_attributes is a dictionary: for each type, the names of attributes"
        require(self.public_attributes, Mapping, expected)
        public = {type: check_types(names) for type, names in self.public_attributes.items()}
        if private := sorted({name for names in public.values() for name in names} & set(NEVER_PUBLIC)):
            raise BadInput(f"the attribute {private[0]!r} is never public: leave it out")
        object.__setattr__(self, "public_attributes", MappingProxyType(public))


DEFAULT_POLICY = VisibilityPolicy()


def is_public_relationship(relationship: Relationship) -> bool:
    """Return whether a relationship is accepted and not marked secret or hidden."""
    is_secret = any(relationship.attributes.get(mark, False) is not False for mark in ("secret", "hidden"))
    return relationship.standing == "accepted" and not is_secret


def is_in_scope(entity: Entity, character: Entity) -> bool:
    """Return whether an entity is within the knowledge scope of another."""
    scope = character.attributes.get("knowledge_scope")
    return entity.id == character.id or scope is None or entity.type in scope or entity.id in scope


def public_form_of_entity(entity: Entity, policy: VisibilityPolicy) -> Entity:
    """Return an entity with what others may see of it."""
    public = _public_attributes(entity.attributes, policy.public_attributes.get(entity.type, ()))
    hidden = {"created_at": None, "updated_at": None}
    return models.build_unchecked(Entity, **vars(entity) | {"attributes": public} | hidden)


def public_form_of_relationship(relationship: Relationship) -> Relationship:
    """Return a relationship with what others may know of it."""
    hidden = {"provenance": models.NO_PROVENANCE, "created_at": None, "updated_at": None}
    public = {"attributes": _public_attributes(relationship.attributes, ())}
    return models.build_unchecked(Relationship, **vars(relationship) | public | hidden)


def _public_attributes(attributes: Mapping[str, Json], always_public: Iterable[str]) -> dict[str, Json]:
    names = {*always_public, *attributes.get("public", ())} - set(NEVER_PUBLIC)
    return {name: value for name, value in attributes.items() if name in names}
