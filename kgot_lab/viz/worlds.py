"""Views of a world of characters: what each sees, and who knows of a thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kgot_lab.domains.npc.explanations import Knowing, why_not
from kgot_lab.domains.npc.models import Entity, Relationship, VisibleWorld
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Node
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.side_by_side import in_columns
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.static.table import Sheet, Table

# The visible part of a world as a graph, whose node ids are unique names of entities.

# the most commonly visible types first, so that colours are the same for all NPCs
_USUAL = ("npc", "location", "faction", "item", "player")


def seen_graph(seen: VisibleWorld) -> PropertyGraph:
    """Build the graph of the visible part of a world.

    A node's id is the name of its entity. If several share the name, the beginning of the entity's id is
    added.
    """
    called = called_in(seen.entities)
    ordered = sorted(
        seen.entities, key=lambda each: _USUAL.index(each.type) if each.type in _USUAL else len(_USUAL)
    )
    nodes = [Node(called[each.id], (each.type,), {**each.attributes, "text": each.name}) for each in ordered]
    return PropertyGraph.of(nodes, (_edge(each, called) for each in seen.relationships))


def called_in(entities: Iterable[Entity]) -> dict[str, str]:
    """Return a unique display name for each entity, by its id."""
    entities = list(entities)
    times = Counter(each.name for each in entities)
    return {
        each.id: each.name if times[each.name] == 1 else f"{each.name} ({each.id[:8]})" for each in entities
    }


def _edge(relationship: Relationship, called: dict[str, str]) -> Edge:
    return Edge(
        called[relationship.source_id],
        relationship.type,
        called[relationship.target_id],
        dict(relationship.attributes),
    )


# Comparison of several NPCs: what each sees, who knows of the thing, and why another does not.

_WIDTH, _HEIGHT = 560, 540
_NAMES = (
    "who",
    "sees",
    "only this one sees",
    "knows of it?",
    "the way there",
    "where a way breaks",
    "any one of these would do",
)


@dataclass(frozen=True)
class VisibilityComparison:
    """A column for each NPC, with the path to the thing marked.

    Entities have the same position in each picture.
    """

    thing: str
    knowings: tuple[Knowing, ...]
    # for each NPC, the lines of each column in _NAMES
    told: tuple[tuple[tuple[str, ...], ...], ...] = field(repr=False)
    pictured: tuple[Picture, ...] = field(repr=False)

    def table(self) -> Table:
        """Return the texts without the pictures, a row for each NPC."""
        rows = tuple(tuple("; ".join(lines) for lines in each) for each in self.told)
        return Table((Sheet(_NAMES, rows, len(rows), f"Who knows of {self.thing}?"),))

    def _repr_html_(self) -> str:
        rows = [("what is seen", [Markup(picture._repr_html_()) for picture in self.pictured])]
        for number, name in enumerate(_NAMES[1:], start=1):
            cells = [element("div", *(element("div", line) for line in each[number])) for each in self.told]
            rows += [(name, cells)] if any(each[number] for each in self.told) else []
        return in_columns(f"Who knows of {self.thing}?", [each.npc.name for each in self.knowings], rows)

    def __repr__(self) -> str:
        return repr(self.table())


def compare_visibility(
    world: NpcWorld, npc_ids: Sequence[str], thing_id: str, *, policy: VisibilityPolicy = DEFAULT_POLICY
) -> VisibilityComparison:
    """Compare what several NPCs see of a world and whether they know of a thing.

    It is for the author of a world, since what is missing tells secrets. Raises BadInput if there are no ids,
    or if one does not exist.
    """
    if isinstance(npc_ids, str) or not npc_ids:
        raise BadInput("name those who are asked by a list of their ids, at least one")
    knowings = tuple(why_not(world, id, thing_id, policy=policy) for id in npc_ids)
    seen = [world.visible_subgraph(id, policy=policy) for id in npc_ids]
    everything = VisibleWorld(
        tuple({entity.id: entity for each in seen for entity in each.entities}.values()),
        tuple(
            {relationship.key: relationship for each in seen for relationship in each.relationships}.values()
        ),
    )
    whole = svg(seen_graph(everything), width=_WIDTH, height=_HEIGHT)
    told = tuple(_told(knowing, each, seen) for knowing, each in zip(knowings, seen, strict=True))
    pictured = tuple(_pictured(knowing, each, whole) for knowing, each in zip(knowings, seen, strict=True))
    return VisibilityComparison(knowings[0].thing.name, knowings, told, pictured)


def _told(
    knowing: Knowing, seen: VisibleWorld, all_seen: Sequence[VisibleWorld]
) -> tuple[tuple[str, ...], ...]:
    others = {entity.id for each in all_seen if each is not seen for entity in each.entities}
    alone = sorted(entity.name for entity in seen.entities if entity.id not in others)
    return (
        (knowing.npc.name,),
        (
            f"{format_count(len(seen.entities), 'entity', 'entities')}, {format_count(len(seen.relationships), 'relationship')}",
        ),
        (", ".join(alone),) if alone else (),
        ("yes" if knowing.knows else "no",),
        tuple(map(knowing.describe_relationship, knowing.way)),
        knowing.broken,
        tuple(map(knowing.describe_relationship, knowing.missing)),
    )


def _pictured(knowing: Knowing, seen: VisibleWorld, whole: Picture) -> Picture:
    """Draw what is visible, with the positions of the picture of everything that anyone sees.

    The path to the thing is marked if all of it is visible.
    """
    graph, called = seen_graph(seen), called_in(seen.entities)
    is_seen = {each.key for each in knowing.way} <= {each.key for each in seen.relationships}
    way = (
        [called[knowing.npc.id], *(called[each.target_id] for each in knowing.way)]
        if knowing.knows and is_seen
        else None
    )
    labels = whole.scene.labels
    return svg(graph, highlight=way, positions=whole.positions, labels=labels, width=_WIDTH, height=_HEIGHT)


__all__ = ["compare_visibility", "seen_graph"]
