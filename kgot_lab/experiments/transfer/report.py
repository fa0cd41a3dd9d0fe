"""The tables of the transfer, derived from the receipts in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgot_lab.evaluation.tables import Grid
from kgot_lab.experiments.transfer.compared import cells_grid, held_out_grid, settings_grid, twins_grid
from kgot_lab.experiments.transfer.held_sets import HELD_SETS
from kgot_lab.experiments.transfer.receipts import held_out, held_out_cells, kept_sets, told_twins
from kgot_lab.experiments.transfer.systems import chosen_setting


def transfer_grids(folder: Path, drawn: Path) -> list[Grid]:
    """All tables of the transfer; `drawn` holds the questions of the structure benchmark."""
    sets = kept_sets(folder)
    chosen = {held: (chosen_setting(sets.without(held)), chosen_setting(sets.only(held))) for held in HELD_SETS}
    return [
        held_out_grid(held_out(folder, sets)),
        settings_grid(chosen),
        cells_grid(held_out_cells(folder, drawn, sets)),
        twins_grid(told_twins(folder, sets)),
    ]


def transfer_page(grids: Sequence[Grid]) -> str:
    """The tables as a page of Markdown."""
    return "\n\n".join(grid.markdown for grid in grids) + "\n"
