"""A conditional logit: how much each feature of a choice counts, learnt from questions with one right choice
each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.significance import Numbers

_Places = NDArray[np.intp]

FOLDS = 10


def fit_logit(features: ArrayLike, answers: Sequence[int], l2: float = 1.0) -> Numbers:
    """The weights under which the right choices are likeliest, shape (features,).

    `features` has shape (questions, choices, features). P(choice i) = exp(w.x_i) / sum over choices j of
    exp(w.x_j) (McFadden 1974). Maximised is the log likelihood less l2 / 2 times the squared weights, each
    counted in standard deviations of its feature, by Newton's method; it has one maximum, so nothing is left
    to chance. Raises BadInput for shapes that do not fit or an l2 not above 0.
    """
    table, right = _checked(features, answers, l2)
    spread = table.reshape(-1, table.shape[2]).std(axis=0)
    spread[spread < 1e-12] = 1.0  # a feature that is the same everywhere says nothing: its weight stays 0
    table = table / spread
    rows, weights = np.arange(len(right)), np.zeros(table.shape[2])
    for _ in range(100):
        chances = softmax(table @ weights)
        means = np.einsum("qc,qcf->qf", chances, table)
        slope = (table[rows, right] - means).sum(axis=0) - l2 * weights
        bend = (
            np.einsum("qc,qcf,qcg->fg", chances, table, table) - means.T @ means + l2 * np.eye(len(weights))
        )
        step = np.linalg.solve(bend, slope)
        while _fitness(table, right, weights + step, l2) < _fitness(table, right, weights, l2) - 1e-9:
            step = step / 2  # far from the maximum a whole step can overshoot
        weights = weights + step
        if np.abs(step).max() < 1e-9:
            break
    return np.asarray(weights / spread, np.float64)


def cross_validated(
    features: ArrayLike, answers: Sequence[int], groups: Sequence[str], *, l2: float = 1.0, folds: int = FOLDS
) -> Numbers:
    """For each question the weights learnt on the questions of other folds, shape (questions, features).

    A group is never divided. Raises BadInput for fewer than two groups.
    """
    table, right = _checked(features, answers, l2)
    if len(groups) != len(right):
        raise BadInput(
            f"there are {len(right)} questions and {len(groups)} groups; give the group of each question"
        )
    place = fold_of(groups, folds)
    fold = np.array([place[group] for group in groups])
    weights = np.zeros((len(right), table.shape[2]))
    for number in range(max(place.values()) + 1):
        weights[fold == number] = fit_logit(table[fold != number], right[fold != number].tolist(), l2)
    return weights


def fold_of(groups: Sequence[str], folds: int = FOLDS) -> dict[str, int]:
    """Which fold each group is in: dealt out in the order of their hash; raises BadInput for fewer than two
    groups or folds.
    """
    order = sorted(set(groups), key=lambda group: hashlib.sha256(f"fold {group}".encode()).hexdigest())
    if len(order) < 2 or folds < 2:
        raise BadInput(
            f"to learn on some groups and answer others takes two of them or more, and two folds; there are {len(order)} groups"
        )
    return {group: number % min(folds, len(order)) for number, group in enumerate(order)}


def softmax(values: Numbers) -> Numbers:
    """exp(v) over its sum, along the last axis."""
    raised = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), np.float64)


def _fitness(table: Numbers, right: _Places, weights: Numbers, l2: float) -> float:
    scores = table @ weights
    top = scores.max(axis=1)
    log_sums = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
    return float((scores[np.arange(len(right)), right] - log_sums).sum() - l2 / 2 * weights @ weights)


def _checked(features: ArrayLike, answers: Sequence[int], l2: float) -> tuple[Numbers, _Places]:
    table, right = np.asarray(features, np.float64), np.asarray(answers, np.intp)
    if table.ndim != 3 or not table.size or right.shape != table.shape[:1] or not np.isfinite(table).all():
        shapes = f"{table.shape} for {right.shape} answers"
        raise BadInput(
            f"features must be finite numbers of shape (questions, choices, features), not {shapes}"
        )
    if right.min() < 0 or right.max() >= table.shape[1]:
        raise BadInput(f"an answer is the place of a choice, from 0 to {table.shape[1] - 1}")
    if not l2 > 0:
        raise BadInput(f"l2 must be above 0, not {l2}: without it separable questions have no best weights")
    return table, right
