"""The 56 dimensions in nine categories: a number from 0 to 1 in a node's properties, and the meaning of both
ends.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput, UnknownName, describe_value, require, require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_tables
from kgot_lab.types import Json


@dataclass(frozen=True)
class Dimension:
    """A named scale from 0 to 1 with its category and the meaning of each end."""

    name: str
    category: str
    low: str
    high: str

    def __str__(self) -> str:
        return f"{self.name} ({self.category}): 0 {self.low}, 1 {self.high}"


_TABLES = read_tables(Path(__file__).with_suffix(".txt"))
DIMENSIONS = tuple(
    Dimension(name, category, *ends) for category, rows in _TABLES.items() for name, *ends in rows
)
DIMENSION_CATEGORIES = tuple(_TABLES)
DIMENSIONS_BY_NAME = MappingProxyType({dimension.name: dimension for dimension in DIMENSIONS})


# Bounds on dimensions: validation, and filters over the columns of a graph and in SQL.
#
# The document writes `<` in its text and `<=` in its method. Here both ends are inclusive. Only JSON numbers
# count: in SQLite the text "0.9" would pass every lower bound, and malformed JSON in one row would fail the
# whole statement.

Bounds = tuple[float | None, float | None]  # low and high, both inclusive, None for no bound
_TOLERANCE = 1e-9  # so that .1 matches a computed value of about .1
_EXACT_KEYS, _RANGE_KEYS = {"exact"}, {"min", "max"}


def validate_bounds(filters: Mapping[str, object], declared: Collection[str] = ()) -> dict[str, Bounds]:
    """Validate filters and return (low, high) by dimension.

    Each filter is such a pair, {"min": …, "max": …} or {"exact": …}. A name is one of the 56 dimensions or of
    `declared`. Raises UnknownName for another name. Raises BadInput if bounds are not numbers, if low is
    above high, or if the bounds of one of the 56 lie outside its scale.
    """
    require(
        filters, Mapping, "a filter gives dimensions with their bounds, such as {'pricing_tier': (None, 0.3)}"
    )
    if not filters:
        raise BadInput(
            "a filter takes at least one dimension with its bounds, such as {'pricing_tier': (None, 0.3)}"
        )
    return {_validate_name(name, declared): _parse_bounds(name, bounds) for name, bounds in filters.items()}


def within_bounds(values: NDArray[np.float64], bounds: Bounds) -> NDArray[np.bool_]:
    """Return a mask of the values within bounds, both inclusive.

    Equal bounds have a tolerance of 1e-9. NaN is never within bounds.
    """
    low, high = bounds
    slack = _TOLERANCE if low == high else 0.0
    lowest, highest = -np.inf if low is None else low - slack, np.inf if high is None else high + slack
    return np.asarray((values >= lowest) & (values <= highest))


@dataclass(frozen=True)
class DimensionColumn:
    """The value of a dimension for each node, NaN if missing, and the rows whose value is not a number."""

    values: NDArray[np.float64]
    odd: tuple[int, ...]


def dimension_column(graph: PropertyGraph, name: str) -> DimensionColumn:
    """Return the values of a dimension, and the rows where its value is not a number.

    Raises UnknownName if no node has the dimension.
    """
    values = dimension_values(graph, name)
    without_number = np.flatnonzero(np.isnan(values)).tolist()
    stored = graph.node_properties
    non_numeric_rows = tuple(row for row in without_number if stored[row].get(name) is not None)
    if not non_numeric_rows and np.isnan(values).all():
        properties = [item for each in graph.node_properties for item in each.items()]
        known = {name for name, value in properties if not math.isnan(to_number(value))}
        raise UnknownName("dimension", name, known)
    return DimensionColumn(values, non_numeric_rows)


def dimension_values(graph: PropertyGraph, name: str) -> NDArray[np.float64]:
    """Return the value of a dimension for each node, shape (nodes,).

    A missing value, or one that is not a finite number, is NaN.
    """
    found = (to_number(p[name]) if name in p else math.nan for p in graph.node_properties)
    return np.fromiter(found, np.float64, len(graph))


def to_number(value: Json) -> float:
    """Convert a JSON number to a float.

    Returns NaN for any other value, including True and False, and for a number outside the range of floats.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def rated_dimensions(properties: Mapping[str, Json]) -> dict[str, float]:
    """Return the values of the 56 dimensions in some properties, in the order of the catalogue.

    A value that is not a number from 0 to 1 is left out.
    """
    values = {name: to_number(properties[name]) for name in DIMENSIONS_BY_NAME if name in properties}
    return {name: value for name, value in values.items() if 0 <= value <= 1}


def format_bounds(name: str, bounds: Bounds) -> str:
    """Format bounds for reading: "0.1 <= cost <= 0.3"."""
    low, high = bounds
    return ("" if low is None else f"{low:g} <= ") + name + ("" if high is None else f" <= {high:g}")


def _validate_name(name: str, declared: Collection[str]) -> str:
    if isinstance(declared, str):
        raise BadInput(f"the dimensions that are declared are a list: [{declared!r}]")
    require_known("dimension", {*DIMENSIONS_BY_NAME, *declared}, name)
    return name


def _parse_bounds(name: str, bounds: object) -> Bounds:
    """Parse the bounds of a dimension from any of the accepted forms."""
    if isinstance(bounds, Mapping):
        if set(bounds) == _EXACT_KEYS:
            low = high = bounds["exact"]
        elif bounds and set(bounds) <= _RANGE_KEYS:
            low, high = bounds.get("min"), bounds.get("max")
        else:
            problem = f"the bounds of {name!r} are {{'min': …, 'max'"
            raise BadInput(f"{problem}: …}} or {{'exact': …}}, not {dict(bounds)!r}")
    elif isinstance(bounds, tuple | list) and len(bounds) == 2:
        low, high = bounds
    else:
        allowed = "a pair (low, high) or {'min': …, 'max': …}"
        raise BadInput(f"the bounds of {name!r} are {allowed}, not {describe_value(bounds)}")
    if any(bound is not None and math.isnan(to_number(bound)) for bound in (low, high)):
        raise BadInput(f"the bounds of {name!r} must be numbers or None, not ({low!r}, {high!r})")
    if low is not None and high is not None and low > high:
        raise BadInput(f"no number lies between {low} and {high}, the bounds of {name!r}")
    if name in DIMENSIONS_BY_NAME and any(bound is not None and not 0 <= bound <= 1 for bound in (low, high)):
        raise BadInput(f"{name!r} goes from 0 to 1; its bounds are ({low!r}, {high!r})")
    return (None if low is None else float(low), None if high is None else float(high))
