"""The tables of the transfer, derived from the receipts in a folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.transfer.compared import (
    cells_grid,
    directions_grid,
    gap_spoken,
    held_out_grids,
    settings_grid,
    twins_grid,
)
from benchmarks.transfer.held_sets import HELD_SETS
from benchmarks.transfer.per_question import held_out, held_out_cells, kept_sets, told_twins
from benchmarks.transfer.systems import (
    ALIGNED,
    ALIGNED_AND_OUTCOMES,
    ALL_LEVELS,
    ALL_THREE,
    ENCODING,
    IN_ORDER,
    LEVELS,
    OUTCOMES_FITTED,
    SURFACE_AND_ALIGNED,
    ChosenElsewhere,
    Sets,
)
from kgot_lab.evaluation.significance import holm, interval, sign_flip_p, smallest_detectable
from kgot_lab.evaluation.tables import Cell, Grid, decimal, format_p_value

_HELD_OUT = {
    "Leave one set out: weights and word lists chosen on the three others": (ALIGNED, SURFACE_AND_ALIGNED),
    "The same for what reads outcomes": ("outcomes", ALIGNED_AND_OUTCOMES, OUTCOMES_FITTED, ALL_THREE),
    "The same for encodings learnt without labels, and for several levels at once": (
        IN_ORDER,
        ENCODING,
        LEVELS,
        ALL_LEVELS,
    ),
}
_MAPPERS = ("surface", "offset from the system", "told in the system")


def transfer_grids(folder: Path, drawn: Path) -> list[Grid]:
    """All tables of the transfer; `drawn` holds the questions of the structure benchmark."""
    sets = kept_sets(folder)
    first, *others = held_out_grids(held_out(folder, sets), _HELD_OUT)
    return [
        first,
        settings_grid(chosen_settings(sets)),
        *others,
        directions_grid(sets),
        cells_grid(held_out_cells(folder, drawn, sets)),
        twins_grid(told_twins(folder, sets)),
        mappings_grid(drawn.parent / "mappings.jsonl.gz"),
    ]


def chosen_settings(sets: Sets) -> dict[str, tuple[ChosenElsewhere, ChosenElsewhere]]:
    """For each set what the others choose, and what it would choose itself."""
    return {
        held: (ChosenElsewhere.by(sets.without(held), held), ChosenElsewhere.by(sets.only(held), held))
        for held in HELD_SETS
    }


def mappings_grid(path: Path) -> Grid:
    """Are words of SCAN's systems mapped better by structure than by similarity? Paired by system; the
    p-values are one family.
    """
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    right = {name: {row["pair"]: row["right"] for row in rows if row["system"] == name} for name in _MAPPERS}
    locked = {row["pair"]: row["locked"] for row in rows}
    gaps = {
        name: np.array([right[name][pair] - right["surface"][pair] for pair in locked])
        for name in _MAPPERS[1:]
    }
    some = np.array(list(locked.values()))
    made = []
    for (name, gap), p in zip(gaps.items(), holm([sign_flip_p(gap) for gap in gaps.values()]), strict=True):
        share, own = (
            decimal(float(np.mean(list(right[name].values())))),
            decimal(float(np.mean(list(right["surface"].values())))),
        )
        numbers = (
            share,
            own,
            gap_spoken(interval(gap)),
            format_p_value(p),
            decimal(smallest_detectable(gap)),
            gap_spoken(interval(gap[some])),
        )
        made.append(tuple(map(Cell, (name, *numbers))))
    columns = ("mapping", "right", "by similarity", "gain", "p Holm", "detectable", "on locked")
    return Grid(f"Words of {len(locked)} pairs of systems (SCAN), mapped one to one", columns, tuple(made))


def transfer_page(grids: Sequence[Grid]) -> str:
    """The tables as a page of Markdown."""
    return "\n\n".join(grid.markdown for grid in grids) + "\n"
