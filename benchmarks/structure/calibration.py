"""Calibration of thresholds on labelled pairs, for one embedder and one maker of skeletons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.similarity.delta import DIGITS, Cosines, TextPair, Thresholds


@dataclass(frozen=True)
class CalibrationObjective(CheckedRecord):
    """The objective of calibration: the largest F_beta, or precision at a minimum recall.

    The latter maximises precision at a recall of at least `least_recall`. F_beta = (1 + b^2) P R / (b^2 P +
    R) (van Rijsbergen 1979), with precision P and recall R. `prevalence` is the share of analogous pairs
    where the thresholds will be used: P = p R / (p R + (1 - p) F), with F the share of the other pairs that
    pass. Without it P is measured on the labelled pairs. Raises BadInput for numbers out of range.
    """

    beta: float = bounded(1.0, POSITIVE)
    least_recall: float | None = bounded(None, POSITIVE, 1)
    prevalence: float | None = bounded(None, POSITIVE, 0.999)

    def precision(self, right: Cosines, wrong: Cosines, totals: tuple[int, int]) -> Cosines:
        """Compute the precision from the numbers of analogous and other pairs that pass, and of all."""
        if self.prevalence is not None:
            right, wrong = self.prevalence * right / totals[0], (1 - self.prevalence) * wrong / totals[1]
        return right / np.maximum(right + wrong, 1e-300)

    def value(self, precision: Cosines, recall: Cosines) -> Cosines:
        """Return the objective to maximise, or -1 if the recall is too low."""
        if self.least_recall is not None:
            return np.where(recall >= self.least_recall - 1e-12, precision, -1.0)
        squared = self.beta**2
        return (1 + squared) * precision * recall / np.maximum(squared * precision + recall, 1e-300)

    def __str__(self) -> str:
        aim = f"F{self.beta:g}"
        if self.least_recall is not None:
            aim = f"precision at a recall of {self.least_recall:g} or more"
        shared = "" if self.prevalence is None else f", {self.prevalence:.1%} of the pairs being analogous"
        return aim + shared


@dataclass(frozen=True, repr=False)
class CalibratedThresholds(Thresholds):
    """The best thresholds on labelled pairs, with the aim, and precision and recall on the same pairs."""

    aim: str = ""
    pairs: int = 0
    analogous: int = 0
    precision: float = 0.0
    recall: float = 0.0
    embedder: str = ""
    maker: str = ""

    def describe(self, embedder: Embedder) -> str:
        """Format the thresholds and their origin, with a warning if they are for another embedder."""
        return str(self) + (
            f", not for {embedder.name}: calibrate again" if embedder.name != self.embedder else ""
        )

    def __str__(self) -> str:
        measured = f"precision {self.precision:.3f}, recall {self.recall:.3f} on the {self.pairs:,} pairs they were chosen on"
        chosen = f"skeleton >= {self.skeleton:g} and delta >= {self.delta:g}, for {self.aim}: {measured}"
        return f"{chosen} ({self.analogous:,} analogous); {self.embedder}, skeletons by {self.maker}"

    def __repr__(self) -> str:
        return f"<{self}>"


def calibrate_thresholds(
    pairs: Sequence[TextPair],
    labels: Sequence[bool],
    *,
    embedder: str,
    maker: str,
    aim: CalibrationObjective = CalibrationObjective(),
    steps: int = 50,
) -> CalibratedThresholds:
    """Choose the two thresholds that maximise an aim on labelled pairs of a tuning split.

    Candidates are `steps` + 1 quantiles of the observed skeleton similarities, combined with as many of the
    deltas. Ties go to the stricter thresholds: fewer passing pairs, then the higher skeleton, then the higher
    delta. Precision and recall are measured on the same pairs, so they are optimistic. Raises BadInput if the
    labels do not fit the pairs or are all equal.
    """
    is_analogous = _validate_labels(pairs, labels)
    if steps < 1:
        raise BadInput(f"the quantiles are cut into 1 step or more, not {steps}")
    skeleton = np.round([pair.skeleton for pair in pairs], DIGITS)
    delta = np.array([pair.delta for pair in pairs])
    tried_skeleton, tried_delta = _quantiles(skeleton, steps), _quantiles(delta, steps)
    alike = (skeleton[:, None] >= tried_skeleton).astype(float)
    hidden = (delta[:, None] >= tried_delta).astype(float)
    right, wrong = (alike * is_analogous[:, None]).T @ hidden, (alike * ~is_analogous[:, None]).T @ hidden
    analogous = int(is_analogous.sum())
    recall, precision = right / analogous, aim.precision(right, wrong, (analogous, len(pairs) - analogous))
    s, d = _best_index(np.round(aim.value(precision, recall), 12), right + wrong)
    return CalibratedThresholds(
        float(tried_skeleton[s]),
        float(tried_delta[d]),
        aim=str(aim),
        pairs=len(pairs),
        analogous=analogous,
        precision=float(precision[s, d]),
        recall=float(recall[s, d]),
        embedder=embedder,
        maker=maker,
    )


def _best_index(value: Cosines, passing: Cosines) -> tuple[int, int]:
    """Return the position of the largest value in a table.

    Ties go to the fewest passing, then the last row, then the last column.
    """
    rows, columns = np.indices(value.shape)
    order = np.lexsort((columns.ravel(), rows.ravel(), -passing.ravel(), value.ravel()))
    s, d = np.unravel_index(order[-1], value.shape)
    return int(s), int(d)


def _quantiles(values: Cosines, steps: int) -> Cosines:
    """Return observed values at evenly spaced quantiles, from the lowest to the highest."""
    return np.unique(np.quantile(values, np.linspace(0, 1, steps + 1), method="inverted_cdf"))


def _validate_labels(pairs: Sequence[TextPair], labels: Sequence[bool]) -> NDArray[np.bool_]:
    if len(pairs) != len(labels):
        raise BadInput(f"every pair needs a label: {len(pairs)} pairs have {len(labels)}")
    if invalid := [label for label in labels if label not in (0, 1)]:
        raise BadInput(f"a label says whether a pair is analogous, True or False, not {invalid[0]!r}")
    if unknown := [pair for pair in pairs if not math.isfinite(pair.delta)]:
        named = f"{unknown[0].source[:40]!r} and {unknown[0].target[:40]!r}"
        problem = f"{len(unknown)} of {len(pairs)} pairs have a similarity that is no number"
        raise BadInput(f"{problem}; the first is that of {named}")
    is_analogous = np.array(labels, dtype=bool)
    if is_analogous.all() or not is_analogous.any():
        problem = "thresholds need pairs that are analogous and pairs that are not"
        raise BadInput(f"{problem}: {int(is_analogous.sum())} of {len(pairs)} are")
    return is_analogous
