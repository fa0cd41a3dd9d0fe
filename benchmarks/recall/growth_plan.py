"""What an index of more passages than were measured would take: the measured growth, carried on as a power of
the number of passages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.recall.growth import GrowthRow
from kgot_lab.errors import BadInput, require_count
from kgot_lab.evaluation.tables import Cell, Grid

CARRIED_ON = {
    "index_s": "index, s",
    "peak_mb": "peak, GB",
    "index_mb": "index, GB",
    "median_ms": "median, ms",
}
_IN_GB = ("peak_mb", "index_mb")
_NUMBERS = 384  # of a vector of MiniLM


@dataclass(frozen=True)
class Extrapolated:
    """What a lane would take: the least and the most that two fits say, and the exponent of the fit to the
    last three sizes.

    Both fits are c * passages ** exponent, by least squares in logarithms: to the last two sizes measured,
    and to the last three.
    """

    lane: str
    what: str
    passages: int
    low: float
    high: float
    exponent: float


def extrapolated(rows: Iterable[GrowthRow], passages: int) -> list[Extrapolated]:
    """What each lane would take for so many passages, from the rows of measure_growth; raises BadInput for
    less than three sizes.
    """
    require_count(passages, 1, "passages", "an index is planned for so many")
    lanes: dict[str, list[GrowthRow]] = {}
    for row in rows:
        if "error" not in row:
            lanes.setdefault(str(row["lane"]), []).append(row)
    found = []
    for lane, measured in lanes.items():
        sizes = sorted(measured, key=lambda row: int(row["passages"]))[-3:]
        if len({row["passages"] for row in sizes}) < 3:
            raise BadInput(
                f"the growth of {lane} was measured at {len(sizes)} sizes; planning takes three, see benchmarks/recall/scale.py"
            )
        for what in CARRIED_ON:
            fits = [_fit(sizes[-last:], what) for last in (2, 3)]
            said = sorted(float(factor * passages**exponent) for exponent, factor in fits)
            found.append(Extrapolated(lane, what, passages, said[0], said[-1], fits[1][0]))
    if not found:
        raise BadInput("no growth was measured; see benchmarks/recall/scale.py")
    return found


def growth_plan_grid(plan: Sequence[Extrapolated]) -> Grid:
    """The plan as a table; in brackets the exponent."""
    lines = []
    for lane in dict.fromkeys(each.lane for each in plan):
        own = {each.what: each for each in plan if each.lane == lane}
        lines.append((Cell(lane), *(Cell(_shown(own[what])) for what in CARRIED_ON)))
    passages = plan[0].passages
    title = (
        f"{passages:,} passages, carried on from what was measured up to a million; in brackets the exponent"
    )
    return Grid(title, ("lane", *CARRIED_ON.values()), tuple(lines))


def vectors_told(passages: int) -> str:
    """The memory that the vectors of so many passages take, in one sentence."""
    sizes = [f"{passages * _NUMBERS * bits / 8 / 1e9:,.1f} GB in {bits} bits" for bits in (32, 16, 8)]
    return f"The vectors alone, {_NUMBERS} numbers each, take {sizes[0]}, {sizes[1]}, {sizes[2]}."


def _fit(rows: Sequence[GrowthRow], what: str) -> tuple[float, float]:
    """Exponent and factor of the power that lies nearest to the rows."""
    sizes, values = (np.log([float(row[name]) for row in rows]) for name in ("passages", what))
    exponent, constant = np.polyfit(sizes, values, 1)
    return float(exponent), float(np.exp(constant))


def _shown(each: Extrapolated) -> str:
    low, high = (
        _two_digits(value / 1000 if each.what in _IN_GB else value) for value in (each.low, each.high)
    )
    return f"{low if low == high else f'{low} to {high}'} ({each.exponent:.2f})"


def _two_digits(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
