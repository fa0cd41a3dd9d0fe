"""Reasons to name no winner: what makes a trial invalid, and what leaves it undecided."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.errors import BadInput
from kgot_lab.experts.trials.measures import (
    EVEN,
    TRIAL_MEASURES,
    VARIANTS,
    SequentialComparison,
    TrialMeasure,
    TrialOutcome,
    TrialVariant,
    bounded_comparison,
    require_shares,
)

MISMATCH = 0.001  # a smaller p of the shares of conversations makes a trial invalid
SILENT = 0.8  # one variant's conversations are judged less than this share as often as the other's: the raters may differ
_SURE = 100.0  # how sure the alternative to the stated shares is that they are nearly kept, in conversations
# what raters say and what an answer rests on: a winner may not lose by either
_OPPOSED = ("thumbs", "citation use")


@dataclass(frozen=True)
class Declined:
    """Why no winner is named: `why` in a word or two for programs, `text` for people; `invalid` where more
    outcomes would not help.
    """

    why: str
    text: str
    invalid: bool = False


def mismatch_p(n_a: int, n_b: int, shares: tuple[float, float] = EVEN) -> float:
    """A p-value, valid at any time of looking, of so many conversations in each variant where they were to
    have these shares.

    1 / the Bayes factor of a Dirichlet prior around the shares against the shares themselves (Lindon and
    Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022), with a concentration of 100; at
    most 1. Raises BadInput for counts below 0 and no shares.
    """
    require_shares(shares)
    if n_a < 0 or n_b < 0:
        raise BadInput(f"counts of conversations are 0 or more, not {n_a} and {n_b}")
    before = [_SURE * share for share in shares]
    log_factor = _log_beta(before[0] + n_a, before[1] + n_b) - _log_beta(*before)
    log_factor -= n_a * math.log(shares[0]) + n_b * math.log(shares[1])
    return min(1.0, math.exp(min(0.0, -log_factor)))


def invalid_reasons(outcomes: Sequence[TrialOutcome], shares: tuple[float, float]) -> list[Declined]:
    """What makes outcomes of one trial unfit for a comparison, whatever they say."""
    units = _units(outcomes)
    found = []
    if both := units["a"].keys() & units["b"].keys():
        text = f"{_conversations(len(both))} in both variants: what came of them cannot be told apart"
        found.append(Declined("moved", text, invalid=True))
    digests = {
        variant: {each.digest for each in outcomes if each.variant == variant and each.digest}
        for variant in VARIANTS
    }
    for variant, some in digests.items():
        if len(some) > 1:
            text = f"the configuration of {variant} was changed while the trial ran ({len(some)} digests): begin a new trial"
            found.append(Declined("changed", text, invalid=True))
    if shared := digests["a"] & digests["b"]:
        text = f"both variants ran the same configuration (digest {min(shared)[:12]}): a difference would be chance"
        found.append(Declined("same", text, invalid=True))
    counts = len(units["a"]), len(units["b"])
    if (p := mismatch_p(*counts, shares)) < MISMATCH:
        text = f"{counts[0]} conversations with a and {counts[1]} with b do not fit shares of {shares[0]:g} and {shares[1]:g} (p {p:.1g})"
        found.append(
            Declined("unbalanced", f"{text}: look for answers that are lost or drawn otherwise", invalid=True)
        )
    return found


def silence(outcomes: Sequence[TrialOutcome], alpha: float) -> Declined | None:
    """A reason where conversations of one variant are judged much more rarely: those who judge may not be
    alike.

    By the comparison that holds at any time, and only where the rarer rate is below .8 of the other. A
    conversation counts as judged once one of its answers was, so this is a guard and its own rate of false
    alarms is no promise.
    """
    units = _units(outcomes)
    judged = {variant: [float(some) for some in units[variant].values()] for variant in VARIANTS}
    gap = bounded_comparison(judged["a"], judged["b"], alpha=alpha)
    if gap.higher is None or gap.mean_a is None or gap.mean_b is None:
        return None
    if min(gap.mean_a, gap.mean_b) >= SILENT * max(gap.mean_a, gap.mean_b):
        return None
    text = f"{gap.mean_a:.0%} of the conversations with a are judged and {gap.mean_b:.0%} with b: those who judge may not be alike"
    return Declined("silent", text)


def undecided_reasons(
    comparisons: Mapping[str, SequentialComparison],
    primary: TrialMeasure,
    least: int,
    better: Callable[[str], TrialVariant | None],
) -> list[Declined]:
    """What leaves a valid trial without a winner; `better` tells of a measure by name which variant is shown
    to be the better.
    """
    own = comparisons[primary.name]
    if min(own.n_a, own.n_b) < least:
        text = f"too few values of {primary.name}: {own.n_a} with a and {own.n_b} with b, of at least {least} each"
        return [Declined("too few", text)]
    if not own.steady:
        return [
            Declined(
                "unsteady", f"the difference in {primary.name} did not stay the same while the trial ran"
            )
        ]
    winner = better(primary.name)
    if winner is None:
        shown = (
            "" if own.detectable is None else f"; as many would have shown about {own.detectable:.2g} or more"
        )
        text = f"no difference in {primary.name} is shown: {own.low:+.2g} to {own.high:+.2g} for b against a{shown}"
        return [Declined("no difference", text)]
    against = [name for name in _OPPOSED if better(name) not in (None, winner)]
    return [
        Declined("disagree", f"{primary.name} speaks for {winner} and {name} against it") for name in against
    ]


def _units(outcomes: Sequence[TrialOutcome]) -> dict[TrialVariant, dict[str, bool]]:
    """The conversations of each variant in the order of time, and whether any of their answers was judged."""
    units: dict[TrialVariant, dict[str, bool]] = {variant: {} for variant in VARIANTS}
    judged = TRIAL_MEASURES["thumbs"].value
    for each in outcomes:
        known = units[each.variant]
        known[each.unit] = known.get(each.unit, False) or judged(each) is not None
    return units


def _conversations(count: int) -> str:
    return "1 conversation is" if count == 1 else f"{count} conversations are"


def _log_beta(one: float, other: float) -> float:
    return math.lgamma(one) + math.lgamma(other) - math.lgamma(one + other)
