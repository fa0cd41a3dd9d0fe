"""One question put to several in a world: what each sees, who knows of the thing, and why another does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kgot_lab.domains.npc.explanations import Knowing, why_not
from kgot_lab.domains.npc.models import VisibleWorld
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import BadInput
from kgot_lab.text.counted import counted
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.side_by_side import in_columns
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.static.table import Sheet, Table
from kgot_lab.viz.worlds import called_in, seen_graph

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
    """A column for each who was asked, with every entity at the same place in each picture; the way to the
    thing is marked.
    """

    thing: str
    knowings: tuple[Knowing, ...]
    # for each, the lines under each of the names
    told: tuple[tuple[tuple[str, ...], ...], ...] = field(repr=False)
    pictured: tuple[Picture, ...] = field(repr=False)

    def table(self) -> Table:
        """The words without the pictures, a row for each who was asked."""
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
    """Ask several what they know of something; for the author of a world, since what is missing tells
    secrets. Raises BadInput.
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
            f"{counted(len(seen.entities), 'entity', 'entities')}, {counted(len(seen.relationships), 'relationship')}",
        ),
        (", ".join(alone),) if alone else (),
        ("yes" if knowing.knows else "no",),
        tuple(map(knowing.describe_relationship, knowing.way)),
        knowing.broken,
        tuple(map(knowing.describe_relationship, knowing.missing)),
    )


def _pictured(knowing: Knowing, seen: VisibleWorld, whole: Picture) -> Picture:
    """What is seen, as it stands in the picture of all that is seen by some, with the way to the thing marked
    where all of it is seen.
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
