"""Test the retrieval claims of the KG-OS document: each replicates, does not, or cannot be decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.evaluation.reports import Report
from kgot_lab.evaluation.significance import Estimate, holm, interval, sign_flip_p, smallest_detectable
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.io.files import read_tables

REPLICATES, DOES_NOT, UNDECIDED = "replicates", "does not", "cannot be decided"


@dataclass(frozen=True)
class PublishedClaim:
    """A testable claim that one system finds more than another. `said` is what the document reports."""

    text: str
    better: str
    worse: str
    said: str


_CLAIMS = read_tables(Path(__file__).with_suffix(".txt"))
PUBLISHED_CLAIMS = tuple(PublishedClaim(*claim) for claim in _CLAIMS["testable"])
UNTESTABLE_CLAIMS = dict(_CLAIMS["untestable"])


@dataclass(frozen=True)
class Verdict:
    """A claim on one data set, with the mean paired difference, its p-value and the verdict.

    The p-value is corrected over all verdicts.
    """

    claim: PublishedClaim
    dataset: str
    difference: Estimate
    p_holm: float
    detectable: float

    @property
    def verdict(self) -> str:
        """Whether the claim replicates (a significant difference above 0), does not (below 0), or is
        undecided.
        """
        if self.p_holm >= 0.05 or self.difference.low <= 0 <= self.difference.high:
            return UNDECIDED
        return REPLICATES if self.difference.mean > 0 else DOES_NOT


@dataclass(frozen=True, repr=False)
class Verdicts:
    """The verdicts on all claims, on each data set and on all of them together. Prints as the table."""

    rows: tuple[Verdict, ...]
    measure: str
    waiting: Mapping[str, str] = field(default_factory=dict)  # claims that these data cannot test, and why

    @property
    def grid(self) -> Grid:
        """The table."""
        lines = []
        for row in self.rows:
            gap, verdict = row.difference, row.verdict
            interval = f"{format_signed(gap.low)} to {format_signed(gap.high)}"
            cells = (row.claim.text, row.dataset, str(gap.n), format_signed(gap.mean), interval)
            figures = (format_decimal(row.p_holm), format_decimal(row.detectable))
            lines.append((*map(Cell, (*cells, *figures)), Cell(verdict, verdict != UNDECIDED)))
        difference = f"{self.measure}, difference"
        columns = ("claim", "data", "n", difference, "95 %", "p Holm", "detectable", "verdict")
        return Grid("Claims of the KG-OS document", columns, tuple(lines))

    def markdown(self) -> str:
        """Format the table and the undecided claims as Markdown."""
        waiting = "\n".join(f"- {claim}: {reason}." for claim, reason in self.waiting.items())
        rest = f"\nWaiting for a curated graph:\n\n{waiting}\n" if waiting else ""
        return f"{self.grid.markdown}\n{rest}"

    def __repr__(self) -> str:
        waiting = [f"  {claim}: {why}" for claim, why in self.waiting.items()]
        return "\n".join(
            [self.grid.text, *(["", "Waiting for a curated graph:"] if waiting else []), *waiting]
        )

    def _repr_markdown_(self) -> str:
        return self.markdown()


def judge_claims(
    reports: Sequence[Report], measure: str = "recall@5", claims: Sequence[PublishedClaim] = PUBLISHED_CLAIMS
) -> Verdicts:
    """Test each claim on every data set, and on all together, query by query.

    Uses paired randomisation and BCa intervals, as in the reports. Holm's family is the whole table. The
    document's own figures are from ten queries. Raises BadInput without reports.
    """
    if not reports:
        raise BadInput("verdicts() takes the reports of the benchmark")
    plan, rows = reports[0].plan, []
    for claim in claims:
        gaps = {report.dataset.name: _paired_differences(report, claim, measure) for report in reports}
        if len(reports) > 1:
            gaps["all"] = [gap for some in gaps.values() for gap in some]
        rows += [(claim, name, some) for name, some in gaps.items()]
    ps = holm([sign_flip_p(gaps, rounds=plan.rounds, seed=plan.seed) for *_, gaps in rows])
    made = [
        Verdict(claim, name, interval(gaps, rounds=plan.rounds, seed=plan.seed), p, smallest_detectable(gaps))
        for (claim, name, gaps), p in zip(rows, ps, strict=True)
    ]
    return Verdicts(tuple(made), measure, UNTESTABLE_CLAIMS if claims is PUBLISHED_CLAIMS else {})


def _paired_differences(report: Report, claim: PublishedClaim, measure: str) -> list[float]:
    for system in (claim.better, claim.worse):
        if system not in report.scores:
            lacking = f"lacks {system!r}, which the claim {claim.text!r} needs"
            raise BadInput(f"the report on {report.dataset.name} {lacking}; run the whole benchmark")
    better, worse = (report.scores[system].per_query(measure) for system in (claim.better, claim.worse))
    return [better[query] - worse[query] for query in better]
