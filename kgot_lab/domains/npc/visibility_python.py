"""The policy of visibility in Python, for a world that is in this process: step by step, one question a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kgot_lab.domains.npc import statements
from kgot_lab.domains.npc.models import Relationship, VisibleWorld
from kgot_lab.domains.npc.policy import (
    VisibilityPolicy,
    as_seen_by_others,
    in_scope,
    is_public_relationship,
    public_form,
)
from kgot_lab.domains.npc.statements import WorldStorage, entity_of, relationship_of, uuids

# the relationships from some entities that anyone may be told of
ToldFrom = Callable[[set[str]], Iterable[Relationship]]


@dataclass(frozen=True)
class PolicyWalk:
    """What an entity knows of but for its scope: by id, the relationship by which the walk came there first.

    `own` is what its own relationships lead to, `spread` what is reached by types that spread alone, and
    leads on.
    """

    own: Mapping[str, Relationship]
    spread: Mapping[str, Relationship]


def visible_in_python(storage: WorldStorage, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
    """What an entity may see, None where there is no such entity; all of it is read at one time."""
    with storage.reading():
        found = storage.rows(statements.ENTITIES, {"ids": uuids(npc_id)})
        if not found:
            return None
        me = entity_of(found[0])
        walk = policy_walk(lambda ids: _public_relationships(storage, ids), npc_id, policy)
        known = {npc_id, *walk.own, *walk.spread}
        entities = [entity_of(row) for row in storage.rows(statements.ENTITIES, {"ids": uuids(*known)})]
        entities = [each for each in entities if in_scope(each, me)]
        ids = {each.id for each in entities}
        between = [each for each in _public_relationships(storage, ids) if each.target_id in ids]
    return VisibleWorld(
        tuple(each if each.id == npc_id else as_seen_by_others(each, policy) for each in entities),
        tuple(
            each if each.source_id == npc_id else public_form(each)
            for each in between
            if each.source_id == npc_id or each.type in policy.public_types
        ),
    )


def policy_walk(public_edges: ToldFrom, npc_id: str, policy: VisibilityPolicy) -> PolicyWalk:
    """The walk of the policy from an entity: its own relationships, then the types that spread, a level at a
    time.
    """
    spread: dict[str, Relationship] = {}

    def led(found: Iterable[Relationship], *, knows: bool) -> set[str]:
        onward = [each for each in found if each.type in policy.spreading and (knows or each.type != "KNOWS")]
        for each in onward:
            spread.setdefault(each.target_id, each)
        return {each.target_id for each in onward}

    own = list(public_edges({npc_id}))
    level = led(own, knows=True)
    ahead, walked = set(level), set[str]()
    for _ in range(policy.knows_depth - 1):
        level = led(public_edges(level), knows=True)
        ahead |= level
    while ahead:
        walked |= ahead
        ahead = led(public_edges(ahead), knows=False) - walked
    return PolicyWalk({each.target_id: each for each in own}, spread)


def _public_relationships(storage: WorldStorage, ids: set[str]) -> list[Relationship]:
    """The relationships from some entities that anyone may be told of."""
    rows = storage.rows(statements.RELATIONSHIPS_FROM, {"ids": uuids(*sorted(ids))})
    return [each for each in map(relationship_of, rows) if is_public_relationship(each)]
