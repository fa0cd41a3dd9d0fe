"""Keeping the hits whose nodes lie within bounds on named dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Json

Bounds = tuple[float | None, float | None]
_TOLERANCE = 1e-9  # so that (.1, .1) finds a node whose .1 was computed


def dimensions(graph: PropertyGraph, filters: Mapping[str, Bounds]) -> Stage:
    """Keeps the hits whose node has every named property within its bounds: (low, high), both inclusive, None for no bound.

    A node that lacks one of the properties is left out, and the name of the stage counts such nodes; so is a hit that is no node.
    Scores stay as they were. Raises UnknownName for a property that no node has, and BadInput for bounds that make no sense
    and for a property that is not a number: in SQLite the text "0.9" would pass every lower bound.
    """
    _check(filters)
    values = {name: _values(graph, name) for name in filters}
    complete = set.intersection(*(set(of_node) for of_node in values.values()))
    kept = {id for id in complete if all(_within(values[name][id], bounds) for name, bounds in filters.items())}
    lacking = len(graph) - len(complete)
    limits = [_phrase(name, bounds) for name, bounds in filters.items()] + [f"{lacking} nodes lack one"] * bool(lacking)
    return Stage(
        f"dimensions({', '.join(limits)})",
        lambda ranking: replace(ranking, hits=tuple(hit for hit in ranking.hits if hit.id in kept)),
    )


def _check(filters: Mapping[str, Bounds]) -> None:
    if not filters:
        raise BadInput("dimensions() takes at least one property with its bounds, such as {'cost': (None, 0.3)}")
    for name, (low, high) in filters.items():
        if any(bound is not None and not _is_number(bound) for bound in (low, high)):
            raise BadInput(f"the bounds of {name!r} must be numbers or None, not ({low!r}, {high!r})")
        if low is not None and high is not None and low > high:
            raise BadInput(f"no number lies between {low} and {high}, the bounds of {name!r}")


def _values(graph: PropertyGraph, name: str) -> dict[str, float]:
    """The value of a property for each node that has it."""
    found = {id: known[name] for id, known in zip(graph.ids, graph.node_properties, strict=True) if known.get(name) is not None}
    if not found:
        raise UnknownName("dimension", name, {key for known in graph.node_properties for key, value in known.items() if _is_number(value)})
    for id, value in found.items():
        if not _is_number(value):
            raise BadInput(f"{name!r} of node {id!r} is {value!r}, which is not a number; mend the node or leave the property away")
    return found


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _within(value: float, bounds: Bounds) -> bool:
    low, high = bounds
    slack = _TOLERANCE if low == high else 0.0
    return (low is None or value >= low - slack) and (high is None or value <= high + slack)


def _phrase(name: str, bounds: Bounds) -> str:
    low, high = bounds
    return ("" if low is None else f"{low:g} <= ") + name + ("" if high is None else f" <= {high:g}")
