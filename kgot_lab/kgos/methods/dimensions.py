"""Filter nodes by bounds on named dimensions (KG-OS, method 7), and compare two nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult, TableFound
from kgot_lab.kgos.methods.index import BoolColumn, GraphIndex, graph_index
from kgot_lab.kgos.schemas.dimensions import (
    DIMENSIONS,
    Bounds,
    format_bounds,
    rated_dimensions,
    validate_bounds,
    within_bounds,
)
from kgot_lab.text.cleaning import format_count

Filters = Mapping[str, Mapping[str, float]]  # by dimension: min, max or exact


@check_arguments
def dimension_filter(graph: PropertyGraph, filters: Filters, *, limit: int = 20) -> TableFound:
    """Return the nodes within all bounds, such as {"pricing_tier": {"max": 0.3}}, in the order of the graph.

    min and max are inclusive; exact has a tolerance of 1e-9. A node that lacks a dimension, or whose value is
    not a number, is left out and counted; the first of the latter are named. Raises UnknownName if no node
    has a dimension, and BadInput if bounds are invalid.
    """
    require_count(limit, 1, "limit", "it is how many nodes are kept")
    index, bounds = graph_index(graph), validate_filters(filters)
    selected, why = select_rows(index, bounds)
    rows = np.flatnonzero(selected)
    shown = rows[:limit].tolist()
    if len(rows) > limit:
        more = f"{len(rows) - limit:,} more lie within"
        why.append(f"{more}, limit={limit} keeps the first in the order of the graph")
    columns = [index.dimension(name).values for name in bounds]
    nodes = tuple((*index.identity(row), *(float(column[row]) for column in columns)) for row in shown)
    phrases = " and ".join(format_bounds(name, each) for name, each in bounds.items())
    title = f"{phrases}: {format_count(len(rows), 'node')}"
    about = tuple(index.graph.ids[row] for row in shown)
    return TableFound(title, ("id", "name", "type", *bounds), nodes, tuple(why), about)


def validate_filters(filters: Filters) -> dict[str, Bounds]:
    """Return the lowest and the highest value allowed for each dimension.

    Raises BadInput if the filters are invalid.
    """
    return validate_bounds(filters, declared=tuple(filters) if isinstance(filters, Mapping) else ())


def select_rows(index: GraphIndex, bounds: Mapping[str, Bounds]) -> tuple[BoolColumn, list[str]]:
    """Return which rows are within all bounds, and what each filter left out."""
    selected, why = np.ones(len(index.graph), bool), []
    for name, each in bounds.items():
        column = index.dimension(name)
        is_inside = within_bounds(column.values, each)
        missing = int(np.isnan(column.values).sum()) - len(column.odd)
        outside = len(is_inside) - int(is_inside.sum()) - missing - len(column.odd)
        reasons = [f"{outside:,} outside"] + ([f"{missing:,} without a value"] if missing > 0 else [])
        if column.odd:
            values = {index.graph.ids[row]: index.graph.node_properties[row][name] for row in column.odd[:3]}
            named = ", ".join(f"{id} has {value!r}" for id, value in values.items())
            reasons.append(f"{len(column.odd):,} with something else than a number ({named})")
        why.append(
            f"{format_bounds(name, each)} leaves out {', '.join(reasons)}; {int((selected & is_inside).sum()):,} of {int(selected.sum()):,} left"
        )
        selected &= is_inside
    return selected, why


# Compare two nodes on each dimension.


class ProfileRow(NamedTuple):
    """A dimension with its category, the meaning of its ends, and both values, None if missing."""

    dimension: str
    category: str
    low: str
    high: str
    first: float | None
    second: float | None

    @property
    def gap(self) -> float | None:
        """The second value minus the first, or None if one is missing."""
        return None if self.first is None or self.second is None else round(self.second - self.first, 9)


@dataclass(frozen=True, repr=False)
class DimensionProfile(MethodResult):
    """The dimensions that at least one of two nodes has, in the order of the catalogue."""

    node: str
    other: str
    names: tuple[str, str]
    dimensions: tuple[ProfileRow, ...]
    why: tuple[str, ...]

    COLUMNS = ("dimension", "category", "first", "second", "second less first")

    @property
    def title(self) -> str:
        return f"{self.names[0]} beside {self.names[1]}: {format_count(len(self.dimensions), 'dimension')}"

    @property
    def ids(self) -> list[str]:
        """The two nodes."""
        return [self.node, self.other]

    def rows(self) -> Sequence[tuple[object, ...]]:
        return [(d.dimension, d.category, d.first, d.second, d.gap) for d in self.dimensions]


@check_arguments
def dimension_profile(graph: PropertyGraph, node: str, other: str) -> DimensionProfile:
    """Compare two nodes on each of the 56 dimensions that at least one of them has.

    A value that is not a number from 0 to 1 is ignored. Raises UnknownName for an unknown node, with similar
    ids.
    """
    index = graph_index(graph)
    first, second = (rated_dimensions(graph.node_properties[row]) for row in map(index.row, (node, other)))
    named = [dimension for dimension in DIMENSIONS if dimension.name in first or dimension.name in second]
    rows = tuple(
        ProfileRow(d.name, d.category, d.low, d.high, first.get(d.name), second.get(d.name)) for d in named
    )
    names = index.names[index.row(node)], index.names[index.row(other)]
    both = [row for row in rows if row.gap is not None]
    why = [f"{len(both)} dimensions are known of both"]
    if both:
        widest = max(both, key=lambda row: abs(row.gap or 0.0))
        why.append(f"farthest apart on {widest.dimension}: {widest.first:g} and {widest.second:g}")
    return DimensionProfile(node, other, names, rows, tuple(why))
