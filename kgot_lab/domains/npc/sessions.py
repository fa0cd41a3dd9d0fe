"""Import what was said in a session into a world, and review statements with low confidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import SYMMETRIC_TYPES, Entity, Provenance, Relationship
from kgot_lab.domains.npc.statements import row_key, support_from_row, support_from_text, uuids
from kgot_lab.domains.npc.world import NpcWorld, Said, key_parameters, store_decision
from kgot_lab.errors import require
from kgot_lab.stores.tables.history import Change
from kgot_lab.stores.tables.review_queue import ReviewQueue
from kgot_lab.text.words import folded_name
from kgot_lab.types import Triple


@dataclass(frozen=True)
class ImportedFacts:
    """The result of an import: new relationships, those the session stated before, and unresolved triples."""

    new: tuple[Relationship, ...] = ()
    known: tuple[Relationship, ...] = ()
    unplaced: tuple[Triple, ...] = ()  # an end names nobody in the world, or several
    change: int | None = None  # undoes the import; None if nothing was new


@check_arguments
def import_statements(world: NpcWorld, triples: Iterable[Triple], provenance: Provenance) -> ImportedFacts:
    """Import triples into a world with their confidence. What the same session stated before changes nothing.

    The relation `knows_of` becomes the type KNOWS_OF. An end is the entity of that name, ignoring case, or
    else the only one whose name contains its words. Raises BadInput.
    """
    entities = world.find_entities()
    triples = list(triples)
    by_triple = {triple: resolve_relationship(triple, entities, provenance) for triple in triples}
    resolved = {each.key: each for each in by_triple.values() if each is not None}.values()
    known = tuple(relationship for relationship in resolved if _is_recorded(world, relationship))
    new = tuple(relationship for relationship in resolved if relationship not in known)
    change = world.add([], new, by=provenance.session_id)
    unplaced = tuple(triple for triple, relationship in by_triple.items() if relationship is None)
    return ImportedFacts(new, known, unplaced, change)


def resolve_relationship(
    triple: Triple, entities: Iterable[Entity], provenance: Provenance
) -> Relationship | None:
    """Resolve a triple to a relationship between entities.

    Returns None if an end names none of them, or several.
    """
    source, target = (_find_by_name(end, entities) for end in (triple.subject, triple.object))
    if source is None or target is None or source is target:
        return None
    type = re.sub(r"\W+", "_", triple.relation.strip()).upper()
    return Relationship(source.id, target.id, type, {}, replace(provenance, confidence=triple.confidence))


def _find_by_name(name: str, entities: Iterable[Entity]) -> Entity | None:
    """Return the entity that a name means, or None if it matches none or several."""
    words = _name_words(name)
    words_of = [(entity, _name_words(entity.name)) for entity in entities]
    candidates = [each for each, own in words_of if own == words]
    candidates = candidates or [each for each, own in words_of if words and set(words) <= set(own)]
    return candidates[0] if len(candidates) == 1 else None


def _name_words(name: str) -> list[str]:
    return [word for word in re.findall(r"\w+", folded_name(name)) if word not in ("the", "a", "an")]


def _is_recorded(world: NpcWorld, relationship: Relationship) -> bool:
    """Return whether the session has already stated this relationship, which has not ended since."""
    rows = world.storage.rows(statements.SUPPORT_OF, key_parameters(relationship.key))
    session = relationship.provenance.session_id
    stated = ((said.session_id, standing) for said, standing in map(support_from_row, rows))
    return any(said == session and standing != "ended" for said, standing in stated)


class WorldReview(ReviewQueue[Relationship]):
    """The game master's review of the statements of a world whose confidence was too low.

    An item is a relationship with the session in its provenance; its id is that of the statement's versions. A
    decision is stored in the support row of that session, and is kept when the session is imported again.
    """

    _kind = "support"

    def __init__(self, world: NpcWorld, by: str = "") -> None:
        super().__init__(world, by)
        self.world = world

    def queue(self) -> tuple[Relationship, ...]:
        """Return the queued statements of all sessions, the most confident first.

        A symmetric relationship is listed once.
        """
        rows = self.world.storage.rows(statements.SUPPORT_QUEUED)
        found = (Relationship(*row_key(row), {}, *support_from_row(row)) for row in rows)
        once = (e for e in found if e.type not in SYMMETRIC_TYPES or e.source_id <= e.target_id)
        return tuple(sorted(once, key=lambda e: (-e.provenance.confidence, e.key, e.provenance.session_id)))

    def _id(self, item: Relationship | str) -> str:
        if isinstance(item, Relationship):
            return json.dumps([*item.key, item.provenance.session_id])
        if not isinstance(item, str) or not item.startswith("["):
            require(item, Relationship, "what is decided on is a Relationship, as queue() gives it")
        return item

    def _standing(self, id: str) -> str:
        return next((standing for _, standing in self._stated(id)), "")

    def _is_decided(self, id: str) -> bool:
        return any(standing == "rejected" or said.dm_confirmed for said, standing in self._stated(id))

    def _stated(self, id: str) -> list[Said]:
        *key, session = json.loads(id)
        rows = self.world.storage.rows(statements.SUPPORT_OF, key_parameters(tuple(key)))
        return [each for each in map(support_from_row, rows) if each[0].session_id == session]

    def _subject(self, id: str) -> str | None:
        source, target, type, _ = json.loads(id)
        names = {each.id: each.name for each in self.world.find_entities()}
        return f"{names[source]} – {type} – {names[target]}" if self._standing(id) else None

    def _set_standing(self, change: Change, id: str, standing: str) -> None:
        source, target, type, session = json.loads(id)
        store_decision(change, Relationship(source, target, type), session, cast(Any, standing))

    def _ended_by(self, id: str) -> Iterable[str]:
        """Return the ids of the places where an entity is, if it is said to be at another."""
        source, _, type, _ = json.loads(id)
        places = {"ids": uuids(*([source] if type == "LOCATED_AT" else []))}
        for place in map(row_key, self.world.storage.rows(statements.PLACES_OF, places)):
            stated = self.world.storage.rows(statements.SUPPORT_OF, key_parameters(place))
            yield from (json.dumps([*place, support_from_row(row)[0].session_id]) for row in stated)

    def _parse_standing(self, value: str) -> str:
        return support_from_text(value)[1]
