"""What a trial shows so far: every measure compared, and a winner only where one may be named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.errors import BadInput, require_count
from kgot_lab.evaluation.significance import holm
from kgot_lab.evaluation.tables import Cell, Grid, decimal, signed
from kgot_lab.experts.trials.measures import (
    ALPHA,
    EVEN,
    TRIAL_MEASURES,
    SequentialComparison,
    TrialMeasure,
    TrialOutcome,
    TrialVariant,
    bounded_comparison,
    ranked_comparison,
    require_shares,
    settled_order,
    trial_measure,
    values_by_variant,
)
from kgot_lab.experts.trials.verdict import Declined, invalid_reasons, silence, undecided_reasons

LEAST = 30


@dataclass(frozen=True)
class TrialPlan:
    """What is stated before a trial begins; changed later, nothing it promises holds. Raises BadInput,
    UnknownName for the measure.

    primary: the one measure that may name a winner. alpha: the share of false winners that is allowed, over
    all looks together. least: values of the primary measure that each variant needs. shares: of the
    conversations that a and b are given.
    """

    primary: str = "thumbs"
    alpha: float = ALPHA
    least: int = LEAST
    shares: tuple[float, float] = EVEN

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
    """What a trial shows so far. `winner` is None unless the primary measure shows one and nothing speaks
    against naming it.

    comparisons: by measure, b against a. corrected: the p of the measures beside the primary one, by Holm
    over these; they name no winner. declined: why none is named. costs: measures beside the primary one that
    are shown to be worse with the winner, after correction.
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
        """The winner, "undecided", or "invalid" where more outcomes would not help."""
        return self.winner or ("invalid" if any(each.invalid for each in self.declined) else "undecided")

    @property
    def correction(self) -> str:
        """How the p-values are corrected, in a sentence."""
        return (
            f"Only {self.plan.primary} can name a winner, at {self.plan.alpha:g} over all looks together; "
            f"the p of the {len(self.corrected)} other measures are corrected by Holm and name none."
        )

    def grid(self) -> Grid:
        """The comparisons as a table; a measure that shows a difference after correction is bold."""
        columns = ("measure", "n a", "n b", "a", "b", "b - a", "interval at any time", "e", "p", "p Holm")
        return Grid(str(self), columns, tuple(self._row(name) for name in self.comparisons))

    def _row(self, name: str) -> tuple[Cell, ...]:
        row = self.comparisons[name]
        p = self.corrected.get(name, row.p)
        means = [Cell("–" if mean is None else decimal(mean)) for mean in (row.mean_a, row.mean_b)]
        gap = Cell("–" if row.difference is None else signed(row.difference), p <= row.alpha)
        tail = (
            Cell(f"{signed(row.low)} to {signed(row.high)}"),
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
    """What all outcomes of one trial show so far; it may be asked after every one of them.

    They are taken by the time they were settled, however they are given, and one value of each conversation
    counts. Give all of them, not only those with a thumb: the balance of the variants and who stays silent
    are judged by the others. Raises BadInput for outcomes of two trials, or none.
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
