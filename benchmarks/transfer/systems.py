"""Systems made of traits: controls that learn nothing, and weights and settings that are chosen on some sets
and used on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.structure.analogies import Choices, hashed
from benchmarks.structure.answered import Answers, six
from benchmarks.structure.fitted import ALL
from benchmarks.structure.logit import cross_validated, fit_logit
from benchmarks.transfer.encodings import TRIED_DIRECTIONS, encoded_trait
from benchmarks.transfer.outcomes import TRAITS
from benchmarks.transfer.traits import MASKED, SETTINGS, Setting, Traits
from kgot_lab.evaluation.significance import Numbers

ALIGNED, OUTCOMES_FITTED = "aligned", "fitted outcomes"
SURFACE_AND_ALIGNED, ALL_THREE = "fitted surface + aligned", "fitted surface + aligned + outcomes"
SURFACE_FITTED = "fitted surface"
ALIGNED_AND_OUTCOMES = "aligned + outcomes"  # nothing is fitted: the score of the alignment and the mean of two chains of outcomes
# levels: standardised over the choices, and added up
ENCODING, LEVELS, ALL_LEVELS = ("encoded", "levels", "fitted surface + levels")
IN_ORDER = "masked in order"  # masked sentences side by side in order and nothing else: what an encoding has before it learns
_IN_ORDER = Setting(0, 0, 0, connectives=True)
FITS: Mapping[str, tuple[str, ...]] = {
    SURFACE_FITTED: ALL,
    SURFACE_AND_ALIGNED: (*ALL, ALIGNED),
    OUTCOMES_FITTED: (*TRAITS, MASKED, "surface", "nouns shared", "shares a noun"),
    ALL_THREE: (*ALL, ALIGNED, MASKED, *TRAITS),
    ALL_LEVELS: (*ALL, ALIGNED, MASKED, *TRAITS, ENCODING),
}
STRUCTURES = (
    *(MASKED, IN_ORDER, ALIGNED, "outcomes", ALIGNED_AND_OUTCOMES, ENCODING, LEVELS),
    *(OUTCOMES_FITTED, SURFACE_AND_ALIGNED, ALL_THREE, ALL_LEVELS),
)
_FAR_BELOW = 4.0


@dataclass(frozen=True, repr=False)
class Sets:
    """The traits of all questions of each set, by the name of the set."""

    by: Mapping[str, tuple[Traits, ...]]

    def without(self, name: str) -> Sets:
        """All sets but one."""
        return Sets({other: some for other, some in self.by.items() if other != name})

    def only(self, name: str) -> Sets:
        """One set alone."""
        return Sets({name: self.by[name]})

    def __repr__(self) -> str:
        return f"<sets {', '.join(f'{name} ({sum(len(some.table) for some in each)})' for name, each in self.by.items())}>"


@dataclass(frozen=True)
class ChosenElsewhere:
    """What some sets choose for a set: the setting of an aligner, and the trait of the encoder that was
    learnt without that set.
    """

    setting: Setting
    encoded: str

    @classmethod
    def by(cls, sets: Sets, held: str) -> ChosenElsewhere:
        """The setting, and the count of directions, that answer most develop questions of some sets, each set
        counting the same.

        Of equal counts it is the fewest. An encoder has read those questions, though not their answers, so it
        may choose more directions than a set needs that it has not read.
        """
        tried = [encoded_trait(held, count) for count in TRIED_DIRECTIONS]
        best = max(tried, key=lambda name: six(_mean_of_sets(sets, lambda traits: traits.column(name))))
        return cls(chosen_setting(sets), best)

    def __str__(self) -> str:
        return f"{self.setting}; {self.encoded.rpartition(', ')[2]} directions"


def unfitted(traits: Traits) -> dict[str, Numbers]:
    """What the controls and the structural systems that learn nothing say, by name, each of shape (questions,
    choices).
    """
    near, shares, masked = traits.column("surface"), traits.column("shares a noun"), traits.column(MASKED)
    said = {
        "surface": near,
        "bm25": traits.column("words"),
        "minus surface": -near,
        "second by surface": _second(near),
    }
    said |= {
        IN_ORDER: traits.aligned(_IN_ORDER),
        "noun veto": near - _FAR_BELOW * shares,
        "noun veto, masked": masked + near / 2 - _FAR_BELOW * shares,
        MASKED: masked,
    }
    return said | {"outcomes": traits.column(TRAITS[0]) + traits.column(TRAITS[1])}


def chosen_setting(sets: Sets) -> Setting:
    """The setting of an aligner that answers most develop questions of some sets, each set counting the same;
    of equal ones the usual one.

    It decides weights, whether order counts, and whether the list of connectives is used.
    """
    usual = Setting()
    order = [usual, *(setting for setting in SETTINGS if setting != usual)]
    return max(order, key=lambda setting: six(_mean_of_sets(sets, lambda traits: traits.aligned(setting))))


def _mean_of_sets(sets: Sets, said: Callable[[Traits], Numbers]) -> float:
    """The share of develop questions answered, each set counting the same."""
    shares = [
        [right_shares(said(traits), traits.questions)[_develop(traits)].mean() for traits in some]
        for some in sets.by.values()
    ]
    return float(np.mean([np.mean(some) for some in shares]))


def right_shares(said: Numbers, questions: Choices) -> Numbers:
    """1 for each question whose best choice is the right one; shared among those that are equally good."""
    return np.array(
        [
            right_share(row, question.answer)
            for row, question in zip(said.tolist(), questions.questions, strict=True)
        ],
        np.float64,
    )


def right_share(said: Sequence[float] | Numbers, answer: int) -> float:
    """1 where the best choice of a question is the right one, its part where several are equally good, else
    0.
    """
    rounded = [six(float(score)) for score in said]
    most = max(rounded)
    return (rounded[answer] == most) / rounded.count(most)


def trait_columns(traits: Traits, names: Iterable[str], chosen: ChosenElsewhere) -> Numbers:
    """Some traits side by side, shape (questions, choices, names); those of the alignment and the encoding
    are the chosen ones.
    """
    own = {ALIGNED: lambda: traits.aligned(chosen.setting), ENCODING: lambda: traits.column(chosen.encoded)}
    return np.stack([own[name]() if name in own else traits.column(name) for name in names], axis=2)


def transferred(traits: Traits, others: Sets, chosen: ChosenElsewhere) -> dict[str, Numbers]:
    """What every system says, what is chosen or learnt being chosen or learnt on other sets than the one that
    is held out.
    """
    said, aligned, encoded = unfitted(traits), traits.aligned(chosen.setting), traits.column(chosen.encoded)
    said |= {ALIGNED: aligned, ALIGNED_AND_OUTCOMES: aligned + said["outcomes"] / 2, ENCODING: encoded}
    said |= {
        LEVELS: sum(
            map(standardised, (said[MASKED], aligned, said["outcomes"], encoded)), np.zeros(aligned.shape)
        )
    }
    return said | {
        name: trait_columns(traits, names, chosen) @ learnt_weights(others, names, chosen)
        for name, names in FITS.items()
    }


def tuned(traits: Traits, taught: Traits, own: Sets, held: str) -> dict[str, Numbers]:
    """What the systems that learn say when they learn on the develop questions of the set itself.

    Fitted weights answer those crosswise; a setting and a count of directions are chosen on all of them,
    which flatters a little.
    """
    chosen = ChosenElsewhere.by(own, held)
    said = {ALIGNED: traits.aligned(chosen.setting), ENCODING: traits.column(chosen.encoded)}
    develop = _develop(taught)
    asked = [taught.questions.questions[row] for row in np.flatnonzero(develop).tolist()]
    answers, groups = [each.answer for each in asked], [each.group or each.id for each in asked]
    for name, names in FITS.items():
        table = trait_columns(taught, names, chosen)[develop]
        whole, crosswise = fit_logit(table, answers), cross_validated(table, answers, groups)
        of_group = dict(zip(groups, crosswise, strict=True))
        weights = np.array(
            [of_group.get(each.group or each.id, whole) for each in traits.questions.questions]
        )
        said[name] = np.einsum("qcf,qf->qc", trait_columns(traits, names, chosen), weights)
    return said


def learnt_weights(sets: Sets, names: Sequence[str], chosen: ChosenElsewhere) -> Numbers:
    """The weights of a conditional logit on develop questions, as many of each set, drawn by hash from all
    its questions.
    """
    pools = {
        name: [(traits, row) for traits in some for row in _rows(traits)] for name, some in sets.by.items()
    }
    count = min(map(len, pools.values()))
    tables = {
        id(traits): trait_columns(traits, names, chosen) for some in sets.by.values() for traits in some
    }
    drawn = [each for pool in pools.values() for each in sorted(pool, key=_drawn)[:count]]
    table = np.array([tables[id(traits)][row] for traits, row in drawn])
    return fit_logit(table, [traits.questions.questions[row].answer for traits, row in drawn])


def _rows(traits: Traits) -> list[int]:
    """The develop questions, by their places."""
    return [int(row) for row in np.flatnonzero(_develop(traits))]


def _drawn(each: tuple[Traits, int]) -> str:
    traits, row = each
    return hashed("taught", traits.questions.name, traits.questions.questions[row].id)


def as_answers(said: Mapping[str, Numbers], questions: Choices) -> dict[str, Answers]:
    """What systems say as answers to questions, by system."""
    found = {}
    for name, table in said.items():
        kind = "structure" if name in STRUCTURES else "surface" if name in ("surface", "bm25") else "control"
        scores = {
            each.id: tuple(map(six, row))
            for each, row in zip(questions.questions, table.tolist(), strict=True)
        }
        found[name] = Answers(name, kind, questions.name, scores)
    return found


def standardised(said: Numbers) -> Numbers:
    """What is said of the choices, shape (questions, choices), in deviations from each question's mean; 0
    where all are equal.
    """
    return np.asarray(
        (said - said.mean(axis=1, keepdims=True)) / np.maximum(said.std(axis=1, keepdims=True), 1e-9),
        np.float64,
    )


def _second(near: Numbers) -> Numbers:
    """The second nearest first, then the third and so on, the nearest last."""
    places = np.argsort(np.argsort(-near, axis=1, kind="stable"), axis=1)
    return np.asarray(np.where(places == 0, -near.shape[1], -places), np.float64)


def _develop(traits: Traits) -> NDArray[np.bool_]:
    return np.array([question.id not in traits.questions.locked for question in traits.questions.questions])
