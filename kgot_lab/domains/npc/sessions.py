"""Import what was said in a session into a world, and review statements with low confidence."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import (
    BOTH_WAYS,
    Entity,
    Provenance,
    Relationship,
    RelationshipFilter,
    RelationshipStanding,
)
from kgot_lab.domains.npc.statements import row_key, support_of
from kgot_lab.domains.npc.world import NpcWorld, put_decision
from kgot_lab.errors import require
from kgot_lab.types import Triple

_ANY = RelationshipFilter()


@dataclass(frozen=True)
class ImportedFacts:
    """The result of an import: new relationships, those the session stated before, and unresolved triples."""

    new: tuple[Relationship, ...] = ()
    known: tuple[Relationship, ...] = ()
    unplaced: tuple[Triple, ...] = ()  # an end names nobody in the world, or several


def hear(world: NpcWorld, triples: Iterable[Triple], said: Provenance) -> ImportedFacts:
    """Import triples into a world with their confidence. What the same session stated before changes nothing.

    The relation `knows_of` becomes the type KNOWS_OF. An end is the entity of that name, ignoring case, or
    else the only one whose name contains its words. Raises BadInput.
    """
    require(said, Provenance, "where something was heard is a Provenance(session_id, timestamp, …)")
    entities = world.find_entities()
    triples = list(triples)
    for triple in triples:
        require(triple, Triple, "what was heard is a Triple(subject, relation, object)")
    found = {triple: placed(triple, entities, said) for triple in triples}
    told = {each.key: each for each in found.values() if each is not None}.values()
    known = tuple(each for each in told if _is_recorded(world, each))
    new = tuple(each for each in told if each not in known)
    world.add([], new)
    return ImportedFacts(new, known, tuple(triple for triple, each in found.items() if each is None))


def placed(triple: Triple, entities: Iterable[Entity], said: Provenance) -> Relationship | None:
    """Resolve a triple to a relationship between entities.

    Returns None if an end names none of them, or several.
    """
    source, target = (_named(end, entities) for end in (triple.subject, triple.object))
    if source is None or target is None or source is target:
        return None
    type = re.sub(r"\W+", "_", triple.relation.strip()).upper()
    return Relationship(source.id, target.id, type, {}, replace(said, confidence=triple.confidence))


def _named(name: str, entities: Iterable[Entity]) -> Entity | None:
    """Return the entity that a name means, or None if it matches none or several."""
    words = _words(name)
    same = [each for each in entities if _words(each.name) == words]
    found = same or [each for each in entities if words and set(words) <= set(_words(each.name))]
    return found[0] if len(found) == 1 else None


def _words(name: str) -> list[str]:
    return [word for word in re.findall(r"\w+", name.casefold()) if word not in ("the", "a", "an")]


def _is_recorded(world: NpcWorld, said: Relationship) -> bool:
    """Return whether the session has already stated this relationship."""
    there = any(each.key == said.key for each in world.get_relationships(said.source_id, _ANY))
    return there and any(
        each.session_id == said.provenance.session_id for each, _ in world.support(*said.key)
    )


# The game master's review of statements whose confidence was too low, and the decisions on them.
#
# A decision is stored in the support row of that session, and is kept when the session is imported again. The
# ledger of memory is not used: an inferred claim there holds only as long as the premises that it names, and
# a statement of a session names none.


class WorldReview:
    """The queued statements of a world, and the decisions on them."""

    def __init__(self, world: NpcWorld) -> None:
        require(world, NpcWorld, "what is reviewed is an NpcWorld")
        self.world = world

    def queue(self) -> tuple[Relationship, ...]:
        """Return the queued statements of all sessions, the most confident first.

        A symmetric relationship is listed once.
        """
        waiting = []
        for row in self.world.storage.rows(statements.SUPPORT_QUEUED):
            source, target, type = row_key(row)
            said, standing = support_of(row)
            if type not in BOTH_WAYS or source <= target:
                waiting.append(Relationship(source, target, type, {}, said, standing))
        return tuple(
            sorted(
                waiting, key=lambda each: (-each.provenance.confidence, each.key, each.provenance.session_id)
            )
        )

    def accept(self, relationship: Relationship) -> None:
        """Confirm the statement of the session in its provenance.

        Raises BadInput if the session states no such thing.
        """
        self._decide(relationship, "accepted")

    def reject(self, relationship: Relationship) -> None:
        """Reject the statement. The relationship stays hidden unless another session's statement is accepted.

        Raises BadInput if the session states no such thing.
        """
        self._decide(relationship, "rejected")

    def _decide(self, relationship: Relationship, decided: RelationshipStanding) -> None:
        require(relationship, Relationship, "what is decided on is a Relationship, as queue() gives it")
        with self.world.storage.changing():
            put_decision(self.world.storage, relationship, decided, self.world.now())
