"""What the query of the document on the entity graph tells someone and the policy does not."""

from __future__ import annotations

from dataclasses import dataclass

from kgot_lab.domains.npc.models import Entity
from kgot_lab.domains.npc.world import NpcWorld


@dataclass(frozen=True)
class DocumentLeak:
    """How many others someone sees by the policy, and what the document's query tells beyond: more others,
    and hidden attributes.
    """

    npc: Entity
    seen: int
    entities: tuple[Entity, ...]
    attributes: tuple[tuple[Entity, str], ...]


def document_leak(world: NpcWorld, npc_id: str) -> DocumentLeak:
    """Compare both for someone in a world; raises BadInput where it is not there."""
    seen = {each.id: each for each in world.visible_subgraph(npc_id).entities}
    npc = seen.pop(npc_id)
    told = [each for each in world.visible_subgraph(npc_id, policy="document").entities if each.id != npc_id]
    beyond = tuple(each for each in told if each.id not in seen)
    hidden = (
        (each, name)
        for each in told
        if each.id in seen
        for name in each.attributes
        if name not in seen[each.id].attributes
    )
    return DocumentLeak(npc, len(seen), beyond, tuple(hidden))
