"""The gate before a fusion: a lane is refused unless the others gain by it, on a tuning split, by a margin
fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.results import MARGIN
from kgot_lab.retrieval.stage import Stage

_FIRST, ADMITTED, REFUSED = "first", "admitted", "refused"
_FRACTION = 1e-12  # a gain of the margin itself is enough, whatever binary fractions say


@dataclass(frozen=True)
class Trial:
    """One lane at the gate: its quality alone, that of the fusion without it and with it, and the verdict."""

    lane: str
    alone: float
    without: float  # for the first lane there is no fusion yet: both are its own
    joined: float
    verdict: str


@dataclass(frozen=True, repr=False)
class Admission:
    """What a gate decided: the pipeline of the lanes admitted, and every trial that led to it, in their
    order.
    """

    stage: Stage = field(compare=False)
    trials: tuple[Trial, ...]
    margin: float

    @property
    def admitted(self) -> tuple[str, ...]:
        """The names of the lanes in the pipeline, best first."""
        return tuple(trial.lane for trial in self.trials if trial.verdict != REFUSED)

    @property
    def refused(self) -> tuple[str, ...]:
        """The names of the lanes left out, best first."""
        return tuple(trial.lane for trial in self.trials if trial.verdict == REFUSED)

    def __repr__(self) -> str:
        wide = max(len("lane"), *(len(trial.lane) for trial in self.trials))
        lines = [
            f"<Admission: {len(self.admitted)} of {len(self.trials)} lanes admitted, margin {self.margin:g}: {self.stage.name}>"
        ]
        lines.append(f"  {'lane':{wide}}  alone  without   with  verdict")
        for trial in self.trials:
            fusion = (
                f"{'-':>7}  {'-':>5}"
                if trial.verdict == _FIRST
                else f"{trial.without:7.3f}  {trial.joined:5.3f}"
            )
            lines.append(f"  {trial.lane:{wide}}  {trial.alone:5.3f}  {fusion}  {trial.verdict}")
        return "\n".join(lines)


def gate(
    lanes: Mapping[str, Stage] | Sequence[Stage],
    fuse: Callable[[Sequence[Stage]], Stage],
    quality: Callable[[Stage], float],
    *,
    margin: float = MARGIN,
) -> Admission:
    """The lanes worth fusing: the best alone, then each other one, best first, if the fusion with it is
    better, by the margin or more.

    `quality` measures a pipeline on questions kept for tuning, higher is better. A lane that gains nothing is
    refused, with a margin of 0 too. Equal lanes are offered by name. One lane alone is a legal outcome, and
    the usual one where it is much better than the others. Raises BadInput without lanes, for two of one name,
    for a margin below 0, and when a quality is not a finite number.
    """
    named = _named(lanes)
    if (
        isinstance(margin, bool)
        or not isinstance(margin, int | float)
        or not (math.isfinite(margin) and margin >= 0)
    ):
        raise BadInput(f"the margin of a gate must be a number of 0 or more, not {margin!r}")
    alone = {name: _measured(quality, lane) for name, lane in named.items()}
    first, *others = sorted(named, key=lambda name: (-alone[name], name))
    stage, level, inside = named[first], alone[first], [named[first]]
    trials = [Trial(first, level, level, level, _FIRST)]
    for name in others:
        candidate = fuse([*inside, named[name]])
        joined = _measured(quality, candidate)
        better = joined - level >= max(margin, 2 * _FRACTION) - _FRACTION
        trials.append(Trial(name, alone[name], level, joined, ADMITTED if better else REFUSED))
        if better:
            stage, level, inside = candidate, joined, [*inside, named[name]]
    return Admission(stage, tuple(trials), margin)


def _named(lanes: Mapping[str, Stage] | Sequence[Stage]) -> dict[str, Stage]:
    named = dict(lanes) if isinstance(lanes, Mapping) else {lane.name: lane for lane in lanes}
    if not named:
        raise BadInput("a gate takes at least one lane")
    if len(named) < len(lanes):
        raise BadInput("two lanes have the same name; give the gate a dictionary with a name for each")
    return named


def _measured(quality: Callable[[Stage], float], stage: Stage) -> float:
    value = float(quality(stage))
    if not math.isfinite(value):
        raise BadInput(f"the quality of {stage.name!r} is {value}; a gate needs a finite number")
    return value
