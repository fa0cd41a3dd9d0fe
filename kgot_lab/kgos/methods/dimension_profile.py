"""Two nodes beside each other, dimension by dimension: where they agree, and where one is higher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.index import GraphIndex, index_of
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS, as_number
from kgot_lab.text.counted import counted


class ProfileRow(NamedTuple):
    """A dimension with its category, what its ends mean, and the value of either node; None where a node has
    none.
    """

    dimension: str
    category: str
    low: str
    high: str
    first: float | None
    second: float | None

    @property
    def gap(self) -> float | None:
        """How much higher the second is; None where one of them has no value."""
        return None if self.first is None or self.second is None else round(self.second - self.first, 9)


@dataclass(frozen=True, repr=False)
class DimensionProfile(MethodResult):
    """The dimensions that two nodes have, in the order of the catalogue; those that only one has are among
    them.
    """

    node: str
    other: str
    names: tuple[str, str]
    dimensions: tuple[ProfileRow, ...]
    why: tuple[str, ...]

    COLUMNS: ClassVar[tuple[str, ...]] = ("dimension", "category", "first", "second", "second less first")

    @property
    def title(self) -> str:
        return f"{self.names[0]} beside {self.names[1]}: {counted(len(self.dimensions), 'dimension')}"

    @property
    def ids(self) -> list[str]:
        """The two nodes."""
        return [self.node, self.other]

    def rows(self) -> Sequence[tuple[object, ...]]:
        return [
            (each.dimension, each.category, each.first, each.second, each.gap) for each in self.dimensions
        ]


def dimension_profile(graph: PropertyGraph, node: str, other: str) -> DimensionProfile:
    """The values of two nodes on each of the 56 dimensions that at least one of them has.

    Raises UnknownName for a node, with near ids. What is no number from 0 to 1 is no value.
    """
    index = index_of(graph)
    first, second = _values(index, node), _values(index, other)
    rows = tuple(
        ProfileRow(each.name, each.category, each.low, each.high, first.get(each.name), second.get(each.name))
        for each in DIMENSIONS
        if each.name in first or each.name in second
    )
    names = index.names[index.row(node)], index.names[index.row(other)]
    both = [row for row in rows if row.gap is not None]
    why = [f"{len(both)} dimensions are known of both"]
    if both:
        widest = max(both, key=lambda row: abs(row.gap or 0.0))
        why.append(f"farthest apart on {widest.dimension}: {widest.first:g} and {widest.second:g}")
    return DimensionProfile(node, other, names, rows, tuple(why))


def _values(index: GraphIndex, node: str) -> Mapping[str, float]:
    known = index.graph.node_properties[index.row(node)]
    values = {each.name: as_number(known[each.name]) for each in DIMENSIONS if each.name in known}
    return {name: value for name, value in values.items() if 0 <= value <= 1}
