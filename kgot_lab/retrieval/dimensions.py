"""Keeping the hits whose nodes lie within bounds on named dimensions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput, UnknownName, require
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Json

Bounds = tuple[float | None, float | None]
_TOLERANCE = 1e-9  # so that (.1, .1) finds a node whose .1 was computed


class DimensionColumn(NamedTuple):
    """The value of a dimension for each node, NaN where it has none, and the rows of nodes where it is something else than a number."""

    values: NDArray[np.float64]
    odd: tuple[int, ...]

    def within(self, bounds: Bounds) -> NDArray[np.bool_]:
        """Which nodes have a value within bounds, both inclusive; equal bounds have a tolerance of 1e-9 (decision C-D1)."""
        low, high = bounds
        slack = _TOLERANCE if low == high else 0.0
        kept = ~np.isnan(self.values)
        if low is not None:
            kept &= self.values >= low - slack
        if high is not None:
            kept &= self.values <= high + slack
        return kept


def dimensions(graph: PropertyGraph, filters: Mapping[str, Bounds]) -> Stage:
    """Keeps the hits whose node has every named property within its bounds: (low, high), both inclusive, None for no bound.

    A node that lacks one of the properties is left out, and the name of the stage counts such nodes; so is a hit that is no node.
    Scores stay as they were. Raises UnknownName for a property that no node has, and BadInput for bounds that make no sense
    and for a property that is not a number: in SQLite the text "0.9" would pass every lower bound.
    """
    check_bounds(filters)
    columns = {name: _numbers(graph, name) for name in filters}
    complete = np.logical_and.reduce([~np.isnan(column.values) for column in columns.values()])
    within = np.logical_and.reduce([columns[name].within(bounds) for name, bounds in filters.items()])
    kept = {graph.ids[row] for row in np.flatnonzero(within).tolist()}
    lacking = len(graph) - int(complete.sum())
    limits = [bounds_told(name, bounds) for name, bounds in filters.items()] + [f"{lacking} nodes lack one"] * bool(lacking)
    return Stage(
        f"dimensions({', '.join(limits)})",
        lambda ranking: replace(ranking, hits=tuple(hit for hit in ranking.hits if hit.id in kept)),
    )


def dimension_column(graph: PropertyGraph, name: str) -> DimensionColumn:
    """The values of a dimension; raises UnknownName for a property that no node has."""
    values, odd = np.full(len(graph), np.nan), []
    for row, known in enumerate(graph.node_properties):
        if (value := known.get(name)) is not None:
            if is_number(value):
                values[row] = value
            else:
                odd.append(row)
    if not odd and np.isnan(values).all():
        raise UnknownName("dimension", name, {key for known in graph.node_properties for key, value in known.items() if is_number(value)})
    return DimensionColumn(values, tuple(odd))


def check_bounds(filters: Mapping[str, Bounds]) -> None:
    """Raise BadInput for filters without a name, and for bounds that are no numbers or between which there is none."""
    require(filters, Mapping, "filters are a dictionary of bounds by dimension")
    if not filters:
        raise BadInput("dimensions() takes at least one property with its bounds, such as {'cost': (None, 0.3)}")
    for name, (low, high) in filters.items():
        if any(bound is not None and not is_number(bound) for bound in (low, high)):
            raise BadInput(f"the bounds of {name!r} must be numbers or None, not ({low!r}, {high!r})")
        if low is not None and high is not None and low > high:
            raise BadInput(f"no number lies between {low} and {high}, the bounds of {name!r}")


def is_number(value: Json) -> bool:
    """Whether a value is a finite number, which True and "0.9" are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def bounds_told(name: str, bounds: Bounds) -> str:
    """A dimension between its bounds, as in 0.1 <= cost <= 0.3."""
    low, high = bounds
    return ("" if low is None else f"{low:g} <= ") + name + ("" if high is None else f" <= {high:g}")


def _numbers(graph: PropertyGraph, name: str) -> DimensionColumn:
    column = dimension_column(graph, name)
    for row in column.odd:
        value = graph.node_properties[row][name]
        raise BadInput(f"{name!r} of node {graph.ids[row]!r} is {value!r}, which is not a number; mend the node or leave the property away")
    return column
