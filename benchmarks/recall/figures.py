"""Figures that follow from the value of each question alone: means and gaps with their intervals, and how a
result is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from kgot_lab.evaluation.significance import (
    Numbers,
    holm,
    interval,
    sign_flip_p,
    smallest_detectable,
    wins_ties_losses,
)
from kgot_lab.types import Json

Row = dict[str, Json]


def estimated(numbers: Numbers) -> Row:
    """Mean, 95 % interval and number of some values, rounded as they are kept."""
    found = interval(numbers)
    return {
        "mean": round(found.mean, 4),
        "low": round(found.low, 4),
        "high": round(found.high, 4),
        "n": found.n,
    }


def gap_estimated(gap: Numbers) -> Row:
    """The same of paired differences, with p, the smallest one that would have been seen, and wins, ties and
    losses.
    """
    wins, ties, losses = wins_ties_losses(gap)
    tests = {"p": round(sign_flip_p(gap), 4), "detectable": round(smallest_detectable(gap), 4)}
    return {**estimated(gap), **tests, "wins": wins, "ties": ties, "losses": losses}


def corrected(gaps: Sequence[Mapping[str, Json]]) -> list[Row]:
    """The gaps of one family, with Holm's p beside their own."""
    return [
        {**gap, "p_holm": p}
        for gap, p in zip(gaps, holm([float(str(gap["p"])) for gap in gaps]), strict=True)
    ]


def json_lines(result: Mapping[str, Json]) -> str:
    """A result as JSON with a line for each row, so that a change can be read."""
    parts = []
    for name, value in result.items():
        rows = ",\n  ".join(map(json.dumps, value)) if isinstance(value, list) else ""
        parts.append(f' "{name}": ' + (f"[\n  {rows}\n ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"
