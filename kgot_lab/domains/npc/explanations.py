"""Explain why a character knows of something or does not: the path to it, or where that breaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import networkx as nx

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import SECRET_MARKS, Entity, Provenance, Relationship, check_id
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy, is_in_scope, is_public_relationship
from kgot_lab.domains.npc.statements import to_relationship, uuids
from kgot_lab.domains.npc.visibility import PolicyWalk, missing_entity_error, policy_walk
from kgot_lab.domains.npc.world import NpcWorld

BreakReason = Literal["secret", "waits", "rejected", "ended", "type", "acquaintance", "no further"]
_REASONS: Mapping[BreakReason, str] = {
    "secret": "marked as secret",
    "waits": "waits for the game master",
    "rejected": "rejected by the game master",
    "ended": "ended when it came to another place",
    "type": "a type that others do not follow",
    "acquaintance": "what an acquaintance knows stays theirs",
    "no further": "a type that leads there and no further",
}
# of a relationship that is not public, by its standing
_HIDDEN: Mapping[str, BreakReason] = {
    "accepted": "secret", "queued": "waits", "rejected": "rejected", "ended": "ended",
}  # fmt: skip
# by entity type, the relationship by which a character joins it; else KNOWS
_JOINING_TYPES = {"location": "LOCATED_AT", "faction": "MEMBER_OF"}


@dataclass(frozen=True)
class PathBreak:
    """A relationship at which a path breaks, and why."""

    relationship: Relationship
    reason: BreakReason


@dataclass(frozen=True, repr=False)
class Knowing:
    """Whether a character knows of an entity. `way` leads there, even if `scope` excludes it.

    `breaks` are relationships at which a path breaks that would lead there otherwise. Each one in `missing`,
    added by itself, would make the entity known: first existing ones that are not public, in public form,
    then the shortest path, then joining what leads there. None helps against scope.
    """

    npc: Entity
    thing: Entity
    knows: bool
    scope: bool  # whether the entity is within the NPC's knowledge scope
    way: tuple[Relationship, ...] = ()
    breaks: tuple[PathBreak, ...] = ()
    missing: tuple[Relationship, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, hash=False)  # of all ids in the world

    def __repr__(self) -> str:
        statement = f"{self.npc.name} {'knows' if self.knows else 'does not know'} of {self.thing.name}"
        why = "; ".join(map(self.describe_relationship, self.way)) if self.knows else "; ".join(self.broken)
        introduction = "Any one of these" if len(self.missing) > 1 else "This"
        change = "; ".join(map(self.describe_relationship, self.missing))
        change = f" {introduction} would change that: {change}." if self.missing else ""
        return f"{statement}: {why}.{change}" if why else f"{statement}.{change}"

    @property
    def broken(self) -> tuple[str, ...]:
        """Where paths to it break, in words, or () if it is known."""
        if self.knows:
            return ()
        described = [(self.describe_relationship(each.relationship), each.reason) for each in self.breaks]
        lines = [f"{relationship} ({_REASONS[reason]})" for relationship, reason in described]
        lines += ["it lies outside of knowledge_scope"] if not self.scope else []
        return tuple(lines or ["no way comes near"])

    def describe_relationship(self, relationship: Relationship) -> str:
        """Format a relationship with the names of its ends."""
        return f"{self.names[relationship.source_id]} – {relationship.type} – {self.names[relationship.target_id]}"


@check_arguments
def why_not(
    world: NpcWorld, npc_id: str, thing_id: str, *, policy: VisibilityPolicy = DEFAULT_POLICY
) -> Knowing:
    """Explain why a character knows of an entity, or why not and what would change that.

    Changes are single relationships. The result reveals secrets, so it is for the author. Raises BadInput if
    one of the two does not exist.
    """
    npc_id, thing_id = check_id(npc_id), check_id(thing_id)
    with world.storage.reading():
        entities = {candidate.id: candidate for candidate in world.find_entities()}
        rows = world.storage.rows(statements.RELATIONSHIPS_FROM, {"ids": uuids(*sorted(entities))})
    for id in (npc_id, thing_id):
        if id not in entities:
            raise missing_entity_error(id)
    npc, thing = entities[npc_id], entities[thing_id]
    scope, names = is_in_scope(thing, npc), {id: candidate.name for id, candidate in entities.items()}
    index = _RelationshipIndex(map(to_relationship, rows), npc_id, thing, policy)
    walk = index.walk()
    if thing_id in (npc_id, *walk.known):
        return Knowing(npc, thing, scope, scope, _path_to(walk, npc_id, thing_id), names=names)
    hidden = [candidate for candidate in index.untold if index.makes_known(candidate)]
    breaks = [PathBreak(each, _HIDDEN[each.standing]) for each in hidden] + list(index.broken(walk))
    acquaintance = Relationship(npc_id, thing_id, "KNOWS", provenance=Provenance(dm_confirmed=True))
    joining = filter(index.makes_known, index.joining_relationships(entities))
    candidates = [*map(_public_confirmed, hidden), acquaintance, *joining]
    missing: dict[tuple[str, str, str], Relationship] = {}
    for candidate in candidates:
        missing.setdefault(candidate.key, candidate)  # one in public form is not added a second time
    changes = tuple(missing.values()) if scope else ()
    return Knowing(npc, thing, False, scope, (), tuple(breaks), changes, names)


class _RelationshipIndex:
    """The relationships of a world, public or not, and two of its entities."""

    def __init__(
        self, relationships: Iterable[Relationship], npc_id: str, thing: Entity, policy: VisibilityPolicy
    ) -> None:
        self.npc_id, self.thing_id, self.policy = npc_id, thing.id, policy
        self._is_perceived = thing.type in policy.perceived_types
        self.untold: list[Relationship] = []
        self._told: dict[str, list[Relationship]] = defaultdict(list)
        for relationship in sorted(relationships, key=lambda relationship: relationship.key):
            if is_public_relationship(relationship):
                self._told[relationship.source_id].append(relationship)
            else:
                self.untold.append(relationship)

    def walk(self, *added: Relationship) -> PolicyWalk:
        """Walk as the policy does, as if the relationships in `added` were public too."""

        def public_edges(ids: set[str]) -> Iterator[Relationship]:
            yield from (each for id in sorted(ids) for each in self._told.get(id, ()))
            yield from (each for each in added if each.source_id in ids)

        def located(places: set[str]) -> Iterator[Relationship]:  # of nobody else than the entity
            own = public_edges({self.thing_id}) if self._is_perceived else ()
            return (each for each in own if each.type == "LOCATED_AT" and each.target_id in places)

        return policy_walk(public_edges({self.npc_id}), public_edges, located, self.policy)

    def makes_known(self, added: Relationship) -> bool:
        """Return whether the entity would be known if this relationship were public too."""
        return self.thing_id in self.walk(added).known

    def broken(self, walk: PolicyWalk) -> Iterator[PathBreak]:
        """Yield the public relationships from the walk towards the entity that the policy does not follow."""
        leading = self._ids_leading_to_thing()
        for source in sorted({self.npc_id, *walk.spread}):
            for relationship in self._told.get(source, ()):
                if relationship.target_id in leading and relationship.target_id not in walk.spread:
                    yield PathBreak(relationship, self._break_reason(relationship))

    def joining_relationships(self, entities: Mapping[str, Entity]) -> Iterator[Relationship]:
        """Yield the relationships that would join the character to what leads to the entity in one step."""
        for source, relationships in sorted(self._told.items()):
            if any(relationship.target_id == self.thing_id for relationship in relationships):
                type = _JOINING_TYPES.get(entities[source].type, "KNOWS")
                yield Relationship(self.npc_id, source, type, provenance=Provenance(dm_confirmed=True))

    def _ids_leading_to_thing(self) -> set[str]:
        """Return the ids from which spreading types other than KNOWS lead to the entity.

        Its own id is included.
        """
        spreading = set(self.policy.spreading) - {"KNOWS"}
        public = (relationship for relationships in self._told.values() for relationship in relationships)
        followed = [relationship for relationship in public if relationship.type in spreading]
        leading = nx.DiGraph((each.target_id, each.source_id) for each in followed)
        leading.add_node(self.thing_id)
        return {self.thing_id, *nx.descendants(leading, self.thing_id)}

    def _break_reason(self, relationship: Relationship) -> BreakReason:
        if relationship.source_id == self.npc_id:
            return "no further"
        return "acquaintance" if relationship.type == "KNOWS" and "KNOWS" in self.policy.spreading else "type"


def _path_to(walk: PolicyWalk, npc_id: str, thing_id: str) -> tuple[Relationship, ...]:
    """Return the relationships by which the walk reached an entity, starting at the character."""
    if thing_id == npc_id:
        return ()
    if thing_id in walk.own:
        return (walk.own[thing_id],)
    if thing_id not in walk.spread:
        return walk.own[walk.beside[thing_id].target_id], walk.beside[thing_id]
    path = [walk.spread[thing_id]]
    while path[-1].source_id != npc_id:
        path.append(walk.spread[path[-1].source_id])
    return tuple(reversed(path))


def _public_confirmed(relationship: Relationship) -> Relationship:
    """Return a relationship in public form: confirmed, and without the marks of a secret."""
    unmarked = dict.fromkeys((mark for mark in SECRET_MARKS if mark in relationship.attributes), None)
    return replace(relationship, attributes=unmarked, provenance=Provenance(dm_confirmed=True))
