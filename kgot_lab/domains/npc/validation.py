"""What may be given to a world: ids, types, depths and attributes, each refused with one clear error where it
fits no storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kgot_lab.errors import BadInput, described_value, require, require_count, shortly
from kgot_lab.graph.property_graph import Direction
from kgot_lab.memory.claims.claim import plain_text
from kgot_lab.stores.sql import json_text, texts_in
from kgot_lab.text.cleaning import whole
from kgot_lab.types import Json

TEXT_LISTS = ("public", "knowledge_scope")  # attributes that are lists of texts
MOST_STEPS = 100  # of a rule
_LONGEST = 400  # characters of a name or type, each of which an index holds


def fit_id(id: str) -> str:
    """The id of an entity as every storage writes it; raises BadInput for a text that is no UUID."""
    require(id, (str, UUID), "the id of an entity is a UUID in a text")
    try:
        return str(UUID(str(id)))
    except ValueError:
        raise BadInput(
            f"the id of an entity is a UUID, such as {UUID(int=2**127)}, which {shortly(id)} is not"
        ) from None


def fit_types(types: tuple[str, ...]) -> tuple[str, ...]:
    """Some types, each once; raises BadInput for what is no tuple of texts."""
    if isinstance(types, str) or not isinstance(types, tuple | list | set | frozenset):
        raise BadInput(f"types are texts in a tuple, not {described_value(types)}")
    return tuple(dict.fromkeys(plain_text(each, "a type") for each in types))


def fit_direction(direction: Direction) -> None:
    """Raise BadInput for what is no direction."""
    if direction not in ("out", "in", "both"):
        raise BadInput(f'a direction is "out", "in" or "both", not {described_value(direction)}')


def fit_depth(depth: int, name: str) -> int:
    """A number of steps that a walk may take; raises BadInput."""
    require_count(depth, 1, name, "how many steps a walk may take")
    return depth


def fit_bounded_depth(depth: int, name: str, what: str) -> None:
    """Raise BadInput for no number of steps, or for more than a rule may have: round a circle it would be
    followed step for step.
    """
    require_count(depth, 1, name, what)
    if depth > MOST_STEPS:
        raise BadInput(f"{name} is {MOST_STEPS} at most, not {depth:,}: {what}")


def fit_attributes(
    attributes: Mapping[str, Json],
    of: str,
    *,
    marks: tuple[str, ...] = (),
    lists: tuple[str, ...] = TEXT_LISTS,
) -> dict[str, Json]:
    """Attributes as every storage keeps them; raises BadInput for what is no JSON, and for marks and lists
    that are none.
    """
    require(attributes, Mapping, f"the attributes of {of} are a dictionary")
    for name in attributes:
        plain_text(name, f"the name of an attribute of {of}")
    given: dict[str, Json] = whole(dict(attributes))
    json_text(given, f"the attributes of {of}")
    if any("\0" in text for text in texts_in(given)):
        raise BadInput(f"the attributes of {of} hold a NUL, which no database takes")
    for mark in marks:
        require(given.get(mark), (bool, type(None)), f"the attribute {mark!r} of {of} is true or false")
    for name in lists:
        if (value := given.get(name)) is not None and not (
            isinstance(value, list) and all(isinstance(each, str) for each in value)
        ):
            raise BadInput(f"the attribute {name!r} of {of} is a list of texts, not {described_value(value)}")
    return given


def short_text(text: str, what: str, *, blank: bool = False) -> str:
    """A text that an index holds; raises BadInput for a longer one, and as plain_text."""
    text = plain_text(text, what, blank=blank)
    if len(text) > _LONGEST:
        raise BadInput(
            f"{what} has {len(text):,} characters: say it in {_LONGEST} or fewer, and the rest in an attribute"
        )
    return text
