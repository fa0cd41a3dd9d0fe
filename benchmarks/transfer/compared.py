"""Held-out sets as tables: what was chosen elsewhere, what it gives here against the controls, and what
tuning on the set itself adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.structure.analogies import Choices
from benchmarks.transfer.encodings import TRIED_DIRECTIONS, encoded_trait
from benchmarks.transfer.systems import (
    STRUCTURES,
    SURFACE_FITTED,
    ChosenElsewhere,
    Sets,
    right_shares,
    transferred,
    tuned,
)
from benchmarks.transfer.traits import MASKED, Traits
from kgot_lab.evaluation.significance import Estimate, Numbers, grouped_interval, grouped_p, holm, interval
from kgot_lab.evaluation.tables import Cell, Grid, decimal, format_p_value, signed

TRIED_SYSTEMS = tuple(name for name in STRUCTURES if name != MASKED)
HELD_CONTROLS = (
    "surface",
    "bm25",
    "minus surface",
    "second by surface",
    "noun veto",
    "noun veto, masked",
    SURFACE_FITTED,
)
_HALF = 0.5


@dataclass(frozen=True, repr=False)
class HeldOut:
    """Some questions of a set that was held out: the share right of each question, by system, for what was
    chosen elsewhere and here.
    """

    held: str
    questions: Choices
    chosen: ChosenElsewhere
    elsewhere: Mapping[str, Numbers]
    here: Mapping[str, Numbers]

    @classmethod
    def of(
        cls, held: str, traits: Traits, sets: Sets, *, taught: Traits | None = None, here: bool = True
    ) -> HeldOut:
        """Questions of a set, answered by what the other sets taught, and by what their own develop part
        teaches (or that of `taught`).

        Without `here` nothing is learnt of their own.
        """
        others = sets.without(held)
        chosen = ChosenElsewhere.by(others, held)
        said, own = (
            transferred(traits, others, chosen),
            tuned(traits, taught or traits, sets.only(held), held) if here else {},
        )
        return cls(
            held,
            traits.questions,
            chosen,
            {name: right_shares(table, traits.questions) for name, table in said.items()},
            {name: right_shares(table, traits.questions) for name, table in own.items()},
        )

    @property
    def groups(self) -> list[str]:
        """The group of each question: those of one group are drawn together."""
        return [each.group or each.id for each in self.questions.questions]

    @property
    def locked(self) -> NDArray[np.bool_]:
        """Which questions are locked."""
        return np.array([each.id in self.questions.locked for each in self.questions.questions])

    def opened(self, gap: Numbers) -> tuple[list[float], list[str]]:
        """What there is of the locked questions, and their groups."""
        return gap[self.locked].tolist(), np.array(self.groups)[self.locked].tolist()

    def rows(self, cell: str) -> NDArray[np.bool_]:
        """Which questions stand in a cell."""
        return np.array([each.cell == cell for each in self.questions.questions])

    def best_control(self) -> str:
        """The control with the most right answers on the develop questions of the set itself, ties by name:
        the hardest rival.
        """
        return min(HELD_CONTROLS, key=lambda name: (-self.elsewhere[name][~self.locked].mean(), name))

    def __repr__(self) -> str:
        return f"<{self.questions.name}, {self.held} held out: {self.chosen}>"


def held_out_grids(some: Sequence[HeldOut], systems: Mapping[str, Sequence[str]]) -> list[Grid]:
    """A table for each title with its systems: what was chosen elsewhere against the hardest control, and
    what tuning here adds.

    The p-values of all tables are one family (Holm), those on locked questions alone another.
    """
    lines = [(title, each, name) for title, names in systems.items() for each in some for name in names]
    gaps = [each.elsewhere[name] - each.elsewhere[each.best_control()] for _, each, name in lines]
    corrected = holm(
        [grouped_p(gap.tolist(), each.groups) for (_, each, _), gap in zip(lines, gaps, strict=True)]
    )
    opened = holm([grouped_p(*each.opened(gap)) for (_, each, _), gap in zip(lines, gaps, strict=True)])
    rows: dict[str, list[tuple[Cell, ...]]] = {title: [] for title in systems}
    for (title, each, name), gap, p, p_opened in zip(lines, gaps, corrected, opened, strict=True):
        rows[title].append(_held_out_row(each, name, gap, (p, p_opened)))
    here = ("tuned here", "what tuning adds", "on locked")
    columns = (
        "held out",
        "system",
        "chosen elsewhere",
        "hardest control",
        "gain over it",
        "p Holm",
        "on locked",
        "p Holm",
        *here,
    )
    return [Grid(title, columns, tuple(found)) for title, found in rows.items()]


def _held_out_row(each: HeldOut, name: str, gap: Numbers, ps: tuple[float, float]) -> tuple[Cell, ...]:
    rival, own = each.best_control(), each.here.get(name)
    lead = grouped_interval(gap.tolist(), each.groups)
    tuned_here = ("", "", "")  # for what learns nothing
    if own is not None:
        more = own - each.elsewhere[name]
        tuned_here = (
            decimal(own.mean()),
            gap_spoken(grouped_interval(more.tolist(), each.groups)),
            _on_locked(each, more),
        )
    against = f"{rival} {decimal(each.elsewhere[rival].mean())}"
    gains = (gap_spoken(lead), format_p_value(ps[0]), _on_locked(each, gap), format_p_value(ps[1]))
    cells = (each.questions.name, name, decimal(each.elsewhere[name].mean()), against, *gains, *tuned_here)
    return tuple(
        Cell(text, number == 4 and lead.low > 0 and ps[0] < 0.05) for number, text in enumerate(cells)
    )


def _on_locked(each: HeldOut, gap: Numbers) -> str:
    return gap_spoken(grouped_interval(*each.opened(gap)))


def settings_grid(some: Mapping[str, tuple[ChosenElsewhere, ChosenElsewhere]]) -> Grid:
    """The setting of the aligner and the directions of the encoder that the other sets choose, and those that
    it would choose itself.
    """
    rows = tuple((Cell(held), Cell(str(others)), Cell(str(own))) for held, (others, own) in some.items())
    return Grid("What was chosen", ("held out", "by the three others", "by the set itself"), rows, words=True)


def directions_grid(sets: Sets) -> Grid:
    """What the encoder that was learnt without a set answers of it, by how many directions are taken; all
    questions.
    """
    rows = []
    for held, some in sets.by.items():
        for traits in some:
            shares = [
                right_shares(traits.column(encoded_trait(held, count)), traits.questions).mean()
                for count in TRIED_DIRECTIONS
            ]
            rows.append(
                tuple(
                    Cell(text)
                    for text in (traits.questions.name, *(decimal(float(share)) for share in shares))
                )
            )
    columns = ("encoded, by directions", *map(str, TRIED_DIRECTIONS))
    return Grid("How much hangs on the count of directions", columns, tuple(rows))


def cells_grid(drawn: Sequence[HeldOut]) -> Grid:
    """Each cell and the matched questions: is a system chosen elsewhere above .5, and above every control by
    a paired test?

    The p-values of a system, over all cells and controls, are one family (Holm).
    """
    places = [(each, cell) for each in drawn for cell in each.questions.cells]
    rows: list[list[str]] = [[f"{each.held} {cell} ({int(each.rows(cell).sum())})"] for each, cell in places]
    bold: list[list[bool]] = [[False] for _ in places]
    for name in TRIED_SYSTEMS:
        tests = [_against_controls(each, cell, name) for each, cell in places]
        corrected = iter(holm([p for some in tests for _, p in some.values()]))
        for row, marks, (each, cell), some in zip(rows, bold, places, tests, strict=True):
            above = [
                gap > 0 and p < 0.05
                for (gap, _), p in zip(some.values(), [next(corrected) for _ in some], strict=True)
            ]
            mean = float(each.elsewhere[name][each.rows(cell)].mean())
            row.append(f"{decimal(mean)}, above {sum(above)} of {len(above)}")
            marks.append(mean > _HALF and all(above))
    for row, marks, (each, cell) in zip(rows, bold, places, strict=True):
        means = {name: float(each.elsewhere[name][each.rows(cell)].mean()) for name in HELD_CONTROLS}
        best = max(means, key=lambda name: (means[name], name))
        row.append(f"{best} {decimal(means[best])}")
        marks.append(False)
    made = tuple(tuple(map(Cell, row, marks)) for row, marks in zip(rows, bold, strict=True))
    title = "Chosen elsewhere: each cell above .5, and above how many of seven controls by a paired test (Holm); bold where all of it holds"
    return Grid(title, ("cell", *TRIED_SYSTEMS, "best control in it"), made)


def _against_controls(each: HeldOut, cell: str, name: str) -> dict[str, tuple[float, float]]:
    """The gain of a system over each control in a cell, and its p."""
    rows, groups = each.rows(cell), np.array(each.groups)
    found = {}
    for control in HELD_CONTROLS:
        gap = (each.elsewhere[name] - each.elsewhere[control])[rows]
        found[control] = (float(gap.mean()), grouped_p(gap.tolist(), groups[rows].tolist()))
    return found


def twins_grid(told: Mapping[str, HeldOut]) -> Grid:
    """Stories in the source's phrases and reworded: the share found, and the loss in points with its
    interval; with a turned one beside.
    """
    same, other, same_turned, other_turned = told.values()
    rows = []
    for name in (*HELD_CONTROLS, *STRUCTURES):
        for how in ("elsewhere", "here"):
            by = [getattr(each, how) for each in (same, other, same_turned, other_turned)]
            if name not in by[0]:
                continue
            shares = [decimal(float(each[name].mean())) for each in by]
            losses = [interval((by[first][name] - by[first + 1][name]) * 100) for first in (0, 2)]
            locked = [float((by[0][name] - by[1][name])[same.locked].mean() * 100)]
            title = name if how == "elsewhere" else f"{name}, tuned on StoryAnalogy"
            plain, turned = (_points(loss) for loss in losses)
            rows.append(
                tuple(map(Cell, (title, *shares[:2], plain, f"{locked[0]:+.0f}", *shares[2:], turned)))
            )
    beside = ("same, turned beside", "reworded, turned beside", "loss, points ")
    columns = ("system", "same phrases", "reworded", "loss, points", "on locked", *beside)
    title = "Reworded twins: sixty stories in the phrases of StoryAnalogy and in others; weights chosen on the other sets"
    return Grid(title, columns, tuple(rows))


def _points(loss: Estimate) -> str:
    return f"{loss.mean:+.0f} [{loss.low:+.0f}, {loss.high:+.0f}]"


def gap_spoken(gap: Estimate) -> str:
    """A difference and its interval."""
    return f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}]"
