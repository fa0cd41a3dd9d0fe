"""What became of the dimensions from one state of a graph to another: which values moved, which came and
which are gone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kgot_lab.errors import BadInput, require, require_amount
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.dimensions.bounds import values_of
from kgot_lab.kgos.schemas.dimensions.catalogue import BY_NAME
from kgot_lab.text.counted import counted

_SHOWN = 3
SMALLEST_MOVE = 1e-9  # as for bounds: less is what computing a value anew may change


@dataclass(frozen=True)
class Shift:
    """A value that a node had and the one it has now."""

    id: str
    before: float
    after: float

    @property
    def by(self) -> float:
        """How far the value moved, and which way."""
        return self.after - self.before

    def __str__(self) -> str:
        return f"{self.id} {self.before:g} → {self.after:g}"


@dataclass(frozen=True)
class DimensionDrift:
    """What became of a dimension on the nodes that both graphs have; the farthest moves stand first."""

    name: str
    compared: int  # nodes with a value before and after
    moved: tuple[Shift, ...]
    came: tuple[str, ...]  # nodes that had no value
    gone: tuple[str, ...]  # nodes that have none now
    mean_before: float  # of the compared ones; NaN without any
    mean_after: float

    def __bool__(self) -> bool:
        return bool(self.moved or self.came or self.gone)

    def __str__(self) -> str:
        told = [f"{len(self.moved):,} of {counted(self.compared, 'value')} moved"]
        if self.moved:
            shown = ", ".join(map(str, self.moved[:_SHOWN])) + (
                f", {len(self.moved) - _SHOWN:,} more" if len(self.moved) > _SHOWN else ""
            )
            told = [f"{told[0]}, mean {self.mean_before:.3f} → {self.mean_after:.3f}: {shown}"]
        told += [f"{counted(len(self.came), 'node')} came to have one"] * bool(self.came)
        told += [f"{counted(len(self.gone), 'node')} lost it"] * bool(self.gone)
        return f"{self.name}: {'; '.join(told)}"


@dataclass(frozen=True, repr=False)
class DriftReport:
    """What became of every dimension that either graph has, in the order of the catalogue, and the nodes that
    only one of them has.
    """

    dimensions: tuple[DimensionDrift, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    def __getitem__(self, name: str) -> DimensionDrift:
        found = [each for each in self.dimensions if each.name == name]
        if not found:
            raise BadInput(
                f"neither graph has values of {name!r}; they have those of {', '.join(each.name for each in self.dimensions) or 'none'}"
            )
        return found[0]

    @cached_property
    def changed(self) -> frozenset[tuple[str, str]]:
        """Every (node, dimension) whose value moved, came or is gone."""
        return frozenset(
            (id, each.name)
            for each in self.dimensions
            for id in (*(shift.id for shift in each.moved), *each.came, *each.gone)
        )

    @property
    def silent(self) -> bool:
        """Whether nothing moved, came or is gone."""
        return not any(self.dimensions)

    def __repr__(self) -> str:
        drifted = [each for each in self.dimensions if each]
        head = f"{len(drifted)} of {counted(len(self.dimensions), 'dimension')} drifted"
        nodes = [
            f"{counted(len(ids), 'node')} only {when}"
            for ids, when in ((self.only_before, "before"), (self.only_after, "after"))
            if ids
        ]
        return "\n".join(["; ".join([head, *nodes]), *map(str, drifted)])


def drift(
    before: PropertyGraph,
    after: PropertyGraph,
    *,
    least: float = SMALLEST_MOVE,
    declared: Collection[str] = (),
) -> DriftReport:
    """What became of the 56 dimensions, and of the `declared` ones, on the nodes that two graphs share by
    their ids.

    A value moved when it changed by more than `least`; what is no number counts as no value. Raises BadInput.
    """
    for graph in (before, after):
        require(graph, PropertyGraph, "drift is between two graphs, each a PropertyGraph")
    require_amount(least, "least")
    shared = [id for id in before.ids if id in after]
    rows, now = (np.array([graph.row(id) for id in shared], dtype=np.int64) for graph in (before, after))
    found = []
    for name in dict.fromkeys((*BY_NAME, *declared)):
        old, new = values_of(before, name), values_of(after, name)
        if not (np.isnan(old).all() and np.isnan(new).all()):
            found.append(_of_dimension(name, shared, old[rows], new[now], least))
    gone, came = (
        tuple(id for id in one.ids if id not in other) for one, other in ((before, after), (after, before))
    )
    return DriftReport(tuple(found), gone, came)


def _of_dimension(
    name: str,
    ids: list[str],
    old: np.typing.NDArray[np.float64],
    new: np.typing.NDArray[np.float64],
    least: float,
) -> DimensionDrift:
    had, has = ~np.isnan(old), ~np.isnan(new)
    both = had & has
    far = np.flatnonzero(both & (np.abs(np.where(both, new - old, 0)) > least))
    moved = sorted(
        (Shift(ids[row], float(old[row]), float(new[row])) for row in far.tolist()),
        key=lambda each: (-abs(each.by), each.id),
    )
    came, gone = (
        tuple(ids[row] for row in np.flatnonzero(mask).tolist()) for mask in (~had & has, had & ~has)
    )
    means = (float(old[both].mean()), float(new[both].mean())) if both.any() else (float("nan"), float("nan"))
    return DimensionDrift(name, int(both.sum()), tuple(moved), came, gone, *means)
