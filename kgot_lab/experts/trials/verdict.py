"""Run A/B trials of two configurations of an expert, and name a winner only if the data justify it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from kgot_lab.errors import BadInput, require_count
from kgot_lab.evaluation.significance import holm
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.experts.expert import ExpertConfig, changed_config
from kgot_lab.experts.repository import ExpertTables, JudgedAnswer, NotFound, StoredTrial
from kgot_lab.experts.trials.measures import (
    ALPHA,
    EVEN_SHARES,
    TRIAL_MEASURES,
    VARIANTS,
    SequentialComparison,
    TrialMeasure,
    TrialOutcome,
    TrialVariant,
    assign_variant,
    bounded_comparison,
    ranked_comparison,
    require_shares,
    settled_order,
    trial_measure,
    values_by_variant,
)
from kgot_lab.types import Json

# Reasons to name no winner: those that make a trial invalid, and those that leave it undecided.

MISMATCH = 0.001  # a smaller p-value of the counts makes a trial invalid
SILENT = 0.8  # one variant's conversations are rated less than this share as often as the other's: the raters may differ
_SURE = 100.0  # concentration of the prior around the stated shares, in conversations
# ratings and citations: a winner may be worse in neither
_OPPOSED = ("thumbs", "citation use")


@dataclass(frozen=True)
class Declined:
    """Why no winner is named.

    `why` is for programs, `text` for people. `invalid` is True if more outcomes would not help.
    """

    why: str
    text: str
    invalid: bool = False


def mismatch_p(n_a: int, n_b: int, shares: tuple[float, float] = EVEN_SHARES) -> float:
    """Return an anytime-valid p-value for a mismatch between conversation counts and assigned shares.

    It is 1 / the Bayes factor of a Dirichlet prior around the shares against the shares themselves (Lindon
    and Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022), with a concentration of 100,
    and at most 1. Raises BadInput for negative counts or invalid shares.
    """
    require_shares(shares)
    if n_a < 0 or n_b < 0:
        raise BadInput(f"counts of conversations are 0 or more, not {n_a} and {n_b}")
    before = [_SURE * share for share in shares]
    log_factor = _log_beta(before[0] + n_a, before[1] + n_b) - _log_beta(*before)
    log_factor -= n_a * math.log(shares[0]) + n_b * math.log(shares[1])
    return min(1.0, math.exp(min(0.0, -log_factor)))


def invalid_reasons(outcomes: Sequence[TrialOutcome], shares: tuple[float, float]) -> list[Declined]:
    """Return the reasons why the outcomes of a trial cannot be compared, whatever they show."""
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
    """Return a reason if one variant's conversations are judged much more rarely, else None.

    The people who judge may then differ between variants. The comparison is anytime-valid, and the rarer rate
    must also be below .8 of the other. A conversation counts as judged once one of its answers was. This is a
    guard, so its false alarm rate is not guaranteed.
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
    """Return the reasons why a valid trial has no winner.

    `better` returns, for the name of a measure, the variant that is shown to be better.
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
    """Return the conversations of each variant in time order, and whether any of their answers was judged."""
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


LEAST = 30


@dataclass(frozen=True)
class TrialPlan:
    """The plan of a trial, stated before it begins. Changing it later voids its guarantees.

    primary: the one measure that may name a winner. alpha: the allowed rate of false winners, over all looks
    together. least: the values of the primary measure that each variant needs. shares: the shares of
    conversations of a and b. Raises BadInput, and UnknownName for the measure.
    """

    primary: str = "thumbs"
    alpha: float = ALPHA
    least: int = LEAST
    shares: tuple[float, float] = EVEN_SHARES

    def __post_init__(self) -> None:
        trial_measure(self.primary)
        require_count(self.least, 2, "the least number of values of each variant")
        require_shares(self.shares)
        if not 0 < self.alpha < 1:
            raise BadInput(
                f"alpha is the share of false winners that is allowed, between 0 and 1, not {self.alpha!r}"
            )


@dataclass(frozen=True, repr=False)
class TrialVerdict:
    """What a trial shows so far.

    winner: None unless the primary measure shows one and nothing opposes it. comparisons: by measure, b
    against a. corrected: the p-values of the secondary measures, corrected by Holm. They name no winner.
    declined: why none is named. costs: secondary measures that are shown to be worse with the winner, after
    correction.
    """

    test_id: str
    plan: TrialPlan
    comparisons: Mapping[str, SequentialComparison]
    corrected: Mapping[str, float]
    winner: TrialVariant | None
    declined: tuple[Declined, ...] = ()
    costs: tuple[str, ...] = ()

    @property
    def decision(self) -> str:
        """The winner, "undecided", or "invalid" if more outcomes would not help."""
        return self.winner or ("invalid" if any(each.invalid for each in self.declined) else "undecided")

    @property
    def correction(self) -> str:
        """How the p-values are corrected, in a sentence."""
        return (
            f"Only {self.plan.primary} can name a winner, at {self.plan.alpha:g} over all looks together; "
            f"the p of the {len(self.corrected)} other measures are corrected by Holm and name none."
        )

    def grid(self) -> Grid:
        """Return the comparisons as a table. A measure that differs after correction is bold."""
        columns = ("measure", "n a", "n b", "a", "b", "b - a", "interval at any time", "e", "p", "p Holm")
        return Grid(str(self), columns, tuple(self._row(name) for name in self.comparisons))

    def _row(self, name: str) -> tuple[Cell, ...]:
        row = self.comparisons[name]
        p = self.corrected.get(name, row.p)
        means = [Cell("–" if mean is None else format_decimal(mean)) for mean in (row.mean_a, row.mean_b)]
        gap = Cell("–" if row.difference is None else format_signed(row.difference), p <= row.alpha)
        tail = (
            Cell(f"{format_signed(row.low)} to {format_signed(row.high)}"),
            Cell(f"{row.e_value:.3g}"),
            Cell(f"{row.p:.2g}"),
        )
        holms = Cell(f"{p:.2g}" if name in self.corrected else "primary")
        return Cell(name), Cell(str(row.n_a)), Cell(str(row.n_b)), *means, gap, *tail, holms

    def __str__(self) -> str:
        own = self.comparisons[self.plan.primary]
        if self.winner is None:
            return f"{self.test_id}: {self.decision}; " + "; ".join(each.text for each in self.declined)
        shown = f"{self.plan.primary} differ by {own.low:+.2g} to {own.high:+.2g} (b against a)"
        return f"{self.test_id}: {self.winner} is better; {shown}" + (
            f"; it is worse by {', '.join(self.costs)}" if self.costs else ""
        )

    def __repr__(self) -> str:
        return f"{self.grid().text}\n{self.correction}"

    def _repr_html_(self) -> str:
        return self.grid().html


def trial_verdict(outcomes: Sequence[TrialOutcome], plan: TrialPlan | None = None) -> TrialVerdict:
    """Return what all outcomes of a trial show so far. It may be called after every outcome.

    Outcomes are sorted by the time they were settled, and one value of each conversation counts. Pass all of
    them, not only those with a thumb, because the balance of the variants and the rate of judgement are
    computed from the others. Raises BadInput if the outcomes are of several trials, or there are none.
    """
    plan = plan or TrialPlan()
    tests = sorted({each.test_id for each in outcomes})
    if len(tests) != 1:
        raise BadInput(
            f"a verdict is on the outcomes of one trial, not of {len(tests)}: {', '.join(tests[:3]) or 'there are none yet'}"
        )
    ordered = settled_order(outcomes)
    comparisons = {
        name: _compared_by(measure, ordered, plan.alpha) for name, measure in TRIAL_MEASURES.items()
    }
    others = [name for name in comparisons if name != plan.primary]
    corrected = dict(zip(others, holm([comparisons[name].p for name in others]), strict=True))

    def better(name: str) -> TrialVariant | None:
        return TRIAL_MEASURES[name].better(comparisons[name].higher)

    primary = trial_measure(plan.primary)
    declined = invalid_reasons(ordered, plan.shares) or undecided_reasons(
        comparisons, primary, plan.least, better
    )
    silent = (
        silence(ordered, plan.alpha)
        if plan.primary == "thumbs" and not any(each.invalid for each in declined)
        else None
    )
    declined = [*declined, silent] if silent else declined
    if declined:
        return TrialVerdict(tests[0], plan, comparisons, corrected, None, tuple(declined))
    winner = better(plan.primary)
    costs = [name for name in others if corrected[name] <= plan.alpha and better(name) not in (None, winner)]
    return TrialVerdict(tests[0], plan, comparisons, corrected, winner, (), tuple(costs))


def _compared_by(
    measure: TrialMeasure, ordered: Sequence[TrialOutcome], alpha: float
) -> SequentialComparison:
    values = values_by_variant(ordered, measure)
    if measure.ranked:
        return ranked_comparison(values["a"], values["b"], alpha=alpha)
    return bounded_comparison(values["a"], values["b"], most=measure.most, alpha=alpha)


# Trials of two configurations of an expert with its users. Each conversation has one of them, by its id.

SETTLED_AFTER = timedelta(hours=1)  # after this time an answer without a thumb counts as not rated


@dataclass(frozen=True)
class TrialChoice:
    """What answers a conversation of a trial: the variant, and the configuration."""

    trial: str
    variant: TrialVariant
    config: ExpertConfig

    @property
    def about(self) -> dict[str, Json]:
        """What is stored of it with an answer."""
        return {"trial": self.trial, "variant": self.variant, "digest": self.config.digest}


def begin_trial(
    tables: ExpertTables,
    expert: str,
    a: object,
    b: object,
    plan: TrialPlan,
    check: Callable[[ExpertConfig], ExpertConfig],
) -> StoredTrial:
    """Start a trial of two changes of an expert, {} for the unchanged expert.

    Raises BadInput, and NotFound if there is no such expert.
    """
    config = tables.expert(expert).config
    variants = {}
    for name, change in (("a", a), ("b", b)):
        if not isinstance(change, Mapping):
            raise BadInput(f"variant {name} is a JSON object with the fields that differ")
        if {"kg_db_id", "kg_db_ids", "name"} & set(change):
            raise BadInput("a variant differs in how it searches and speaks, not in name or graphs")
        variants[name] = check(changed_config(config, change))
    if variants["a"] == variants["b"]:
        raise BadInput("the two variants are the same: there is nothing to compare")
    return tables.add_trial(expert, {"plan": asdict(plan), "a": a, "b": b})


def chosen_variant(config: ExpertConfig, trial: StoredTrial, conversation: str) -> TrialChoice:
    """Choose the variant that answers a conversation while a trial is running."""
    variant = assign_variant(trial.id, conversation, _plan(trial).shares)
    return TrialChoice(trial.id, variant, changed_config(config, trial.body[variant]))


def verdict_on(
    tables: ExpertTables, expert: str, id: str, now: datetime
) -> tuple[StoredTrial, TrialVerdict | None]:
    """Return a trial of an expert and what it shows so far, None before any outcome is settled.

    Raises NotFound if there is no such trial.
    """
    found = [each for each in tables.trials(expert) if each.id == id]
    if not found:
        raise NotFound("trial")
    (trial,) = found
    outcomes = [outcome for each in tables.judged(expert) if (outcome := _outcome(each, id, now)) is not None]
    return trial, trial_verdict(outcomes, _plan(trial)) if outcomes else None


def _plan(trial: StoredTrial) -> TrialPlan:
    told = dict(trial.body["plan"])
    return TrialPlan(**told | {"shares": tuple(told["shares"])})


def _outcome(answer: JudgedAnswer, trial: str, now: datetime) -> TrialOutcome | None:
    """Return the outcome of an answer, or None if it is not of this trial or not settled."""
    about = answer.about
    if about.get("trial") != trial or about.get("failed") or about.get("stopped"):
        return None
    settled = answer.thought_at or answer.at + SETTLED_AFTER
    if settled > now:
        return None
    told = len(about.get("kg_nodes_used", ()))
    first = about.get("first_token_ms")
    return TrialOutcome(
        test_id=trial,
        variant=about["variant"],
        unit=answer.conversation,
        at=settled.timestamp(),
        thumb=answer.thumb,
        told=told,
        cited=min(told, len(about.get("citations", ()))),
        false_citations=len(about.get("false_citations", ())),
        seconds_first=None if first is None else first / 1000,
        digest=about["digest"],
    )
