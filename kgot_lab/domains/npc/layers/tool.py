"""The tool by which the loop asks what one of those in a world knows of it."""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.domains.npc.models import Entity, EntityFilter, Relationship, VisibleWorld
from kgot_lab.domains.npc.visibility import Sight
from kgot_lab.errors import LabError, ToolFailed, require, require_count
from kgot_lab.stores.sql import json_text
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Json

_NAME = "memory.query_entities"
_MAY = {
    "name": "a part of the names that are looked for",
    "type": "what is looked for: npc, player, location, item, faction, event, quest or concept",
    "near": "the name of someone or something: only what is directly related to it is looked for",
}


def query_entities(sight: Sight, *, most: int = 20) -> TextTool:
    """A tool that tells what one of those in a world sees: entities by name, type and nearness, each in a
    line, and their relationships.

    At most so many entities are told. Finding nothing is a ToolFailed, in words that are the same for what is
    hidden and what is not there.
    """
    require(sight, Sight, f"{_NAME} is bound to what one sees: world.sight(npc_id)")
    require_count(most, 1, "most", "how many entities are told")

    def run(name: str = "", type: str = "", near: str = "") -> Result:
        try:
            seen = sight.visible_subgraph()
            wanted = EntityFilter(types=(type.lower(),) if type else (), contains=name)
        except LabError as error:
            raise ToolFailed(f"{_NAME}: {error}") from None
        around = _near(seen, near) if near else {each.id for each in seen.entities}
        found = [each for each in seen.entities if each.id in around and wanted.lets(each)]
        if not found:
            raise ToolFailed(f"{_NAME}: nothing that is known fits; ask for less, or in other words")
        return Result(_text(seen, found[:most], len(found) - most))

    about = (
        "Tells who and what is known in the world, and how they are related; without arguments, all of it."
    )
    return TextTool(_NAME, about, {}, run, may=_MAY)


def _near(seen: VisibleWorld, name: str) -> set[str]:
    """The ids of those of a name, and of what is directly related to them."""
    named = {each.id for each in seen.entities if each.name.casefold() == name.casefold()}
    ends = ({each.source_id, each.target_id} for each in seen.relationships)
    return named.union(*(pair for pair in ends if pair & named))


def _text(seen: VisibleWorld, found: list[Entity], more: int) -> str:
    names, told = {each.id: _line(each.name) for each in seen.entities}, {each.id for each in found}
    lines = [f"{names[each.id]} ({_line(each.type)}){_attributes(each.attributes)}" for each in found]
    lines += [_related(each, names) for each in seen.relationships if told & {each.source_id, each.target_id}]
    return "\n".join([*lines, *([f"and {more} more: ask by name, type or near"] if more > 0 else [])])


def _related(each: Relationship, names: Mapping[str, str]) -> str:
    return f"{names[each.source_id]} {_line(each.type)} {names[each.target_id]}{_attributes(each.attributes)}"


def _attributes(attributes: Mapping[str, Json]) -> str:
    return f": {json_text(dict(attributes), 'attributes')}" if attributes else ""


def _line(text: str) -> str:
    return " ".join(text.split())
