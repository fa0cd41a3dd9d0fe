"""What an NPC may see, written down from the decision on visibility alone and before there was a program that
decides it.
"""

from __future__ import annotations

from support.npc_planted import SPREADING, PlantedWorld, canaries


def may_see(world: PlantedWorld, npc: str) -> tuple[set[str], set[tuple[str, str, str]], set[str]]:
    """The ids of the entities it may see, the edges by their ends and type, and every planted word that may
    reach it.
    """
    hidden = {"secret", "hidden"}
    told = [e for e in world.edges if e.accepted and not any(e.attributes.get(mark) for mark in hidden)]
    own = [edge for edge in told if edge.source == npc]
    seen = {npc, *(edge.target for edge in own)}
    walked = set()
    ahead = [edge.target for edge in own if edge.type in SPREADING]
    while ahead:
        here = ahead.pop()
        if here not in walked:  # KNOWS is one hop: what an acquaintance knows stays theirs
            walked.add(here)
            ahead += [
                edge.target
                for edge in told
                if edge.source == here and edge.type in SPREADING and edge.type != "KNOWS"
            ]
    places = {edge.target for edge in own if edge.type == "LOCATED_AT"}
    beside = {edge.source for edge in told if edge.type == "LOCATED_AT" and edge.target in places}
    beside = {id for id in beside if world.entities[id].type in ("npc", "player")}
    scope = world.entities[npc].attributes.get("knowledge_scope")
    ids = {
        id
        for id in seen | walked | beside
        if id == npc or scope is None or id in scope or world.entities[id].type in scope
    }
    edges = [
        edge
        for edge in told
        if {edge.source, edge.target} <= ids
        and (edge.source == npc or edge.type in ("LOCATED_AT", "MEMBER_OF", "ALLIED_WITH"))
    ]
    words = ids | canaries(world.entities[npc].attributes, [edge.type for edge in edges])
    words |= canaries(
        *(world.entities[id].name for id in ids),
        *([e.attributes, e.session] for e in edges if e.source == npc),
    )
    for thing in [*(world.entities[id] for id in ids), *edges]:
        words |= canaries(*(value for name, value in thing.attributes.items() if name in thing.public))
    return ids, {(edge.source, edge.type, edge.target) for edge in edges}, words


def may_hear(world: PlantedWorld, npc: str) -> tuple[set[str], set[str]]:
    """The planted words of what was said that it heard, and those of the texts that it may know."""
    heard = [
        entry for entry in world.entries if entry.audience is None or npc in (*entry.audience, entry.speaker)
    ]
    seen = may_see(world, npc)[0]
    known = [
        chunk
        for chunk in world.chunks
        if chunk.entity in seen and (chunk.audience is None or npc in chunk.audience)
    ]
    return canaries(*((each.session, each.speaker, each.text) for each in heard)), canaries(
        *(each.text for each in known)
    )
