"""What one table of values must add, remove and change to become another."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from kgot_lab.errors import BadInput
from kgot_lab.types import Diff, Edge, Json, Node

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Thing = TypeVar("Thing", bound=Node | Edge)


@dataclass(frozen=True)
class Changes(Generic[V]):
    """Values only after, values only before, and pairs (before, after) that differ."""

    added: tuple[V, ...]
    removed: tuple[V, ...]
    changed: tuple[tuple[V, V], ...]


def changes(before: Mapping[K, V], after: Mapping[K, V], alike: Callable[[V, V], bool]) -> Changes[V]:
    """What changes from one table to another, in the order of the tables."""
    return Changes(
        tuple(value for key, value in after.items() if key not in before),
        tuple(value for key, value in before.items() if key not in after),
        tuple(
            (value, after[key])
            for key, value in before.items()
            if key in after and not alike(value, after[key])
        ),
    )


def patch(
    things: dict[K, Thing],
    removed: Iterable[Thing],
    changed: Iterable[tuple[Thing, Thing]],
    added: Iterable[Thing],
    *,
    key: Callable[[Thing], K],
) -> None:
    """Change a table of nodes or edges in place; raises BadInput when what to remove or change is not there,
    or what to add is.
    """
    removed, changed, added = tuple(removed), tuple(changed), tuple(added)
    _refuse_twice(chain(map(key, removed), (key(before) for before, _ in changed), map(key, added)))
    for old in (*removed, *(before for before, _ in changed)):
        if key(old) not in things or not _alike(things[key(old)], old):
            raise BadInput(
                f"the diff does not fit this graph: it expects {_short(old)}, and finds {_short(things.get(key(old)))}"
            )
    for before, after in changed:
        if key(before) != key(after):
            raise BadInput(f"a change keeps the identity: {_short(before)} became {_short(after)}")
        things[key(after)] = after
    for old in removed:
        del things[key(old)]
    for new in added:
        if key(new) in things:
            raise BadInput(f"the diff does not fit this graph: it adds {_short(new)}, which is already there")
        things[key(new)] = new


def require_each_once(diff: Diff) -> None:
    """Raise BadInput when a diff names a node or an edge twice, in whichever of its parts: what it would
    leave depends on their order.
    """
    changed_nodes, changed_edges = (
        (before.id for before, _ in diff.changed_nodes),
        (before.identity for before, _ in diff.changed_edges),
    )
    _refuse_twice(chain((node.id for node in chain(diff.added_nodes, diff.removed_nodes)), changed_nodes))
    _refuse_twice(
        chain((edge.identity for edge in chain(diff.added_edges, diff.removed_edges)), changed_edges)
    )


def _refuse_twice(names: Iterable[Hashable]) -> None:
    seen: set[Hashable] = set()
    for name in names:
        if name in seen:
            raise BadInput(
                f"the diff names {name!r} twice; each node and each edge is added, removed or changed at most once in a diff"
            )
        seen.add(name)


def same_value(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two sets of properties are the same JSON: key order and tuple or list do not matter, 1, 1.0 and
    true differ, NaN is NaN.
    """
    if one is other or not (one or other):
        return True
    return len(one) == len(other) and _canonical(one) == _canonical(other)


def _canonical(properties: Mapping[str, Any]) -> str:
    return json.dumps(dict(properties), sort_keys=True, default=repr)


def _alike(one: Node | Edge, other: Node | Edge) -> bool:
    if isinstance(one, Node) and isinstance(other, Node) and tuple(one.labels) != tuple(other.labels):
        return False
    return same_value(one.properties, other.properties)


def _short(thing: object) -> str:
    text = str(thing)
    return text if len(text) <= 300 else f"{text[:300]}…"


def merged_properties(before: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """Properties after a change: by name, and None takes one away."""
    return {name: value for name, value in {**before, **changes}.items() if value is not None}
