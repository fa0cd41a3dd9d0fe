"""The measures of a trial: what each reads off an outcome, and which way is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgot_lab.errors import UnknownName
from kgot_lab.experts.trials.measures import VARIANTS, TrialOutcome, TrialVariant

MOST_FALSE = 4  # false citations of one answer that are counted: a comparison that holds for any number of outcomes needs a bound


@dataclass(frozen=True)
class TrialMeasure:
    """A number from 0 to `most` for an outcome, or None where it has none; `ranked` ones have no bound and
    are compared by order alone.
    """

    name: str
    value: Callable[[TrialOutcome], float | None]
    more_is_better: bool
    most: float = 1.0
    ranked: bool = False

    def better(self, favours_higher: TrialVariant | None) -> TrialVariant | None:
        """The better variant where it is known which has the higher values."""
        if favours_higher is None or self.more_is_better:
            return favours_higher
        return "a" if favours_higher == "b" else "b"


def _thumb(outcome: TrialOutcome) -> float | None:
    return None if outcome.thumb is None else float(outcome.thumb > 0)


def _use(outcome: TrialOutcome) -> float | None:
    return outcome.cited / outcome.told if outcome.told else None


def _false(outcome: TrialOutcome) -> float:
    return float(min(outcome.false_citations, MOST_FALSE))


def _intent(outcome: TrialOutcome) -> float | None:
    return None if outcome.intent_right is None else float(outcome.intent_right)


TRIAL_MEASURES = {
    measure.name: measure
    for measure in (
        TrialMeasure("thumbs", _thumb, more_is_better=True),
        TrialMeasure("citation use", _use, more_is_better=True),
        TrialMeasure("false citations", _false, more_is_better=False, most=MOST_FALSE),
        TrialMeasure(
            "seconds to first token", lambda outcome: outcome.seconds_first, more_is_better=False, ranked=True
        ),
        TrialMeasure("intent accuracy", _intent, more_is_better=True),
    )
}


def trial_measure(name: str) -> TrialMeasure:
    """A measure by its name; raises UnknownName."""
    if name not in TRIAL_MEASURES:
        raise UnknownName("measure of a trial", name, TRIAL_MEASURES)
    return TRIAL_MEASURES[name]


def settled_order(outcomes: Sequence[TrialOutcome]) -> list[TrialOutcome]:
    """Outcomes by the time they were settled; of those settled at the same time by conversation and content,
    however they were given.
    """
    return sorted(outcomes, key=lambda each: (each.at, each.unit, repr(each)))


def values_by_variant(
    outcomes: Sequence[TrialOutcome], measure: TrialMeasure
) -> dict[TrialVariant, list[float]]:
    """For each variant one value a conversation, in the order given: that of its first outcome that has one.

    Answers of one conversation are no independent draws, and how many there are may be an effect of the
    variant; the first is neither.
    """
    seen: dict[TrialVariant, dict[str, float]] = {variant: {} for variant in VARIANTS}
    for outcome in outcomes:
        value = measure.value(outcome)
        if value is not None:
            seen[outcome.variant].setdefault(outcome.unit, value)
    return {variant: list(values.values()) for variant, values in seen.items()}
