"""Retriever selection: a retriever is added only if it improves the fusion on a tuning split by a margin."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kgot_lab.errors import BadInput, require_amount
from kgot_lab.evaluation.results import MARGIN
from kgot_lab.retrieval.stage import Stage

_FIRST, ADMITTED, REFUSED = "first", "admitted", "refused"
_TOLERANCE = 1e-12  # tolerance: a gain equal to the margin is enough


@dataclass(frozen=True)
class Trial:
    """One retriever tried in the selection, with its qualities and the verdict.

    `alone` is its own quality, `without` and `joined` are those of the fusion without and with it.
    """

    retriever: str
    alone: float
    without: float  # for the first retriever there is no fusion yet: both are its own
    joined: float
    verdict: str


@dataclass(frozen=True, repr=False)
class Selection:
    """The result of a selection: the pipeline of the admitted retrievers, and all trials in order."""

    stage: Stage = field(compare=False)
    trials: tuple[Trial, ...]
    margin: float

    @property
    def selected(self) -> tuple[str, ...]:
        """The names of the selected retrievers, best first."""
        return tuple(trial.retriever for trial in self.trials if trial.verdict != REFUSED)

    @property
    def rejected(self) -> tuple[str, ...]:
        """The names of the rejected retrievers, best first."""
        return tuple(trial.retriever for trial in self.trials if trial.verdict == REFUSED)

    def __repr__(self) -> str:
        wide = max(len("retriever"), *(len(trial.retriever) for trial in self.trials))
        counts = f"{len(self.selected)} of {len(self.trials)} retrievers selected"
        lines = [f"<Selection: {counts}, margin {self.margin:g}: {self.stage.name}>"]
        lines.append(f"  {'retriever':{wide}}  alone  without   with  verdict")
        for trial in self.trials:
            fusion = f"{trial.without:7.3f}  {trial.joined:5.3f}"
            if trial.verdict == _FIRST:
                fusion = f"{'-':>7}  {'-':>5}"
            lines.append(f"  {trial.retriever:{wide}}  {trial.alone:5.3f}  {fusion}  {trial.verdict}")
        return "\n".join(lines)


def select_retrievers(
    retrievers: Mapping[str, Stage] | Sequence[Stage],
    fuse: Callable[[Sequence[Stage]], Stage],
    quality: Callable[[Stage], float],
    *,
    margin: float = MARGIN,
) -> Selection:
    """Select the retrievers worth fusing, by forward selection.

    The best retriever alone comes first. Each other one, best first, is added if it improves the fusion by
    `margin` or more. `quality` measures a pipeline on tuning questions, higher is better. A retriever without
    a gain is refused even for a margin of 0. Equal retrievers are tried in the order of their names. Often
    one alone is left, if it is much better than the others. Raises BadInput without retrievers, for two of
    one name, for a margin below 0, and if a quality is not finite.
    """
    by_name = _retrievers_by_name(retrievers)
    require_amount(margin, "the margin of the selection")
    own_quality = {name: _finite_quality(quality, stage) for name, stage in by_name.items()}
    first, *others = sorted(by_name, key=lambda name: (-own_quality[name], name))
    stage, current, selected = by_name[first], own_quality[first], [by_name[first]]
    trials = [Trial(first, current, current, current, _FIRST)]
    for name in others:
        candidate = fuse([*selected, by_name[name]])
        joined = _finite_quality(quality, candidate)
        better = joined - current >= max(margin, 2 * _TOLERANCE) - _TOLERANCE
        trials.append(Trial(name, own_quality[name], current, joined, ADMITTED if better else REFUSED))
        if better:
            stage, current, selected = candidate, joined, [*selected, by_name[name]]
    return Selection(stage, tuple(trials), margin)


def _retrievers_by_name(retrievers: Mapping[str, Stage] | Sequence[Stage]) -> dict[str, Stage]:
    named = (
        dict(retrievers) if isinstance(retrievers, Mapping) else {stage.name: stage for stage in retrievers}
    )
    if not named:
        raise BadInput("the selection takes at least one retriever")
    if len(named) < len(retrievers):
        raise BadInput("two retrievers have the same name; give a dictionary with a name for each")
    return named


def _finite_quality(quality: Callable[[Stage], float], stage: Stage) -> float:
    value = float(quality(stage))
    if not math.isfinite(value):
        raise BadInput(f"the quality of {stage.name!r} is {value}; the selection needs a finite number")
    return value
