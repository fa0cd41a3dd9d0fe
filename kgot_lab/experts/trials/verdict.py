"""Run A/B trials of two configurations of an expert, and name a winner only if the data justify it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from kgot_lab.arguments import CheckedRecord, bounded
from kgot_lab.errors import BadInput
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
    find_measure,
    ranked_comparison,
    require_shares,
    sort_by_settled,
    values_by_variant,
)
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

# Reasons to name no winner: those that make a trial invalid, and those that leave it undecided.

MISMATCH_LEVEL = 0.001  # a smaller p-value of the counts makes a trial invalid
MIN_RATING_RATIO = 0.8  # one variant's conversations are rated less than this share as often as the other's: the raters may differ
_PRIOR_CONCENTRATION = 100.0  # concentration of the prior around the stated shares, in conversations
# ratings and citations: a winner may be worse in neither
_GUARDED_MEASURES = ("thumbs", "citation use")


@dataclass(frozen=True)
class NoWinnerReason:
    """Why no winner is named.

    `why` is for programs, `text` for people. `invalid` is True if more outcomes would not help.
    """

    why: str
    text: str
    invalid: bool = False


def mismatch_p_value(n_a: int, n_b: int, shares: tuple[float, float] = EVEN_SHARES) -> float:
    """Return an anytime-valid p-value for a mismatch between conversation counts and assigned shares.

    It is 1 / the Bayes factor of a Dirichlet prior around the shares against the shares themselves (Lindon
    and Malek, Anytime-valid inference for multinomial count data, NeurIPS 2022), with a concentration of 100,
    and at most 1. Raises BadInput for negative counts or invalid shares.
    """
    require_shares(shares)
    if n_a < 0 or n_b < 0:
        raise BadInput(f"counts of conversations are 0 or more, not {n_a} and {n_b}")
    prior = [_PRIOR_CONCENTRATION * share for share in shares]
    log_factor = _log_beta(prior[0] + n_a, prior[1] + n_b) - _log_beta(*prior)
    log_factor -= n_a * math.log(shares[0]) + n_b * math.log(shares[1])
    return min(1.0, math.exp(min(0.0, -log_factor)))


def invalid_reasons(outcomes: Sequence[TrialOutcome], shares: tuple[float, float]) -> list[NoWinnerReason]:
    """Return the reasons why the outcomes of a trial cannot be compared, whatever they show."""
    units = _conversations_by_variant(outcomes)
    reasons = []
    if in_both := units["a"].keys() & units["b"].keys():
        count = format_count(len(in_both), "conversation is", "conversations are")
        text = f"{count} in both variants: their outcomes belong to neither"
        reasons.append(NoWinnerReason("moved", text, invalid=True))
    known = [outcome for outcome in outcomes if outcome.digest]
    digests = {variant: {each.digest for each in known if each.variant == variant} for variant in VARIANTS}
    for variant, configurations in digests.items():
        if len(configurations) > 1:
            text = f"the configuration of {variant} was changed while the trial ran ({len(configurations)} digests): begin a new trial"
            reasons.append(NoWinnerReason("changed", text, invalid=True))
    if shared_digests := digests["a"] & digests["b"]:
        text = f"both variants ran the same configuration (digest {min(shared_digests)[:12]}): a difference would be chance"
        reasons.append(NoWinnerReason("same", text, invalid=True))
    counts = len(units["a"]), len(units["b"])
    if (p := mismatch_p_value(*counts, shares)) < MISMATCH_LEVEL:
        text = f"{counts[0]} conversations with a and {counts[1]} with b do not fit shares of {shares[0]:g} and {shares[1]:g} (p {p:.1g})"
        advice = "look for answers that are lost or drawn otherwise"
        reasons.append(NoWinnerReason("unbalanced", f"{text}: {advice}", invalid=True))
    return reasons


def rating_imbalance(outcomes: Sequence[TrialOutcome], alpha: float) -> NoWinnerReason | None:
    """Return a reason if one variant's conversations are judged much more rarely, else None.

    The people who judge may then differ between variants. The comparison is anytime-valid, and the rarer rate
    must also be below .8 of the other. A conversation counts as judged once one of its answers was. This is a
    guard, so its false alarm rate is not guaranteed.
    """
    units = _conversations_by_variant(outcomes)
    was_judged = {variant: [float(some) for some in units[variant].values()] for variant in VARIANTS}
    comparison = bounded_comparison(was_judged["a"], was_judged["b"], alpha=alpha)
    if comparison.higher is None or comparison.mean_a is None or comparison.mean_b is None:
        return None
    means = comparison.mean_a, comparison.mean_b
    if min(means) >= MIN_RATING_RATIO * max(means):
        return None
    text = f"{comparison.mean_a:.0%} of the conversations with a are judged and {comparison.mean_b:.0%} with b: those who judge may not be alike"
    return NoWinnerReason("silent", text)


def undecided_reasons(
    comparisons: Mapping[str, SequentialComparison],
    primary: TrialMeasure,
    minimum: int,
    better_variant: Callable[[str], TrialVariant | None],
) -> list[NoWinnerReason]:
    """Return the reasons why a valid trial has no winner.

    `better_variant` returns, for the name of a measure, the variant that is shown to be better.
    """
    comparison = comparisons[primary.name]
    if min(comparison.n_a, comparison.n_b) < minimum:
        text = f"too few values of {primary.name}: {comparison.n_a} with a and {comparison.n_b} with b, of at least {minimum} each"
        return [NoWinnerReason("too few", text)]
    if not comparison.steady:
        text = f"the difference in {primary.name} did not stay the same while the trial ran"
        return [NoWinnerReason("unsteady", text)]
    winner = better_variant(primary.name)
    if winner is None:
        detectable = ""
        if comparison.detectable is not None:
            detectable = f"; as many would have shown about {comparison.detectable:.2g} or more"
        text = f"no difference in {primary.name} is shown: {comparison.low:+.2g} to {comparison.high:+.2g} for b against a{detectable}"
        return [NoWinnerReason("no difference", text)]
    against = [name for name in _GUARDED_MEASURES if better_variant(name) not in (None, winner)]
    return [
        NoWinnerReason("disagree", f"{primary.name} speaks for {winner} and {name} against it")
        for name in against
    ]


def _conversations_by_variant(outcomes: Sequence[TrialOutcome]) -> dict[TrialVariant, dict[str, bool]]:
    """Return the conversations of each variant in time order, and whether any of their answers was judged."""
    units: dict[TrialVariant, dict[str, bool]] = {variant: {} for variant in VARIANTS}
    judged = TRIAL_MEASURES["thumbs"].value
    for outcome in outcomes:
        conversations = units[outcome.variant]
        conversations[outcome.unit] = conversations.get(outcome.unit, False) or judged(outcome) is not None
    return units


def _log_beta(alpha: float, beta: float) -> float:
    return math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)


MIN_VALUES = 30


@dataclass(frozen=True)
class TrialPlan(CheckedRecord):
    """The plan of a trial, stated before it begins. Changing it later voids its guarantees.

    primary: the one measure that may name a winner. alpha: the allowed rate of false winners, over all looks
    together. least: the values of the primary measure that each variant needs. shares: the shares of
    conversations of a and b. Raises BadInput, and UnknownName for the measure.
    """

    primary: str = "thumbs"
    alpha: float = bounded(ALPHA, 1e-6, 0.999)
    least: int = bounded(MIN_VALUES, 2)
    shares: tuple[float, float] = EVEN_SHARES

    def __post_init__(self) -> None:
        super().__post_init__()
        find_measure(self.primary)
        require_shares(self.shares)


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
    declined: tuple[NoWinnerReason, ...] = ()
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
        difference = Cell("–" if row.difference is None else format_signed(row.difference), p <= row.alpha)
        ends = f"{format_signed(row.low)} to {format_signed(row.high)}"
        interval = tuple(map(Cell, (ends, f"{row.e_value:.3g}", f"{row.p:.2g}")))
        corrected = Cell(f"{p:.2g}" if name in self.corrected else "primary")
        return Cell(name), Cell(str(row.n_a)), Cell(str(row.n_b)), *means, difference, *interval, corrected

    def __str__(self) -> str:
        comparison = self.comparisons[self.plan.primary]
        if self.winner is None:
            return f"{self.test_id}: {self.decision}; " + "; ".join(each.text for each in self.declined)
        interval = f"{comparison.low:+.2g} to {comparison.high:+.2g}"
        difference = f"{self.plan.primary} differ by {interval} (b against a)"
        costs = f"; it is worse by {', '.join(self.costs)}" if self.costs else ""
        return f"{self.test_id}: {self.winner} is better; {difference}{costs}"

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
    tests = sorted({outcome.test_id for outcome in outcomes})
    if len(tests) != 1:
        problem = f"a verdict is on the outcomes of one trial, not of {len(tests)}"
        raise BadInput(f"{problem}: {', '.join(tests[:3]) or 'there are none yet'}")
    ordered = sort_by_settled(outcomes)
    measures = TRIAL_MEASURES.items()
    comparisons = {name: _compare_measure(measure, ordered, plan.alpha) for name, measure in measures}
    others = [name for name in comparisons if name != plan.primary]
    corrected = dict(zip(others, holm([comparisons[name].p for name in others]), strict=True))

    def better(name: str) -> TrialVariant | None:
        return TRIAL_MEASURES[name].better_variant(comparisons[name].higher)

    primary = find_measure(plan.primary)
    declined = invalid_reasons(ordered, plan.shares) or undecided_reasons(
        comparisons, primary, plan.least, better
    )
    silent = None
    if plan.primary == "thumbs" and not any(each.invalid for each in declined):
        silent = rating_imbalance(ordered, plan.alpha)
    declined = [*declined, silent] if silent else declined
    if declined:
        return TrialVerdict(tests[0], plan, comparisons, corrected, None, tuple(declined))
    winner = better(plan.primary)
    costs = [name for name in others if corrected[name] <= plan.alpha and better(name) not in (None, winner)]
    return TrialVerdict(tests[0], plan, comparisons, corrected, winner, (), tuple(costs))


def _compare_measure(
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
    validate: Callable[[ExpertConfig], ExpertConfig],
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
        variants[name] = validate(changed_config(config, change))
    if variants["a"] == variants["b"]:
        raise BadInput("the two variants are the same: there is nothing to compare")
    return tables.add_trial(expert, {"plan": asdict(plan), "a": a, "b": b})


def choose_variant(config: ExpertConfig, trial: StoredTrial, conversation: str) -> TrialChoice:
    """Choose the variant that answers a conversation while a trial is running."""
    variant = assign_variant(trial.id, conversation, _plan(trial).shares)
    return TrialChoice(trial.id, variant, changed_config(config, trial.body[variant]))


def trial_with_verdict(
    tables: ExpertTables, expert: str, id: str, now: datetime
) -> tuple[StoredTrial, TrialVerdict | None]:
    """Return a trial of an expert and what it shows so far, None before any outcome is settled.

    Raises NotFound if there is no such trial.
    """
    trials = [trial for trial in tables.trials(expert) if trial.id == id]
    if not trials:
        raise NotFound("trial")
    (trial,) = trials
    judged = (_trial_outcome(answer, id, now) for answer in tables.judged_answers(expert))
    outcomes = [outcome for outcome in judged if outcome is not None]
    return trial, trial_verdict(outcomes, _plan(trial)) if outcomes else None


def _plan(trial: StoredTrial) -> TrialPlan:
    fields = dict(trial.body["plan"])
    return TrialPlan(**fields | {"shares": tuple(fields["shares"])})


def _trial_outcome(answer: JudgedAnswer, trial: str, now: datetime) -> TrialOutcome | None:
    """Return the outcome of an answer, or None if it is not of this trial or not settled."""
    metadata = answer.about
    if metadata.get("trial") != trial or metadata.get("failed") or metadata.get("stopped"):
        return None
    settled_at = answer.thought_at or answer.at + SETTLED_AFTER
    if settled_at > now:
        return None
    prompt_nodes = len(metadata.get("kg_nodes_used", ()))
    first_token_ms = metadata.get("first_token_ms")
    return TrialOutcome(
        test_id=trial,
        variant=metadata["variant"],
        unit=answer.conversation,
        at=settled_at.timestamp(),
        thumb=answer.thumb,
        told=prompt_nodes,
        cited=min(prompt_nodes, len(metadata.get("citations", ()))),
        false_citations=len(metadata.get("false_citations", ())),
        seconds_first=None if first_token_ms is None else first_token_ms / 1000,
        digest=metadata["digest"],
    )
