"""What several characters of a world see and know of a thing, side by side, for lesson 65."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from side_by_side import Comparison

from kgot_lab.domains.npc.explanations import Knowing, why_not
from kgot_lab.domains.npc.models import VisibleWorld
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import format_count
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.worlds import unique_names, visible_graph

_WIDTH, _HEIGHT = 560, 540
_COLUMNS = (
    "who", "sees", "only this one sees", "knows of it?",
    "the way there", "where a way breaks", "any one of these would do",
)  # fmt: skip


def compare_visibility(
    world: NpcWorld, npc_ids: Sequence[str], thing_id: str, *, policy: VisibilityPolicy = DEFAULT_POLICY
) -> Comparison:
    """Compare what several NPCs see of a world and whether they know of a thing.

    The path to the thing is marked, and an entity has the same position in each picture.

    It is for the author of a world, since what is missing tells secrets. Raises BadInput if there are no ids,
    or if one does not exist.
    """
    if isinstance(npc_ids, str) or not npc_ids:
        raise BadInput("name those who are asked by a list of their ids, at least one")
    knowings = tuple(why_not(world, id, thing_id, policy=policy) for id in npc_ids)
    visible_worlds = [world.visible_subgraph(id, policy=policy) for id in npc_ids]
    entities = {entity.id: entity for world in visible_worlds for entity in world.entities}
    relationships = {each.key: each for world in visible_worlds for each in world.relationships}
    everything = VisibleWorld(tuple(entities.values()), tuple(relationships.values()))
    whole = svg(visible_graph(everything), width=_WIDTH, height=_HEIGHT)
    pairs = list(zip(knowings, visible_worlds, strict=True))
    table_rows = tuple(_table_row(knowing, visible, visible_worlds) for knowing, visible in pairs)
    pictures = tuple(_draw_visible(knowing, visible, whole) for knowing, visible in pairs)
    caption = f"Who knows of {knowings[0].thing.name}?"
    return Comparison(caption, _COLUMNS, table_rows, pictures, picture_name="what is seen")


def _table_row(
    knowing: Knowing, visible: VisibleWorld, all_visible: Sequence[VisibleWorld]
) -> tuple[str, ...]:
    others = {entity.id for world in all_visible if world is not visible for entity in world.entities}
    only_here = sorted(entity.name for entity in visible.entities if entity.id not in others)
    entity_count = format_count(len(visible.entities), "entity", "entities")
    return (
        knowing.npc.name,
        f"{entity_count}, {format_count(len(visible.relationships), 'relationship')}",
        ", ".join(only_here),
        "yes" if knowing.knows else "no",
        ";\n".join(map(knowing.describe_relationship, knowing.way)),
        ";\n".join(knowing.broken),
        ";\n".join(map(knowing.describe_relationship, knowing.missing)),
    )


def _draw_visible(knowing: Knowing, visible: VisibleWorld, whole: Picture) -> Picture:
    """Draw what is visible, with the positions of the picture of everything that anyone sees.

    The path to the thing is marked if all of it is visible.
    """
    graph, names = visible_graph(visible), unique_names(visible.entities)
    way, path = knowing.way, None
    if knowing.knows and {each.key for each in way} <= {
        relationship.key for relationship in visible.relationships
    }:
        path = [names[knowing.npc.id], *(names[each.target_id] for each in way)]
    options: Any = {"positions": whole.positions, "encoding": whole.scene.encoding}
    return svg(graph, highlight=path, width=_WIDTH, height=_HEIGHT, **options)


__all__ = ["compare_visibility", "visible_graph"]
