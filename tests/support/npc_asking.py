"""Every reading method of a world asked as one of those in it, and whatever else says more than it should."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from kgot_lab.domains.npc.models import EntityFilter, RelationshipFilter
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.visibility import CharacterView
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import LabError
from support.npc_oracle import may_see
from support.npc_planted import PlantedWorld, canaries

BOTH = RelationshipFilter(direction="both")


def questions(
    npc: str, ids: list[str], words: list[str]
) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """A question to each public method, or several, about each id, with words that may be hidden: a method,
    and what it is given.
    """
    asked: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
        "get_entity": [((id,), {}) for id in ids],
        "find_entities": [
            ((), {}),
            *(((EntityFilter(**{part: word}),), {}) for word in words for part in ("name", "contains")),
            *(
                ((EntityFilter(attributes={name: word}),), {})
                for word in words
                for name in ("secret_knowledge", "mood", "appearance")
            ),
        ],
        "get_relationships": [((id, BOTH), {}) for id in ids],
        "neighbours": [*(((id,), {"direction": "both"}) for id in ids), ((npc, 3), {})],
        "find_path": [
            *(((npc, id), {"direction": "both"}) for id in ids),
            *(((id, ids[0], 9), {}) for id in ids[:3]),
        ],
        "visible_subgraph": [((), {}), *(((id,), {}) for id in ids)],
        "identity_snapshot": [((), {}), *(((id,), {}) for id in ids)],
    }
    public = {
        name for name, _ in inspect.getmembers(CharacterView, inspect.isfunction) if not name.startswith("_")
    }
    assert public == set(asked), "every public method is asked"
    for method, times in asked.items():
        for arguments, options in times:
            yield method, arguments, options


def told_too_much(
    world: NpcWorld, planted: PlantedWorld, npc: str, policy: VisibilityPolicy = DEFAULT_POLICY
) -> list[str]:
    """What every method tells an NPC that it may not know, errors too, and what it should be told and is not."""
    ids, edges, words = may_see(planted, npc)
    hidden = sorted(canaries(*planted.entities.values(), *planted.edges) - words - set(planted.entities))
    sight, wrong = world.sight(npc, policy=policy), []
    for method, arguments, options in questions(
        npc, sorted(planted.entities), hidden[:: len(hidden) // 3 + 1]
    ):
        try:
            said = repr(getattr(sight, method)(*arguments, **options))
        except LabError as error:
            said = f"{error} {error.__cause__} {error.__context__}"
        # which says the id that was asked for, and no more
        asked = canaries(*arguments) if said.startswith("there is no entity") else set()
        wrong += [f"{method}{arguments} tells {word}" for word in sorted(canaries(said) - words - asked)]
    for told in (world.visible_subgraph(npc, policy=policy), sight.visible_subgraph()):
        seen = {entity.id for entity in told.entities}
        between = {
            (relationship.source_id, relationship.type, relationship.target_id)
            for relationship in told.relationships
        }
        wrong += [
            f"visible_subgraph tells of {each}"
            for each in sorted((seen ^ ids) | {" ".join(edge) for edge in between ^ edges})
        ]
    own = world.identity_snapshot(npc) if policy is DEFAULT_POLICY else sight.identity_snapshot()
    wrong += [f"identity_snapshot tells {word}" for word in sorted(canaries(own) - words)]
    tied = sorted((npc, tie.type, tie.target.id) for tie in own.ties)
    wrong += ["identity_snapshot lacks a tie"] * (tied != sorted(edge for edge in edges if edge[0] == npc))
    missing = words - canaries(told)
    return wrong + [f"visible_subgraph lacks {word}" for word in sorted(missing)]
