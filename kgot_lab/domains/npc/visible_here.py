"""The policy of visibility in Python, for a world that is in this process: step by step, one question a step."""

from __future__ import annotations

from kgot_lab.domains.npc.policy import VisibilityPolicy, as_seen_by_others, as_told_to_others, in_scope, is_told
from kgot_lab.domains.npc.rows import entity_of, relationship_of, uuids
from kgot_lab.domains.npc.statements import ENTITIES, RELATIONSHIPS_FROM
from kgot_lab.domains.npc.storage import WorldStorage
from kgot_lab.domains.npc.things import Relationship, VisibleWorld


def visible_here(storage: WorldStorage, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
    """What an entity may see, None where there is no such entity; all of it is read at one time."""
    with storage.reading():
        found = storage.rows(ENTITIES, {"ids": uuids(npc_id)})
        if not found:
            return None
        me = entity_of(found[0])
        known = {npc_id, *_walked(storage, npc_id, policy)}
        entities = [entity_of(row) for row in storage.rows(ENTITIES, {"ids": uuids(*known)})]
        entities = [each for each in entities if in_scope(each, me)]
        ids = {each.id for each in entities}
        between = [each for each in _told_from(storage, ids) if each.target_id in ids]
    return VisibleWorld(
        tuple(each if each.id == npc_id else as_seen_by_others(each, policy) for each in entities),
        tuple(
            each if each.source_id == npc_id else as_told_to_others(each)
            for each in between
            if each.source_id == npc_id or each.type in policy.public_types
        ),
    )


def _walked(storage: WorldStorage, npc_id: str, policy: VisibilityPolicy) -> set[str]:
    """The ids of all that its own relationships lead to, and of what these lead to by the types that spread."""
    own = _told_from(storage, {npc_id})
    level = {each.target_id for each in own if each.type in policy.spreading}
    ahead = set(level)
    for _ in range(policy.knows_depth - 1):
        level = {each.target_id for each in _told_from(storage, level) if each.type in policy.spreading}
        ahead |= level
    walked: set[str] = set()
    while ahead:
        walked |= ahead
        onward = (each for each in _told_from(storage, ahead) if each.type in policy.spreading and each.type != "KNOWS")
        ahead = {each.target_id for each in onward} - walked
    return walked | {each.target_id for each in own}


def _told_from(storage: WorldStorage, ids: set[str]) -> list[Relationship]:
    """The relationships from some entities that anyone may be told of."""
    rows = storage.rows(RELATIONSHIPS_FROM, {"ids": uuids(*sorted(ids))})
    return [each for each in map(relationship_of, rows) if is_told(each)]
